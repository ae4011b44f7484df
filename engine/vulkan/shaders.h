// The compiled shaders of shaders/, embedded by the build. Those that read weights are one for each block format:
// "matvec_Q4_K".
#ifndef CONFAB_VULKAN_SHADERS_H
#define CONFAB_VULKAN_SHADERS_H

#include <stdint.h>

struct shader {
    const char *name;
    const uint32_t *code, *end; // SPIR-V
};

const struct shader *shader_find(const char *name); // NULL: there is none

#endif
