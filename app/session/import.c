#include "app/session/import.h"

#include <stdlib.h>
#include <string.h>

#include "app/session/import_state.h"
#include "engine/base/panic.h"

enum { VALUES_LIMIT = 1 << 24 }; // of one JSON value: a byte of text may take a hundred bytes parsed

// Where the JSON value at the beginning of a text ends, as brackets and quotes say; *values: an upper bound.
static size_t value_end(struct span text, uint64_t *values) {
    int depth = 0;
    bool quoted = false;
    *values = 1;
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        if (quoted && c == '\\') i++;
        else if (c == '"') quoted = !quoted;
        else if (quoted) continue;
        else if (c == '[' || c == '{') depth++, ++*values;
        else if (c == ',') ++*values;
        else if ((c == ']' || c == '}') && --depth <= 0) return i + 1;
    }
    return text.size;
}

static bool parse(struct import *i, struct span text, int line, struct status *st) {
    json_error_t error;
    json_t *value = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!value)
        return status_fail(st, STATUS_FORMAT, "line %d, column %d: %s", line + error.line - 1, error.column,
                           error.text);
    const char *format = import_string(value, "format");
    const bool own = format && !strcmp(format, IMPORT_OWN_FORMAT);
    bool done = own ? import_own(i, value, st) : import_foreign(i, value, st);
    if (!done) status_prefix(st, "line %d", line);
    json_decref(value);
    return done;
}

static int lines_in(const char *from, const char *to) {
    int lines = 0;
    for (; from < to; from++) lines += *from == '\n';
    return lines;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool import_text(struct span text, const struct settings *initial, import_visitor *each, void *context,
                 struct import_counts *counts, struct status *st) {
    struct import i = {.initial = initial, .each = each, .context = context, .counts = counts};
    size_t at = 0, end;
    int line = 1;
    *counts = (struct import_counts){0};
    if (text.size >= 3 && !memcmp(text.data, "\xef\xbb\xbf", 3)) at = 3; // a byte order mark
    for (bool any = false;; any = true, at = end) {
        size_t begin = at;
        uint64_t values;
        while (begin < text.size && is_blank(text.data[begin])) begin++;
        line += lines_in(text.data + at, text.data + begin);
        if (begin == text.size) return any || status_fail(st, STATUS_FORMAT, "no JSON in it");
        struct span rest = {text.data + begin, text.size - begin};
        rest.size = value_end(rest, &values);
        end = begin + rest.size;
        if (values > VALUES_LIMIT)
            return status_fail(st, STATUS_LIMIT, "line %d: too many JSON values (maximum %d)", line, VALUES_LIMIT);
        if (!parse(&i, rest, line, st)) return false;
        line += lines_in(text.data + begin, text.data + end);
    }
}

bool import_file(const char *path, bool regular, const struct settings *initial, import_visitor *each, void *context,
                 struct import_counts *counts, struct status *st) {
    struct span text;
    char *data = (regular ? file_read_regular : file_read)(path, IMPORT_LIMIT, &text.size, st);
    *counts = (struct import_counts){0};
    if (!data) return false;
    text.data = data;
    bool done = import_text(text, initial, each, context, counts, st) || status_prefix(st, "%s", path);
    free(data);
    return done;
}

void import_found(struct import *i, struct conversation *c) {
    if (!c->count) {
        conversation_close(c);
        return;
    }
    i->counts->chats++;
    i->counts->messages += c->count;
    i->each(i->context, c);
}

// ---- members ----

const char *import_string(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

json_t *import_object(const json_t *object, const char *key) {
    json_t *member = json_object_get(object, key);
    return json_is_object(member) ? member : NULL;
}

json_t *import_array(const json_t *object, const char *key) {
    json_t *member = json_object_get(object, key);
    return json_is_array(member) ? member : NULL;
}

int64_t import_number(const json_t *object, const char *key, int64_t most) {
    const json_t *member = json_object_get(object, key);
    const double value = json_number_value(member); // 0 of what is none
    return value >= 0 && value <= (double)most ? (int64_t)value : 0;
}
