// Converts merges to scores.
//
// SentencePiece merges any two neighbours that form a token, highest score first. Hugging Face files list all such
// pairs by falling score, the pairs of a token next to each other. If a file really is such a list, the rank of a
// token's first merge is equivalent to its score.
#include <string.h>

#include "engine/base/hash_seed.h"
#include "engine/format/huggingface_tokenizer_parts.h"

// ---- the vocabulary by hash ----
//
// There are millions of substring look-ups, so hash(text) is a polynomial in its bytes modulo 2^64: the hash of a
// substring follows from those of prefixes. Texts are not compared; a collision can at worst make a list pass as
// ordered.

struct slot {
    uint64_t hash;
    int64_t id_plus_1; // 0: free
};

struct token_hashes {
    struct slot *slots; // [mask + 1], at least half of them free
    uint64_t mask;
    uint64_t base;                           // odd and random, so that files cannot provoke collisions
    uint64_t powers[IMPORT_TOKEN_BYTES + 1]; // of base
};

static uint64_t append(const struct token_hashes *h, uint64_t hash, char c) { return hash * h->base + (uint8_t)c + 1; }

static uint64_t hash_of(const struct token_hashes *h, struct span text) {
    uint64_t hash = 0;
    for (size_t i = 0; i < text.size; i++) hash = append(h, hash, text.data[i]);
    return hash;
}

static struct slot *slot_of(const struct token_hashes *h, uint64_t hash) {
    uint64_t at = (hash ^ hash >> 32) * h->base >> 20;
    while (h->slots[at & h->mask].id_plus_1 && h->slots[at & h->mask].hash != hash) at++;
    return &h->slots[at & h->mask];
}

static int64_t find(const struct token_hashes *h, uint64_t hash) { return slot_of(h, hash)->id_plus_1 - 1; }

static bool hash_vocabulary(struct token_hashes *h, struct arena *arena, const json_t *vocabulary, struct status *st) {
    uint64_t count = 64;
    while (count < 2 * json_object_size(vocabulary)) count *= 2;
    h->mask = count - 1;
    if (!(h->slots = arena_array(arena, count, sizeof *h->slots, st))) return false;
    h->base = hash_seed() | 1;
    h->powers[0] = 1;
    for (size_t i = 0; i < IMPORT_TOKEN_BYTES; i++) h->powers[i + 1] = h->powers[i] * h->base;
    const char *text;
    size_t size;
    json_t *id;
    json_object_keylen_foreach((json_t *)vocabulary, text, size, id) {
        uint64_t hash = hash_of(h, (struct span){text, size});
        *slot_of(h, hash) = (struct slot){hash, json_integer_value(id) + 1};
    }
    return true;
}

// ---- checking the list ----

// The token that a merge produces; −1 if it or a part is not a token.
static int64_t merged_token(const struct token_hashes *h, struct span merge) {
    struct span left = token_import_left(merge);
    struct span right = {merge.data + left.size + 1, merge.size - left.size - 1};
    if (right.size > IMPORT_TOKEN_BYTES) return -1;
    uint64_t a = hash_of(h, left), b = hash_of(h, right);
    return find(h, a) < 0 || find(h, b) < 0 ? -1 : find(h, a * h->powers[right.size] + b);
}

// Sets scores by rank. *ordered: the merges of each token are next to each other, except those of user-defined tokens,
// which are matched before any merging.
static bool rank_products(struct token_import *t, const struct token_hashes *h, bool *ordered, struct status *st) {
    int64_t last = -1;
    *ordered = true;
    for (uint64_t i = 0; i < t->n_merges; i++) {
        int64_t product = merged_token(h, t->merges[i]);
        if (product < 0)
            return status_fail(st, STATUS_FORMAT, "merges: merge %llu: '%.*s': no such tokens in the vocabulary",
                               (unsigned long long)i, token_import_shown(t->merges[i]), t->merges[i].data);
        struct token_import_entry *token = &t->tokens[product];
        if (token->score == 0) token->score = -(float)(i + 1);
        else if (product != last && token->type != TOKEN_USER_DEFINED) *ordered = false;
        last = product;
    }
    return true;
}

static bool starts_character(char c) { return ((uint8_t)c & 0xc0) != 0x80; }

// The number of ways to split this token into two tokens.
static uint64_t splits_of(const struct token_hashes *h, struct span text) {
    uint64_t whole = hash_of(h, text), part = 0, count = 0;
    for (size_t at = 1; at < text.size; at++) {
        part = append(h, part, text.data[at - 1]);
        count += starts_character(text.data[at]) && find(h, part) >= 0 &&
                 find(h, whole - part * h->powers[text.size - at]) >= 0;
    }
    return count;
}

static uint64_t count_splits(const struct token_hashes *h, const json_t *vocabulary) {
    uint64_t count = 0;
    const char *text;
    size_t size;
    json_t *id;
    json_object_keylen_foreach((json_t *)vocabulary, text, size, id) {
        struct span s = {text, size};
        if (token_byte(s) < 0) count += splits_of(h, s);
    }
    return count;
}

// Whether merging can produce a token with a space mark after its first byte.
static bool any_crosses_words(const struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        struct span text = t->tokens[id].text;
        if (t->tokens[id].type == TOKEN_NORMAL && text.size > 1 &&
            space_mark_occurs((struct span){text.data + 1, text.size - 1}))
            return true;
    }
    return false;
}

// Whether merging can produce a token with a line end and other characters.
static bool any_crosses_lines(const struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        size_t line_ends = 0, size = t->tokens[id].text.size;
        for (size_t i = 0; i < size; i++) line_ends += t->tokens[id].text.data[i] == '\n';
        if (t->tokens[id].type == TOKEN_NORMAL && line_ends && line_ends < size) return true;
    }
    return false;
}

// Runs of spaces are often added tokens although the merges produce them as well; leave them to the merges.
static void leave_to_merges(struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        struct token_import_entry *token = &t->tokens[id];
        if (token->type == TOKEN_USER_DEFINED && token->score != 0 && space_mark_occurs(token->text))
            token->type = TOKEN_NORMAL;
    }
    token_import_write_spaces(t);
}

bool token_import_byte_fallback(struct token_import *t, const json_t *vocabulary,
                                const struct token_import_scheme *scheme, struct status *st) {
    struct token_hashes hashes;
    bool ordered;
    if (!hash_vocabulary(&hashes, &t->arena, vocabulary, st) || !rank_products(t, &hashes, &ordered, st)) return false;
    if (scheme->cuts_words && any_crosses_words(t))
        return status_fail(st, STATUS_UNSUPPORTED, "pre_tokenizer: splits words, but some tokens span several words");
    if (t->space_prefix == IMPORT_UNSET) t->space_prefix = IMPORT_NO;
    bool by_scores = ordered && count_splits(&hashes, vocabulary) == t->n_merges;
    leave_to_merges(t);
    if (by_scores) {
        t->model = "llama";
        t->has_scores = true;
        return true;
    }
    if (t->space_prefix == IMPORT_YES || any_crosses_lines(t))
        return status_fail(st, STATUS_UNSUPPORTED, "model: merges unlike SentencePiece's with %s are not supported",
                           t->space_prefix == IMPORT_YES ? "a space prefix" : "tokens across line ends");
    t->model = "gpt2";
    t->pre = "sarvam-moe"; // plain BPE on characters, line by line
    return true;
}
