#include "engine/format/json_source.h"

#include <stdlib.h>

enum { VALUES_LIMIT = 1 << 23 }; // the largest tokenizers have 2 million

// An upper bound: brackets and commas inside strings count too.
static uint64_t count_values(struct span text) {
    uint64_t count = 1;
    for (size_t i = 0; i < text.size; i++) count += text.data[i] == ',' || text.data[i] == '[' || text.data[i] == '{';
    return count;
}

json_t *json_source_parse(struct span text, size_t flags, struct status *st) {
    json_error_t error;
    if (count_values(text) > VALUES_LIMIT) {
        status_fail(st, STATUS_LIMIT, "too many JSON values (maximum %d)", VALUES_LIMIT);
        return NULL;
    }
    json_t *root = json_loadb(text.data, text.size, flags, &error);
    if (json_is_object(root)) return root;
    if (root) status_fail(st, STATUS_FORMAT, "not a JSON object");
    else status_fail(st, STATUS_FORMAT, "invalid JSON: line %d, column %d: %s", error.line, error.column, error.text);
    json_decref(root);
    return NULL;
}

json_t *json_source_read(const char *path, size_t limit, struct status *st) {
    struct span text;
    char *data = file_read_regular(path, limit, &text.size, st);
    if (!data) return NULL;
    text.data = data;
    json_t *root = json_source_parse(text, JSON_REJECT_DUPLICATES, st);
    if (!root) status_prefix(st, "%s", path);
    free(data);
    return root;
}
