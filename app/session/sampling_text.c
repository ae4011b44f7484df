#include "app/session/sampling_text.h"

#include <stdlib.h>
#include <string.h>

#include "app/base/settings.h"
#include "engine/base/panic.h"

char *sampling_text_write(const struct sampling *sampling) {
    struct settings s = {.sampling = *sampling, .knobs_set = ~0u};
    char *all = xstrdup("");
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        char *value = setting_format(&s, SETTING_FIRST_KNOB + knob);
        char *longer = xasprintf("%s%s%s=%s", all, knob ? " " : "", sampling_knobs[knob].key, value);
        free(value);
        free(all);
        all = longer;
    }
    return all;
}

struct sampling sampling_text_read(const char *text, const struct sampling *initial) {
    struct settings s = {.sampling = *initial};
    char *copy = xstrdup(text), *rest = NULL;
    for (char *pair = strtok_r(copy, " ", &rest); pair; pair = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(pair, '=');
        if (!equals) continue;
        *equals = 0;
        int id = setting_find(pair);
        if (id >= SETTING_FIRST_KNOB) setting_parse(&s, id, equals + 1, NULL);
    }
    free(copy);
    return s.sampling;
}
