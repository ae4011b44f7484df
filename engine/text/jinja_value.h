// Jinja values, and the state of a render shared by all parts of the interpreter.
//
// Values are immutable except namespaces; all memory is in the render's arena. Failures go through jinja_fail, which
// does not return. Every walk over a value and every scan of a string is charged against the limits below.
#ifndef CONFAB_TEXT_JINJA_VALUE_H
#define CONFAB_TEXT_JINJA_VALUE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/reader.h"

enum {
    JINJA_STEPS_LIMIT = 2 * 1000 * 1000, // nodes evaluated, and bytes or items scanned in bulk
    JINJA_DEPTH_LIMIT = 400,             // of nested syntax, evaluation and data together
    JINJA_STRING_LIMIT = 16 << 20,       // bytes of a string, including the output
    JINJA_MEMORY_LIMIT = 64 << 20,       // bytes in total
    JINJA_RANGE_LIMIT = 100000,          // the sandbox's limit
};

// X(enumerator, Python's name, used in messages)
#define JINJA_TYPES(X)                                                                                                 \
    X(JINJA_UNDEFINED, "Undefined")                                                                                    \
    X(JINJA_NONE, "NoneType")                                                                                          \
    X(JINJA_BOOLEAN, "bool")                                                                                           \
    X(JINJA_INTEGER, "int")                                                                                            \
    X(JINJA_FLOAT, "float")                                                                                            \
    X(JINJA_STRING, "str")                                                                                             \
    X(JINJA_LIST, "list")                                                                                              \
    X(JINJA_TUPLE, "tuple")                                                                                            \
    X(JINJA_ITERATOR, "generator")                                                                                     \
    X(JINJA_DICT, "dict")                                                                                              \
    X(JINJA_NAMESPACE, "Namespace")                                                                                    \
    X(JINJA_LOOP, "LoopContext")                                                                                       \
    X(JINJA_MACRO, "Macro")                                                                                            \
    X(JINJA_FUNCTION, "function")

enum jinja_type {
#define X(type, name) type,
    JINJA_TYPES(X)
#undef X
        JINJA_TYPE_COUNT
};

// Bytes with their origin: taint[i] is 1 if byte i came from the context; NULL if none did.
struct jinja_string {
    const char *data, *taint;
    size_t size;
};

struct jinja_value {
    enum jinja_type type;
    bool safe; // string is Markup (see the filter `safe`): escapes plain strings joined with it
    union {
        bool boolean;
        int64_t integer;
        double number;
        struct jinja_string string;
        struct jinja_list *list; // JINJA_LIST, JINJA_TUPLE, JINJA_ITERATOR (always true, no length or index)
        struct jinja_dict *dict; // JINJA_DICT, JINJA_NAMESPACE
        struct jinja_loop *loop;
        struct jinja_macro *macro;
        const struct jinja_missing *missing; // JINJA_UNDEFINED; NULL: unknown
        struct {
            const struct jinja_builtin *builtin;
            const struct jinja_value *self; // NULL: not a method
        } function;
    };
};

// The name that was not found, for the message when the value is used.
struct jinja_missing {
    const char *owner; // the type that lacks it; NULL: a variable
    struct jinja_string name;
};

struct jinja_list {
    struct jinja_value *items;
    size_t count, capacity;
};

struct jinja_entry {
    struct jinja_value key, value;
};
struct jinja_dict { // in insertion order
    struct jinja_entry *entries;
    size_t count, capacity;
};

struct jinja_loop {
    const struct jinja_list *items;
    size_t index;               // of the current item, from 0
    struct jinja_list *changed; // arguments of the last loop.changed(); initially NULL
};

struct jinja_builder {  // a growing string, initialised to {0}
    char *data, *taint; // taint: NULL until needed
    size_t size, capacity;
};

enum jinja_flow { JINJA_FLOW_ON, JINJA_FLOW_BREAK, JINJA_FLOW_CONTINUE };

struct jinja { // one render
    struct arena arena;
    jmp_buf failure;
    struct status *st;
    int64_t steps; // left
    int depth, line;
    struct tm now;
    struct jinja_dict *context;
    struct jinja_scope *scope;
    struct jinja_builder *out;
    enum jinja_flow flow;
};

// ---- limits and failure ----

// Fails with "line N: …".
_Noreturn void jinja_fail(struct jinja *j, enum status_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
_Noreturn void jinja_raise(struct jinja *j, struct jinja_string message);   // without "line N: "
_Noreturn void jinja_fail_undefined(struct jinja *j, struct jinja_value v); // names what was not found
void jinja_spend(struct jinja *j, size_t steps);
static inline void jinja_scan(struct jinja *j, size_t bytes) { jinja_spend(j, bytes / 16); }
void jinja_enter(struct jinja *j); // one level deeper
static inline void jinja_leave(struct jinja *j) { j->depth--; }
void *jinja_alloc(struct jinja *j, uint64_t count, size_t size); // zeroed

// ---- making values ----

struct jinja_value jinja_undefined(struct jinja *j, const char *owner, struct jinja_string name);
static inline struct jinja_value jinja_nothing(void) { return (struct jinja_value){.type = JINJA_UNDEFINED}; }
static inline struct jinja_value jinja_none(void) { return (struct jinja_value){.type = JINJA_NONE}; }
static inline struct jinja_value jinja_boolean(bool b) {
    return (struct jinja_value){.type = JINJA_BOOLEAN, .boolean = b};
}
static inline struct jinja_value jinja_integer(int64_t i) {
    return (struct jinja_value){.type = JINJA_INTEGER, .integer = i};
}
static inline struct jinja_value jinja_number(double d) {
    return (struct jinja_value){.type = JINJA_FLOAT, .number = d};
}
static inline struct jinja_value jinja_text(struct jinja_string s) {
    return (struct jinja_value){.type = JINJA_STRING, .string = s};
}
// A string as safe as its source.
static inline struct jinja_value jinja_text_like(struct jinja_value from, struct jinja_string s) {
    return (struct jinja_value){.type = JINJA_STRING, .safe = from.safe, .string = s};
}
static inline struct jinja_value jinja_safe(struct jinja_string s) {
    return (struct jinja_value){.type = JINJA_STRING, .safe = true, .string = s};
}
static inline struct jinja_value jinja_sequence(enum jinja_type type, struct jinja_list *list) {
    return (struct jinja_value){.type = type, .list = list};
}
static inline struct jinja_value jinja_mapping(struct jinja_dict *dict) {
    return (struct jinja_value){.type = JINJA_DICT, .dict = dict};
}

// ---- strings ----

struct jinja_string jinja_literal(const char *text); // borrowed, without taint
bool jinja_string_is(struct jinja_string s, const char *text);
bool jinja_string_equal(struct jinja_string a, struct jinja_string b);
struct jinja_string jinja_substring(struct jinja_string s, size_t begin, size_t end); // bytes [begin, end)
size_t jinja_length(struct jinja *j, struct jinja_string s);                          // in characters
// The byte offset of character `index`; s.size if there are fewer.
size_t jinja_offset(struct jinja *j, struct jinja_string s, size_t index);
// The first offset of `part` at or after byte `from`; SIZE_MAX if none.
size_t jinja_find(struct jinja *j, struct jinja_string s, struct jinja_string part, size_t from);
size_t jinja_find_last(struct jinja *j, struct jinja_string s, struct jinja_string part);
bool jinja_is_space(uint32_t code); // like Python's str.isspace
// Strips characters in `set` (NULL: white space) on the given sides.
struct jinja_string jinja_strip(struct jinja *j, struct jinja_string s, const struct jinja_string *set, bool left,
                                bool right);

void jinja_append(struct jinja *j, struct jinja_builder *b, struct jinja_string s);
void jinja_append_text(struct jinja *j, struct jinja_builder *b, const char *text);
void jinja_append_code(struct jinja *j, struct jinja_builder *b, uint32_t code, bool tainted);
struct jinja_string jinja_built(const struct jinja_builder *b);

// ---- lists and dicts ----

struct jinja_list *jinja_list(struct jinja *j, size_t capacity);
void jinja_push(struct jinja *j, struct jinja_list *list, struct jinja_value v);
struct jinja_dict *jinja_dict(struct jinja *j, size_t capacity);
struct jinja_entry *jinja_dict_find(struct jinja *j, const struct jinja_dict *dict,
                                    struct jinja_value key); // NULL if none
void jinja_dict_set(struct jinja *j, struct jinja_dict *dict, struct jinja_value key, struct jinja_value v);
struct jinja_value jinja_pair(struct jinja *j, struct jinja_value a, struct jinja_value b); // a tuple
// The items of a loop over v: items, keys or characters; borrowed from v if possible. Fails like Python.
const struct jinja_list *jinja_iterate(struct jinja *j, struct jinja_value v);

// ---- all values ----

const char *jinja_type_name(struct jinja_value v);
bool jinja_is_number(struct jinja_value v); // booleans are numbers
double jinja_as_double(struct jinja_value v);
int64_t jinja_as_integer(struct jinja *j, struct jinja_value v, const char *what); // fails unless int or bool
struct jinja_string jinja_as_string(struct jinja *j, struct jinja_value v, const char *what); // fails unless str
bool jinja_truth(struct jinja_value v);
bool jinja_equal(struct jinja *j, struct jinja_value a, struct jinja_value b);
// Negative, 0 or positive; fails with Python's message if the types have no order. `sign` is for the message.
int jinja_compare(struct jinja *j, struct jinja_value a, struct jinja_value b, const char *sign);
bool jinja_contains(struct jinja *j, struct jinja_value whole, struct jinja_value part);

// ---- printing (jinja_print.c) ----

struct jinja_string jinja_to_string(struct jinja *j, struct jinja_value v); // Python's str()
struct jinja_string jinja_repr(struct jinja *j, struct jinja_value v);
size_t jinja_format_float(double number, char out[32]); // Python's repr() of a float
struct jinja_json_style {
    bool ascii, sort;
    struct jinja_string indent;    // data NULL: on one line
    struct jinja_string item, key; // separators
};
struct jinja_string jinja_to_json(struct jinja *j, struct jinja_value v, const struct jinja_json_style *style);

#endif
