// SentencePiece BPE: spaces become U+2581, characters merge by the scores of tokens, and the rest is spelled in byte
// tokens.
#include <string.h>

#include "engine/text/space_mark.h"
#include "engine/text/tokenizer_ops.h"

struct spm {
    uint32_t *orders; // [count] ascending as scores fall
    bool cuts_words;  // no token has a space after another character, so words merge independently
};

// Maps scores to integers in reverse order.
static uint32_t order_of_score(float score) {
    uint32_t bits;
    score += 0.0f; // −0 becomes 0
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

static bool spm_open(struct tokenizer *t, struct status *st) {
    struct vocabulary *v = &t->vocabulary;
    struct spm *spm = t->family = arena_alloc(&v->arena, sizeof *spm);
    spm->orders = arena_array(&v->arena, (uint64_t)v->count, sizeof *spm->orders, st);
    const float *scores = vocabulary_scores(v, st);
    if (!spm->orders || !scores) return false;
    for (int32_t id = 0; id < v->count; id++) spm->orders[id] = order_of_score(scores[id]);
    for (int32_t id = v->count; id-- > 0;)
        if (v->types[id] == TOKEN_BYTE) t->byte_ids[token_byte(v->texts[id])] = id;
    spm->cuts_words = space_mark_parts_words(v);
    return true;
}

static struct span spm_spell(const struct tokenizer *t, int32_t id, char **room) {
    return space_mark_decode(t->vocabulary.texts[id], room);
}

// The token of this text, if merging can produce it.
static int32_t find_plain(const struct tokenizer *t, const char *text, size_t size) {
    int32_t id = vocabulary_find(&t->vocabulary, (struct span){text, size});
    if (id < 0) return -1;
    uint8_t type = t->vocabulary.types[id];
    return type == TOKEN_NORMAL || type == TOKEN_UNUSED ? id : -1;
}

static bool spm_rule(const void *rules, const struct merge_symbol *left, const struct merge_symbol *right,
                     struct merge_product *product) {
    const struct tokenizer *t = rules;
    const struct spm *spm = t->family;
    int32_t id = find_plain(t, left->text, (size_t)left->size + right->size);
    if (id < 0) return false;
    *product = (struct merge_product){spm->orders[id], id};
    return true;
}

static void emit(const struct tokenizer *t, const struct merge_symbol *s, struct token_list *out) {
    if (s->id >= 0) {
        token_list_push(out, s->id);
        return;
    }
    for (uint32_t i = 0; i < s->size; i++) tokenizer_push_byte(t, (uint8_t)s->text[i], out);
}

static void encode_word(const struct tokenizer *t, struct pair_merger *m, const char *word, size_t size,
                        struct token_list *out) {
    pair_merger_begin(m, size);
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        length = utf8_decode(word + i, size - i, &code); // of an invalid character, its valid prefix
        pair_merger_add(m, word + i, length, find_plain(t, word + i, length));
    }
    pair_merger_run(m, spm_rule, t);
    for (uint32_t i = 0; i != MERGE_END; i = m->symbols[i].next) emit(t, &m->symbols[i], out);
}

static void spm_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                       struct token_list *out) {
    const struct spm *spm = t->family;
    space_mark_encode(t, m, text, size, spm->cuts_words, encode_word, out);
}

const struct tokenizer_ops tokenizer_spm = {
    .model = "llama",
    .defaults = {.bos = 1, .eos = 2, .unknown = 0, .separator = -1},
    .adds_bos = true,
    .puts_space = true,
    .open = spm_open,
    .spell = spm_spell,
    .encode = spm_encode,
};
