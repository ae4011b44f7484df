#include "engine/vulkan/shaders.h"

#include <stddef.h>
#include <string.h>

extern const struct shader shader_table[]; // of the build; ends with a name of NULL

const struct shader *shader_find(const char *name) {
    for (const struct shader *s = shader_table; s->name; s++)
        if (!strcmp(s->name, name)) return s;
    return NULL;
}
