// Merges said in scores.
//
// SentencePiece merges any two neighbours that together are a token, the highest score first. Hugging Face's files
// list every such pair, those of one token one after the other, by falling score. Where a file really is such a list,
// the rank at which a token's merges begin says the same as its score did.
#include <string.h>

#include "engine/format/huggingface_tokenizer_parts.h"

// ---- the vocabulary by hashes ----
//
// A million look-ups of parts of texts: hash(text) is a polynomial in the bytes modulo 2^64, so that the hash of any
// part comes from those of the text's beginnings. Texts are not compared: at worst a list passes for what it is not.

static const uint64_t base = 0x9e3779b97f4a7c15u;

struct slot {
    uint64_t hash;
    int64_t id_plus_1; // 0: free
};

struct token_hashes {
    struct slot *slots; // a power of two, at least half of them free
    uint64_t mask;
    uint64_t powers[IMPORT_TOKEN_BYTES + 1]; // of the base
};

static uint64_t append(uint64_t hash, char c) { return hash * base + (uint8_t)c + 1; }

static uint64_t hash_of(struct span text) {
    uint64_t hash = 0;
    for (size_t i = 0; i < text.size; i++) hash = append(hash, text.data[i]);
    return hash;
}

static struct slot *slot_of(const struct token_hashes *h, uint64_t hash) {
    uint64_t at = (hash ^ hash >> 32) * base >> 20;
    while (h->slots[at & h->mask].id_plus_1 && h->slots[at & h->mask].hash != hash) at++;
    return &h->slots[at & h->mask];
}

static int64_t find(const struct token_hashes *h, uint64_t hash) { return slot_of(h, hash)->id_plus_1 - 1; }

static bool hash_vocabulary(struct token_hashes *h, struct arena *arena, const json_t *vocabulary, struct status *st) {
    uint64_t count = 64;
    while (count < 2 * json_object_size(vocabulary)) count *= 2;
    h->mask = count - 1;
    if (!(h->slots = arena_array(arena, count, sizeof *h->slots, st))) return false;
    h->powers[0] = 1;
    for (size_t i = 0; i < IMPORT_TOKEN_BYTES; i++) h->powers[i + 1] = h->powers[i] * base;
    const char *text;
    size_t size;
    json_t *id;
    json_object_keylen_foreach((json_t *)vocabulary, text, size, id) {
        uint64_t hash = hash_of((struct span){text, size});
        *slot_of(h, hash) = (struct slot){hash, json_integer_value(id) + 1};
    }
    return true;
}

// ---- what the list is ----

// The token that a merge makes; −1 when it, or a part, is none.
static int64_t product_of(const struct token_hashes *h, struct span merge) {
    struct span left = token_import_left(merge);
    struct span right = {merge.data + left.size + 1, merge.size - left.size - 1};
    if (right.size > IMPORT_TOKEN_BYTES) return -1;
    uint64_t a = hash_of(left), b = hash_of(right);
    return find(h, a) < 0 || find(h, b) < 0 ? -1 : find(h, a * h->powers[right.size] + b);
}

// Scores by rank. *ordered: the merges of each token are one after the other, but for tokens that are found whole
// before any merging.
static bool rank_products(struct token_import *t, const struct token_hashes *h, bool *ordered, struct status *st) {
    int64_t last = -1;
    *ordered = true;
    for (uint64_t i = 0; i < t->n_merges; i++) {
        int64_t product = product_of(h, t->merges[i]);
        if (product < 0)
            return status_fail(st, STATUS_FORMAT, "merges: merge %llu, \"%.*s\", is not of tokens of the vocabulary",
                               (unsigned long long)i, token_import_shown(t->merges[i]), t->merges[i].data);
        struct token_import_entry *token = &t->tokens[product];
        if (token->score == 0) token->score = -(float)(i + 1);
        else if (product != last && token->type != IMPORT_USER_DEFINED) *ordered = false;
        last = product;
    }
    return true;
}

static bool starts_character(char c) { return ((uint8_t)c & 0xc0) != 0x80; }

// In how many ways two tokens make this one.
static uint64_t splits_of(const struct token_hashes *h, struct span text) {
    uint64_t whole = hash_of(text), part = 0, count = 0;
    for (size_t at = 1; at < text.size; at++) {
        part = append(part, text.data[at - 1]);
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
        if (token_import_byte(s) < 0) count += splits_of(h, s);
    }
    return count;
}

// Whether some token that merging may make has a mark behind its beginning.
static bool any_crosses_words(const struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        struct span text = t->tokens[id].text;
        if (t->tokens[id].type == IMPORT_NORMAL && text.size > 1 &&
            memmem(text.data + 1, text.size - 1, SPACE_MARK, strlen(SPACE_MARK)))
            return true;
    }
    return false;
}

// Whether some has a line end beside anything else.
static bool any_crosses_lines(const struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        size_t line_ends = 0, size = t->tokens[id].text.size;
        for (size_t i = 0; i < size; i++) line_ends += t->tokens[id].text.data[i] == '\n';
        if (t->tokens[id].type == IMPORT_NORMAL && line_ends && line_ends < size) return true;
    }
    return false;
}

// Runs of spaces are often added to a vocabulary whose merges make them all the same: then they may.
static void leave_to_merges(struct token_import *t) {
    for (int64_t id = 0; id < t->count; id++) {
        struct token_import_entry *token = &t->tokens[id];
        if (token->type == IMPORT_USER_DEFINED && token->score != 0 &&
            memmem(token->text.data, token->text.size, SPACE_MARK, strlen(SPACE_MARK)))
            token->type = IMPORT_NORMAL;
    }
    token_import_write_spaces(t);
}

bool token_import_byte_fallback(struct token_import *t, const json_t *vocabulary,
                                const struct token_import_scheme *scheme, struct status *st) {
    struct token_hashes hashes;
    bool ordered;
    if (!hash_vocabulary(&hashes, &t->arena, vocabulary, st) || !rank_products(t, &hashes, &ordered, st)) return false;
    if (scheme->cuts_words && any_crosses_words(t))
        return status_fail(st, STATUS_UNSUPPORTED, "pre_tokenizer: cuts between words, but some tokens reach across");
    if (t->space_prefix == IMPORT_UNSAID) t->space_prefix = IMPORT_NO;
    bool by_scores = ordered && count_splits(&hashes, vocabulary) == t->n_merges;
    leave_to_merges(t);
    if (by_scores) {
        t->model = "llama";
        t->has_scores = true;
        return true;
    }
    if (t->space_prefix == IMPORT_YES || any_crosses_lines(t))
        return status_fail(st, STATUS_UNSUPPORTED, "model: merges that are not those of SentencePiece, with %s",
                           t->space_prefix == IMPORT_YES ? "a space put in front" : "tokens across line ends");
    t->model = "gpt2";
    t->pre = "sarvam-moe"; // the name of plain BPE over characters, line by line
    return true;
}
