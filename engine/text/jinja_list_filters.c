// Jinja filters for lists and dicts.
#include "engine/text/jinja_evaluate.h"

typedef struct jinja_arguments arguments;

static bool given(const arguments *a, size_t i) { return a->values[i].type != JINJA_UNDEFINED; }
static bool flag(const arguments *a, size_t i) { return jinja_truth(a->values[i]); }

static struct jinja_value iterator(struct jinja_list *list) { return jinja_sequence(JINJA_ITERATOR, list); }

// ---- parts and shapes ----

static struct jinja_value filter_first(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    const struct jinja_list *list = jinja_iterate(j, self);
    return list->count ? list->items[0] : jinja_nothing();
}

static struct jinja_value filter_last(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    if (self.type == JINJA_ITERATOR) jinja_fail(j, STATUS_FORMAT, "'generator' object is not reversible");
    const struct jinja_list *list = jinja_iterate(j, self);
    if (!list->count) return jinja_nothing();
    struct jinja_value last = list->items[list->count - 1];
    last.safe |= self.safe; // Python's reversed() indexes a string; iteration gives plain ones
    return last;
}

static struct jinja_list *copy(struct jinja *j, const struct jinja_list *list) {
    struct jinja_list *out = jinja_list(j, list->count);
    jinja_spend(j, list->count / 4);
    for (size_t i = 0; i < list->count; i++) jinja_push(j, out, list->items[i]);
    return out;
}

static struct jinja_value filter_list(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    return jinja_sequence(JINJA_LIST, copy(j, jinja_iterate(j, self)));
}

static struct jinja_value filter_reverse(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    struct jinja_list *out = copy(j, jinja_iterate(j, self));
    for (size_t i = 0; i < out->count / 2; i++) {
        struct jinja_value v = out->items[i];
        out->items[i] = out->items[out->count - 1 - i];
        out->items[out->count - 1 - i] = v;
    }
    if (self.type != JINJA_STRING) return iterator(out);
    return jinja_text_like(self, jinja_join(j, out, jinja_literal("")));
}

static struct jinja_value filter_items(struct jinja *j, struct jinja_value self, const arguments *a) {
    (void)a;
    struct jinja_list *out = jinja_list(j, 0);
    if (self.type == JINJA_UNDEFINED) return iterator(out);
    if (self.type != JINJA_DICT) jinja_fail(j, STATUS_FORMAT, "Can only get item pairs from a mapping.");
    for (size_t i = 0; i < self.dict->count; i++)
        jinja_push(j, out, jinja_pair(j, self.dict->entries[i].key, self.dict->entries[i].value));
    return iterator(out);
}

static struct jinja_value filter_batch(struct jinja *j, struct jinja_value self, const arguments *a) {
    const struct jinja_list *list = jinja_iterate(j, self);
    int64_t size = jinja_as_integer(j, a->values[0], "batch size");
    struct jinja_list *out = jinja_list(j, 0), *batch = NULL;
    if (size < 1) jinja_fail(j, STATUS_FORMAT, "batch size must be at least 1");
    for (size_t i = 0; i < list->count; i++) {
        if (i % (uint64_t)size == 0) jinja_push(j, out, jinja_sequence(JINJA_LIST, batch = jinja_list(j, 0)));
        jinja_push(j, batch, list->items[i]);
    }
    while (batch && given(a, 1) && a->values[1].type != JINJA_NONE && batch->count < (uint64_t)size) {
        jinja_spend(j, 1);
        jinja_push(j, batch, a->values[1]);
    }
    return iterator(out);
}

static struct jinja_value filter_slice(struct jinja *j, struct jinja_value self, const arguments *a) {
    const struct jinja_list *list = jinja_iterate(j, self);
    int64_t slices = jinja_as_integer(j, a->values[0], "number of slices");
    struct jinja_list *out = jinja_list(j, 0);
    if (slices < 1) jinja_fail(j, STATUS_FORMAT, "number of slices must be at least 1");
    size_t n = (size_t)slices, each = list->count / n, longer = list->count % n, at = 0;
    for (size_t i = 0; i < n; i++) {
        jinja_spend(j, 1);
        struct jinja_list *slice = jinja_list(j, 0);
        for (size_t k = 0; k < each + (i < longer); k++) jinja_push(j, slice, list->items[at++]);
        if (given(a, 1) && a->values[1].type != JINJA_NONE && i >= longer) jinja_push(j, slice, a->values[1]);
        jinja_push(j, out, jinja_sequence(JINJA_LIST, slice));
    }
    return iterator(out);
}

// ---- joining and choosing ----

static struct jinja_value filter_join(struct jinja *j, struct jinja_value self, const arguments *a) {
    const struct jinja_list *list = jinja_iterate(j, self);
    if (given(a, 1) && a->values[1].type != JINJA_NONE) {
        struct jinja_list *attributes = jinja_list(j, list->count);
        for (size_t i = 0; i < list->count; i++) jinja_push(j, attributes, jinja_path(j, list->items[i], a->values[1]));
        list = attributes;
    }
    return jinja_text(jinja_join(j, list, jinja_to_string(j, a->values[0])));
}

static arguments after_first(const arguments *a) {
    return (arguments){.values = a->values + 1, .count = a->count - 1, .named = a->named};
}

static struct jinja_value map_attribute(struct jinja *j, const struct jinja_list *list, const arguments *a) {
    const struct jinja_entry *attribute = jinja_dict_find(j, a->named, jinja_text(jinja_literal("attribute")));
    const struct jinja_entry *otherwise = jinja_dict_find(j, a->named, jinja_text(jinja_literal("default")));
    if (!attribute || a->named->count != 1u + (otherwise != NULL))
        jinja_fail(j, STATUS_FORMAT, "map() takes only the keyword arguments attribute and default");
    struct jinja_list *out = jinja_list(j, list->count);
    for (size_t i = 0; i < list->count; i++) {
        struct jinja_value v = jinja_path(j, list->items[i], attribute->value);
        jinja_push(j, out, v.type == JINJA_UNDEFINED && otherwise ? otherwise->value : v);
    }
    return iterator(out);
}

// The items for map, select and similar filters; none if the value is false, even if it is not iterable.
static const struct jinja_list *items_of(struct jinja *j, struct jinja_value v) {
    return jinja_truth(v) ? jinja_iterate(j, v) : jinja_list(j, 0);
}

static struct jinja_value filter_map(struct jinja *j, struct jinja_value self, const arguments *a) {
    const struct jinja_list *list = items_of(j, self);
    if (!a->count && a->named) return map_attribute(j, list, a);
    if (!a->count) jinja_fail(j, STATUS_FORMAT, "map requires a filter argument");
    const struct jinja_builtin *filter = jinja_filter_find(jinja_as_string(j, a->values[0], "filter name"));
    if (!filter) jinja_fail(j, STATUS_FORMAT, "map(): no such filter");
    struct jinja_list *out = jinja_list(j, list->count);
    arguments rest = after_first(a);
    for (size_t i = 0; i < list->count; i++) {
        jinja_spend(j, 1);
        jinja_push(j, out, jinja_run(j, filter, list->items[i], &rest));
    }
    return iterator(out);
}

// select and similar: by a test, or by truth without one; of an attribute, which is then the first argument.
static struct jinja_value choose(struct jinja *j, struct jinja_value self, const arguments *a, bool by_attribute,
                                 bool wanted) {
    const struct jinja_list *list = items_of(j, self);
    struct jinja_list *out = jinja_list(j, 0);
    arguments rest = *a;
    if (by_attribute && !a->count) jinja_fail(j, STATUS_FORMAT, "Missing parameter for attribute name");
    if (by_attribute) rest = after_first(a);
    const struct jinja_builtin *test = NULL;
    if (rest.count) {
        test = jinja_builtin_find(jinja_tests, jinja_as_string(j, rest.values[0], "test name"));
        if (!test) jinja_fail(j, STATUS_FORMAT, "select(): no such test");
        rest = after_first(&rest);
    }
    for (size_t i = 0; i < list->count; i++) {
        jinja_spend(j, 1);
        struct jinja_value v = by_attribute ? jinja_path(j, list->items[i], a->values[0]) : list->items[i];
        if (jinja_truth(test ? jinja_run(j, test, v, &rest) : v) == wanted) jinja_push(j, out, list->items[i]);
    }
    return iterator(out);
}

static struct jinja_value filter_select(struct jinja *j, struct jinja_value self, const arguments *a) {
    return choose(j, self, a, false, true);
}
static struct jinja_value filter_reject(struct jinja *j, struct jinja_value self, const arguments *a) {
    return choose(j, self, a, false, false);
}
static struct jinja_value filter_selectattr(struct jinja *j, struct jinja_value self, const arguments *a) {
    return choose(j, self, a, true, true);
}
static struct jinja_value filter_rejectattr(struct jinja *j, struct jinja_value self, const arguments *a) {
    return choose(j, self, a, true, false);
}

// ---- order ----

struct sorted {
    struct jinja_value key, value;
};

static struct jinja_value sort_key(struct jinja *j, struct jinja_value v, struct jinja_value attribute,
                                   bool case_sensitive) {
    if (attribute.type != JINJA_UNDEFINED && attribute.type != JINJA_NONE) v = jinja_path(j, v, attribute);
    if (v.type == JINJA_STRING && !case_sensitive) v = jinja_text(jinja_change_case(j, v.string, JINJA_LOWER));
    return v;
}

// A stable merge sort of items[0..count); `room` has the same size.
static void merge_sort(struct jinja *j, struct sorted *items, struct sorted *room, size_t count, bool reverse) {
    if (count < 2) return;
    size_t half = count / 2, a = 0, b = half;
    merge_sort(j, items, room, half, reverse);
    merge_sort(j, items + half, room, count - half, reverse);
    for (size_t i = 0; i < count; i++) {
        jinja_spend(j, 1);
        bool second = a == half;
        if (a < half && b < count) {
            int order = jinja_compare(j, items[b].key, items[a].key, "<");
            second = reverse ? order > 0 : order < 0;
        }
        room[i] = items[second ? b++ : a++];
    }
    for (size_t i = 0; i < count; i++) items[i] = room[i];
}

// Several attributes, "a,b", give a tuple as the key.
static struct jinja_value sort_keys(struct jinja *j, struct jinja_value v, struct jinja_value attribute,
                                    bool case_sensitive) {
    const struct jinja_string comma = jinja_literal(",");
    if (attribute.type != JINJA_STRING || jinja_find(j, attribute.string, comma, 0) == SIZE_MAX)
        return sort_key(j, v, attribute, case_sensitive);
    struct jinja_list *keys = jinja_list(j, 2);
    for (size_t at = 0; at <= attribute.string.size;) {
        size_t end = jinja_find(j, attribute.string, comma, at), stop = end == SIZE_MAX ? attribute.string.size : end;
        jinja_push(j, keys, sort_key(j, v, jinja_text(jinja_substring(attribute.string, at, stop)), case_sensitive));
        at = stop + 1;
    }
    return jinja_sequence(JINJA_LIST, keys);
}

static struct jinja_value sort(struct jinja *j, const struct jinja_list *list, struct jinja_value attribute,
                               bool case_sensitive, bool reverse) {
    struct sorted *items = jinja_alloc(j, list->count, sizeof *items),
                  *room = jinja_alloc(j, list->count, sizeof *room);
    for (size_t i = 0; i < list->count; i++)
        items[i] = (struct sorted){sort_keys(j, list->items[i], attribute, case_sensitive), list->items[i]};
    merge_sort(j, items, room, list->count, reverse);
    struct jinja_list *out = jinja_list(j, list->count);
    for (size_t i = 0; i < list->count; i++) jinja_push(j, out, items[i].value);
    return jinja_sequence(JINJA_LIST, out);
}

static struct jinja_value filter_sort(struct jinja *j, struct jinja_value self, const arguments *a) {
    return sort(j, jinja_iterate(j, self), a->values[2], flag(a, 1), flag(a, 0));
}

static struct jinja_value filter_dictsort(struct jinja *j, struct jinja_value self, const arguments *a) {
    bool by_value = given(a, 1) && jinja_string_is(jinja_as_string(j, a->values[1], "by"), "value");
    if (self.type == JINJA_UNDEFINED) jinja_fail_undefined(j, self);
    struct jinja_value pairs = filter_items(j, self, a);
    return sort(j, pairs.list, jinja_integer(by_value), flag(a, 0), flag(a, 2));
}

static struct jinja_value extreme(struct jinja *j, struct jinja_value self, const arguments *a, int sign) {
    const struct jinja_list *list = jinja_iterate(j, self);
    if (!list->count) return jinja_nothing();
    struct jinja_value best = list->items[0], best_key = sort_key(j, best, a->values[1], flag(a, 0));
    for (size_t i = 1; i < list->count; i++) {
        jinja_spend(j, 1);
        struct jinja_value key = sort_key(j, list->items[i], a->values[1], flag(a, 0));
        if (sign * jinja_compare(j, key, best_key, sign < 0 ? "<" : ">") <= 0) continue;
        best = list->items[i];
        best_key = key;
    }
    return best;
}
static struct jinja_value filter_min(struct jinja *j, struct jinja_value self, const arguments *a) {
    return extreme(j, self, a, -1);
}
static struct jinja_value filter_max(struct jinja *j, struct jinja_value self, const arguments *a) {
    return extreme(j, self, a, 1);
}

static struct jinja_value filter_unique(struct jinja *j, struct jinja_value self, const arguments *a) {
    const struct jinja_list *list = jinja_iterate(j, self);
    struct jinja_list *out = jinja_list(j, 0), *keys = jinja_list(j, 0);
    for (size_t i = 0; i < list->count; i++) {
        struct jinja_value key = sort_key(j, list->items[i], a->values[1], flag(a, 0));
        if (jinja_contains(j, jinja_sequence(JINJA_LIST, keys), key)) continue;
        jinja_push(j, keys, key);
        jinja_push(j, out, list->items[i]);
    }
    return iterator(out);
}

static struct jinja_value filter_sum(struct jinja *j, struct jinja_value self, const arguments *a) {
    const struct jinja_list *list = jinja_iterate(j, self);
    struct jinja_value total = given(a, 1) ? a->values[1] : jinja_integer(0);
    for (size_t i = 0; i < list->count; i++) {
        jinja_spend(j, 1);
        bool whole = !given(a, 0) || a->values[0].type == JINJA_NONE;
        total =
            jinja_operate(j, JINJA_ADD, total, whole ? list->items[i] : jinja_path(j, list->items[i], a->values[0]));
    }
    return total;
}

const struct jinja_builtin jinja_list_filters[] = {
    {"batch", "linecount fill_with", 1, filter_batch},
    {"dictsort", "case_sensitive by reverse", 0, filter_dictsort},
    {"first", "", 0, filter_first},
    {"items", "", 0, filter_items},
    {"join", "d attribute", 0, filter_join},
    {"last", "", 0, filter_last},
    {"list", "", 0, filter_list},
    {"map", "*", 0, filter_map},
    {"max", "case_sensitive attribute", 0, filter_max},
    {"min", "case_sensitive attribute", 0, filter_min},
    {"reject", "*", 0, filter_reject},
    {"rejectattr", "*", 0, filter_rejectattr},
    {"reverse", "", 0, filter_reverse},
    {"select", "*", 0, filter_select},
    {"selectattr", "*", 0, filter_selectattr},
    {"slice", "slices fill_with", 1, filter_slice},
    {"sort", "reverse case_sensitive attribute", 0, filter_sort},
    {"sum", "attribute start", 0, filter_sum},
    {"unique", "case_sensitive attribute", 0, filter_unique},
    {0},
};
