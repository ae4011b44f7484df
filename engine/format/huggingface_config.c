// Converts config.json to the keys that GGUF files of the same family have.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_parts.h"
#include "engine/format/json_source.h"

enum { JSON_LIMIT = 16 << 20, MEMBER_LIMIT = 64 };

// ---- reading ----

bool huggingface_read_json(const struct huggingface_import *f, const char *name, json_t **out, struct status *st) {
    char *path = xasprintf("%s/%s", f->path, name);
    bool absent = access(path, F_OK) != 0;
    *out = absent ? NULL : json_source_read(path, JSON_LIMIT, st);
    free(path);
    return absent || *out;
}

bool huggingface_fail_config(const struct huggingface_import *f, struct status *st, const char *format, ...) {
    char text[sizeof st->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return status_fail(st, STATUS_FORMAT, "%s/config.json: %s", f->g->path, text);
}

enum { KEY_LIMIT = 128 };

static void write_key(const struct huggingface_import *f, const char *name, char key[static KEY_LIMIT]) {
    snprintf(key, KEY_LIMIT, "%s.%s", f->family->architecture, name);
}

const char *huggingface_key_name(const struct huggingface_import *f, const char *name) {
    static _Thread_local char key[KEY_LIMIT];
    write_key(f, name, key);
    return key;
}

// The member "a.b" of an object.
static const json_t *member_at(const json_t *object, const char *path, size_t size) {
    while (object && size) {
        size_t length = 0;
        char name[MEMBER_LIMIT];
        while (length < size && path[length] != '.') length++;
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        object = json_object_get(object, name);
        length += length < size;
        path += length, size -= length;
    }
    return json_is_null(object) ? NULL : object;
}

const json_t *huggingface_member(const struct huggingface_import *f, const char *member) {
    const json_t *found = NULL;
    for (const char *at = member, *end; !found && *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "|");
        found = member_at(f->text, at, (size_t)(end - at));
        if (!found) found = member_at(f->config, at, (size_t)(end - at));
    }
    return found;
}

const char *huggingface_string(const struct huggingface_import *f, const char *member) {
    return json_string_value(huggingface_member(f, member));
}

bool huggingface_number(const struct huggingface_import *f, const char *member, double otherwise, double *out,
                        struct status *st) {
    const json_t *value = huggingface_member(f, member);
    *out = otherwise;
    if (!value) return true;
    if (!json_is_number(value)) return huggingface_fail_config(f, st, "%s: expected a number", member);
    *out = json_number_value(value);
    return true;
}

// Like gguf_find, before the pairs are sorted. Leaves the result of huggingface_key_name valid.
static const struct gguf_pair *find_key(const struct huggingface_import *f, const char *name) {
    char key[KEY_LIMIT];
    write_key(f, name, key);
    for (uint64_t i = 0; i < f->g->n_pairs; i++)
        if (span_equals(f->g->pairs[i].key, key)) return &f->g->pairs[i];
    return NULL;
}

bool huggingface_has_key(const struct huggingface_import *f, const char *name) { return find_key(f, name); }

uint32_t huggingface_added_int(const struct huggingface_import *f, const char *name) {
    const struct gguf_pair *p = find_key(f, name);
    return p && p->type == GGUF_U32 ? (uint32_t)gguf_number(p, 0) : 0;
}

uint32_t huggingface_head_size(const struct huggingface_import *f) {
    uint32_t heads = huggingface_added_int(f, "attention.head_count"),
             given = huggingface_added_int(f, "attention.key_length");
    if (given) return given;
    return heads ? huggingface_added_int(f, "embedding_length") / heads : 0;
}

// ---- keys ----

static bool add_key(const struct huggingface_import *f, const struct huggingface_key *k, struct status *st) {
    const json_t *value = huggingface_member(f, k->member);
    if (huggingface_has_key(f, k->key)) return true; // keys of the family take precedence
    const char *key = huggingface_key_name(f, k->key);
    double number = value ? json_number_value(value) : k->fallback;
    if (!value && k->fallback == 0) return true;
    if (k->type == MEMBER_BOOL) {
        if (value && !json_is_boolean(value))
            return huggingface_fail_config(f, st, "%s: expected true or false", k->member);
        gguf_add_bool(f->g, key, json_is_true(value));
    } else if (value && !json_is_number(value)) {
        return huggingface_fail_config(f, st, "%s: expected a number", k->member);
    } else if (k->type == MEMBER_FLOAT || k->type == MEMBER_ROOT) {
        gguf_add_float(f->g, key, (float)(k->type == MEMBER_ROOT ? 1 / sqrt(number) : number));
    } else {
        if (number < 0 || number > UINT32_MAX || number != floor(number))
            return huggingface_fail_config(f, st, "%s: %g is not an integer from 0 to %u", k->member, number,
                                           UINT32_MAX);
        gguf_add_int(f->g, key, (uint32_t)number);
    }
    return true;
}

static bool add_keys(const struct huggingface_import *f, const struct huggingface_key *keys, struct status *st) {
    for (const struct huggingface_key *k = keys; k->member; k++)
        if (!add_key(f, k, st)) return false;
    return true;
}

// Which layers use the sliding window, if the file lists them.
static bool add_layer_types(const struct huggingface_import *f, struct status *st) {
    const json_t *types = huggingface_member(f, "layer_types");
    size_t n = json_array_size(types);
    if (!n || !huggingface_has_key(f, "attention.sliding_window")) return true;
    uint8_t *slides = xmalloc(n);
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        slides[i] = type && !strcmp(type, "sliding_attention");
        good = slides[i] || (type && !strcmp(type, "full_attention"));
        if (!good)
            huggingface_fail_config(f, st,
                                    "layer_types: unknown type '%.32s' at %zu (expected full_attention or "
                                    "sliding_attention)",
                                    type ? type : "", i);
    }
    if (good) gguf_add_numbers(f->g, huggingface_key_name(f, "attention.sliding_window_pattern"), GGUF_BOOL, slides, n);
    free(slides);
    return good;
}

// ---- sampling defaults ----

static bool add_sampling(const struct huggingface_import *f, struct status *st) {
    static const struct {
        const char *member, *key;
        bool integer;
    } table[] = {
        {"temperature", "general.sampling.temp", false},
        {"top_k", "general.sampling.top_k", true},
        {"top_p", "general.sampling.top_p", false},
        {"min_p", "general.sampling.min_p", false},
        {"repetition_penalty", "general.sampling.penalty_repeat", false},
    };
    json_t *settings;
    if (!huggingface_read_json(f, "generation_config.json", &settings, st)) return false;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const json_t *value = json_object_get(settings, table[i].member);
        double number = json_number_value(value);
        if (!json_is_number(value)) continue;
        if (!table[i].integer) gguf_add_float(f->g, table[i].key, (float)number);
        else if (number >= 0 && number <= INT32_MAX) gguf_add_int(f->g, table[i].key, (uint32_t)number);
    }
    json_decref(settings);
    return true;
}

// ---- names ----

// The name of the folder; NAME for "…/models--owner--NAME/snapshots/<revision>", the layout of the hub's cache.
static struct span folder_name(const char *path) {
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    struct span parts[3] = {0}; // last first
    for (int i = 0; i < 3 && size > 0; i++) {
        size_t start = size;
        while (start > 0 && path[start - 1] != '/') start--;
        parts[i] = (struct span){path + start, size - start};
        size = start ? start - 1 : 0;
    }
    if (!span_equals(parts[1], "snapshots")) return parts[0];
    for (size_t i = parts[2].size; i >= 2; i--)
        if (!memcmp(parts[2].data + i - 2, "--", 2)) return (struct span){parts[2].data + i, parts[2].size - i};
    return parts[0];
}

bool huggingface_add_config(struct huggingface_import *f, struct status *st) {
    char *whole = realpath(f->path, NULL);
    gguf_add_string(f->g, "general.architecture", span_of(f->family->architecture));
    gguf_add_string(f->g, "general.name", folder_name(whole ? whole : f->path));
    free(whole);
    return add_keys(f, f->family->keys, st) && add_keys(f, huggingface_common_keys, st) && add_layer_types(f, st) &&
           add_sampling(f, st);
}
