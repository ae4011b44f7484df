// Fields: reads the members of a JSON object as a table says. Each has a type and a range, and what does not fit is
// refused by name: nothing is changed in silence.
#ifndef CONFAB_SERVER_FIELDS_H
#define CONFAB_SERVER_FIELDS_H

#include <jansson.h>

#include "app/server/ask.h"

enum field_kind {
    FIELD_KNOB,    // of sampling, `place` its id; the range is the knob's
    FIELD_TABLE,   // no field of its own: a row for all those of `table`
    FIELD_INT,     // int at `place` in struct ask, from low to high
    FIELD_FLAG,    // bool at `place`
    FIELD_TEXT,    // const char * at `place`
    FIELD_GRAMMAR, // what answers must match, of the enum grammar_kind at `place`: a text, JSON for those that are JSON
    FIELD_READ,    // `read` does it
    FIELD_IGNORED, // of no consequence here, whatever it is
    FIELD_REFUSED, // unless it is nothing: null, false, "", "none", an empty list or object
};

typedef bool field_reader(const json_t *value, const char *name, struct ask *a, struct refusal *r);

struct field {
    const char *name;
    enum field_kind kind;
    double low, high;
    size_t place;
    field_reader *read; // names the field in what it refuses
    const struct field *table;
};

// The table ends with a row without a name. Members that are null count as missing. Unknown ones are refused if
// `strict`, otherwise ignored.
bool fields_read(const json_t *object, const struct field *table, bool strict, struct ask *a, struct refusal *r);

// Of a member that is an object itself; what is refused is named with it: "options.seed".
bool fields_read_within(const json_t *value, const char *name, const struct field *table, bool strict, struct ask *a,
                        struct refusal *r);

// ---- what several APIs have ----

extern const struct field field_knobs[]; // by the names that APIs have for them and by those of confab's options

field_reader field_stops;    // a text or a list of texts
field_reader field_messages; // of a chat
field_reader field_system;   // a text, or a list of parts
field_reader field_effort;   // of reasoning

#endif
