// The tokens of an imported tokenizer by id, and those that are added to its vocabulary.
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_tokenizer_parts.h"

enum {
    TOKENS_LIMIT = 1 << 22, // ids are below this
    HOLES = 1 << 16,        // ids without a token that a vocabulary may have, besides as many as it has tokens
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
        return status_fail(st, STATUS_LIMIT, "the token \"%.*s\" has the id %lld, allowed are 0 to %lld",
                           token_import_shown(token.text), token.text.data, (long long)id, (long long)t->id_limit - 1);
    if (token.text.size > IMPORT_TOKEN_BYTES)
        return status_fail(st, STATUS_LIMIT, "token %lld is %zu bytes long, allowed are %d", (long long)id,
                           token.text.size, IMPORT_TOKEN_BYTES);
    if (id >= t->count) grow(t, id + 1);
    struct token_import_entry *old = &t->tokens[id];
    if (old->type && (old->text.size != token.text.size || memcmp(old->text.data, token.text.data, token.text.size)))
        return status_fail(st, STATUS_FORMAT, "the tokens \"%.*s\" and \"%.*s\" have the same id %lld",
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

int token_import_byte(struct span text) {
    static const char digits[] = "0123456789ABCDEF";
    if (text.size != 6 || memcmp(text.data, "<0x", 3) || text.data[5] != '>') return -1;
    const char *high = memchr(digits, text.data[3], 16), *low = memchr(digits, text.data[4], 16);
    return high && low ? (int)(high - digits) * 16 + (int)(low - digits) : -1;
}

static bool is_known(const struct token_import *t, int64_t id) {
    return id >= 0 && id < t->count && t->tokens[id].type;
}

// A token that the vocabulary already knows as the unknown one, or as a byte, stays it.
static bool add(struct token_import *t, int64_t id, struct span text, const json_t *flags, struct status *st) {
    struct token_import_entry token = {.text = text, .type = IMPORT_USER_DEFINED};
    if (token_import_bool(flags, "special", false)) token.type = IMPORT_CONTROL;
    token.strips =
        (uint8_t)(token_import_bool(flags, "lstrip", false) | token_import_bool(flags, "rstrip", false) << 1);
    if (is_known(t, id)) {
        const struct token_import_entry *old = &t->tokens[id];
        token.score = old->score;
        if (old->type == IMPORT_UNKNOWN || old->type == IMPORT_BYTE) token.type = old->type;
    }
    return token_import_put(t, id, token, st);
}

void token_import_write_spaces(struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        struct span *text = &t->tokens[id].text;
        if (t->tokens[id].type != IMPORT_USER_DEFINED ||
            !memmem(text->data, text->size, SPACE_MARK, strlen(SPACE_MARK)))
            continue;
        char *spaced = arena_alloc(&t->arena, text->size);
        size_t n = 0;
        for (size_t i = 0; i < text->size;) {
            bool mark = text->size - i >= strlen(SPACE_MARK) && !memcmp(text->data + i, SPACE_MARK, strlen(SPACE_MARK));
            spaced[n++] = mark ? ' ' : text->data[i];
            i += mark ? strlen(SPACE_MARK) : 1;
        }
        *text = (struct span){spaced, n};
    }
}

bool token_import_added_list(struct token_import *t, const json_t *list, struct status *st) {
    if (!list || json_is_null(list)) return true;
    if (!json_is_array(list)) return status_fail(st, STATUS_FORMAT, "added_tokens: is no list");
    token_import_expect(t, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *token = json_array_get(list, i), *id = json_object_get(token, "id");
        struct span text = token_import_string(token, "content");
        if (!json_is_integer(id) || !text.data)
            return status_fail(st, STATUS_FORMAT, "added_tokens: token %zu has no id or no content", i);
        if (!add(t, json_integer_value(id), text, token, st)) return status_prefix(st, "added_tokens");
    }
    return true;
}

// Whether there is anything to say of this id; if so, it may be given to any text.
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
            return status_fail(st, STATUS_FORMAT, "the id of \"%.*s\" is no number", token_import_shown(s), text);
        double value = json_number_value(id);
        int64_t number = value >= 0 && value <= INT32_MAX ? (int64_t)value : -1;
        if (is_wanted(t, number, s, replaces) && !add(t, number, s, NULL, st)) return false;
    }
    return true;
}

// Ids are the names of the members.
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
            return status_fail(st, STATUS_FORMAT, "added_tokens_decoder: \"%.*s\" is no id with a content",
                               token_import_shown((struct span){name, size}), name);
        if (is_wanted(t, id, text, replaces) && !add(t, id, text, token, st))
            return status_prefix(st, "added_tokens_decoder");
    }
    return true;
}
