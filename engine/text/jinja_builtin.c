#include "engine/text/jinja_builtin.h"

#include <string.h>

const struct jinja_builtin *jinja_builtin_find(const struct jinja_builtin *table, struct jinja_string name) {
    for (; table->name; table++)
        if (jinja_string_is(name, table->name)) return table;
    return NULL;
}

const struct jinja_builtin *jinja_filter_find(struct jinja_string name) {
    const struct jinja_builtin *found = jinja_builtin_find(jinja_text_filters, name);
    return found ? found : jinja_builtin_find(jinja_list_filters, name);
}

const struct jinja_builtin *jinja_method_find(struct jinja_value v, struct jinja_string name) {
    static const struct jinja_builtin *const tables[JINJA_TYPE_COUNT] = {
        [JINJA_STRING] = jinja_string_methods, [JINJA_DICT] = jinja_dict_methods, [JINJA_LIST] = jinja_list_methods,
        [JINJA_TUPLE] = jinja_list_methods,    [JINJA_LOOP] = jinja_loop_methods,
    };
    return tables[v.type] ? jinja_builtin_find(tables[v.type], name) : NULL;
}

static struct jinja_string next_name(const char **at) {
    const char *begin = *at + strspn(*at, " ");
    size_t size = strcspn(begin, " ");
    *at = begin + size;
    return (struct jinja_string){begin, NULL, size};
}

// One level deeper, since map can run map.
static struct jinja_value call(struct jinja *j, const struct jinja_builtin *b, struct jinja_value self,
                               const struct jinja_arguments *a) {
    jinja_enter(j);
    struct jinja_value v = b->run(j, self, a);
    jinja_leave(j);
    return v;
}

struct jinja_value jinja_run(struct jinja *j, const struct jinja_builtin *b, struct jinja_value self,
                             const struct jinja_arguments *a) {
    if (*b->parameters == '*') return call(j, b, self, a);
    struct jinja_value bound[JINJA_MAX_PARAMETERS] = {0};
    size_t n = 0, used = 0;
    for (const char *at = b->parameters; *at; n++) {
        struct jinja_string name = next_name(&at);
        const struct jinja_entry *named = a->named ? jinja_dict_find(j, a->named, jinja_text(name)) : NULL;
        used += named && n >= a->count;
        if (n < a->count) bound[n] = a->values[n];
        else if (named) bound[n] = named->value;
        else if (n < (size_t)b->required)
            jinja_fail(j, STATUS_FORMAT, "%s() is missing its argument '%.*s'", b->name, (int)name.size, name.data);
    }
    if (a->count > n) jinja_fail(j, STATUS_FORMAT, "%s() takes %zu arguments but %zu were given", b->name, n, a->count);
    if (a->named && used < a->named->count)
        jinja_fail(j, STATUS_FORMAT, "%s() got an unexpected keyword argument", b->name);
    return call(j, b, self, &(struct jinja_arguments){.values = bound, .count = n});
}
