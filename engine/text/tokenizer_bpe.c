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
    struct token_table merges; // of struct bpe_merge
    uint64_t seed;
    char spelling[256][2]; // UTF-8 of each byte's character
    uint8_t spelling_size[256];
    int16_t bytes[ALPHABET_END]; // the byte of each character; −1: not in the alphabet
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
    struct bpe_merge *slots = bpe->merges.slots;
    for (uint64_t at = token_hash_pair(bpe->seed, left, right);; at++) {
        struct bpe_merge *m = &slots[at & bpe->merges.mask];
        if (!m->product_plus_1 || (m->left == left && m->right == right)) return m;
    }
}

// "left right", cut at the first space after the first byte.
static bool cut_merge(struct span text, struct span *left, struct span *right) {
    const char *cut = text.size > 1 ? memchr(text.data + 1, ' ', text.size - 1) : NULL;
    if (!cut) return false;
    *left = (struct span){text.data, (size_t)(cut - text.data)};
    *right = (struct span){cut + 1, text.size - left->size - 1};
    return true;
}

static bool is_joined(struct span text, struct span left, struct span right) {
    return text.size == left.size + right.size && !memcmp(text.data, left.data, left.size) &&
           !memcmp(text.data + left.size, right.data, right.size);
}

// The token that both parts together make. Files list merges in the order in which their tokens were made, so it is
// mostly the token of the merge before, or the next one.
static int32_t find_product(const struct vocabulary *v, struct span left, struct span right, int32_t last, char *room) {
    for (int32_t id = last; id <= last + 1 && id < v->count; id++)
        if (is_joined(v->texts[id], left, right)) return v->index.unique ? id : vocabulary_find(v, v->texts[id]);
    if (left.size + right.size > v->longest) return -1;
    memcpy(room, left.data, left.size);
    memcpy(room + left.size, right.data, right.size);
    return vocabulary_find(v, (struct span){room, left.size + right.size});
}

// Merges on their way into the table: each waits, its slot being fetched from memory, until the batch is full.
struct merge_batch {
    struct bpe_merge merges[32];
    size_t count;
};

// Of merges that repeat, the first counts.
static void insert_batch(struct bpe *bpe, struct merge_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        struct bpe_merge *slot = find_merge(bpe, batch->merges[i].left, batch->merges[i].right);
        if (!slot->product_plus_1) *slot = batch->merges[i];
    }
    batch->count = 0;
}

static void add_merge(struct bpe *bpe, struct merge_batch *batch, struct bpe_merge merge) {
    const struct bpe_merge *slots = bpe->merges.slots;
    __builtin_prefetch(&slots[token_hash_pair(bpe->seed, merge.left, merge.right) & bpe->merges.mask], 1);
    batch->merges[batch->count++] = merge;
    if (batch->count == sizeof batch->merges / sizeof *batch->merges) insert_batch(bpe, batch);
}

// A merge of what are no tokens could never come to anything, and is passed over.
static bool index_merges(struct bpe *bpe, const struct vocabulary *v, const struct span *texts, uint64_t count,
                         char *room, struct status *st) {
    struct merge_batch batch = {.count = 0};
    int32_t last = 0;
    for (uint64_t rank = 0; rank < count; rank++) {
        struct span left, right;
        if (!cut_merge(texts[rank], &left, &right))
            return status_fail(st, STATUS_FORMAT, "%s: tokenizer.ggml.merges: merge %llu, \"%.*s\", has no two parts",
                               v->file->path, (unsigned long long)rank,
                               (int)(texts[rank].size < 64 ? texts[rank].size : 64), texts[rank].data);
        int32_t a = vocabulary_find(v, left), b = vocabulary_find(v, right);
        int32_t product = find_product(v, left, right, last, room);
        if (a < 0 || b < 0 || product < 0) continue;
        add_merge(bpe, &batch, (struct bpe_merge){a, b, (uint32_t)rank, product + 1});
        last = product;
    }
    insert_batch(bpe, &batch);
    return true;
}

static bool read_merges(struct bpe *bpe, const struct vocabulary *v, struct arena *scratch, struct status *st) {
    uint64_t count;
    const struct span *texts = gguf_get_strings(v->file, VOCABULARY_KEY("merges"), scratch, &count, st);
    if (!texts && st->code != STATUS_OK) return false;
    if (!texts || count > UINT32_MAX)
        return status_fail(st, STATUS_FORMAT, "%s: tokenizer.ggml.merges: %s", v->file->path,
                           texts ? "too many merges" : "the key is missing");
    char *room = arena_array(scratch, v->longest + 1, 1, st);
    if (!room || !token_table_open(&bpe->merges, count, sizeof(struct bpe_merge), st)) return false;
    bpe->seed = token_hash_seed();
    return index_merges(bpe, v, texts, count, room, st);
}

static bool bpe_open(struct tokenizer *t, struct status *st) {
    struct bpe *bpe = t->family = arena_alloc(&t->vocabulary.arena, sizeof *bpe);
    make_alphabet(bpe);
    for (int byte = 0; byte < 256; byte++)
        t->byte_ids[byte] =
            vocabulary_find(&t->vocabulary, (struct span){bpe->spelling[byte], bpe->spelling_size[byte]});
    struct arena scratch = {0};
    bool done = read_pre(t, bpe, st) && read_merges(bpe, &t->vocabulary, &scratch, st);
    arena_free(&scratch);
    return done;
}

static void bpe_close(struct tokenizer *t) {
    struct bpe *bpe = t->family;
    if (bpe) token_table_close(&bpe->merges);
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
    .close = bpe_close,
    .spell = bpe_spell,
    .encode = bpe_encode,
};
