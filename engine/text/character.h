// Character classes: finer than any tokenizer pattern needs, so that every set of characters in a pattern is a union of
// classes. They are Unicode's general categories, with ASCII split off.
#ifndef CONFAB_TEXT_CHARACTER_H
#define CONFAB_TEXT_CHARACTER_H

#include <stddef.h>
#include <stdint.h>

// One bit per class; 0 at the end of the text.
enum character_class {
    CLASS_ASCII_UPPER = 1 << 0,
    CLASS_ASCII_LOWER = 1 << 1,
    CLASS_WIDE_UPPER = 1 << 2, // Lu and Lt past ASCII
    CLASS_WIDE_LOWER = 1 << 3, // Ll past ASCII
    CLASS_UNCASED = 1 << 4,    // Lm and Lo
    CLASS_MARK = 1 << 5,       // M
    CLASS_DIGIT = 1 << 6,      // 0 to 9
    CLASS_WIDE_DIGIT = 1 << 7, // Nd past ASCII
    CLASS_NUMERAL = 1 << 8,    // Nl and No
    CLASS_BLANK = 1 << 9,      // the space
    CLASS_LINE_FEED = 1 << 10,
    CLASS_CARRIAGE_RETURN = 1 << 11,
    CLASS_OTHER_SPACE = 1 << 12,       // other white space
    CLASS_ASCII_PUNCTUATION = 1 << 13, // P
    CLASS_ASCII_SYMBOL = 1 << 14,      // S: $+<=>^`|~
    CLASS_WIDE_PUNCTUATION = 1 << 15,
    CLASS_WIDE_SYMBOL = 1 << 16, // and invalid bytes
    CLASS_CONTROL = 1 << 17,     // Cc, Cf, Cs, Co
    CLASS_UNASSIGNED = 1 << 18,  // Cn
};
enum {
    CLASSES_ASCII_LETTER = CLASS_ASCII_UPPER | CLASS_ASCII_LOWER,
    CLASSES_LETTER = CLASSES_ASCII_LETTER | CLASS_WIDE_UPPER | CLASS_WIDE_LOWER | CLASS_UNCASED,
    CLASSES_NUMBER = CLASS_DIGIT | CLASS_WIDE_DIGIT | CLASS_NUMERAL,
    CLASSES_LINE_END = CLASS_LINE_FEED | CLASS_CARRIAGE_RETURN,
    CLASSES_SPACE = CLASS_BLANK | CLASSES_LINE_END | CLASS_OTHER_SPACE,
    CLASSES_PUNCTUATION = CLASS_ASCII_PUNCTUATION | CLASS_WIDE_PUNCTUATION,
    CLASSES_SYMBOL = CLASS_ASCII_SYMBOL | CLASS_WIDE_SYMBOL,
    CLASSES_ALL = (1 << 19) - 1,
};

struct character {
    uint32_t code;
    uint32_t class; // enum character_class; 0 at the end
    size_t size;    // bytes; 0 at the end
};

uint32_t character_class(uint32_t code);
extern const uint32_t character_ascii_classes[128];
struct character character_at_wide(const char *text, size_t size, size_t at); // past ASCII

// The character at text[at].
static inline struct character character_at(const char *text, size_t size, size_t at) {
    if (at >= size) return (struct character){0};
    uint8_t byte = (uint8_t)text[at];
    return byte < 0x80 ? (struct character){byte, character_ascii_classes[byte], 1} : character_at_wide(text, size, at);
}

// Disjoint, ascending ranges of code points, both ends included.
struct character_ranges {
    size_t count;
    const uint32_t (*ranges)[2];
};
int character_in_ranges(const struct character_ranges *r, uint32_t code);

#endif
