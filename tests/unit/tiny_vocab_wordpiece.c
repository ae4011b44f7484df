#include <string.h>

#include "tests/unit/tiny_vocab.h"
#include "tests/unit/tiny_vocab_parts.h"

int tiny_vocab_wordpiece(struct gguf_writer *w) {
    static const char *const words[] = {"▁the", "▁hello", "▁world",   "▁un",  "aff", "able",   "ing",  "▁play",
                                        "ed",   "▁uber",  "▁strasse", "▁世",  "▁界", "▁é",     "é",    "▁2024",
                                        "19",   "▁ελλ",   "αδα",      "▁при", "вет", "▁Hello", "orld", "▁한",
                                        "▁😀",   "😀",      "▁こ",      "ん",   "▁नम", "ß",      "▁→"};
    struct tiny_vocab v = {0};
    tiny_vocab_add(&v, "[PAD]", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "[UNK]", 0, TOKEN_UNKNOWN);
    tiny_vocab_add(&v, "[CLS]", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "[SEP]", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "[MASK]", 0, TOKEN_CONTROL);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) tiny_vocab_add(&v, words[i], 0, TOKEN_NORMAL);
    for (char c = '!'; c <= '~'; c++) {
        char text[8] = "▁";
        tiny_vocab_add(&v, strncat(text, &c, 1), 0, TOKEN_NORMAL);
        tiny_vocab_add(&v, (char[]){c, 0}, 0, TOKEN_NORMAL);
    }
    gguf_writer_string(w, "tokenizer.ggml.model", "bert");
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 1);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 2);
    gguf_writer_u32(w, "tokenizer.ggml.seperator_token_id", 3);
    return tiny_vocab_write(&v, w, false);
}
