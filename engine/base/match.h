// Match: where words stand in a text, letter case aside.
#ifndef CONFAB_BASE_MATCH_H
#define CONFAB_BASE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MATCH_LETTERS 200

// What is looked for; zeroed, or of an empty text, it is found nowhere.
struct match_needle {
    uint32_t letters[MATCH_LETTERS]; // lower case
    int count;
};

struct match_needle match_needle(const char *text, size_t size); // of a long text the beginning
// The first place at or behind `from` in a text of UTF-8; *end is where it ends. False: there is none.
bool match_find(const struct match_needle *needle, const char *text, size_t size, size_t from, size_t *start,
                size_t *end);
// The first place of any of these words, which spaces and quotes separate; 0: there is none.
size_t match_first(const char *text, size_t size, const char *words);
enum { MATCH_LETTERS_ONLY = 1 };
// How well a short text fits words that were typed: −1: not at all; MATCH_LETTERS_ONLY: of some word it has but the
// letters in their order; otherwise more, the most where it begins with them. 0 where no words were typed.
int match_score(const char *text, const char *words);
// How many letters of ASCII to change, add or drop to make a name of a word that may be misspelt, or the beginning of a
// longer name, which counts one more. Letter case aside; of a long name its first MATCH_LETTERS bytes.
int match_distance(const char *word, const char *name);

#endif
