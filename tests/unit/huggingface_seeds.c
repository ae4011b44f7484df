#include "tests/unit/huggingface_seeds.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/gguf_writer.h"

const char *huggingface_byte_fallback(void) {
    static char text[8192];
    size_t n = 0;
    if (*text) return text;
    n += (size_t)snprintf(
        text + n, sizeof text - n,
        "{`added_tokens`: [{`id`: 0, `content`: `<unk>`, `special`: true}, {`id`: 1, `content`: `<s>`, "
        "`special`: true}, {`id`: 2, `content`: `</s>`, `special`: true}], `normalizer`: {`type`: `Sequence`, "
        "`normalizers`: [{`type`: `Prepend`, `prepend`: `▁`}, {`type`: `Replace`, `pattern`: {`String`: ` `}, "
        "`content`: `▁`}]}, `pre_tokenizer`: null, `post_processor`: {`type`: `TemplateProcessing`, `single`: "
        "[{`SpecialToken`: {`id`: `<s>`}}, {`Sequence`: {`id`: `A`}}], `special_tokens`: {`<s>`: {`ids`: [1]}}}, "
        "`model`: {`type`: `BPE`, `byte_fallback`: true, `fuse_unk`: true, `unk_token`: `<unk>`, `vocab`: "
        "{`<unk>`: 0, `<s>`: 1, `</s>`: 2");
    for (int byte = 0; byte < 256; byte++)
        n += (size_t)snprintf(text + n, sizeof text - n, ", `<0x%02X>`: %d", (unsigned)byte, byte + 3);
    snprintf(text + n, sizeof text - n,
             ", `▁`: 261, `a`: 262, `b`: 263, `▁a`: 264, `ab`: 265, `▁ab`: 266}, `merges`: [`▁ a`, `a b`, `▁ ab`, `▁a "
             "b`]}}");
    return text;
}

const char *huggingface_seed(size_t k) {
    const char *const seeds[HUGGINGFACE_SEEDS] = {HUGGINGFACE_BYTE_LEVEL, HUGGINGFACE_UNIGRAM, HUGGINGFACE_WORD_PIECE,
                                                  HUGGINGFACE_BYTE_FALLBACK};
    return seeds[k];
}

char *huggingface_quoted(const char *text) {
    char *quoted = xstrdup(text);
    for (char *c = quoted; *c; c++) *c = *c == '`' ? '"' : *c == '\x01' ? '`' : *c;
    return quoted;
}

// A message in the wire format of protocol buffers; all lengths here are below 128.
static void put_bytes(struct bytes *b, int field, const void *data, size_t size) {
    assert(size < 128);
    bytes_put(b, (const uint8_t[]){(uint8_t)(field << 3 | 2), (uint8_t)size}, 2);
    bytes_put(b, data, size);
}

static void put_number(struct bytes *b, int field, uint8_t number) {
    uint8_t key[3] = {(uint8_t)(field << 3), number};
    if (field < 16) {
        bytes_put(b, key, 2);
        return;
    }
    key[0] |= 0x80, key[1] = (uint8_t)(field >> 4), key[2] = number;
    bytes_put(b, key, 3);
}

static void put_piece(struct bytes *b, const char *text, float score, uint8_t type) {
    struct bytes piece = {0};
    put_bytes(&piece, 1, text, strlen(text));
    bytes_put(&piece, (const uint8_t[]){2 << 3 | 5}, 1);
    bytes_put(&piece, &score, sizeof score);
    if (type != TOKEN_NORMAL) put_number(&piece, 3, type);
    put_bytes(b, 1, piece.data, piece.size);
    free(piece.data);
}

uint8_t *sentencepiece_seed(size_t k, size_t *size) {
    static const char *const pieces[] = {"▁", "a", "b", "▁a", "ab", "▁ab", "é", "語"};
    struct bytes b = {0}, trainer = {0}, normalizer = {0};
    bool bpe = k == 0;
    put_piece(&b, "<unk>", 0, TOKEN_UNKNOWN);
    put_piece(&b, "<s>", 0, TOKEN_CONTROL);
    put_piece(&b, "</s>", 0, TOKEN_CONTROL);
    put_piece(&b, "<sep>", 0, TOKEN_USER_DEFINED);
    for (int byte = 0; bpe && byte < 256; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)byte);
        put_piece(&b, text, 0, TOKEN_BYTE);
    }
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) put_piece(&b, pieces[i], -(float)i - 1, TOKEN_NORMAL);
    put_number(&trainer, 3, bpe ? 2 : 1);
    put_number(&trainer, 35, bpe);
    put_bytes(&b, 2, trainer.data, trainer.size);
    if (!bpe) put_bytes(&normalizer, 2, "\x04\0\0\0\0\0\0\0", 8); // a map that holds nothing
    put_number(&normalizer, 3, 1);
    put_number(&normalizer, 4, !bpe);
    put_bytes(&b, 3, normalizer.data, normalizer.size);
    free(trainer.data);
    free(normalizer.data);
    *size = b.size;
    return b.data;
}

static void use(const struct tokenizer *t) {
    static const char text[] = "Hello ab<end><sep>\n 1984 \xff\xe2\x96\x81\xf0\x9f\x98\x80 </s>";
    struct token_list ids = {0};
    size_t size;
    tokenizer_encode(t, text, sizeof text - 1, true, &ids);
    for (size_t i = 0; i < ids.count; i++) assert(ids.ids[i] >= 0 && ids.ids[i] < tokenizer_count(t));
    free(tokenizer_decode(t, ids.ids, ids.count, true, &size));
    free(ids.ids);
}

struct huggingface_opened huggingface_open_texts(const struct huggingface_texts *texts) {
    struct huggingface_opened o = {0};
    gguf_begin(&o.file, "import");
    if (!huggingface_tokenizer_add_texts(&o.file, texts, &o.status)) gguf_close(&o.file);
    else if (gguf_finish(&o.file, &o.status)) o.t = tokenizer_open(&o.file, &o.status);
    return o;
}

void huggingface_opened_close(struct huggingface_opened *o) {
    tokenizer_close(o->t);
    gguf_close(&o->file);
}

void huggingface_try(enum huggingface_file file, const void *bytes, size_t size) {
    char *copy = exact_copy(bytes, size);
    struct huggingface_texts texts = {.folder = "folder"};
    texts.files[file] = (struct span){copy, size};
    struct huggingface_opened o = huggingface_open_texts(&texts);
    assert(o.t || (o.status.code != STATUS_OK && o.status.text[0]));
    if (o.t) use(o.t);
    huggingface_opened_close(&o);
    free(copy);
}
