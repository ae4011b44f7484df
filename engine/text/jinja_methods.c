// Python's non-mutating methods of str, dict and list, and those of Jinja's loop.
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_builtin.h"

typedef struct jinja_arguments arguments;

static bool given(const arguments *a, size_t i) {
    return a->values[i].type != JINJA_UNDEFINED && a->values[i].type != JINJA_NONE;
}

static struct jinja_string text_or(struct jinja *j, const arguments *a, size_t i, const char *otherwise) {
    return given(a, i) ? jinja_as_string(j, a->values[i], "argument") : jinja_literal(otherwise);
}

static int64_t integer_or(struct jinja *j, const arguments *a, size_t i, int64_t otherwise) {
    return given(a, i) ? jinja_as_integer(j, a->values[i], "argument") : otherwise;
}

// ---- shared with filters ----

struct jinja_string jinja_join(struct jinja *j, const struct jinja_list *list, struct jinja_string between) {
    struct jinja_builder b = {0};
    for (size_t i = 0; i < list->count; i++) {
        jinja_spend(j, 1);
        if (i) jinja_append(j, &b, between);
        jinja_append(j, &b, jinja_to_string(j, list->items[i]));
    }
    return jinja_built(&b);
}

// If `old` is empty, `new` is inserted before every character and at the end.
static struct jinja_string insert_everywhere(struct jinja *j, struct jinja_string s, struct jinja_string new,
                                             int64_t most) {
    struct jinja_builder b = {0};
    size_t at = 0;
    for (; most; most--) {
        jinja_spend(j, 1);
        jinja_append(j, &b, new);
        if (at == s.size) break;
        uint32_t code;
        size_t next = at + utf8_decode(s.data + at, s.size - at, &code);
        jinja_append(j, &b, jinja_substring(s, at, next));
        at = next;
    }
    jinja_append(j, &b, jinja_substring(s, at, s.size));
    return jinja_built(&b);
}

struct jinja_string jinja_replace(struct jinja *j, struct jinja_string s, struct jinja_string old,
                                  struct jinja_string new, int64_t most) {
    if (!old.size) return insert_everywhere(j, s, new, most);
    struct jinja_builder b = {0};
    size_t at = 0;
    for (size_t found; most && (found = jinja_find(j, s, old, at)) != SIZE_MAX; most--) {
        jinja_spend(j, 1);
        jinja_append(j, &b, jinja_substring(s, at, found));
        jinja_append(j, &b, new);
        at = found + old.size;
    }
    if (!at) return s;
    jinja_append(j, &b, jinja_substring(s, at, s.size));
    return jinja_built(&b);
}

static bool is_line_end(uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

struct jinja_list *jinja_split_lines(struct jinja *j, struct jinja_string s) {
    struct jinja_list *list = jinja_list(j, 0);
    size_t begin = 0;
    for (size_t at = 0, next; at < s.size; at = next) {
        uint32_t code;
        next = at + utf8_decode(s.data + at, s.size - at, &code);
        if (!is_line_end(code)) continue;
        jinja_push(j, list, jinja_text(jinja_substring(s, begin, at)));
        if (code == '\r' && next < s.size && s.data[next] == '\n') next++;
        begin = next;
    }
    jinja_scan(j, s.size);
    if (begin < s.size) jinja_push(j, list, jinja_text(jinja_substring(s, begin, s.size)));
    return list;
}

// ---- str: stripping, case ----

static struct jinja_value strip(struct jinja *j, struct jinja_value self, const arguments *a, bool left, bool right) {
    struct jinja_string set = text_or(j, a, 0, "");
    return jinja_text(jinja_strip(j, self.string, given(a, 0) ? &set : NULL, left, right));
}

#define METHOD(name, value)                                                                                            \
    static struct jinja_value name(struct jinja *j, struct jinja_value self, const arguments *a) {                     \
        (void)j, (void)a;                                                                                              \
        return value;                                                                                                  \
    }
METHOD(str_strip, strip(j, self, a, true, true))
METHOD(str_lstrip, strip(j, self, a, true, false))
METHOD(str_rstrip, strip(j, self, a, false, true))
METHOD(str_upper, jinja_text(jinja_change_case(j, self.string, JINJA_UPPER)))
METHOD(str_lower, jinja_text(jinja_change_case(j, self.string, JINJA_LOWER)))
METHOD(str_capitalize, jinja_text(jinja_change_case(j, self.string, JINJA_CAPITALIZE)))
METHOD(str_title, jinja_text(jinja_change_case(j, self.string, JINJA_TITLE)))
METHOD(str_isupper, jinja_boolean(jinja_has_case(j, self.string, JINJA_UPPER)))
METHOD(str_islower, jinja_boolean(jinja_has_case(j, self.string, JINJA_LOWER)))
METHOD(str_format, jinja_brace_format(j, self, a))
METHOD(str_splitlines, jinja_sequence(JINJA_LIST, jinja_split_lines(j, self.string)))

static const struct jinja_list *escape_all(struct jinja *j, const struct jinja_list *list) {
    struct jinja_list *escaped = jinja_list(j, list->count);
    for (size_t i = 0; i < list->count; i++) jinja_push(j, escaped, jinja_text(jinja_escape(j, list->items[i])));
    return escaped;
}

static struct jinja_value str_join(struct jinja *j, struct jinja_value self, const arguments *a) {
    const struct jinja_list *list = jinja_iterate(j, a->values[0]);
    return jinja_text(jinja_join(j, self.safe ? escape_all(j, list) : list, self.string));
}

static bool is_alphanumeric(uint32_t code) { return jinja_is_letter(code) || jinja_is_digit(code); }

static struct jinja_value all(struct jinja *j, struct jinja_string s, bool (*is)(uint32_t code)) {
    uint32_t code;
    jinja_scan(j, s.size);
    for (size_t at = 0; at < s.size;) {
        at += utf8_decode(s.data + at, s.size - at, &code);
        if (!is(code)) return jinja_boolean(false);
    }
    return jinja_boolean(s.size);
}
METHOD(str_isspace, all(j, self.string, jinja_is_space))
METHOD(str_isdigit, all(j, self.string, jinja_is_digit))
METHOD(str_isalpha, all(j, self.string, jinja_is_letter))
METHOD(str_isalnum, all(j, self.string, is_alphanumeric))

// ---- str: splitting ----

static void push_part(struct jinja *j, struct jinja_list *list, struct jinja_string s, size_t begin, size_t end) {
    jinja_spend(j, 1);
    jinja_push(j, list, jinja_text(jinja_substring(s, begin, end)));
}

static void reverse(struct jinja_list *list) {
    for (size_t i = 0; i < list->count / 2; i++) {
        struct jinja_value v = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = v;
    }
}

static void split_by(struct jinja *j, struct jinja_list *list, struct jinja_string s, struct jinja_string by,
                     int64_t most) {
    size_t begin = 0;
    for (size_t end; most && (end = jinja_find(j, s, by, begin)) != SIZE_MAX; most--) {
        push_part(j, list, s, begin, end);
        begin = end + by.size;
    }
    push_part(j, list, s, begin, s.size);
}

static void split_by_last(struct jinja *j, struct jinja_list *list, struct jinja_string s, struct jinja_string by,
                          int64_t most) {
    for (size_t begin; most && (begin = jinja_find_last(j, s, by)) != SIZE_MAX; most--) {
        push_part(j, list, s, begin + by.size, s.size);
        s.size = begin;
    }
    push_part(j, list, s, 0, s.size);
    reverse(list);
}

// The bytes before the first white space; from the right, those before the last one.
static size_t word_end(struct jinja_string s) {
    uint32_t code;
    size_t at = 0;
    for (size_t next; at < s.size; at = next) {
        next = at + utf8_decode(s.data + at, s.size - at, &code);
        if (jinja_is_space(code)) break;
    }
    return at;
}

static size_t last_word_begin(struct jinja_string s) {
    size_t at = s.size;
    for (uint32_t code; at; at--) {
        size_t back = 1;
        while (back < 3 && back < at && ((uint8_t)s.data[at - back] & 0xc0) == 0x80)
            back++; // white space has at most 3 bytes
        utf8_decode(s.data + at - back, back, &code);
        if (jinja_is_space(code)) break;
    }
    return at;
}

static void split_words(struct jinja *j, struct jinja_list *list, struct jinja_string s, int64_t most,
                        bool from_right) {
    s = jinja_strip(j, s, NULL, !from_right, from_right);
    for (; s.size && most; most--) {
        size_t cut = from_right ? last_word_begin(s) : word_end(s);
        push_part(j, list, s, from_right ? cut : 0, from_right ? s.size : cut);
        s = jinja_strip(j, jinja_substring(s, from_right ? 0 : cut, from_right ? cut : s.size), NULL, !from_right,
                        from_right);
    }
    if (s.size) push_part(j, list, s, 0, s.size);
    if (from_right) reverse(list);
}

static struct jinja_value split(struct jinja *j, struct jinja_value self, const arguments *a, bool from_right) {
    struct jinja_list *list = jinja_list(j, 0);
    struct jinja_string by = text_or(j, a, 0, "");
    int64_t most = integer_or(j, a, 1, -1);
    jinja_scan(j, self.string.size);
    if (given(a, 0) && !by.size) jinja_fail(j, STATUS_FORMAT, "empty separator");
    if (!given(a, 0)) split_words(j, list, self.string, most, from_right);
    else if (from_right) split_by_last(j, list, self.string, by, most);
    else split_by(j, list, self.string, by, most);
    return jinja_sequence(JINJA_LIST, list);
}
METHOD(str_split, split(j, self, a, false))
METHOD(str_rsplit, split(j, self, a, true))

static struct jinja_value partition(struct jinja *j, struct jinja_value self, const arguments *a, bool from_right) {
    struct jinja_string s = self.string, by = text_or(j, a, 0, "");
    if (!by.size) jinja_fail(j, STATUS_FORMAT, "empty separator");
    size_t at = from_right ? jinja_find_last(j, s, by) : jinja_find(j, s, by, 0);
    struct jinja_list *list = jinja_list(j, 3);
    size_t begin = at != SIZE_MAX ? at : from_right ? 0 : s.size, end = at != SIZE_MAX ? at + by.size : begin;
    push_part(j, list, s, 0, begin);
    push_part(j, list, s, begin, end);
    push_part(j, list, s, end, s.size);
    return jinja_sequence(JINJA_TUPLE, list);
}
METHOD(str_partition, partition(j, self, a, false))
METHOD(str_rpartition, partition(j, self, a, true))

// ---- str: searching ----

// The part of self between arguments i and i + 1, and the index of its first character.
static struct jinja_string window(struct jinja *j, struct jinja_value self, const arguments *a, size_t i,
                                  int64_t *begin) {
    int64_t length = given(a, i) || given(a, i + 1) ? (int64_t)jinja_length(j, self.string) : 0;
    *begin = integer_or(j, a, i, 0);
    if (*begin < 0) *begin = *begin + length < 0 ? 0 : *begin + length;
    if (!length) return self.string;
    struct jinja_value none = jinja_none();
    return jinja_slice(j, self, given(a, i) ? a->values[i] : none, given(a, i + 1) ? a->values[i + 1] : none, none)
        .string;
}

static struct jinja_value find(struct jinja *j, struct jinja_value self, const arguments *a, bool last, bool must) {
    int64_t begin;
    struct jinja_string s = window(j, self, a, 1, &begin), part = jinja_as_string(j, a->values[0], "argument");
    size_t at = last ? jinja_find_last(j, s, part) : jinja_find(j, s, part, 0);
    if (at == SIZE_MAX && must) jinja_fail(j, STATUS_FORMAT, "substring not found");
    return jinja_integer(at == SIZE_MAX ? -1 : begin + (int64_t)jinja_length(j, jinja_substring(s, 0, at)));
}
METHOD(str_find, find(j, self, a, false, false))
METHOD(str_rfind, find(j, self, a, true, false))
METHOD(str_index, find(j, self, a, false, true))
METHOD(str_rindex, find(j, self, a, true, true))

static struct jinja_value str_count(struct jinja *j, struct jinja_value self, const arguments *a) {
    int64_t begin, count = 0;
    struct jinja_string s = window(j, self, a, 1, &begin), part = jinja_as_string(j, a->values[0], "argument");
    if (!part.size) return jinja_integer((int64_t)jinja_length(j, s) + 1);
    for (size_t at = 0; (at = jinja_find(j, s, part, at)) != SIZE_MAX; at += part.size) jinja_spend(j, 1), count++;
    return jinja_integer(count);
}

static bool has_affix(struct jinja *j, struct jinja_string s, struct jinja_string affix, bool at_end) {
    if (affix.size > s.size) return false;
    jinja_scan(j, affix.size);
    return jinja_string_equal(jinja_substring(s, at_end ? s.size - affix.size : 0, at_end ? s.size : affix.size),
                              affix);
}

static struct jinja_value has_any_affix(struct jinja *j, struct jinja_value self, const arguments *a, bool at_end) {
    int64_t begin;
    struct jinja_string s = window(j, self, a, 1, &begin);
    struct jinja_list one = {a->values, 1, 1}, *affixes = a->values[0].type == JINJA_TUPLE ? a->values[0].list : &one;
    bool any = false;
    for (size_t i = 0; i < affixes->count && !any; i++) {
        jinja_spend(j, 1);
        any = has_affix(j, s, jinja_as_string(j, affixes->items[i], "argument"), at_end);
    }
    return jinja_boolean(any);
}
METHOD(str_startswith, has_any_affix(j, self, a, false))
METHOD(str_endswith, has_any_affix(j, self, a, true))

static struct jinja_value remove_affix(struct jinja *j, struct jinja_value self, const arguments *a, bool at_end) {
    struct jinja_string s = self.string, affix = jinja_as_string(j, a->values[0], "argument");
    if (!has_affix(j, s, affix, at_end)) return self;
    return jinja_text(jinja_substring(s, at_end ? 0 : affix.size, at_end ? s.size - affix.size : s.size));
}
METHOD(str_removeprefix, remove_affix(j, self, a, false))
METHOD(str_removesuffix, remove_affix(j, self, a, true))

static struct jinja_value str_replace(struct jinja *j, struct jinja_value self, const arguments *a) {
    struct jinja_string old = jinja_as_string(j, a->values[0], "old");
    struct jinja_string new = jinja_as_string(j, a->values[1], "new");
    if (self.safe) new = jinja_escape(j, a->values[1]);
    return jinja_text(jinja_replace(j, self.string, old, new, integer_or(j, a, 2, -1)));
}

// ---- dict ----

static struct jinja_value dict_parts(struct jinja *j, const struct jinja_dict *dict, bool keys, bool values) {
    struct jinja_list *list = jinja_list(j, dict->count);
    jinja_spend(j, dict->count);
    for (size_t i = 0; i < dict->count; i++) {
        const struct jinja_entry *e = &dict->entries[i];
        jinja_push(j, list, keys && values ? jinja_pair(j, e->key, e->value) : keys ? e->key : e->value);
    }
    return jinja_sequence(JINJA_LIST, list);
}
METHOD(dict_items, dict_parts(j, self.dict, true, true))
METHOD(dict_keys, dict_parts(j, self.dict, true, false))
METHOD(dict_values, dict_parts(j, self.dict, false, true))
METHOD(itself, self)

static struct jinja_value dict_get(struct jinja *j, struct jinja_value self, const arguments *a) {
    const struct jinja_entry *e = jinja_dict_find(j, self.dict, a->values[0]);
    if (e) return e->value;
    return a->values[1].type == JINJA_UNDEFINED && !a->values[1].missing ? jinja_none() : a->values[1];
}

// ---- list ----

static struct jinja_value list_count(struct jinja *j, struct jinja_value self, const arguments *a) {
    int64_t count = 0;
    for (size_t i = 0; i < self.list->count; i++) {
        jinja_spend(j, 1);
        count += jinja_equal(j, self.list->items[i], a->values[0]);
    }
    return jinja_integer(count);
}

static struct jinja_value list_index(struct jinja *j, struct jinja_value self, const arguments *a) {
    for (size_t i = 0; i < self.list->count; i++) {
        jinja_spend(j, 1);
        if (jinja_equal(j, self.list->items[i], a->values[0])) return jinja_integer((int64_t)i);
    }
    jinja_fail(j, STATUS_FORMAT, "value is not in list");
}

// ---- loop ----

static struct jinja_value loop_cycle(struct jinja *j, struct jinja_value self, const arguments *a) {
    if (!a->count) jinja_fail(j, STATUS_FORMAT, "no items for cycling given");
    return a->values[self.loop->index % a->count];
}

static struct jinja_value loop_changed(struct jinja *j, struct jinja_value self, const arguments *a) {
    struct jinja_list *now = jinja_list(j, a->count), *before = self.loop->changed;
    for (size_t i = 0; i < a->count; i++) jinja_push(j, now, a->values[i]);
    self.loop->changed = now;
    return jinja_boolean(!before ||
                         !jinja_equal(j, jinja_sequence(JINJA_TUPLE, before), jinja_sequence(JINJA_TUPLE, now)));
}

// Methods that change a value in place are missing, as in the sandbox.
const struct jinja_builtin jinja_string_methods[] = {
    {"capitalize", "", 0, str_capitalize},
    {"count", "sub start end", 1, str_count},
    {"endswith", "suffix start end", 1, str_endswith},
    {"find", "sub start end", 1, str_find},
    {"format", "*", 0, str_format},
    {"index", "sub start end", 1, str_index},
    {"isalnum", "", 0, str_isalnum},
    {"isalpha", "", 0, str_isalpha},
    {"isdigit", "", 0, str_isdigit},
    {"islower", "", 0, str_islower},
    {"isspace", "", 0, str_isspace},
    {"isupper", "", 0, str_isupper},
    {"join", "iterable", 1, str_join},
    {"lower", "", 0, str_lower},
    {"lstrip", "chars", 0, str_lstrip},
    {"partition", "sep", 1, str_partition},
    {"removeprefix", "prefix", 1, str_removeprefix},
    {"removesuffix", "suffix", 1, str_removesuffix},
    {"replace", "old new count", 2, str_replace},
    {"rfind", "sub start end", 1, str_rfind},
    {"rindex", "sub start end", 1, str_rindex},
    {"rpartition", "sep", 1, str_rpartition},
    {"rsplit", "sep maxsplit", 0, str_rsplit},
    {"rstrip", "chars", 0, str_rstrip},
    {"split", "sep maxsplit", 0, str_split},
    {"splitlines", "", 0, str_splitlines},
    {"startswith", "prefix start end", 1, str_startswith},
    {"strip", "chars", 0, str_strip},
    {"title", "", 0, str_title},
    {"upper", "", 0, str_upper},
    {0},
};
const struct jinja_builtin jinja_dict_methods[] = {
    {"copy", "", 0, itself},    {"get", "key default", 1, dict_get}, {"items", "", 0, dict_items},
    {"keys", "", 0, dict_keys}, {"values", "", 0, dict_values},      {0},
};
const struct jinja_builtin jinja_list_methods[] = {
    {"copy", "", 0, itself}, {"count", "value", 1, list_count}, {"index", "value", 1, list_index}, {0}};
const struct jinja_builtin jinja_loop_methods[] = {
    {"changed", "*", 0, loop_changed}, {"cycle", "*", 0, loop_cycle}, {0}};
