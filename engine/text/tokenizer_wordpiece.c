// WordPiece (BERT): cleans the text, splits it into words and symbols, and spells each with the longest tokens from the
// left. Tokens that start a word have U+2581 in front.
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/base/panic.h"
#include "engine/text/character.h"
#include "engine/text/space_mark.h"
#include "engine/text/tokenizer_ops.h"

struct wordpiece {
    struct token_trie tokens;
    bool lowers, strips_accents;
};

static bool wordpiece_open(struct tokenizer *t, struct status *st) {
    struct vocabulary *v = &t->vocabulary;
    struct wordpiece *w = t->family = arena_alloc(&v->arena, sizeof *w);
    w->lowers = true;
    if (!gguf_get_bool(v->file, VOCABULARY_KEY("normalizer.lowercase"), &w->lowers, st)) return false;
    w->strips_accents = w->lowers;
    if (!gguf_get_bool(v->file, VOCABULARY_KEY("normalizer.strip_accents"), &w->strips_accents, st) ||
        !token_trie_open(&w->tokens, &v->arena, v->bytes, st))
        return false;
    for (int32_t id = 0; id < v->count; id++) token_trie_add(&w->tokens, v->texts[id], id);
    t->drops_space = true;
    return true;
}

static struct span wordpiece_spell(const struct tokenizer *t, int32_t id, char **room) {
    return space_mark_decode(t->vocabulary.texts[id], room);
}

// The current word, with the mark in front.
struct word {
    char *text;
    size_t size, capacity;
};

static void add(struct word *w, uint32_t code) {
    if (w->size + 4 > w->capacity) {
        w->capacity = 2 * w->capacity + 64;
        w->text = xrealloc(w->text, w->capacity);
    }
    if (w->size == 0) memcpy(w->text, SPACE_MARK, w->size = SPACE_MARK_SIZE);
    w->size += utf8_encode(code, w->text + w->size);
}

// If any part of a word is not a token, the whole word is unknown.
static void end_word(const struct tokenizer *t, struct word *w, struct token_list *out) {
    const struct wordpiece *family = t->family;
    size_t first = out->count;
    for (size_t at = 0, length; at < w->size; at += length) {
        int32_t id = token_trie_longest(&family->tokens, w->text + at, w->size - at, &length);
        if (id < 0) {
            out->count = first;
            if (t->vocabulary.unknown >= 0) token_list_push(out, t->vocabulary.unknown);
            break;
        }
        token_list_push(out, id);
    }
    w->size = 0;
}

static bool is_ideograph(uint32_t code) {
    static const uint32_t list[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                                       {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    static const struct character_ranges ideographs = {sizeof list / sizeof *list, list};
    return character_in_ranges(&ideographs, code);
}

static void add_character(const struct tokenizer *t, struct word *w, uint32_t code, struct token_list *out) {
    const struct wordpiece *family = t->family;
    uint32_t class = character_class(code);
    if (class & CLASSES_SPACE) {
        end_word(t, w, out);
        return;
    }
    if (class & CLASS_CONTROL || code == UTF8_REPLACEMENT || (family->strips_accents && class & CLASS_MARK)) return;
    bool stands_alone = class & (CLASSES_PUNCTUATION | CLASS_ASCII_SYMBOL) || is_ideograph(code);
    if (stands_alone) end_word(t, w, out);
    add(w, family->lowers ? (uint32_t)utf8proc_tolower((utf8proc_int32_t)code) : code);
    if (stands_alone) end_word(t, w, out);
}

// Decomposition makes accents separate characters.
static void add_decomposed(const struct tokenizer *t, struct word *w, uint32_t code, struct token_list *out) {
    utf8proc_int32_t codes[8];
    int bound_class = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)code, codes, 8, UTF8PROC_DECOMPOSE, &bound_class);
    if (n < 1 || n > 8) n = 1, codes[0] = (utf8proc_int32_t)code;
    for (utf8proc_ssize_t i = 0; i < n; i++) add_character(t, w, (uint32_t)codes[i], out);
}

static void wordpiece_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                             struct token_list *out) {
    (void)m;
    const struct wordpiece *family = t->family;
    struct word w = {0};
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += utf8_decode(text + at, size - at, &code);
        (family->strips_accents && code >= 0x80 ? add_decomposed : add_character)(t, &w, code, out);
    }
    end_word(t, &w, out);
    free(w.text);
}

const struct tokenizer_ops tokenizer_wordpiece = {
    .model = "bert",
    .defaults = {.bos = 101, .eos = -1, .unknown = 100, .separator = 102},
    .adds_bos = true,
    .adds_separator = true,
    .open = wordpiece_open,
    .spell = wordpiece_spell,
    .encode = wordpiece_encode,
};
