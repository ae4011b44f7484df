#include "app/model_name.h"

#include <string.h>

#include "engine/base/panic.h"

char *model_title(const struct model_info *info) {
    const char *format = info->n_formats ? info->formats[0].name : "";
    if (!*format || strcasestr(info->name, format)) return xstrdup(info->name);
    return xasprintf("%s %s", info->name, format);
}

char *model_short_name(const struct model_info *info) {
    size_t size = strcspn(info->name, " ");
    return size ? xstrndup(info->name, size) : xstrdup(info->name);
}
