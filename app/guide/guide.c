#include "app/guide/guide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/base/settings.h"
#include "engine/base/panic.h"
#include "engine/engine.h"
#include "engine/sampling.h"
#include "ui/keys.h"
#include "ui/theme.h"

// Defined in guide_data.S, which the Makefile generates.
extern const char guide_begin[], guide_end[], guide_template_text[];

const char *const guide_questions[GUIDE_QUESTIONS] = {
    "How many chats can run at once?",
    "What does the KV cache box show?",
    "What does temperature do?",
};

const void *guide_data(size_t *size) {
    *size = (size_t)(guide_end - guide_begin);
    return guide_begin;
}

const char *guide_template(void) { return guide_template_text; }

const struct guide_lack guide_lacks[] = {
#define X(...) {__VA_ARGS__},
    GUIDE_LACKS(X)
#undef X
};
const int n_guide_lacks = sizeof guide_lacks / sizeof *guide_lacks;

static char *key_text(const char *name) {
    const int id = ui_command_find(name, strlen(name));
    if (id < 0) return NULL;
    const char *key = keys_name((enum ui_command_id)id);
    return *key ? xstrdup(key) : xasprintf("/%s", name);
}

static char *lack_text(const char *name) {
    for (int i = 0; i < n_guide_lacks; i++)
        if (!strcmp(guide_lacks[i].name, name)) return xstrdup(guide_lacks[i].says);
    return xstrdup("That came to confab after I was trained: its help tells.");
}

// The default of a setting that is no knob; NULL: there is none.
static char *setting_text(const char *name) {
    const int id = setting_find(name);
    char *text = id < 0 ? NULL : setting_default_text(id);
    if (text && *text) return text;
    free(text);
    return NULL;
}

static char *knob_text(const char *column, const char *name) {
    for (int i = 0; i < KNOB_COUNT; i++) {
        const struct sampling_knob *k = &sampling_knobs[i];
        const struct {
            const char *name;
            double value;
        } columns[] = {{"default", k->initial}, {"low", k->low}, {"high", k->high}, {"step", k->step}};
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
            if (!strcmp(column, columns[c].name) && !strcmp(name, k->key)) return xasprintf("%.10g", columns[c].value);
    }
    return NULL;
}

// "a, b and c": the words name(0), name(1) … up to NULL, with `first` moved to the front.
static char *enumeration(const char *(*name)(int i), const char *first) {
    char *text = xasprintf("%s", first);
    const char *word = NULL, *next;
    for (int i = 0;; i++) {
        next = name(i);
        if (next && !strcmp(next, first)) continue;
        if (word) {
            char *longer = xasprintf("%s%s%s", text, next ? ", " : " and ", word);
            free(text);
            text = longer;
        }
        if (!next) return text;
        word = next;
    }
}

static const char *state_at(int i) {
    return i < REQUEST_STATE_COUNT ? request_state_name((enum request_state)i) : NULL;
}

char *guide_slot(void *unused, const char *name) {
    (void)unused;
    const char *colon = strchr(name, ':');
    if (!strcmp(name, "theme:default")) return xasprintf("%s", THEME_DEFAULT);
    if (!strcmp(name, "themes")) return enumeration(theme_list_built_in, THEME_DEFAULT);
    if (!strcmp(name, "states")) return enumeration(state_at, state_at(0));
    if (!colon) return NULL;
    const char *of = colon + 1;
    char *column = xasprintf("%.*s", (int)(colon - name), name);
    char *text = !strcmp(column, "key")    ? key_text(of)
                 : !strcmp(column, "lack") ? lack_text(of)
                                           : knob_text(column, of);
    if (!text && !strcmp(column, "default")) text = setting_text(of);
    free(column);
    return text;
}
