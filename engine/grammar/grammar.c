#include "engine/grammar/grammar.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/grammar/gbnf.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema.h"

enum { RECENT = 16 }; // grammars that are found again by their text

struct grammar {
    atomic_int references;
    enum grammar_kind kind;
    char *text;
    size_t size;
    struct automaton automaton;
    pthread_mutex_t lock; // of machines
    struct machine **machines;
    int n_machines;
};

// ---- compiling ----

// Behind a thinking's end models often begin a new line.
static bool add_spaced(struct rules *r, struct status *st) {
    struct code_range ranges[] = {{'\n', '\n'}, {' ', ' '}};
    const int rule = rules_add(r, span_of("(spaced)"), st);
    if (rule < 0) return false;
    const struct expression *space = expression_set(r, &(struct code_set){ranges, 2, 2});
    const struct expression *body =
        EXPRESSION_SEQUENCE_OF(r, expression_repeat(r, space, 0, 2), expression_rule(r, r->root));
    r->rules[r->spaced = rule].body = body;
    return true;
}

static bool add_root(struct rules *r, const struct expression *body, struct status *st) {
    if (!body) return false;
    r->root = rules_add(r, span_of("root"), st);
    if (r->root < 0) return false;
    r->rules[r->root].body = body;
    return true;
}

static bool parse_choice(struct rules *r, struct span text, struct status *st) {
    json_error_t error;
    json_t *texts = json_loadb(text.data, text.size, 0, &error);
    struct expression_list list = {0};
    bool ok = json_is_array(texts) || status_fail(st, STATUS_FORMAT, "expected a JSON array of strings");
    for (size_t i = 0; ok && i < json_array_size(texts); i++) {
        const json_t *item = json_array_get(texts, i);
        ok = (json_is_string(item) || status_fail(st, STATUS_FORMAT, "choice %zu is not a string", i)) &&
             rules_have_room(r, st);
        const struct span choice = {json_string_value(item), json_string_length(item)};
        if (ok) expression_list_add(r, &list, expression_text(r, choice));
    }
    json_decref(texts);
    if (ok && !list.n) return status_fail(st, STATUS_FORMAT, "there are no choices");
    return ok && add_root(r, expression_choice(r, &list), st);
}

static bool parse(struct rules *r, enum grammar_kind kind, struct span text, struct status *st) {
    switch (kind) {
    case GRAMMAR_JSON: return schema_parse(r, span_of("{\"type\": \"object\"}"), st);
    case GRAMMAR_SCHEMA: return schema_parse(r, text, st);
    case GRAMMAR_REGEX: return add_root(r, regex_parse(r, text, (struct regex_options){0}, st), st);
    case GRAMMAR_GBNF: return gbnf_parse(r, text, st);
    case GRAMMAR_CHOICE: return parse_choice(r, text, st);
    case GRAMMAR_KIND_COUNT: break;
    }
    return status_fail(st, STATUS_USAGE, "unknown kind of grammar");
}

static struct grammar *compile(enum grammar_kind kind, struct span text, struct status *st) {
    struct rules rules = {0};
    struct grammar *g = xcalloc(1, sizeof *g);
    const bool ok =
        (text.size <= RULES_TEXT || status_fail(st, STATUS_LIMIT, "too large (maximum %u bytes)", RULES_TEXT)) &&
        parse(&rules, kind, text, st) && add_spaced(&rules, st) && automaton_build(&g->automaton, &rules, st);
    rules_free(&rules);
    if (!ok) {
        free(g);
        return NULL;
    }
    atomic_init(&g->references, 1);
    g->kind = kind;
    g->text = xmalloc(text.size + 1);
    memcpy(g->text, text.data, g->size = text.size);
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

// ---- sharing ----

struct grammar *grammar_share(struct grammar *g) {
    if (g) atomic_fetch_add(&g->references, 1);
    return g;
}

void grammar_drop(struct grammar *g) {
    if (!g || atomic_fetch_sub(&g->references, 1) > 1) return;
    for (int i = 0; i < g->n_machines; i++) machine_drop(g->machines[i]);
    free(g->machines);
    automaton_free(&g->automaton);
    pthread_mutex_destroy(&g->lock);
    free(g->text);
    free(g);
}

// The latest first.
static pthread_mutex_t recent_lock = PTHREAD_MUTEX_INITIALIZER;
static struct grammar *recent[RECENT];

static void remember(struct grammar *g, int place) {
    memmove(recent + 1, recent, (size_t)place * sizeof *recent);
    recent[0] = g;
}

static struct grammar *find_recent(enum grammar_kind kind, struct span text) {
    struct grammar *found = NULL;
    pthread_mutex_lock(&recent_lock);
    for (int i = 0; i < RECENT && recent[i] && !found; i++) {
        struct grammar *g = recent[i];
        if (g->kind != kind || g->size != text.size || (text.size && memcmp(g->text, text.data, text.size))) continue;
        remember(g, i);
        found = grammar_share(g);
    }
    pthread_mutex_unlock(&recent_lock);
    return found;
}

struct grammar *grammar_compile(enum grammar_kind kind, const char *text, size_t size, struct status *st) {
    const struct span source = {size ? text : "", size};
    struct grammar *g = find_recent(kind, source);
    if (g || !(g = compile(kind, source, st))) return g;
    pthread_mutex_lock(&recent_lock);
    struct grammar *oldest = recent[RECENT - 1];
    remember(grammar_share(g), RECENT - 1);
    pthread_mutex_unlock(&recent_lock);
    grammar_drop(oldest);
    return g;
}

// ---- machines ----

const struct automaton *grammar_automaton(const struct grammar *g) { return &g->automaton; }

// Of engines that are closed, and such as are full and nobody's any more.
static void drop_unused(struct grammar *g) {
    int n = 0;
    for (int i = 0; i < g->n_machines; i++) {
        struct machine *m = g->machines[i];
        const bool unused = machine_is_last(m) && (machine_is_full(m) || lexicon_is_last(machine_lexicon(m)));
        if (unused) machine_drop(m);
        else g->machines[n++] = m;
    }
    g->n_machines = n;
}

struct machine *grammar_machine(struct grammar *g, struct lexicon *l) {
    struct machine *m = NULL;
    pthread_mutex_lock(&g->lock);
    drop_unused(g);
    for (int i = 0; i < g->n_machines && !m; i++)
        if (machine_lexicon(g->machines[i]) == l && !machine_is_full(g->machines[i])) m = g->machines[i];
    if (!m) {
        m = machine_open(&g->automaton, l);
        g->machines = xrealloc(g->machines, (size_t)(g->n_machines + 1) * sizeof(struct machine *));
        g->machines[g->n_machines++] = m;
    }
    machine_share(m);
    pthread_mutex_unlock(&g->lock);
    return m;
}

void grammar_drop_unused(void) {
    pthread_mutex_lock(&recent_lock);
    for (int i = 0; i < RECENT && recent[i]; i++) {
        pthread_mutex_lock(&recent[i]->lock);
        drop_unused(recent[i]);
        pthread_mutex_unlock(&recent[i]->lock);
    }
    pthread_mutex_unlock(&recent_lock);
}
