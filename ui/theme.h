// Theme: the colours behind the roles that views draw by.
//
// A theme file has lines `role = "#RRGGBB"` (or `""`: the terminal's own) and `role.end = "#RRGGBB"` for the far end of
// a gradient, comments begin with '#'; missing roles fall back to their parent in the table below. Built-in themes are
// the files of themes/, embedded; a user's own lie in $XDG_CONFIG_HOME/confab/themes/NAME.theme and come before a
// built-in one of the same name.
#ifndef CONFAB_UI_THEME_H
#define CONFAB_UI_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

// X(enumerator, key in theme files, role it falls back to, help)
#define THEME_ROLES(X)                                                                                                 \
    X(ROLE_TEXT, "text", ROLE_TEXT, "ordinary text")                                                                   \
    X(ROLE_GROUND, "ground", ROLE_GROUND, "background")                                                                \
    X(ROLE_DIM, "dim", ROLE_TEXT, "secondary text")                                                                    \
    X(ROLE_STRONG, "strong", ROLE_TEXT, "important text")                                                              \
    X(ROLE_ACCENT, "accent", ROLE_TEXT, "highlighted letters, raised digits")                                          \
    X(ROLE_BORDER, "border", ROLE_DIM, "borders of panes")                                                             \
    X(ROLE_BORDER_ACTIVE, "border.active", ROLE_ACCENT, "border of the pane on top")                                   \
    X(ROLE_TITLE, "title", ROLE_STRONG, "titles of panes")                                                             \
    X(ROLE_SELECTED, "selected", ROLE_STRONG, "text of the selected line")                                             \
    X(ROLE_SELECTED_GROUND, "selected.ground", ROLE_GROUND, "background of the selected line")                         \
    X(ROLE_USER, "user", ROLE_ACCENT, "name of the person")                                                            \
    X(ROLE_MODEL, "model", ROLE_STRONG, "name of the model")                                                           \
    X(ROLE_HEADING, "heading", ROLE_STRONG, "headings in answers")                                                     \
    X(ROLE_CODE, "code", ROLE_TEXT, "code in answers")                                                                 \
    X(ROLE_CODE_GROUND, "code.ground", ROLE_GROUND, "background of code")                                              \
    X(ROLE_CODE_COMMENT, "code.comment", ROLE_DIM, "comments in code")                                                 \
    X(ROLE_CODE_STRING, "code.string", ROLE_GOOD, "strings in code")                                                   \
    X(ROLE_CODE_NUMBER, "code.number", ROLE_WARN, "numbers in code")                                                   \
    X(ROLE_CODE_KEYWORD, "code.keyword", ROLE_ACCENT, "keywords in code")                                              \
    X(ROLE_CODE_TYPE, "code.type", ROLE_LINK, "types in code")                                                         \
    X(ROLE_CODE_FUNCTION, "code.function", ROLE_HEADING, "functions in code")                                          \
    X(ROLE_CODE_NAME, "code.name", ROLE_USER, "variables, keys and attributes in code")                                \
    X(ROLE_LINK, "link", ROLE_ACCENT, "links")                                                                         \
    X(ROLE_QUOTE, "quote", ROLE_DIM, "quotations")                                                                     \
    X(ROLE_THINKING, "thinking", ROLE_DIM, "what a model thinks before it answers")                                    \
    X(ROLE_GOOD, "good", ROLE_TEXT, "all is well")                                                                     \
    X(ROLE_WARN, "warn", ROLE_STRONG, "attention")                                                                     \
    X(ROLE_BAD, "bad", ROLE_STRONG, "errors")                                                                          \
    X(ROLE_DECODE, "decode", ROLE_ACCENT, "decode throughput")                                                         \
    X(ROLE_PREFILL, "prefill", ROLE_DECODE, "prefill throughput")                                                      \
    X(ROLE_LATENCY, "latency", ROLE_DECODE, "latency")                                                                 \
    X(ROLE_GAUGE, "gauge", ROLE_ACCENT, "gauges")                                                                      \
    X(ROLE_KV_FREE, "kv.free", ROLE_DIM, "free pages")                                                                 \
    X(ROLE_KV_OWNED, "kv.owned", ROLE_ACCENT, "pages of other conversations")                                          \
    X(ROLE_KV_CURRENT, "kv.current", ROLE_GOOD, "pages of the conversation on screen")                                 \
    X(ROLE_KV_SHARED, "kv.shared", ROLE_WARN, "shared pages")                                                          \
    X(ROLE_KV_KEPT, "kv.kept", ROLE_DIM, "cached pages")                                                               \
    X(ROLE_STAGE_PROJECT, "stage.project", ROLE_PREFILL, "time of attention's matrices")                               \
    X(ROLE_STAGE_ATTEND, "stage.attend", ROLE_LATENCY, "time of attention over the KV cache")                          \
    X(ROLE_STAGE_FEED, "stage.feed", ROLE_GOOD, "time of the feed-forward network")                                    \
    X(ROLE_STAGE_LOGITS, "stage.logits", ROLE_WARN, "time of the scores of the next token")                            \
    X(ROLE_STAGE_SAMPLE, "stage.sample", ROLE_ACCENT, "time of drawing the next token")                                \
    X(ROLE_STAGE_OTHER, "stage.other", ROLE_DIM, "time of everything else")                                            \
    X(ROLE_ROOF, "roof", ROLE_DIM, "the machine's limits")                                                             \
    X(ROLE_TOKEN, "token", ROLE_GAUGE, "tokens coloured by how sure the model was; token.end: not at all")             \
    X(ROLE_KNOB, "knob", ROLE_TEXT, "values of sampling knobs")                                                        \
    X(ROLE_KNOB_ACTIVE, "knob.active", ROLE_ACCENT, "the chosen knob")

enum theme_role {
#define X(id, key, parent, help) id,
    THEME_ROLES(X)
#undef X
        ROLE_COUNT
};

struct theme_colour {
    bool own; // the terminal's own colour
    uint8_t red, green, blue;
};

#define THEME_STEPS   101
#define THEME_DEFAULT "confab-dark"
struct theme {
    char name[64];
    struct theme_colour colours[ROLE_COUNT];
    struct theme_colour gradients[ROLE_COUNT][THEME_STEPS]; // from the colour to its `.end` (or the colour itself)
};

// Parses a theme file's text; an unknown role or a bad colour is a failure naming `name` and the line, and leaves *t
// as it was.
bool theme_parse(struct theme *t, const char *name, const char *text, size_t size, struct status *st);
// Built-in themes (the default first), then the user's by name; NULL past the end. Index 0 looks at the folder afresh.
const char *theme_list(int index);
const char *theme_list_built_in(int index); // the same without the user's; on any thread
// A theme that cannot be loaded leaves the default one in *t, so that there is always something to draw with.
bool theme_load(struct theme *t, const char *name, struct status *st);

#endif
