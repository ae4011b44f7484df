#include "app/models/model_name.h"

#include <ctype.h>
#include <string.h>

#include "engine/base/panic.h"

char *model_title(const struct model_info *info) {
    const char *format = info->n_formats ? info->formats[0].name : "";
    if (!*format || strcasestr(info->name, format)) return xstrdup(info->name);
    return xasprintf("%s %s", info->name, format);
}

// A name consists of maker, model, size and variant. The short name is the model.
static const char separators[] = " -_";

// "7B", "1.1b", "260K", "8x7B", "4k", "v0.3"
static bool is_size(const char *word, size_t size) {
    bool version = (*word == 'v' || *word == 'V') && size > 1 && isdigit((unsigned char)word[1]);
    return version || (isdigit((unsigned char)*word) && strchr("BbMmKk", word[size - 1]));
}

static bool is_maker(const char *word, size_t size) {
    static const char *const makers[] = {"confab", "meta", "google", "microsoft", "mistralai"};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (strlen(makers[i]) == size && !strncasecmp(word, makers[i], size)) return true;
    return false;
}

char *model_short_name(const struct model_info *info) {
    const char *name = info->name, *begin = name, *end = name;
    for (const char *word = name; *word;) {
        size_t size = strcspn(word, separators);
        if (size && word != begin && is_size(word, size)) break;
        if (word == name && is_maker(word, size) && word[size]) begin = word + size + strspn(word + size, separators);
        else end = word + size;
        word += size + strspn(word + size, separators);
    }
    return end > begin ? xstrndup(begin, (size_t)(end - begin)) : xstrdup(name);
}
