// BPE by ranks: a pre-tokenizer splits the text, and the characters of each piece merge by a list. The characters are
// the byte-level alphabet or, with a raw pre-tokenizer (Gemma 4), the text's own with marks for spaces.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/text/merge_table.h"
#include "engine/text/pretokenize.h"
#include "engine/text/space_mark.h"
#include "engine/text/tokenizer_ops.h"

// The alphabet: bytes printable in Latin-1 stand for themselves, the others are U+0100 and up, in order.
enum { ALPHABET_END = 0x144 };

struct bpe {
    const struct pretokenizer *pre;
    struct merge_table merges;
    bool whole_pieces;     // a piece that is a token is not merged
    bool parts_words;      // raw: words merge independently
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

// Opening.

// For a file with an unknown pre-tokenizer.
static const char *name_default(struct arena *arena, struct span name) {
    char *text = arena_printf(arena, "%s (unknown: '%.*s')", pretokenizer_default->names[0],
                              (int)(name.size < 64 ? name.size : 64), name.data);
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return text;
}

static bool read_pre(struct tokenizer *t, struct bpe *bpe, struct span name, struct status *st) {
    if (!name.size && !gguf_get_string(t->vocabulary.file, VOCABULARY_KEY("pre"), GGUF_OPTIONAL, &name, st))
        return false;
    bpe->pre = pretokenizer_find(name);
    if (!bpe->pre) {
        bpe->pre = pretokenizer_default;
        t->pre = name_default(&t->vocabulary.arena, name);
    } else t->pre = bpe->pre->names[0];
    bpe->whole_pieces = bpe->pre->whole_pieces;
    if (!gguf_get_bool(t->vocabulary.file, "tokenizer.confab.ignore_merges", &bpe->whole_pieces, st)) return false;
    t->adds_bos = t->needs_bos = bpe->pre->needs_bos;
    t->adds_bos |= bpe->pre->adds_bos;
    if (bpe->pre->without_bos) t->vocabulary.bos = -1;
    return true;
}

static void find_bytes(struct tokenizer *t, const struct bpe *bpe) {
    for (int byte = 0; byte < 256; byte++) {
        char text[8];
        struct span spelt = {bpe->spelling[byte], bpe->spelling_size[byte]};
        if (bpe->pre->raw) spelt = (struct span){text, (size_t)snprintf(text, sizeof text, "<0x%02X>", (unsigned)byte)};
        t->byte_ids[byte] = vocabulary_find(&t->vocabulary, spelt);
    }
}

static bool open_with_pre(struct tokenizer *t, struct span pre, struct status *st) {
    struct bpe *bpe = t->family = arena_alloc(&t->vocabulary.arena, sizeof *bpe);
    make_alphabet(bpe);
    if (!read_pre(t, bpe, pre, st) || !merge_table_open(&bpe->merges, &t->vocabulary, st)) return false;
    find_bytes(t, bpe);
    bpe->parts_words = bpe->pre->raw && space_mark_parts_words(&t->vocabulary);
    return true;
}

static bool bpe_open(struct tokenizer *t, struct status *st) { return open_with_pre(t, (struct span){"", 0}, st); }

static bool gemma_open(struct tokenizer *t, struct status *st) {
    static const char name[] = "gemma4";
    return open_with_pre(t, (struct span){name, sizeof name - 1}, st);
}

static void bpe_close(struct tokenizer *t) {
    struct bpe *bpe = t->family;
    if (bpe) merge_table_close(&bpe->merges);
}

// Token texts.

static bool is_ascii(struct span text) {
    uint8_t any = 0;
    for (size_t i = 0; i < text.size; i++) any |= (uint8_t)text.data[i];
    return any < 0x80;
}

static struct span bpe_spell(const struct tokenizer *t, int32_t id, char **room) {
    const struct bpe *bpe = t->family;
    struct span text = t->vocabulary.texts[id];
    if (is_ascii(text)) return text;
    if (bpe->pre->raw) return space_mark_decode(text, room);
    char *start = *room;
    for (size_t i = 0, n; i < text.size; i += n) {
        uint32_t code;
        n = utf8_decode(text.data + i, text.size - i, &code);
        if (code < ALPHABET_END && bpe->bytes[code] >= 0) *(*room)++ = (char)bpe->bytes[code];
        else memcpy(*room, text.data + i, n), *room += n;
    }
    return (struct span){start, (size_t)(*room - start)};
}

// Encoding.

// The token of exactly this piece; −1 if none.
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

static void merge(const struct tokenizer *t, struct pair_merger *m, struct token_list *out) {
    const struct bpe *bpe = t->family;
    pair_merger_run(m, merge_table_rule, &bpe->merges);
    for (uint32_t i = 0; i != MERGE_END; i = m->symbols[i].next) {
        const struct merge_symbol *s = &m->symbols[i];
        if (s->id >= 0) token_list_push(out, s->id);
        else
            for (uint32_t k = 0; k < s->size; k++) tokenizer_push_byte(t, (uint8_t)s->text[k], out);
    }
}

static void encode_bytes(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                         struct token_list *out) {
    const struct bpe *bpe = t->family;
    int32_t whole = bpe->whole_pieces ? find_piece(t, bpe, text, size) : -1;
    if (whole >= 0) {
        token_list_push(out, whole);
        return;
    }
    pair_merger_begin(m, size);
    for (size_t i = 0; i < size; i++) pair_merger_add(m, text + i, 1, t->byte_ids[(uint8_t)text[i]]);
    merge(t, m, out);
}

// Encodes text that already has marks for spaces.
static void encode_characters(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                              struct token_list *out) {
    pair_merger_begin(m, size);
    for (size_t i = 0, n; i < size; i += n) {
        uint32_t code;
        n = utf8_decode(text + i, size - i, &code);
        pair_merger_add(m, text + i, n, vocabulary_find(&t->vocabulary, (struct span){text + i, n}));
    }
    merge(t, m, out);
}

static void encode_line(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                        struct token_list *out) {
    const struct bpe *bpe = t->family;
    int32_t whole = -1;
    if (bpe->pre->whole_lines && *text == '\n') whole = vocabulary_find(&t->vocabulary, (struct span){text, size});
    if (whole >= 0) {
        token_list_push(out, whole);
        return;
    }
    space_mark_encode(t, m, text, size, bpe->parts_words, encode_characters, out);
}

static void bpe_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                       struct token_list *out) {
    const struct bpe *bpe = t->family;
    struct pretokenize_walk walk = pretokenize_begin(bpe->pre, text, size);
    for (struct span piece; pretokenize_next(&walk, &piece);)
        (bpe->pre->raw ? encode_line : encode_bytes)(t, m, piece.data, piece.size, out);
}

const struct tokenizer_ops tokenizer_bpe = {
    .model = "gpt2",
    .defaults = {.bos = -1, .eos = -1, .unknown = -1, .separator = -1},
    .open = bpe_open,
    .close = bpe_close,
    .spell = bpe_spell,
    .encode = bpe_encode,
};

const struct tokenizer_ops tokenizer_gemma = {
    .model = "gemma4",
    .defaults = {.bos = -1, .eos = -1, .unknown = -1, .separator = -1},
    .open = gemma_open,
    .close = bpe_close,
    .spell = bpe_spell,
    .encode = bpe_encode,
};
