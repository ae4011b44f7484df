// Jinja's global functions, including those added by Hugging Face.
#include <locale.h>
#include <string.h>

#include "engine/text/jinja_builtin.h"

typedef struct jinja_arguments arguments;

static struct jinja_value global_range(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)self;
    bool two = a->values[1].type != JINJA_UNDEFINED;
    int64_t start = two ? jinja_as_integer(j, a->values[0], "range() start") : 0;
    int64_t stop = jinja_as_integer(j, a->values[two], "range() stop");
    int64_t step = a->values[2].type != JINJA_UNDEFINED ? jinja_as_integer(j, a->values[2], "range() step") : 1;
    if (!step) jinja_fail(j, STATUS_FORMAT, "range() arg 3 must not be zero");
    uint64_t distance = 0, stride = step < 0 ? -(uint64_t)step : (uint64_t)step;
    if (step > 0 && stop > start) distance = (uint64_t)stop - (uint64_t)start;
    if (step < 0 && stop < start) distance = (uint64_t)start - (uint64_t)stop;
    uint64_t count = distance / stride + (distance % stride != 0);
    if (count > JINJA_RANGE_LIMIT)
        jinja_fail(j, STATUS_LIMIT, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
                   JINJA_RANGE_LIMIT);
    jinja_spend(j, count / 4);
    struct jinja_list *list = jinja_list(j, count);
    for (uint64_t i = 0; i < count; i++)
        jinja_push(j, list, jinja_integer((int64_t)((uint64_t)start + i * (uint64_t)step)));
    return jinja_sequence(JINJA_LIST, list);
}

static void fill_from(struct jinja *j, struct jinja_dict *dict, struct jinja_value v) {
    if (v.type == JINJA_DICT) {
        for (size_t i = 0; i < v.dict->count; i++)
            jinja_dict_set(j, dict, v.dict->entries[i].key, v.dict->entries[i].value);
        return;
    }
    const struct jinja_list *pairs = jinja_iterate(j, v);
    jinja_spend(j, pairs->count);
    for (size_t i = 0; i < pairs->count; i++) {
        const struct jinja_list *pair = jinja_iterate(j, pairs->items[i]);
        if (pair->count != 2) jinja_fail(j, STATUS_FORMAT, "dict() needs pairs, got %zu values", pair->count);
        jinja_dict_set(j, dict, pair->items[0], pair->items[1]);
    }
}

static struct jinja_value make_dict(struct jinja *j, const arguments *a, enum jinja_type type) {
    struct jinja_dict *dict = jinja_dict(j, 0);
    if (a->count > 1) jinja_fail(j, STATUS_FORMAT, "dict() takes at most 1 positional argument");
    if (a->count) fill_from(j, dict, a->values[0]);
    if (a->named) fill_from(j, dict, jinja_mapping(a->named));
    return (struct jinja_value){.type = type, .dict = dict};
}

static struct jinja_value global_dict(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)self;
    return make_dict(j, a, JINJA_DICT);
}

static struct jinja_value global_namespace(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)self;
    return make_dict(j, a, JINJA_NAMESPACE);
}

static struct jinja_value global_raise_exception(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)self;
    jinja_raise(j, jinja_to_string(j, a->values[0]));
}

// In English, regardless of the locale.
static struct jinja_value global_strftime_now(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)self;
    char format[256], text[1024];
    struct jinja_string given = jinja_as_string(j, a->values[0], "strftime_now() format");
    if (given.size >= sizeof format || (given.size && memchr(given.data, 0, given.size)))
        jinja_fail(j, STATUS_LIMIT, "strftime_now() format is too long (maximum %zu bytes)", sizeof format - 1);
    memcpy(format, given.data, given.size);
    format[given.size] = 0;
    locale_t english = newlocale(LC_ALL_MASK, "C", NULL);
    size_t size = english ? strftime_l(text, sizeof text, format, &j->now, english) : 0;
    if (english) freelocale(english);
    struct jinja_builder b = {0};
    jinja_append(j, &b, (struct jinja_string){text, NULL, size});
    return jinja_text(jinja_built(&b));
}

const struct jinja_builtin jinja_globals[] = {
    {"dict", "*", 0, global_dict},
    {"namespace", "*", 0, global_namespace},
    {"raise_exception", "message", 1, global_raise_exception},
    {"range", "start stop step", 1, global_range},
    {"strftime_now", "format", 1, global_strftime_now},
    {0},
};
