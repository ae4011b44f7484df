// SentencePiece BPE: spaces are written U+2581, characters merge by the tokens' scores, and what is no token is
// spelt in byte tokens.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/text/tokenizer_ops.h"

static const char space_mark[] = "\u2581";
enum { SPACE_MARK_SIZE = sizeof space_mark - 1 };

struct spm {
    uint32_t *orders; // [count] rising as scores fall
    bool cuts_words;  // no token goes on with a space after anything else: words merge apart
};

// Maps scores to integers whose order is the reverse of theirs.
static uint32_t order_of_score(float score) {
    uint32_t bits;
    score += 0.0f; // a negative zero is a zero
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

static bool read_scores(struct tokenizer *t, struct spm *spm, struct status *st) {
    const char *key = VOCABULARY_KEY("scores"), *path = t->vocabulary.file->path;
    const struct gguf_pair *p = vocabulary_numbers(&t->vocabulary, key, st);
    if (!p)
        return st->code == STATUS_OK ? status_fail(st, STATUS_FORMAT, "%s: the key %s is missing", path, key) : false;
    for (int32_t id = 0; id < t->vocabulary.count; id++) {
        double score = gguf_number(p, (uint64_t)id);
        if (isnan(score)) return status_fail(st, STATUS_FORMAT, "%s: %s of token %d is not a number", path, key, id);
        spm->orders[id] = order_of_score((float)score);
    }
    return true;
}

static bool is_mark(const char *text, size_t size) {
    return size >= SPACE_MARK_SIZE && !memcmp(text, space_mark, SPACE_MARK_SIZE);
}

// Bytes up to the first space mark that follows anything else.
static size_t word_size(const char *text, size_t size) {
    size_t at = 0;
    while (is_mark(text + at, size - at)) at += SPACE_MARK_SIZE;
    const char *end = memmem(text + at, size - at, space_mark, SPACE_MARK_SIZE);
    return end ? (size_t)(end - text) : size;
}

static bool spm_open(struct tokenizer *t, struct status *st) {
    struct vocabulary *v = &t->vocabulary;
    struct spm *spm = t->family = arena_alloc(&v->arena, sizeof *spm);
    spm->orders = arena_array(&v->arena, (uint64_t)v->count, sizeof *spm->orders, st);
    if (!spm->orders || !read_scores(t, spm, st)) return false;
    for (int32_t id = v->count; id-- > 0;)
        if (v->types[id] == TOKEN_BYTE) t->byte_ids[vocabulary_byte(v->texts[id])] = id;
    spm->cuts_words = true;
    for (int32_t id = 0; id < v->count; id++)
        if (!vocabulary_is_special(v, id) && word_size(v->texts[id].data, v->texts[id].size) < v->texts[id].size)
            spm->cuts_words = false;
    return true;
}

static struct span spm_spell(const struct tokenizer *t, int32_t id, char **room) {
    struct span text = t->vocabulary.texts[id];
    if (!memmem(text.data, text.size, space_mark, SPACE_MARK_SIZE)) return text;
    char *start = *room;
    for (size_t i = 0; i < text.size;) {
        bool mark = is_mark(text.data + i, text.size - i);
        *(*room)++ = mark ? ' ' : text.data[i];
        i += mark ? SPACE_MARK_SIZE : 1;
    }
    return (struct span){start, (size_t)(*room - start)};
}

// The token of this text, if merging may make it.
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

static size_t mark_spaces(const char *text, size_t size, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != ' ') out[n++] = text[i];
        else memcpy(out + n, space_mark, SPACE_MARK_SIZE), n += SPACE_MARK_SIZE;
    }
    return n;
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
        length = utf8_decode(word + i, size - i, &code); // of broken characters, what is certainly part of them
        pair_merger_add(m, word + i, length, find_plain(t, word + i, length));
    }
    pair_merger_run(m, spm_rule, t);
    for (uint32_t i = 0; i != MERGE_END; i = m->symbols[i].next) emit(t, &m->symbols[i], out);
}

static void spm_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                       struct token_list *out) {
    const struct spm *spm = t->family;
    char *marked = xmalloc(size * SPACE_MARK_SIZE);
    size_t total = mark_spaces(text, size, marked);
    for (size_t at = 0, n; at < total; at += n) {
        n = spm->cuts_words ? word_size(marked + at, total - at) : total - at;
        encode_word(t, m, marked + at, n, out);
    }
    free(marked);
}

const struct tokenizer_ops tokenizer_spm = {
    .model = "llama",
    .defaults = {.bos = 1, .eos = 2, .unknown = 0},
    .adds_bos = true,
    .adds_space = true,
    .open = spm_open,
    .spell = spm_spell,
    .encode = spm_encode,
};
