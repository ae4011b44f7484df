// SentencePiece BPE: spaces are written U+2581, characters merge by the tokens' scores, and what is no token is
// spelt in byte tokens.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/text/tokenizer_ops.h"

struct spm {
    uint32_t *orders; // [count] rising as scores fall
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
    if (!p) return st->code == STATUS_OK ? status_fail(st, STATUS_FORMAT, "%s: the key %s is missing", path, key) : false;
    for (int32_t id = 0; id < t->vocabulary.count; id++) {
        double score = gguf_number(p, (uint64_t)id);
        if (isnan(score)) return status_fail(st, STATUS_FORMAT, "%s: %s of token %d is not a number", path, key, id);
        spm->orders[id] = order_of_score((float)score);
    }
    return true;
}

static bool spm_open(struct tokenizer *t, struct status *st) {
    struct vocabulary *v = &t->vocabulary;
    struct spm *spm = t->family = arena_alloc(&v->arena, sizeof *spm);
    spm->orders = arena_array(&v->arena, (uint64_t)v->count, sizeof *spm->orders, st);
    if (!spm->orders || !read_scores(t, spm, st)) return false;
    for (int32_t id = v->count; id-- > 0;)
        if (v->types[id] == TOKEN_BYTE) t->byte_ids[vocabulary_byte(v->texts[id])] = id;
    return true;
}

static const char space_mark[] = "\u2581";
enum { SPACE_MARK_SIZE = sizeof space_mark - 1 };

static struct span spm_spell(const struct tokenizer *t, int32_t id, char **room) {
    struct span text = t->vocabulary.texts[id];
    if (!memmem(text.data, text.size, space_mark, SPACE_MARK_SIZE)) return text;
    char *start = *room;
    for (size_t i = 0; i < text.size;) {
        bool is_mark = text.size - i >= SPACE_MARK_SIZE && !memcmp(text.data + i, space_mark, SPACE_MARK_SIZE);
        *(*room)++ = is_mark ? ' ' : text.data[i];
        i += is_mark ? SPACE_MARK_SIZE : 1;
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

// Bytes of the character that this one begins, by its high bits alone: broken characters end up as byte tokens.
static size_t character_size(uint8_t lead) {
    static const uint8_t sizes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    return sizes[lead >> 4];
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

static void spm_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                       struct token_list *out) {
    char *marked = xmalloc(size * SPACE_MARK_SIZE);
    size_t n = mark_spaces(text, size, marked);
    pair_merger_begin(m, n);
    for (size_t i = 0, length; i < n; i += length) {
        length = character_size((uint8_t)marked[i]);
        if (length > n - i) length = n - i;
        pair_merger_add(m, marked + i, length, find_plain(t, marked + i, length));
    }
    pair_merger_run(m, spm_rule, t);
    for (uint32_t i = 0; i != MERGE_END; i = m->symbols[i].next) emit(t, &m->symbols[i], out);
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
