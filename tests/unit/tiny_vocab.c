#include "tests/unit/tiny_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "tests/unit/tiny_vocab_parts.h"

// Merges in the order of their rank; both sides are characters or the results of earlier merges.
static const char *const merges[][2] = {
    {" ", "t"},  {"h", "e"}, {" t", "he"}, {" ", "a"},   {"i", "n"},  {"e", "r"},     {"o", "n"},    {" ", "s"},
    {"r", "e"},  {" ", "w"}, {"n", "d"},   {" a", "nd"}, {"in", "g"}, {"o", "u"},     {" ", "i"},    {"a", "t"},
    {"e", "n"},  {" ", "o"}, {" o", "f"},  {" t", "o"},  {"i", "t"},  {"i", "s"},     {" ", "c"},    {" ", "b"},
    {"a", "r"},  {"o", "r"}, {"e", "s"},   {"l", "l"},   {"H", "e"},  {"He", "ll"},   {"Hell", "o"}, {" w", "or"},
    {"l", "d"},  {" ", "y"}, {" y", "ou"}, {"l", "y"},   {"l", "e"},  {" wor", "ld"}, {" ", "l"},    {"e", "d"},
    {"i", "l"},  {"r", "i"}, {"a", "s"},   {" ", "h"},   {" h", "e"}, {" w", "as"},   {"s", "t"},    {" ", "m"},
    {" ", "f"},  {" ", "p"}, {"a", "y"},   {" ", "d"},   {" ", "n"},  {"e", "e"},     {" i", "t"},   {" i", "s"},
    {" i", "n"}, {" ", "g"}, {"o", "o"},   {"t", "h"},   {" t", "h"}, {" th", "at"},  {"c", "h"},    {"O", "n"},
    {"l", "i"},  {"t", "t"}, {"tt", "le"}, {" ", "r"},   {"k", "e"},  {"m", "e"},     {"v", "e"},    {"1", "9"},
};
enum { MERGE_COUNT = sizeof merges / sizeof *merges };

void tiny_vocab_add(struct tiny_vocab *v, const char *text, float score, int32_t type) {
    bytes_string(&v->tokens, text);
    bytes_put(&v->scores, &score, sizeof score);
    bytes_put(&v->types, &type, sizeof type);
    v->count++;
}

int tiny_vocab_write(struct tiny_vocab *v, struct gguf_writer *w, bool scores) {
    uint64_t n = (uint64_t)v->count;
    gguf_writer_array(w, "tokenizer.ggml.tokens", GGUF_STRING, n, v->tokens.data, v->tokens.size);
    if (scores) gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, n, v->scores.data, v->scores.size);
    gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, n, v->types.data, v->types.size);
    free(v->tokens.data);
    free(v->scores.data);
    free(v->types.data);
    return (int)n;
}

// Puts text at the end of out with every space replaced.
static void append(char *out, const char *text, const char *space) {
    out += strlen(out);
    for (; *text; text++)
        out += sprintf(out, "%.*s", *text == ' ' ? (int)strlen(space) : 1, *text == ' ' ? space : text);
}

int tiny_vocab_sentencepiece(struct gguf_writer *w) {
    static const char *const others[] = {"\u2581", "é", "ü", "ß", "世", "界", "😀"};
    struct tiny_vocab v = {0};
    char text[64];
    tiny_vocab_add(&v, "<unk>", 0, TOKEN_UNKNOWN);
    tiny_vocab_add(&v, "<s>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "</s>", 0, TOKEN_CONTROL);
    for (int byte = 0; byte < 256; byte++) {
        sprintf(text, "<0x%02X>", (unsigned)byte);
        tiny_vocab_add(&v, text, 0, TOKEN_BYTE);
    }
    for (int i = 0; i < MERGE_COUNT; i++) {
        text[0] = 0;
        append(text, merges[i][0], others[0]);
        append(text, merges[i][1], others[0]);
        tiny_vocab_add(&v, text, (float)-i, TOKEN_NORMAL);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        tiny_vocab_add(&v, others[i], (float)-v.count, TOKEN_NORMAL);
    for (char c = '!'; c <= '~'; c++) tiny_vocab_add(&v, (char[]){c, 0}, (float)-v.count, TOKEN_NORMAL);
    gguf_writer_string(w, "tokenizer.ggml.model", "llama");
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", 2);
    return tiny_vocab_write(&v, w, true);
}

// The byte-level alphabet: printable bytes stand for themselves, the others for U+0100 and up in their order.
static void byte_character(int byte, char out[5]) {
    uint32_t code = 0x100;
    for (int b = 0; b <= byte; b++) {
        bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (b == byte && printable) code = (uint32_t)byte;
        else if (b < byte && !printable) code++;
    }
    out[utf8_encode(code, out)] = 0;
}

int tiny_vocab_byte_level(struct gguf_writer *w, const char *pre) {
    static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    struct tiny_vocab v = {0};
    struct bytes list = {0};
    char text[64], space[5];
    for (int byte = 0; byte < 256; byte++) {
        byte_character(byte, text);
        tiny_vocab_add(&v, text, 0, TOKEN_NORMAL);
    }
    byte_character(' ', space);
    for (int i = 0; i < MERGE_COUNT; i++) {
        text[0] = 0;
        append(text, merges[i][0], space);
        size_t left = strlen(text);
        append(text, merges[i][1], space);
        tiny_vocab_add(&v, text, 0, TOKEN_NORMAL);
        memmove(text + left + 1, text + left, strlen(text + left) + 1);
        text[left] = ' ';
        bytes_string(&list, text);
    }
    gguf_writer_array(w, "tokenizer.ggml.merges", GGUF_STRING, MERGE_COUNT, list.data, list.size);
    free(list.data);
    gguf_writer_string(w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(w, "tokenizer.ggml.pre", pre);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)v.count);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)v.count + 2);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
    for (int i = 0; i < 3; i++) tiny_vocab_add(&v, specials[i], 0, TOKEN_CONTROL);
    return tiny_vocab_write(&v, w, false);
}

int tiny_vocab_gemma(struct gguf_writer *w) {
    static const char *const others[] = {"▁", "é", "ü", "ß", "世", "界", "😀", "\n", "\t"};
    static const char *const lines[][2] = {{"\n", "\n"}, {"▁", "▁"}, {"▁▁", "▁▁"}, {"世", "界"}, {"h", "é"}};
    enum { LINES = sizeof lines / sizeof *lines };
    struct tiny_vocab v = {0};
    struct bytes list = {0};
    char text[64];
    tiny_vocab_add(&v, "<pad>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "<eos>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "<bos>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "<unk>", 0, TOKEN_UNKNOWN);
    tiny_vocab_add(&v, "<|turn>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "<turn|>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "<table>", 0, TOKEN_USER_DEFINED);
    for (int byte = 0; byte < 256; byte++) {
        sprintf(text, "<0x%02X>", (unsigned)byte);
        tiny_vocab_add(&v, text, 0, TOKEN_BYTE);
    }
    for (int i = 0; i < LINES + MERGE_COUNT; i++) {
        const char *const *parts = i < LINES ? lines[i] : merges[i - LINES];
        text[0] = 0;
        append(text, parts[0], others[0]);
        size_t left = strlen(text);
        append(text, parts[1], others[0]);
        tiny_vocab_add(&v, text, 0, TOKEN_NORMAL);
        memmove(text + left + 1, text + left, strlen(text + left) + 1);
        text[left] = ' ';
        bytes_string(&list, text);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) tiny_vocab_add(&v, others[i], 0, TOKEN_NORMAL);
    for (char c = '!'; c <= '~'; c++) tiny_vocab_add(&v, (char[]){c, 0}, 0, TOKEN_NORMAL);
    tiny_vocab_add(&v, "\n\n\n\n", 0, TOKEN_NORMAL); // which no merges make
    gguf_writer_array(w, "tokenizer.ggml.merges", GGUF_STRING, LINES + MERGE_COUNT, list.data, list.size);
    free(list.data);
    gguf_writer_string(w, "tokenizer.ggml.model", "gemma4");
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 2);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", 1);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false); // which such files say wrongly
    return tiny_vocab_write(&v, w, true);
}

const struct tiny_vocab_kind tiny_vocab_kinds[TINY_VOCAB_KINDS] = {
    {"sentencepiece", NULL, tiny_vocab_sentencepiece, true},
    {"gpt-2", "gpt-2", NULL, true},
    {"llama-bpe", "llama-bpe", NULL, true},
    {"gpt-4o", "gpt-4o", NULL, true},
    {"deepseek-llm", "deepseek-llm", NULL, true},
    {"gemma4", NULL, tiny_vocab_gemma, true},
    {"unigram", NULL, tiny_vocab_unigram, false},
    {"wordpiece", NULL, tiny_vocab_wordpiece, false},
};

uint8_t *tiny_vocab_file(const struct tiny_vocab_kind *kind, size_t *size) {
    struct gguf_writer w = {0};
    gguf_writer_string(&w, "general.architecture", "llama");
    if (kind->write) kind->write(&w);
    else tiny_vocab_byte_level(&w, kind->pre);
    return gguf_writer_finish(&w, size);
}
