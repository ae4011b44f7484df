// The insides of compiling a schema, shared by schema.c (conjunctions and their rules), schema_shape.c (what a
// conjunction says about a value), schema_derive.c (keywords that others can say), schema_disjoint.c (oneOf),
// schema_value.c, schema_number.c, schema_object.c and schema_format.c (expressions).
#ifndef CONFAB_GRAMMAR_SCHEMA_STATE_H
#define CONFAB_GRAMMAR_SCHEMA_STATE_H

#include <jansson.h>

#include "engine/grammar/json_text.h"
#include "engine/grammar/schema.h"

enum {
    SCHEMA_PARTS = 64,     // of a conjunction
    SCHEMA_WORK = 1 << 16, // parts and values looked at, in all
    SCHEMA_COMPARED = 256, // values that are compared in the time in which one is looked at
    SCHEMA_BUCKETS = 1024,
    SCHEMA_PREFIX = 1000,    // prefixItems
    SCHEMA_PROPERTIES = 2000 // of an object
};

// What of a schema has been taken into a conjunction already.
enum { TAKEN_REF = 1, TAKEN_ALL_OF = 2, TAKEN_ANY_OF = 4, TAKEN_ONE_OF = 8, TAKEN_DEPENDENT = 16 };

struct part {
    const json_t *schema;
    unsigned taken;
};

struct conjunction {
    int n;
    struct part parts[SCHEMA_PARTS]; // kept ones have only n
};

enum {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INTEGER = 4,
    TYPE_FRACTION = 8,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
    TYPE_NUMBER = TYPE_INTEGER | TYPE_FRACTION,
    TYPE_ALL = 127
};

struct bound { // of numbers
    bool given, excluded;
    double value;
};

// What the parts of a conjunction say about a value itself. Of its members and items they are asked again.
struct shape {
    unsigned types;
    struct bound least, most;
    double multiple;                                                                  // 0: any
    int min_length, max_length, min_items, max_items, min_properties, max_properties; // RULES_UNLIMITED
    const char *pattern, *format;                                                     // of a string; NULL: any
    const json_t *pattern_of;                                                         // the part that has one of them
};

struct schema {
    struct rules *rules;
    json_t *root;
    json_t *derived; // schemas that are not in the text, by what they came from; NULL: none
    struct status *st;
    const struct expression *space;     // between tokens
    const struct expression *character; // of a string: a rule
    const struct expression *string;    // likewise
    struct conjunction **made;          // [rules] what a rule is made of; NULL: nothing of the schema's
    int *others;                        // [rules] the rule before it with a like conjunction; -1: none
    int latest[SCHEMA_BUCKETS];         // by hash; -1: none
    int n_made, capacity;
    int work;
    size_t compared;
};

// "/properties/a: …"; returns false.
bool schema_fail(struct schema *s, const json_t *where, enum status_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
bool schema_fail_complex(struct schema *s, const json_t *where); // likewise
// Counts so many parts and values; false: more than SCHEMA_WORK in all.
static inline bool schema_work(struct schema *s, size_t n) {
    s->work = n > SCHEMA_WORK ? SCHEMA_WORK + 1 : s->work + (int)n;
    return s->work <= SCHEMA_WORK;
}
// Counts so many values, names or bytes that are compared.
static inline bool schema_compare(struct schema *s, size_t n) {
    s->compared += n;
    const size_t units = s->compared / SCHEMA_COMPARED;
    s->compared %= SCHEMA_COMPARED;
    return schema_work(s, units);
}
// Adds what a schema says: references and allOf become parts of their own. *never: it allows nothing.
bool conjunction_add(struct schema *s, struct conjunction *c, const json_t *schema, unsigned taken, bool *never);
// The rule of a conjunction, made once; it is built later. NULL: a message says why not.
const struct expression *schema_rule(struct schema *s, const struct conjunction *c, const char *name);
// What "dependentRequired" and "dependentSchemas" of a schema mean, as other keywords say it.
const json_t *schema_dependent(struct schema *s, const json_t *schema);
// {"type": "string"}; {"required": [name]}.
const json_t *schema_of_strings(struct schema *s);
const json_t *schema_requiring(struct schema *s, const char *name);
// The schema that "$ref" means.
const json_t *schema_resolve(struct schema *s, const json_t *schema, const char *reference);

// ---- schema_shape.c ----

bool shape_read(struct schema *s, const struct conjunction *c, struct shape *out);
unsigned shape_type_of(const json_t *value);
// Whether a value is allowed by the shape, as far as it says anything about values of its type.
bool shape_allows(const struct shape *shape, const json_t *value);
// The values that a schema, or the one that it refers to, lists, all of the type that it asks for; NULL: it does not,
// or says more about them.
const json_t *shape_listed(struct schema *s, const json_t *schema);
// Whether a schema says anything about values but for what was taken of it.
bool shape_has_assertions(const json_t *schema, unsigned taken);

// ---- schema_disjoint.c ----

// Whether no value that has the discriminator (NULL: none) matches two of the schemas of a oneOf; says which two where
// it is not sure.
bool disjoint_check(struct schema *s, const json_t *owner, const json_t *schemas, const char *discriminator);

// ---- expressions; NULL: a message says why not ----

const struct expression *schema_value(struct schema *s, const struct conjunction *c, const struct shape *shape);
const struct expression *schema_number(struct schema *s, const json_t *where, const struct shape *shape);
const struct expression *schema_array(struct schema *s, const struct conjunction *c, const struct shape *shape);
const struct expression *schema_object(struct schema *s, const struct conjunction *c, const struct shape *shape);
// The regular expression of a format; NULL: it is unknown.
const char *schema_format(const char *format);
bool schema_format_is_note(const char *format); // says what a text is for, not how it is spelled
// A pattern that looks ahead, as some that generators of schemas know do, said without that; otherwise itself.
const char *schema_pattern(const char *pattern);

#endif
