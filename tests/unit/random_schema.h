// Random JSON schemas whose values are all short, and whether a value matches one: by its own few keywords, not by the
// compiler that is tested.
#ifndef CONFAB_TESTS_RANDOM_SCHEMA_H
#define CONFAB_TESTS_RANDOM_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

json_t *random_schema(uint64_t *random, int depth);
bool random_schema_matches(const json_t *schema, const json_t *value);

#endif
