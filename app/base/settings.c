#include "app/base/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

const struct setting_info setting_table[SETTING_COUNT] = {
#define X(field, type, key, letter, kind, argument, low, high, places, help)                                           \
    [SETTING_##field] = {key, letter, kind, argument, low, high, places, help, offsetof(struct settings, field)},
    SETTINGS(X)
#undef X
#define X(field, key, label, kind, low, high, step, initial, help)                                                     \
    [SETTING_FIRST_KNOB + KNOB_##field] = {                                                                            \
        key, 0, SETTING_KNOB, "N", low, high, IN_TALK | IN_SERVE, help, KNOB_##field},
        SAMPLING_KNOBS(X)
#undef X
};

struct settings settings_default(void) {
    return (struct settings){.gpu_layers = -1,
                             .answers = 1,
                             .fan_out = 4,
                             .kv_disk = (uint64_t)4 << 30,
                             .port = 8080,
                             .keep_alive = 300,
                             .read_ahead = 1,
                             .name_chats = 1,
                             .ask_quit = 1,
                             .title = 1,
                             .bench_seconds = 15,
                             .accuracy_seconds = 8,
                             .log_level = LOG_LEVEL_INFO,
                             .shown_level = LOG_LEVEL_DEBUG - LOG_LEVEL_ERROR,
                             .sampling = sampling_default()};
}

void settings_follow_model(struct settings *s, const struct model_info *info) {
    for (enum sampling_knob_id k = 0; k < KNOB_COUNT; k++)
        if (!(s->knobs_set >> k & 1)) sampling_set(&s->sampling, k, sampling_get(&info->sampling, k));
}

bool settings_raw(const struct settings *s) { return s->raw || (s->template && !strcmp(s->template, "raw")); }

const char *settings_template_file(const struct settings *s) {
    return !s->template || settings_raw(s) || !strcmp(s->template, "own") ? NULL : s->template;
}

static char **text_field(struct settings *s, int id) { return (char **)((char *)s + setting_table[id].offset); }

static struct text_list *texts_field(struct settings *s, int id) {
    return (struct text_list *)((char *)s + setting_table[id].offset);
}

const struct text_list *setting_texts(const struct settings *s, int id) {
    return setting_table[id].kind == SETTING_TEXTS ? texts_field((struct settings *)s, id) : NULL;
}

void text_list_insert(struct text_list *l, int place, const char *text) {
    l->texts = xrealloc(l->texts, ((size_t)l->count + 1) * sizeof *l->texts);
    memmove(l->texts + place + 1, l->texts + place, (size_t)(l->count++ - place) * sizeof *l->texts);
    l->texts[place] = xstrdup(text);
}

char *text_list_take(struct text_list *l, int place) {
    char *text = l->texts[place];
    memmove(l->texts + place, l->texts + place + 1, (size_t)(--l->count - place) * sizeof *l->texts);
    return text;
}

struct text_list text_list_copy(const struct text_list *l) {
    struct text_list copy = {0};
    for (int i = 0; i < l->count; i++) text_list_insert(&copy, i, l->texts[i]);
    return copy;
}

void text_list_clear(struct text_list *l) {
    for (int i = 0; i < l->count; i++) free(l->texts[i]);
    free(l->texts);
    *l = (struct text_list){0};
}

struct settings settings_copy(const struct settings *s) {
    struct settings copy = *s;
    for (int id = 0; id < SETTING_COUNT; id++)
        if (setting_table[id].kind == SETTING_TEXT && *text_field(&copy, id))
            *text_field(&copy, id) = xstrdup(*text_field(&copy, id));
    for (int id = 0; id < SETTING_COUNT; id++)
        if (setting_table[id].kind == SETTING_TEXTS) *texts_field(&copy, id) = text_list_copy(texts_field(&copy, id));
    return copy;
}

struct settings settings_of_conversation(const struct settings *s) {
    struct settings own = settings_copy(s);
    for (int id = 0; id < SETTING_COUNT; id++) {
        if (setting_table[id].places & OF_CONVERSATION) continue;
        if (setting_table[id].kind == SETTING_TEXT) setting_parse(&own, id, "", NULL);
        if (setting_table[id].kind == SETTING_TEXTS) text_list_clear(texts_field(&own, id));
    }
    return own;
}

void settings_free(struct settings *s) {
    for (int id = 0; id < SETTING_COUNT; id++)
        if (setting_table[id].kind == SETTING_TEXT) free(*text_field(s, id));
        else if (setting_table[id].kind == SETTING_TEXTS) text_list_clear(texts_field(s, id));
    *s = settings_default();
}

const char *setting_old_key(int id) { return id == SETTING_panes ? "boxes" : NULL; }

int setting_find(const char *key) {
    for (int id = 0; id < SETTING_COUNT; id++) {
        const char *old = setting_old_key(id);
        if (!strcmp(setting_table[id].key, key) || (old && !strcmp(old, key))) return id;
    }
    return -1;
}

static bool parse_number(const struct setting_info *info, bool whole, const char *text, double *out,
                         struct status *st) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || (whole && value != floor(value)))
        return status_fail(st, STATUS_USAGE, "%s: expected a %snumber%s, got '%s'", info->key, whole ? "whole " : "",
                           info->kind == SETTING_AUTO ? " or 'auto'" : "", text);
    if (value < info->low || value > info->high)
        return status_fail(st, STATUS_USAGE, "%s: %s is out of range (%.10g to %.10g)", info->key, text, info->low,
                           info->high);
    *out = value;
    return true;
}

static bool parse_flag(const struct setting_info *info, const char *text, bool *out, struct status *st) {
    static const char *const words[][2] = {{"no", "yes"}, {"off", "on"}, {"false", "true"}, {"0", "1"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (int value = 0; value < 2; value++) {
            if (strcmp(text, words[i][value])) continue;
            *out = value;
            return true;
        }
    }
    return status_fail(st, STATUS_USAGE, "%s: expected yes or no, got '%s'", info->key, text);
}

// In MiB where no unit says otherwise.
static bool parse_bytes(const struct setting_info *info, const char *text, uint64_t *out, struct status *st) {
    static const char *const units[] = {"MiB", "GiB", "TiB"};
    char *end;
    double bytes = strtod(text, &end) * 0x1p20;
    if (!strcmp(text, "off")) {
        *out = 0;
        return true;
    }
    const bool number = end != text;
    end += strspn(end, " ");
    for (int i = 0; i < 3 && number; i++) { // "4 GiB", "4GiB", "4G"
        if (*end != units[i][0] || (end[1] && strcmp(end, units[i]))) continue;
        bytes *= (double)(1ull << 10 * i);
        end += strlen(end);
        break;
    }
    if (!number || *end || !isfinite(bytes))
        return status_fail(st, STATUS_USAGE, "%s: expected a size such as 4 GiB, or off, got '%s'", info->key, text);
    if (bytes < info->low || bytes > info->high)
        return status_fail(st, STATUS_USAGE, "%s: %s is out of range (1 MiB to 1024 TiB)", info->key, text);
    *out = (uint64_t)bytes >> 20 << 20;
    return true;
}

static char *format_bytes(uint64_t bytes) {
    if (!bytes) return xstrdup("off");
    const bool whole = !(bytes & ((1ull << 30) - 1));
    return xasprintf("%llu %s", (unsigned long long)(bytes >> (whole ? 30 : 20)), whole ? "GiB" : "MiB");
}

static int pane_of_word(const char *word, size_t size) {
    for (int p = PANES_FIRST; p < PANES_END; p++)
        if (strlen(panes[p].name) == size && !memcmp(panes[p].name, word, size)) return p;
    return *word > '0' && *word < '0' + PANES_END ? *word - '0' : 0;
}

// The bit of the chat is set in every value that is given; "" is none, and the panes follow the size.
static bool parse_panes(const struct setting_info *info, const char *text, uint32_t *out, struct status *st) {
    uint32_t set = *text ? 1u << PANE_CHAT : 0;
    for (const char *at = strcmp(text, "none") ? text : ""; *at;) {
        size_t size = strcspn(at, " ,");
        if (*at >= '0' && *at <= '9') size = 1; // digits may stand together
        int pane = size ? pane_of_word(at, size) : PANE_CHAT;
        if (size && !pane)
            return status_fail(st, STATUS_USAGE,
                               "%s: unknown pane '%.*s' (expected none, digits from 1 to %d or names)", info->key,
                               (int)size, at, PANES_END - 1);
        set |= 1u << pane;
        at += size ? size : 1;
    }
    *out = set;
    return true;
}

static bool parse_sizes(const struct setting_info *info, const char *text, struct pane_sizes *out, struct status *st) {
    const char *bad;
    size_t size;
    if (pane_sizes_parse(out, text, &bad, &size)) return true;
    return status_fail(st, STATUS_USAGE, "%s: expected words such as chats=0x12, got '%.*s'", info->key, (int)size,
                       bad);
}

static char *format_sizes(const struct pane_sizes *sizes) {
    char text[PANE_SIZES_TEXT];
    return xstrdup(pane_sizes_format(sizes, text));
}

// Returns the choice after the one of *size bytes at `at`, NULL after the last.
static const char *choice_next(const char *at, size_t *size) {
    at += *size + (at[*size] == '|');
    *size = strcspn(at, "|");
    return *size ? at : NULL;
}

static bool parse_choice(const struct setting_info *info, const char *text, int *out, struct status *st) {
    size_t size = 0;
    int place = 0;
    for (const char *at = info->argument; (at = choice_next(at, &size)); place++) {
        if (strlen(text) != size || memcmp(text, at, size)) continue;
        *out = place;
        return true;
    }
    char expected[128] = "";
    size_t n = 0;
    size = 0;
    for (const char *at = info->argument; (at = choice_next(at, &size));)
        n += (size_t)snprintf(expected + n, sizeof expected - n, "%s%.*s",
                              !n ? "" : at[size] ? ", " : " or ", (int)size, at);
    return status_fail(st, STATUS_USAGE, "%s: unknown value '%s' (expected %s)", info->key, text, expected);
}

static char *format_choice(const struct setting_info *info, int place) {
    size_t size = 0;
    const char *at = info->argument;
    while ((at = choice_next(at, &size)) && place--) continue;
    return at ? xstrndup(at, size) : xstrdup("");
}

static bool parse_knob(struct settings *settings, const struct setting_info *info, const char *text,
                       struct status *st) {
    enum sampling_knob_id knob = (enum sampling_knob_id)info->offset;
    enum sampling_kind kind = sampling_knobs[knob].kind;
    struct sampling *s = &settings->sampling;
    double value = 0;
    if (!strcmp(text, "default")) {
        sampling_set(s, knob, sampling_knobs[knob].initial);
        settings->knobs_set &= ~(1u << knob);
        return true;
    }
    bool random = kind == SAMPLING_SEED && !strcmp(text, "random");
    if (!random && !parse_number(info, kind != SAMPLING_FLOAT, text, &value, st)) return false;
    sampling_set(s, knob, value);
    settings->knobs_set |= 1u << knob;
    return true;
}

bool setting_parse(struct settings *s, int id, const char *text, struct status *st) {
    const struct setting_info *info = &setting_table[id];
    if (info->kind == SETTING_KNOB) return parse_knob(s, info, text, st);
    void *field = (char *)s + info->offset;
    if (info->kind == SETTING_FLAG) return parse_flag(info, text, field, st);
    if (info->kind == SETTING_PANES) return parse_panes(info, text, field, st);
    if (info->kind == SETTING_SIZES) return parse_sizes(info, text, field, st);
    if (info->kind == SETTING_CHOICE) return parse_choice(info, text, field, st);
    if (info->kind == SETTING_BYTES) return parse_bytes(info, text, field, st);
    if (info->kind == SETTING_TEXTS) {
        struct text_list *list = field;
        if (*text) text_list_insert(list, list->count, text);
        else text_list_clear(list);
        return true;
    }
    if (info->kind == SETTING_TEXT) {
        char **owned = field;
        char *copy = *text ? xstrdup(text) : NULL;
        free(*owned);
        *owned = copy;
        return true;
    }
    double value = -1;
    const bool named = info->kind == SETTING_AUTO && !strcmp(text, "auto"), whole = info->kind != SETTING_REAL;
    if (!named && !parse_number(info, whole, text, &value, st)) return false;
    if (whole) *(int *)field = (int)value;
    else *(double *)field = value;
    return true;
}

bool setting_change(struct settings *s, int id, const char *text, const struct model_info *model, struct status *st) {
    const bool is_knob = id >= SETTING_FIRST_KNOB;
    char *initial = *text ? NULL : is_knob ? xstrdup("default") : setting_default_text(id);
    const bool done = setting_parse(s, id, initial ? initial : text, st);
    free(initial);
    if (!done || !is_knob) return done;
    const enum sampling_knob_id knob = (enum sampling_knob_id)(id - SETTING_FIRST_KNOB);
    if (!(s->knobs_set >> knob & 1)) sampling_set(&s->sampling, knob, sampling_get(&model->sampling, knob));
    return true;
}

bool setting_of_conversation(int id) {
    return id >= SETTING_FIRST_KNOB || setting_table[id].places & OF_CONVERSATION;
}

static char *format_panes(uint32_t set) {
    char text[PANES_END] = "";
    size_t n = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++)
        if (set >> p & 1) text[n++] = (char)('0' + p);
    return xstrdup(!set ? "" : n ? text : "none");
}

static char *format_texts(const struct text_list *l) { return xstrdup(l->count ? l->texts[l->count - 1] : ""); }

static char *format_knob(const struct settings *s, const struct setting_info *info) {
    if (!(s->knobs_set >> info->offset & 1)) return xstrdup("default");
    return xasprintf("%.*g", info->high > 1e6 ? 10 : 6,
                     sampling_get(&s->sampling, (enum sampling_knob_id)info->offset));
}

char *setting_default_text(int id) {
    struct settings initial = settings_default();
    initial.knobs_set = ~0u;
    return setting_format(&initial, id);
}

char *setting_help(int id) {
    const struct setting_info *info = &setting_table[id];
    const bool number = info->kind == SETTING_INT || info->kind == SETTING_REAL;
    char *initial = setting_default_text(id);
    const bool named = info->kind == SETTING_CHOICE || info->kind == SETTING_KNOB ||
                       info->kind == SETTING_AUTO || info->kind == SETTING_BYTES;
    const bool tells = named || (number && strcmp(initial, "0"));
    char *help = tells ? xasprintf("%s (default %s)", info->help, initial) : xstrdup(info->help);
    free(initial);
    return help;
}

char *setting_format(const struct settings *s, int id) {
    const struct setting_info *info = &setting_table[id];
    const void *field = (const char *)s + info->offset;
    switch (info->kind) {
    case SETTING_FLAG: return xstrdup(*(const bool *)field ? "yes" : "no");
    case SETTING_AUTO: return *(const int *)field < 0 ? xstrdup("auto") : xasprintf("%d", *(const int *)field);
    case SETTING_INT: return xasprintf("%d", *(const int *)field);
    case SETTING_REAL: return xasprintf("%.10g", *(const double *)field);
    case SETTING_TEXT: return xstrdup(*(char *const *)field ? *(char *const *)field : "");
    case SETTING_BYTES: return format_bytes(*(const uint64_t *)field);
    case SETTING_PANES: return format_panes(*(const uint32_t *)field);
    case SETTING_SIZES: return format_sizes(field);
    case SETTING_TEXTS: return format_texts(field);
    case SETTING_CHOICE: return format_choice(info, *(const int *)field);
    case SETTING_KNOB: return format_knob(s, info);
    }
    return NULL;
}
