// Parts of published pre-tokenizers, as tokenizer.json has them, with ` for ".
#ifndef CONFAB_TESTS_HUGGINGFACE_SPLITS_H
#define CONFAB_TESTS_HUGGINGFACE_SPLITS_H

#define ENDINGS      "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPLIT(regex) "{`type`: `Split`, `pattern`: {`Regex`: `" regex "`}, `behavior`: `Isolated`, `invert`: false}, "
#define CASED(endings)                                                                                                 \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{"  \
    "M}]+" endings "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}" \
    "\\\\p{Lo}\\\\p{M}]*" endings
#define WORDS(digits)                                                                                                  \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}" digits                                                          \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define PATHS  "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define DIGITS "{`type`: `Digits`, `individual_digits`: true}, "
#define BYTES  "{`type`: `ByteLevel`, `use_regex`: false}"

#endif
