// Small tokenizer.json texts, one of each kind, written with ` for "; and tokenizer.model files.
#ifndef CONFAB_TESTS_HUGGINGFACE_SEEDS_H
#define CONFAB_TESTS_HUGGINGFACE_SEEDS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/format/huggingface_tokenizer.h"
#include "engine/text/tokenizer.h"

#define HUGGINGFACE_GPT2 "{`type`: `ByteLevel`, `add_prefix_space`: false, `trim_offsets`: true, `use_regex`: true}"

// Ids 0 to 10, a hole, 12 special, 13 not.
#define HUGGINGFACE_BYTE_LEVEL                                                                                         \
    "{`version`: `1.0`, `added_tokens`: [{`id`: 12, `content`: `<end>`, `special`: true, `normalized`: false}, "       \
    "{`id`: 13, "                                                                                                      \
    "`content`: `{`, `special`: false}], `normalizer`: {`type`: `NFC`}, `pre_tokenizer`: " HUGGINGFACE_GPT2            \
    ", `post_processor`: {`type`: `ByteLevel`}, `model`: {`type`: `BPE`, `dropout`: null, `unk_token`: null, "         \
    "`end_of_word_suffix`: ``, `vocab`: {`a`: 0, `b`: 1, `c`: 2, `ab`: 3, `abc`: 4, `Ġ`: 5, `Ġa`: 6, `1`: 7, `9`: 8, " \
    "`Ã`: 9, `©`: 10}, `merges`: [`Ġ a`, `a b`, [`ab`, `c`]]}}"

// Ids 0 to 2 special, 3 to 258 bytes, then characters and what they merge to.
#define HUGGINGFACE_BYTE_FALLBACK huggingface_byte_fallback()
const char *huggingface_byte_fallback(void);

#define HUGGINGFACE_UNIGRAM                                                                                            \
    "{`added_tokens`: [{`id`: 1, `content`: `</s>`, `special`: true}], `normalizer`: {`type`: `Replace`, `pattern`: "  \
    "{`Regex`: ` {2,}`}, `content`: ` `}, `pre_tokenizer`: {`type`: `Metaspace`, `replacement`: `▁`, "                 \
    "`prepend_scheme`: "                                                                                               \
    "`always`}, `post_processor`: {`type`: `TemplateProcessing`, `single`: [{`Sequence`: {`id`: `A`}}, "               \
    "{`SpecialToken`: "                                                                                                \
    "{`id`: `</s>`}}], `special_tokens`: {`</s>`: {`id`: `</s>`, `ids`: [1], `tokens`: [`</s>`]}}}, `model`: "         \
    "{`type`: "                                                                                                        \
    "`Unigram`, `unk_id`: 2, `vocab`: [[`<pad>`, 0], [`</s>`, 0.0], [`<unk>`, 0], [`▁`, -2.0], [`b`, -3.5], [`▁a`, " \
    "-2.5], "                                                                                                          \
    "[`▁b`, -4], [`a`, -3]]}}"

#define HUGGINGFACE_WORD_PIECE                                                                                         \
    "{`added_tokens`: [{`id`: 1, `content`: `[CLS]`, `special`: true}, {`id`: 2, `content`: `[SEP]`, `special`: "      \
    "true}], "                                                                                                         \
    "`normalizer`: {`type`: `BertNormalizer`, `clean_text`: true, `handle_chinese_chars`: true, `strip_accents`: "     \
    "null, "                                                                                                           \
    "`lowercase`: true}, `pre_tokenizer`: {`type`: `BertPreTokenizer`}, `post_processor`: {`type`: `BertProcessing`, " \
    "`sep`: [`[SEP]`, 2], `cls`: [`[CLS]`, 1]}, `model`: {`type`: `WordPiece`, `unk_token`: `[UNK]`, "                 \
    "`continuing_subword_prefix`: `##`, `vocab`: {`[PAD]`: 0, `[CLS]`: 1, `[SEP]`: 2, `[UNK]`: 3, `hello`: 4, `##o`: " \
    "5, "                                                                                                              \
    "`hell`: 6, `,`: 7}}}"

enum { HUGGINGFACE_SEEDS = 4 };
const char *huggingface_seed(size_t k);     // k < HUGGINGFACE_SEEDS
char *huggingface_quoted(const char *text); // with " for ` and ` for \x01; the caller frees

enum { SENTENCEPIECE_SEEDS = 2 };
uint8_t *sentencepiece_seed(size_t k, size_t *size); // BPE, unigram; the caller frees

// A folder imported, and its tokenizer; t is NULL where status says why.
struct huggingface_opened {
    struct gguf file;
    struct tokenizer *t;
    struct status status;
};
struct huggingface_opened huggingface_open_texts(const struct huggingface_texts *texts);
void huggingface_opened_close(struct huggingface_opened *o);
// Asserts of a folder with this one file that the tokenizer works, or that a message says why there is none.
void huggingface_try(enum huggingface_file file, const void *bytes, size_t size);

#endif
