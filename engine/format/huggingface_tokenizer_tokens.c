// The tokens of an imported tokenizer by id, including added tokens.
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_tokenizer_parts.h"

enum {
    TOKENS_LIMIT = 1 << 22, // ids are below this
    HOLES = 1 << 16,        // allowed unused ids, in addition to the number of tokens
};

void token_import_expect(struct token_import *t, size_t expected) {
    int64_t room = t->id_limit ? 0 : HOLES;
    t->id_limit += expected < TOKENS_LIMIT ? 2 * (int64_t)expected + room : TOKENS_LIMIT;
    if (t->id_limit > TOKENS_LIMIT) t->id_limit = TOKENS_LIMIT;
}

static void grow(struct token_import *t, int64_t count) {
    if (count > t->capacity) {
        int64_t capacity = 2 * count;
        t->tokens = xrealloc(t->tokens, (size_t)capacity * sizeof *t->tokens);
        memset(t->tokens + t->capacity, 0, (size_t)(capacity - t->capacity) * sizeof *t->tokens);
        t->capacity = capacity;
    }
    t->count = count;
}

bool token_import_put(struct token_import *t, int64_t id, struct token_import_entry token, struct status *st) {
    if (id < 0 || id >= t->id_limit)
        return status_fail(st, STATUS_LIMIT, "token '%.*s': id %lld is out of range (0 to %lld)",
                           token_import_shown(token.text), token.text.data, (long long)id, (long long)t->id_limit - 1);
    if (token.text.size > IMPORT_TOKEN_BYTES)
        return status_fail(st, STATUS_LIMIT, "token %lld: %zu bytes are too long (maximum %d)", (long long)id,
                           token.text.size, IMPORT_TOKEN_BYTES);
    if (id >= t->count) grow(t, id + 1);
    struct token_import_entry *old = &t->tokens[id];
    if (old->type && (old->text.size != token.text.size || memcmp(old->text.data, token.text.data, token.text.size)))
        return status_fail(st, STATUS_FORMAT, "tokens '%.*s' and '%.*s' have the same id %lld",
                           token_import_shown(old->text), old->text.data, token_import_shown(token.text),
                           token.text.data, (long long)id);
    *old = token;
    return true;
}

int32_t token_import_find(const struct token_import *t, struct span text) {
    for (int64_t id = 0; id < t->count; id++) {
        const struct token_import_entry *token = &t->tokens[id];
        if (token->type && token->text.size == text.size && !memcmp(token->text.data, text.data, text.size))
            return (int32_t)id;
    }
    return -1;
}

static bool is_known(const struct token_import *t, int64_t id) {
    return id >= 0 && id < t->count && t->tokens[id].type;
}

// Unknown and byte tokens of the vocabulary keep their type.
static bool add(struct token_import *t, int64_t id, struct span text, const json_t *flags, struct status *st) {
    struct token_import_entry token = {.text = text, .type = TOKEN_USER_DEFINED};
    if (token_import_bool(flags, "special", false)) token.type = TOKEN_CONTROL;
    token.strips =
        (uint8_t)(token_import_bool(flags, "lstrip", false) | token_import_bool(flags, "rstrip", false) << 1);
    if (is_known(t, id)) {
        const struct token_import_entry *old = &t->tokens[id];
        token.score = old->score;
        if (old->type == TOKEN_UNKNOWN || old->type == TOKEN_BYTE) token.type = old->type;
    }
    return token_import_put(t, id, token, st);
}

void token_import_write_spaces(struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        struct span *text = &t->tokens[id].text;
        if (t->tokens[id].type != TOKEN_USER_DEFINED || !space_mark_occurs(*text)) continue;
        char *room = arena_alloc(&t->arena, text->size);
        *text = space_mark_decode(*text, &room);
    }
}

bool token_import_added_list(struct token_import *t, const json_t *list, struct status *st) {
    if (!list || json_is_null(list)) return true;
    if (!json_is_array(list)) return status_fail(st, STATUS_FORMAT, "added_tokens: expected a list");
    token_import_expect(t, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *token = json_array_get(list, i), *id = json_object_get(token, "id");
        struct span text = token_import_string(token, "content");
        if (!json_is_integer(id) || !text.data)
            return status_fail(st, STATUS_FORMAT, "added_tokens: token %zu: missing id or content", i);
        if (!add(t, json_integer_value(id), text, token, st)) return status_prefix(st, "added_tokens");
    }
    return true;
}

// Whether to add a token with this id. With `replaces`, an existing token takes the new text.
static bool is_wanted(struct token_import *t, int64_t id, struct span text, bool replaces) {
    if (!is_known(t, id)) return true;
    if (!replaces) return false;
    t->tokens[id].text = text;
    return true;
}

bool token_import_added_map(struct token_import *t, const json_t *map, bool replaces, struct status *st) {
    const char *text;
    size_t size;
    json_t *id;
    if (!map) return true;
    token_import_expect(t, json_object_size(map));
    json_object_keylen_foreach((json_t *)map, text, size, id) {
        struct span s = {text, size};
        if (!json_is_number(id))
            return status_fail(st, STATUS_FORMAT, "'%.*s': id is not a number", token_import_shown(s), text);
        double value = json_number_value(id);
        int64_t number = value >= 0 && value <= INT32_MAX ? (int64_t)value : -1;
        if (is_wanted(t, number, s, replaces) && !add(t, number, s, NULL, st)) return false;
    }
    return true;
}

// Parses a member name as an id; −1 if it is not one.
static int64_t id_of_name(struct span name) {
    int64_t id = 0;
    if (name.size == 0 || name.size > 9) return -1;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] < '0' || name.data[i] > '9') return -1;
        id = 10 * id + name.data[i] - '0';
    }
    return id;
}

bool token_import_added_decoder(struct token_import *t, const json_t *decoder, bool replaces, struct status *st) {
    const char *name;
    size_t size;
    json_t *token;
    if (!json_is_object(decoder)) return true;
    token_import_expect(t, json_object_size(decoder));
    json_object_keylen_foreach((json_t *)decoder, name, size, token) {
        int64_t id = id_of_name((struct span){name, size});
        struct span text = token_import_string(token, "content");
        if (id < 0 || !text.data)
            return status_fail(st, STATUS_FORMAT, "added_tokens_decoder: '%.*s': expected an id with content",
                               token_import_shown((struct span){name, size}), name);
        if (is_wanted(t, id, text, replaces) && !add(t, id, text, token, st))
            return status_prefix(st, "added_tokens_decoder");
    }
    return true;
}
