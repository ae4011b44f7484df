#include "engine/base/match.h"

#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"

enum { SCORE_START = 100, SCORE_WORD = 60, SCORE_PIECE = 30 };

static uint32_t fold(uint32_t code) {
    if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

// The letter at `at`, which moves behind it.
static uint32_t letter(const char *text, size_t size, size_t *at) {
    uint32_t code = (unsigned char)text[*at];
    if (code < 0x80) ++*at;
    else *at += utf8_decode(text + *at, size - *at, &code);
    return fold(code);
}

struct match_needle match_needle(const char *text, size_t size) {
    struct match_needle needle = {.count = 0};
    for (size_t at = 0; at < size && needle.count < MATCH_LETTERS;)
        needle.letters[needle.count++] = letter(text, size, &at);
    return needle;
}

bool match_find(const struct match_needle *needle, const char *text, size_t size, size_t from, size_t *start,
                size_t *end) {
    for (size_t at = from; needle->count && at < size;) {
        const size_t here = at;
        if (letter(text, size, &at) != needle->letters[0]) continue;
        size_t next = at;
        int n = 1;
        while (n < needle->count && next < size && letter(text, size, &next) == needle->letters[n]) n++;
        if (n < needle->count) continue;
        *start = here, *end = next;
        return true;
    }
    return false;
}

// The next of the words at *at; size 0: there is none.
static size_t next_word(const char **at) {
    *at += strspn(*at, " \"");
    return strcspn(*at, " \"");
}

size_t match_first(const char *text, size_t size, const char *words) {
    size_t first = size;
    for (size_t length; (length = next_word(&words)); words += length) {
        const struct match_needle needle = match_needle(words, length);
        size_t start, end;
        if (match_find(&needle, text, size, 0, &start, &end) && start < first) first = start;
    }
    return first < size ? first : 0;
}

// Whether its letters come in this order.
static bool has_letters(const struct match_needle *needle, const char *text, size_t size) {
    int n = 0;
    for (size_t at = 0; at < size && n < needle->count;) n += letter(text, size, &at) == needle->letters[n];
    return n == needle->count;
}

static bool is_letter(unsigned char c) {
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static int word_score(const struct match_needle *needle, const char *text, size_t size) {
    int best = has_letters(needle, text, size) ? MATCH_LETTERS_ONLY : -1;
    size_t start, end;
    for (size_t from = 0; match_find(needle, text, size, from, &start, &end); from = end) {
        const int score = !start ? SCORE_START : !is_letter((unsigned char)text[start - 1]) ? SCORE_WORD : SCORE_PIECE;
        if (score > best) best = score;
    }
    return best;
}

int match_score(const char *text, const char *words) {
    const size_t size = strlen(text);
    int sum = 0;
    bool letters_only = false;
    for (size_t length; (length = next_word(&words)); words += length) {
        const struct match_needle needle = match_needle(words, length);
        const int score = word_score(&needle, text, size);
        if (score < 0) return -1;
        letters_only |= score == MATCH_LETTERS_ONLY;
        sum += score;
    }
    return letters_only ? MATCH_LETTERS_ONLY : sum;
}

// From a whole text to the first `size` bytes of another.
static int distance(const char *a, const char *b, size_t size) {
    int row[MATCH_LETTERS + 1];
    for (size_t k = 0; k <= size; k++) row[k] = (int)k;
    for (size_t i = 0; a[i]; i++) {
        int diagonal = row[0]++;
        for (size_t k = 0; k < size; k++) {
            int change = diagonal + !!strncasecmp(a + i, b + k, 1), least = row[k] < row[k + 1] ? row[k] : row[k + 1];
            diagonal = row[k + 1];
            row[k + 1] = change < least + 1 ? change : least + 1;
        }
    }
    return row[size];
}

int match_distance(const char *word, const char *name) {
    const size_t size = strnlen(name, MATCH_LETTERS), length = strnlen(word, size);
    const int whole = distance(word, name, size), part = distance(word, name, length) + 1;
    return part < whole ? part : whole;
}
