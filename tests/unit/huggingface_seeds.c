#include "tests/unit/huggingface_seeds.h"

#include <stdio.h>

#include "engine/base/panic.h"

const char *huggingface_byte_fallback(void) {
    static char text[8192];
    size_t n = 0;
    if (*text) return text;
    n += (size_t)snprintf(text + n, sizeof text - n,
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
             ", `▁`: 261, `a`: 262, `b`: 263, `▁a`: 264, `ab`: 265, `▁ab`: 266}, `merges`: [`▁ a`, `a b`, `▁ ab`, `▁a b`]}}");
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
