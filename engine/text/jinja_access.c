// Attributes, items and slices of Jinja values, with the rules of Jinja2: v.name tries methods before items, v['name']
// items before methods; missing ones are undefined.
#include <string.h>

#include "engine/text/jinja_builtin.h"

// The owner's name in an undefined result.
static const char *owner_name(struct jinja_value v) { return v.type == JINJA_NONE ? "None" : jinja_type_name(v); }

static bool find_method(struct jinja *j, struct jinja_value v, struct jinja_string name, struct jinja_value *out) {
    const struct jinja_builtin *method = jinja_method_find(v, name);
    if (!method) return false;
    struct jinja_value *self = jinja_alloc(j, 1, sizeof *self);
    *self = v;
    *out = (struct jinja_value){.type = JINJA_FUNCTION, .function = {method, self}};
    return true;
}

static bool find_key(struct jinja *j, const struct jinja_dict *dict, struct jinja_value key, struct jinja_value *out) {
    const struct jinja_entry *e = jinja_dict_find(j, dict, key);
    if (e) *out = e->value;
    return e;
}

// ---- attributes of `loop` ----

static struct jinja_value loop_neighbour(const struct jinja_loop *loop, bool there, size_t index) {
    return there ? loop->items->items[index] : jinja_nothing();
}

static bool loop_attribute(const struct jinja_loop *loop, struct jinja_string name, struct jinja_value *out) {
    int64_t index = (int64_t)loop->index, count = (int64_t)loop->items->count;
    const struct {
        const char *name;
        struct jinja_value value;
    } attributes[] = {
        {"index", jinja_integer(index + 1)},
        {"index0", jinja_integer(index)},
        {"revindex", jinja_integer(count - index)},
        {"revindex0", jinja_integer(count - index - 1)},
        {"first", jinja_boolean(index == 0)},
        {"last", jinja_boolean(index + 1 == count)},
        {"length", jinja_integer(count)},
        {"depth", jinja_integer(1)}, // of recursion
        {"depth0", jinja_integer(0)},
        {"previtem", loop_neighbour(loop, index > 0, loop->index - 1)},
        {"nextitem", loop_neighbour(loop, index + 1 < count, loop->index + 1)},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (jinja_string_is(name, attributes[i].name)) return *out = attributes[i].value, true;
    return false;
}

// ---- attributes and items ----

struct jinja_value jinja_attribute(struct jinja *j, struct jinja_value v, struct jinja_string name) {
    struct jinja_value found;
    if (v.type == JINJA_UNDEFINED) jinja_fail_undefined(j, v);
    if (find_method(j, v, name, &found)) return found;
    if ((v.type == JINJA_DICT || v.type == JINJA_NAMESPACE) && find_key(j, v.dict, jinja_text(name), &found))
        return found;
    if (v.type == JINJA_LOOP && loop_attribute(v.loop, name, &found)) return found;
    return jinja_undefined(j, owner_name(v), name);
}

static struct jinja_value element(struct jinja *j, struct jinja_value v, int64_t index) {
    size_t count = v.type == JINJA_STRING ? jinja_length(j, v.string) : v.list->count;
    if (index < 0) index += (int64_t)count;
    if (index < 0 || (uint64_t)index >= count) return jinja_undefined(j, owner_name(v), jinja_literal("at this index"));
    if (v.type != JINJA_STRING) return v.list->items[index];
    size_t begin = jinja_offset(j, v.string, (size_t)index);
    struct jinja_string rest = jinja_substring(v.string, begin, v.string.size);
    return jinja_text_like(v, jinja_substring(rest, 0, jinja_offset(j, rest, 1)));
}

struct jinja_value jinja_item(struct jinja *j, struct jinja_value v, struct jinja_value key) {
    struct jinja_value found;
    if (v.type == JINJA_UNDEFINED) jinja_fail_undefined(j, v);
    if (v.type == JINJA_DICT && find_key(j, v.dict, key, &found)) return found;
    bool ordered = v.type == JINJA_LIST || v.type == JINJA_TUPLE || v.type == JINJA_STRING;
    if (ordered && (key.type == JINJA_INTEGER || key.type == JINJA_BOOLEAN))
        return element(j, v, jinja_as_integer(j, key, "an index"));
    if (key.type == JINJA_STRING) return jinja_attribute(j, v, key.string);
    return jinja_undefined(j, owner_name(v), jinja_repr(j, key));
}

struct jinja_value jinja_path(struct jinja *j, struct jinja_value v, struct jinja_value path) {
    if (path.type != JINJA_STRING) return jinja_item(j, v, path);
    const struct jinja_string dot = jinja_literal(".");
    for (size_t at = 0; at <= path.string.size;) {
        size_t end = jinja_find(j, path.string, dot, at), next = end == SIZE_MAX ? path.string.size : end;
        struct jinja_string part = jinja_substring(path.string, at, next);
        jinja_spend(j, 1);
        int64_t index = 0;
        size_t i = 0;
        for (; i < part.size && i < 15 && part.data[i] >= '0' && part.data[i] <= '9'; i++)
            index = index * 10 + (part.data[i] - '0');
        v = jinja_item(j, v, part.size && i == part.size ? jinja_integer(index) : jinja_text(part));
        at = next + 1;
    }
    return v;
}

// ---- slices ----

struct slice {
    int64_t start, step;
    size_t count;
};

static int64_t clamp(int64_t index, int64_t length, int64_t low, int64_t high) {
    if (index < 0) index += length;
    return index < low ? low : index > high ? high : index;
}

static struct slice slice_of(struct jinja *j, int64_t length, struct jinja_value start, struct jinja_value stop,
                             struct jinja_value step) {
    struct slice s = {.step = step.type == JINJA_NONE ? 1 : jinja_as_integer(j, step, "a slice's step")};
    if (s.step == 0) jinja_fail(j, STATUS_FORMAT, "slice step cannot be zero");
    if (s.step < -INT32_MAX) s.step = -INT32_MAX; // no text or list is longer
    if (s.step > INT32_MAX) s.step = INT32_MAX;
    bool back = s.step < 0;
    int64_t low = back ? -1 : 0, high = back ? length - 1 : length, end = back ? low : high;
    s.start = back ? high : low;
    if (start.type != JINJA_NONE) s.start = clamp(jinja_as_integer(j, start, "a slice's start"), length, low, high);
    if (stop.type != JINJA_NONE) end = clamp(jinja_as_integer(j, stop, "a slice's end"), length, low, high);
    int64_t distance = back ? s.start - end : end - s.start, stride = back ? -s.step : s.step;
    s.count = distance > 0 ? (size_t)((distance + stride - 1) / stride) : 0;
    return s;
}

static struct jinja_list *pick(struct jinja *j, const struct jinja_list *list, struct slice s) {
    struct jinja_list *out = jinja_list(j, s.count);
    jinja_spend(j, s.count / 4);
    for (size_t i = 0; i < s.count; i++) jinja_push(j, out, list->items[s.start + (int64_t)i * s.step]);
    return out;
}

static struct jinja_value slice_string(struct jinja *j, struct jinja_value v, struct slice s) {
    if (s.step == 1) {
        size_t begin = jinja_offset(j, v.string, (size_t)s.start);
        struct jinja_string rest = jinja_substring(v.string, begin, v.string.size);
        return jinja_text_like(v, jinja_substring(rest, 0, jinja_offset(j, rest, s.count)));
    }
    return jinja_text_like(v, jinja_join(j, pick(j, jinja_iterate(j, v), s), jinja_literal("")));
}

struct jinja_value jinja_slice(struct jinja *j, struct jinja_value v, struct jinja_value start, struct jinja_value stop,
                               struct jinja_value step) {
    if (v.type == JINJA_UNDEFINED) jinja_fail_undefined(j, v);
    if (v.type == JINJA_STRING)
        return slice_string(j, v, slice_of(j, (int64_t)jinja_length(j, v.string), start, stop, step));
    if (v.type != JINJA_LIST && v.type != JINJA_TUPLE)
        jinja_fail(j, STATUS_FORMAT, "'%s' object cannot be sliced", jinja_type_name(v));
    return jinja_sequence(v.type, pick(j, v.list, slice_of(j, (int64_t)v.list->count, start, stop, step)));
}
