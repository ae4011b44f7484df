// Jinja builtins: filters, tests, methods and global functions, each a table.
#ifndef CONFAB_TEXT_JINJA_BUILTIN_H
#define CONFAB_TEXT_JINJA_BUILTIN_H

#include "engine/text/jinja_value.h"

enum { JINJA_PARAMETERS_MOST = 6 };

struct jinja_arguments {
    struct jinja_value *values;
    size_t count;
    struct jinja_dict *named; // NULL: none
};

struct jinja_builtin {
    const char *name;
    // Their names, with blanks between. Arguments are put in this order, those not given are undefined. "*": whatever
    // comes, as it comes.
    const char *parameters;
    int required; // how many must be given
    // self: what stands before | or is or the method's dot.
    struct jinja_value (*run)(struct jinja *j, struct jinja_value self, const struct jinja_arguments *a);
};

// Each ends with an entry without a name.
extern const struct jinja_builtin jinja_text_filters[], jinja_list_filters[], jinja_tests[], jinja_globals[];
extern const struct jinja_builtin jinja_string_methods[], jinja_dict_methods[], jinja_list_methods[], jinja_loop_methods[];

const struct jinja_builtin *jinja_builtin_find(const struct jinja_builtin *table, struct jinja_string name); // NULL: none
const struct jinja_builtin *jinja_filter_find(struct jinja_string name);
const struct jinja_builtin *jinja_method_find(struct jinja_value v, struct jinja_string name);

// Puts the arguments in order and runs it; fails when they do not fit.
struct jinja_value jinja_run(struct jinja *j, const struct jinja_builtin *b, struct jinja_value self,
                             const struct jinja_arguments *a);

// ---- what filters share with the evaluator (jinja_access.c) ----
struct jinja_value jinja_attribute(struct jinja *j, struct jinja_value v, struct jinja_string name); // v.name
struct jinja_value jinja_item(struct jinja *j, struct jinja_value v, struct jinja_value key);        // v[key]
struct jinja_value jinja_slice(struct jinja *j, struct jinja_value v, struct jinja_value start, struct jinja_value stop,
                               struct jinja_value step); // v[start:stop:step], none where left out
struct jinja_value jinja_path(struct jinja *j, struct jinja_value v, struct jinja_value path); // 'a.b.0', as filters have it

// ---- what text filters and methods share (jinja_case.c, jinja_format.c) ----
enum jinja_case {
    JINJA_UPPER, JINJA_LOWER, JINJA_CAPITALIZE,
    JINJA_TITLE,      // of every run of letters, as Python's method does
    JINJA_TITLE_WORDS // of every word, as the filter does
};
struct jinja_string jinja_change_case(struct jinja *j, struct jinja_string s, enum jinja_case to);
bool jinja_is_letter(uint32_t code);
bool jinja_is_digit(uint32_t code);
bool jinja_has_case(struct jinja *j, struct jinja_string s, enum jinja_case wanted); // Python's isupper, islower
struct jinja_list *jinja_split_lines(struct jinja *j, struct jinja_string s);
struct jinja_string jinja_replace(struct jinja *j, struct jinja_string s, struct jinja_string old, struct jinja_string new,
                                  int64_t most); // most < 0: all
struct jinja_string jinja_join(struct jinja *j, const struct jinja_list *list, struct jinja_string between);
struct jinja_string jinja_escape(struct jinja *j, struct jinja_value v); // str(v) for HTML; a safe text as it is
// A safe text escapes what it takes up, and stays safe.
struct jinja_value jinja_percent_format(struct jinja *j, struct jinja_value text, struct jinja_value values);
struct jinja_value jinja_brace_format(struct jinja *j, struct jinja_value text, const struct jinja_arguments *a);

#endif
