// Jinja builtins: tables of filters, tests, methods and global functions.
#ifndef CONFAB_TEXT_JINJA_BUILTIN_H
#define CONFAB_TEXT_JINJA_BUILTIN_H

#include "engine/text/jinja_value.h"

enum { JINJA_MAX_PARAMETERS = 6 };

struct jinja_arguments {
    struct jinja_value *values;
    size_t count;
    struct jinja_dict *named; // NULL: none
};

struct jinja_builtin {
    const char *name;
    // Parameter names separated by spaces. Arguments are passed in this order, missing ones as undefined. "*": passed
    // as given.
    const char *parameters;
    int required; // number of required arguments
    // self: the value before "|", "is" or the method's dot.
    struct jinja_value (*run)(struct jinja *j, struct jinja_value self, const struct jinja_arguments *a);
};

// Terminated by an entry without a name.
extern const struct jinja_builtin jinja_text_filters[], jinja_list_filters[], jinja_tests[], jinja_globals[];
extern const struct jinja_builtin jinja_string_methods[], jinja_dict_methods[], jinja_list_methods[],
    jinja_loop_methods[];

const struct jinja_builtin *jinja_builtin_find(const struct jinja_builtin *table,
                                               struct jinja_string name); // NULL if none
const struct jinja_builtin *jinja_filter_find(struct jinja_string name);
const struct jinja_builtin *jinja_method_find(struct jinja_value v, struct jinja_string name);

// Orders the arguments and calls the builtin; fails if they do not match.
struct jinja_value jinja_run(struct jinja *j, const struct jinja_builtin *b, struct jinja_value self,
                             const struct jinja_arguments *a);

// ---- shared by filters and the evaluator (jinja_access.c) ----
struct jinja_value jinja_attribute(struct jinja *j, struct jinja_value v, struct jinja_string name); // v.name
struct jinja_value jinja_item(struct jinja *j, struct jinja_value v, struct jinja_value key);        // v[key]
struct jinja_value jinja_slice(struct jinja *j, struct jinja_value v, struct jinja_value start, struct jinja_value stop,
                               struct jinja_value step); // v[start:stop:step]; none if left out
struct jinja_value jinja_path(struct jinja *j, struct jinja_value v, struct jinja_value path); // 'a.b.0', as in filters

// ---- shared by text filters and methods (jinja_case.c, jinja_format.c) ----
enum jinja_case {
    JINJA_UPPER,
    JINJA_LOWER,
    JINJA_CAPITALIZE,
    JINJA_TITLE,      // every run of letters, like Python's method
    JINJA_TITLE_WORDS // every word, like the filter
};
struct jinja_string jinja_change_case(struct jinja *j, struct jinja_string s, enum jinja_case to);
bool jinja_is_letter(uint32_t code);
bool jinja_is_digit(uint32_t code);
bool jinja_has_case(struct jinja *j, struct jinja_string s, enum jinja_case wanted); // Python's isupper, islower
struct jinja_list *jinja_split_lines(struct jinja *j, struct jinja_string s);
struct jinja_string jinja_replace(struct jinja *j, struct jinja_string s, struct jinja_string old,
                                  struct jinja_string new,
                                  int64_t most); // most < 0: all
struct jinja_string jinja_join(struct jinja *j, const struct jinja_list *list, struct jinja_string between);
struct jinja_string jinja_escape(struct jinja *j, struct jinja_value v); // str(v) escaped for HTML, unless safe
// A safe format string escapes its arguments and stays safe.
struct jinja_value jinja_percent_format(struct jinja *j, struct jinja_value text, struct jinja_value values);
struct jinja_value jinja_brace_format(struct jinja *j, struct jinja_value text, const struct jinja_arguments *a);

#endif
