// Schemas that are not in the text: what some keywords mean, said by others. Each is made once, and lives as long as
// the compiling.
#include <stdio.h>

#include "engine/grammar/schema_state.h"

// The schema derived from one under this name; NULL: it is new.
static const json_t *find(const struct schema *s, const char *key) { return json_object_get(s->derived, key); }

static const json_t *keep(struct schema *s, const char *key, json_t *schema) {
    if (!s->derived) s->derived = json_object();
    json_object_set_new(s->derived, key, schema);
    return schema;
}

static json_t *without(const char *name) { return json_pack("{s:{s:b}}", "properties", name, 0); }

// A member that is there asks for others, or for a whole schema; or it is not there.
const json_t *schema_dependent(struct schema *s, const json_t *schema) {
    static const char *const keywords[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    char key[40];
    snprintf(key, sizeof key, "dependent %p", (const void *)schema);
    const json_t *found = find(s, key);
    if (found) return found;
    json_t *all = json_array(), *then;
    const char *name;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        json_t *of = json_object_get(schema, keywords[i]);
        if (of && !json_is_object(of)) {
            json_decref(all);
            return schema_fail(s, schema, STATUS_FORMAT, "%s: expected an object", keywords[i]), NULL;
        }
        json_object_foreach(of, name, then) {
            json_t *meant = json_is_array(then) ? json_pack("{s:O}", "required", then) : json_incref(then);
            json_array_append_new(all, json_pack("{s:[o, o]}", "anyOf", without(name), meant));
        }
    }
    return keep(s, key, json_pack("{s:o}", "allOf", all));
}

const json_t *schema_of_strings(struct schema *s) {
    const json_t *found = find(s, "strings");
    return found ? found : keep(s, "strings", json_pack("{s:s}", "type", "string"));
}

const json_t *schema_requiring(struct schema *s, const char *name) {
    char key[128];
    snprintf(key, sizeof key, "requiring %.100s", name);
    const json_t *found = find(s, key);
    return found ? found : keep(s, key, json_pack("{s:[s]}", "required", name));
}
