// Byte-level BPE: every byte is a character of an alphabet, a pre-tokenizer cuts the text, and the characters of each
// cut merge by the ranks of a list.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/text/pretokenize.h"
#include "engine/text/tokenizer_ops.h"

// A merge of two tokens into a third. Kept by the pair in an open-addressing table.
struct bpe_merge {
    int32_t left, right;
    uint32_t rank;
    int32_t product_plus_1; // 0: a free slot
};

// The alphabet: a byte that prints as itself in Latin-1 is itself, the others are U+0100 and on, in order.
enum { ALPHABET_END = 0x144 };

struct bpe {
    const struct pretokenizer *pre;
    struct bpe_merge *merges;
    uint64_t mask, seed;
    char spelling[256][2];         // UTF-8 of each byte's character
    uint8_t spelling_size[256];
    int16_t bytes[ALPHABET_END];   // the byte of each character; −1: not in the alphabet
};

static bool prints(int byte) { return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad); }

static void make_alphabet(struct bpe *bpe) {
    memset(bpe->bytes, -1, sizeof bpe->bytes);
    uint32_t other = 0x100;
    for (int byte = 0; byte < 256; byte++) {
        uint32_t code = prints(byte) ? (uint32_t)byte : other++;
        char utf8[4];
        bpe->spelling_size[byte] = (uint8_t)utf8_encode(code, utf8);
        memcpy(bpe->spelling[byte], utf8, 2);
        bpe->bytes[code] = (int16_t)byte;
    }
}

static bool read_pre(struct tokenizer *t, struct bpe *bpe, struct status *st) {
    const struct gguf *g = t->vocabulary.file;
    struct span name = {"", 0};
    if (!gguf_get_string(g, VOCABULARY_KEY("pre"), GGUF_OPTIONAL, &name, st)) return false;
    bpe->pre = pretokenizer_find(name);
    if (!bpe->pre)
        return status_fail(st, STATUS_UNSUPPORTED, "%s: tokenizer.ggml.pre is \"%.*s\", a pre-tokenizer we lack",
                           g->path, (int)(name.size < 64 ? name.size : 64), name.data);
    t->pre = bpe->pre->names[0];
    t->adds_bos = bpe->pre->adds_bos;
    return true;
}

static struct bpe_merge *find_merge(const struct bpe *bpe, int32_t left, int32_t right) {
    for (uint64_t at = token_hash_pair(bpe->seed, left, right) & bpe->mask;; at = (at + 1) & bpe->mask) {
        struct bpe_merge *m = &bpe->merges[at];
        if (!m->product_plus_1 || (m->left == left && m->right == right)) return m;
    }
}

// "left right", cut at the first space after the first byte. A merge of what are no tokens could never come to
// anything, and is passed over; of one that repeats, the first counts.
static bool add_merge(struct bpe *bpe, const struct vocabulary *v, struct span text, uint32_t rank, char *joined,
                      struct status *st) {
    const char *cut = text.size > 1 ? memchr(text.data + 1, ' ', text.size - 1) : NULL;
    if (!cut)
        return status_fail(st, STATUS_FORMAT, "%s: tokenizer.ggml.merges: merge %u, \"%.*s\", has no two parts",
                           v->file->path, rank, (int)(text.size < 64 ? text.size : 64), text.data);
    struct span left = {text.data, (size_t)(cut - text.data)}, right = {cut + 1, text.size - left.size - 1};
    if (left.size + right.size > v->longest) return true;
    memcpy(joined, left.data, left.size);
    memcpy(joined + left.size, right.data, right.size);
    int32_t a = vocabulary_find(v, left), b = vocabulary_find(v, right);
    int32_t product = vocabulary_find(v, (struct span){joined, left.size + right.size});
    if (a < 0 || b < 0 || product < 0) return true;
    struct bpe_merge *m = find_merge(bpe, a, b);
    if (!m->product_plus_1) *m = (struct bpe_merge){a, b, rank, product + 1};
    return true;
}

static bool read_merges(struct tokenizer *t, struct bpe *bpe, struct status *st) {
    struct vocabulary *v = &t->vocabulary;
    uint64_t count;
    const struct span *texts = gguf_get_strings(v->file, VOCABULARY_KEY("merges"), &v->arena, &count, st);
    if (!texts && st->code != STATUS_OK) return false;
    if (!texts || count > UINT32_MAX)
        return status_fail(st, STATUS_FORMAT, "%s: tokenizer.ggml.merges: %s", v->file->path,
                           texts ? "too many merges" : "the key is missing");
    uint64_t n_slots = token_table_size(count);
    bpe->merges = arena_array(&v->arena, n_slots, sizeof *bpe->merges, st);
    char *joined = arena_array(&v->arena, v->longest + 1, 1, st);
    if (!bpe->merges || !joined) return false;
    bpe->mask = n_slots - 1;
    bpe->seed = token_hash_seed();
    for (uint64_t i = 0; i < count; i++)
        if (!add_merge(bpe, v, texts[i], (uint32_t)i, joined, st)) return false;
    return true;
}

static bool bpe_open(struct tokenizer *t, struct status *st) {
    struct bpe *bpe = t->family = arena_alloc(&t->vocabulary.arena, sizeof *bpe);
    make_alphabet(bpe);
    for (int byte = 0; byte < 256; byte++)
        t->byte_ids[byte] =
            vocabulary_find(&t->vocabulary, (struct span){bpe->spelling[byte], bpe->spelling_size[byte]});
    return read_pre(t, bpe, st) && read_merges(t, bpe, st);
}

static bool is_ascii(struct span text) {
    uint8_t any = 0;
    for (size_t i = 0; i < text.size; i++) any |= (uint8_t)text.data[i];
    return any < 0x80;
}

static struct span bpe_spell(const struct tokenizer *t, int32_t id, char **room) {
    const struct bpe *bpe = t->family;
    struct span text = t->vocabulary.texts[id];
    if (is_ascii(text) || t->vocabulary.types[id] == TOKEN_USER_DEFINED) return text;
    char *start = *room;
    for (size_t i = 0, n; i < text.size; i += n) {
        uint32_t code;
        n = utf8_decode(text.data + i, text.size - i, &code);
        if (code < ALPHABET_END && bpe->bytes[code] >= 0) *(*room)++ = (char)bpe->bytes[code];
        else memcpy(*room, text.data + i, n), *room += n;
    }
    return (struct span){start, (size_t)(*room - start)};
}

static bool bpe_rule(const void *rules, const struct merge_symbol *left, const struct merge_symbol *right,
                     struct merge_product *product) {
    const struct bpe_merge *m = find_merge(rules, left->id, right->id);
    if (!m->product_plus_1) return false;
    *product = (struct merge_product){m->rank, m->product_plus_1 - 1};
    return true;
}

// The token that spells exactly this piece; −1 when there is none.
static int32_t find_piece(const struct tokenizer *t, const struct bpe *bpe, const char *text, size_t size) {
    char few[256], *spelt = few;
    size_t n = 0;
    if (size > t->vocabulary.longest) return -1;
    if (2 * size > sizeof few) spelt = xmalloc(2 * size);
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)text[i];
        memcpy(spelt + n, bpe->spelling[byte], 2);
        n += bpe->spelling_size[byte];
    }
    int32_t id = vocabulary_find(&t->vocabulary, (struct span){spelt, n});
    if (spelt != few) free(spelt);
    return id >= 0 && !vocabulary_is_special(&t->vocabulary, id) ? id : -1;
}

static void encode_piece(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                         struct token_list *out) {
    const struct bpe *bpe = t->family;
    int32_t whole = bpe->pre->whole_pieces ? find_piece(t, bpe, text, size) : -1;
    if (whole >= 0) {
        token_list_push(out, whole);
        return;
    }
    pair_merger_begin(m, size);
    for (size_t i = 0; i < size; i++) pair_merger_add(m, text + i, 1, t->byte_ids[(uint8_t)text[i]]);
    pair_merger_run(m, bpe_rule, bpe);
    for (uint32_t i = 0; i != MERGE_END; i = m->symbols[i].next) {
        if (m->symbols[i].id >= 0) token_list_push(out, m->symbols[i].id);
        else tokenizer_push_byte(t, (uint8_t)*m->symbols[i].text, out);
    }
}

static void bpe_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                       struct token_list *out) {
    const struct bpe *bpe = t->family;
    for (size_t at = 0, n; at < size; at += n) {
        n = pretokenize_next(bpe->pre, text + at, size - at);
        encode_piece(t, m, text + at, n, out);
    }
}

const struct tokenizer_ops tokenizer_bpe = {
    .model = "gpt2",
    .defaults = {.bos = -1, .eos = -1, .unknown = -1},
    .open = bpe_open,
    .spell = bpe_spell,
    .encode = bpe_encode,
};
