#include "engine/text/jinja.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/text/jinja_evaluate.h"

// ---- the context ----

struct importer {
    struct jinja *j;
    char *taint; // `size` ones, shared by all texts up to this size
    size_t size;
};

static struct jinja_value import_text(struct importer *i, const char *data, size_t size, bool tainted) {
    if (tainted && size > i->size) {
        i->size = 2 * size;
        i->taint = memset(jinja_alloc(i->j, i->size, 1), 1, i->size);
    }
    return jinja_text((struct jinja_string){data, tainted && size ? i->taint : NULL, size});
}

static struct jinja_value import(struct importer *i, const json_t *json, bool tainted);

static struct jinja_value import_list(struct importer *i, const json_t *json, bool tainted) {
    struct jinja_list *list = jinja_list(i->j, json_array_size(json));
    for (size_t at = 0; at < json_array_size(json); at++)
        jinja_push(i->j, list, import(i, json_array_get(json, at), tainted));
    return jinja_sequence(JINJA_LIST, list);
}

// Keys are known to be distinct; no look-ups.
static struct jinja_value import_dict(struct importer *i, const json_t *json, bool tainted, bool names) {
    struct jinja_dict *dict = jinja_dict(i->j, json_object_size(json));
    json_t *object = (json_t *)json; // iterated, not changed
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        size_t size = strlen(key);
        bool mark = names && size >= 6 && !strcmp(key + size - 6, "_token");
        struct jinja_value name = import_text(i, key, size, tainted),
                           v = import(i, json_object_iter_value(at), tainted && !mark);
        dict->entries[dict->count++] = (struct jinja_entry){name, v};
    }
    return jinja_mapping(dict);
}

static struct jinja_value import_value(struct importer *i, const json_t *json, bool tainted) {
    switch (json_typeof(json)) {
    case JSON_OBJECT: return import_dict(i, json, tainted, false);
    case JSON_ARRAY: return import_list(i, json, tainted);
    case JSON_STRING: return import_text(i, json_string_value(json), json_string_length(json), tainted);
    case JSON_INTEGER: return jinja_integer(json_integer_value(json));
    case JSON_REAL: return jinja_number(json_real_value(json));
    case JSON_NULL: return jinja_none();
    default: return jinja_boolean(json_is_true(json));
    }
}

static struct jinja_value import(struct importer *i, const json_t *json, bool tainted) {
    jinja_enter(i->j);
    struct jinja_value v = import_value(i, json, tainted);
    jinja_leave(i->j);
    return v;
}

// ---- the output ----

static void to_prompt(struct jinja *j, struct jinja_string s, struct prompt *out) {
    for (size_t begin = 0, end; begin < s.size; begin = end) {
        bool text = s.taint && s.taint[begin];
        for (end = begin + 1; end < s.size && (s.taint && s.taint[end]) == text;) end++;
        jinja_spend(j, 8);
        prompt_add(out, s.data + begin, end - begin, !text);
    }
}

// ---- parsing ----

struct jinja_template {
    struct arena arena;
    struct jinja_nodes body;
};

static bool parse(struct jinja *j, struct span source, struct jinja_nodes *body) {
    if (setjmp(j->failure)) return false; // every failure comes here
    *body = jinja_parse(j, source);
    return true;
}

struct jinja_template *jinja_compile(struct span source, struct status *st) {
    struct jinja j = {.st = st, .steps = JINJA_STEPS_LIMIT, .line = 1};
    struct jinja_template *t = xcalloc(1, sizeof *t);
    bool done = parse(&j, source, &t->body);
    t->arena = j.arena;
    if (done) return t;
    jinja_template_free(t);
    return NULL;
}

void jinja_template_free(struct jinja_template *t) {
    if (!t) return;
    arena_free(&t->arena);
    free(t);
}

static bool node_uses(const struct jinja_node *n, const char *name, int depth);

static bool nodes_use(const struct jinja_nodes *nodes, const char *name, int depth) {
    for (size_t i = 0; i < nodes->count; i++)
        if (node_uses(nodes->at[i], name, depth)) return true;
    return false;
}

// Deeper nodes cannot be evaluated either.
static bool node_uses(const struct jinja_node *n, const char *name, int depth) {
    if (!n || depth > JINJA_DEPTH_LIMIT) return false;
    if (n->kind == JINJA_NODE_NAME && jinja_string_is(n->name, name)) return true;
    return node_uses(n->a, name, depth + 1) || node_uses(n->b, name, depth + 1) || node_uses(n->c, name, depth + 1) ||
           nodes_use(&n->items, name, depth + 1) || nodes_use(&n->rest, name, depth + 1);
}

bool jinja_uses(const struct jinja_template *t, const char *name) { return nodes_use(&t->body, name, 0); }

// ---- rendering ----

static bool run(struct jinja *j, const struct jinja_input *input, struct prompt *out) {
    if (setjmp(j->failure)) return false; // every failure comes here
    struct importer importer = {.j = j};
    struct jinja_builder text = {0};
    j->out = &text;
    j->context = import_dict(&importer, input->context, true, true).dict;
    jinja_scope_open(j, NULL);
    jinja_execute(j, &input->template->body);
    to_prompt(j, jinja_built(&text), out);
    return true;
}

bool jinja_render(const struct jinja_input *input, struct prompt *out, struct status *st) {
    struct jinja j = {.st = st, .steps = JINJA_STEPS_LIMIT, .line = 1, .now = input->now};
    *out = (struct prompt){0};
    bool done = run(&j, input, out);
    arena_free(&j.arena);
    if (!done) prompt_free(out);
    return done;
}
