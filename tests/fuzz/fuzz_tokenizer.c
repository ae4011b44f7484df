// Fuzzes tokenizers. The first byte selects how to read the rest: as a text, which must survive encoding and decoding
// byte for byte, or as changes to the file of a small vocabulary, which must be rejected or work.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/tiny_vocab.h"

static int byte_level(struct gguf_writer *w) { return tiny_vocab_byte_level(w, "gpt-2"); }
static int whole_pieces(struct gguf_writer *w) { return tiny_vocab_byte_level(w, "llama-bpe"); }
static int cased(struct gguf_writer *w) { return tiny_vocab_byte_level(w, "gpt-4o"); }
static int staged(struct gguf_writer *w) { return tiny_vocab_byte_level(w, "deepseek-llm"); }

// The last two normalise text, so decoding does not restore it; some of the others have a space mark.
static int (*const makers[])(struct gguf_writer *) = {
    byte_level,         whole_pieces,        cased, staged, tiny_vocab_sentencepiece, tiny_vocab_gemma,
    tiny_vocab_unigram, tiny_vocab_wordpiece};
enum { VOCABULARIES = sizeof makers / sizeof *makers, WITH_SPACE_MARK = 4, NORMALISING = 6 };

static struct vocabulary_file {
    uint8_t *bytes;
    size_t size;
    struct gguf file;
    struct tokenizer *tokenizer;
} files[VOCABULARIES];

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    for (int i = 0; i < VOCABULARIES; i++) {
        struct vocabulary_file *f = &files[i];
        struct status st = {0};
        struct gguf_writer w = {0};
        makers[i](&w);
        f->bytes = gguf_writer_finish(&w, &f->size);
        if (gguf_open_memory(&f->file, "fuzz", f->bytes, f->size, &st)) f->tokenizer = tokenizer_open(&f->file, &st);
        if (!f->tokenizer) panic("%s", st.text);
    }
    return 0;
}

static void encode_and_decode(const struct tokenizer *t, const char *text, size_t size, bool parse_special,
                              bool comes_back) {
    struct token_list ids = {0};
    tokenizer_encode(t, text, size, parse_special, &ids);
    for (size_t i = 0; i < ids.count; i++) assert(ids.ids[i] >= 0 && ids.ids[i] < tokenizer_count(t));
    size_t n;
    char *back = tokenizer_decode(t, ids.ids, ids.count, true, &n);
    if (comes_back) assert(n == size && !memcmp(back, text, size));
    free(back);
    free(ids.ids);
}

static void fuzz_text(const struct vocabulary_file *f, bool parse_special, const char *text, size_t size) {
    bool has_space_mark = f >= &files[WITH_SPACE_MARK] && memmem(text, size, "\u2581", 3); // decoded as a space
    encode_and_decode(f->tokenizer, text, size, parse_special, !has_space_mark && f < &files[NORMALISING]);
}

// Every three bytes change a byte of the file: position (in the keys, at the start) and difference.
static void fuzz_file(const struct vocabulary_file *f, const uint8_t *changes, size_t size) {
    uint8_t *bytes = xmalloc(f->size);
    memcpy(bytes, f->bytes, f->size);
    for (; size >= 3; changes += 3, size -= 3) bytes[(changes[0] << 8 | changes[1]) % f->size] ^= changes[2];
    struct gguf g;
    struct status st = {0};
    if (gguf_open_memory(&g, "fuzz", bytes, f->size, &st)) {
        static const char text[] = "Hello world<|im_end|></s>\n the 1984 \xff\xe2\x96\x81\xf0\x9f\x98\x80";
        struct tokenizer *t = tokenizer_open(&g, &st);
        if (t) encode_and_decode(t, text, sizeof text - 1, true, false);
        else assert(st.code != STATUS_OK && st.text[0]);
        tokenizer_close(t);
        gguf_close(&g);
    }
    free(bytes);
}

// Texts for each vocabulary, then changes to the file.
uint8_t *fuzz_seed(size_t k, size_t *size) {
    static const char text[] =
        "Hello world, it's 1984!\n\n  <|im_start|>user\t\u00e9\u4e16\u754c \U0001f600 don't</s>[CLS]\r\n"
        "\xff\xe2\x82 aaaaaaaa    \u0301\u3000";
    if (k >= 2 * VOCABULARIES) return NULL;
    *size = sizeof text;
    uint8_t *seed = xmalloc(sizeof text);
    seed[0] = (uint8_t)(k % VOCABULARIES | (k < VOCABULARIES ? 0x40 : 0x80));
    memcpy(seed + 1, text, sizeof text - 1);
    return seed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const struct vocabulary_file *f = &files[data[0] % VOCABULARIES];
    if (data[0] & 0x80) fuzz_file(f, data + 1, size - 1);
    else fuzz_text(f, data[0] & 0x40, (const char *)data + 1, size - 1);
    return 0;
}
