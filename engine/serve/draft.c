#include "engine/serve/draft.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

enum {
    FEWEST_HASHES = 256,
    CANDIDATES = 8, // that are compared for a guess
    MEMORY = 24     // guesses over which the share of right ones is taken
};

struct draft *draft_open(void) {
    return xcalloc(1, sizeof(struct draft));
}

void draft_close(struct draft *d) {
    if (!d) return;
    free(d->text);
    free(d->previous);
    free(d->newest);
    free(d);
}

// ---- text ----

// Of the run that ends before `end`.
static uint32_t hash_before(const int32_t *end, int n_newest) {
    uint64_t hash = 0;
    for (int i = 1; i <= DRAFT_LEAST; i++) hash = (hash + (uint32_t)end[-i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 40) & (uint32_t)(n_newest - 1);
}

// A run is found once a token follows it.
static void index_at(struct draft *d, int at) {
    d->previous[at] = -1;
    if (at < DRAFT_LEAST) return;
    int32_t *newest = &d->newest[hash_before(d->text + at, d->n_newest)];
    d->previous[at] = *newest;
    *newest = at;
}

static void grow(struct draft *d, int n) {
    if (n <= d->capacity) return;
    d->capacity = n > 2 * d->capacity ? n : 2 * d->capacity;
    d->text = xrealloc(d->text, (size_t)d->capacity * sizeof *d->text);
    d->previous = xrealloc(d->previous, (size_t)d->capacity * sizeof *d->previous);
    if (!d->n_newest) d->n_newest = FEWEST_HASHES;
    while (d->n_newest < d->capacity) d->n_newest *= 2;
    free(d->newest);
    d->newest = xmalloc((size_t)d->n_newest * sizeof *d->newest);
    memset(d->newest, -1, (size_t)d->n_newest * sizeof *d->newest);
    for (int i = 0; i < d->n; i++) index_at(d, i);
}

void draft_add(struct draft *d, const int32_t *tokens, int n) {
    grow(d, d->n + n);
    for (int i = 0; i < n; i++) {
        d->text[d->n] = tokens[i];
        index_at(d, d->n++);
    }
}

// ---- guesses ----

// Tokens in common before both ends.
static int match_before(const struct draft *d, int at, const int32_t *end, int n) {
    if (n > at) n = at;
    if (n > DRAFT_LONGEST) n = DRAFT_LONGEST;
    int match = 0;
    while (match < n && d->text[at - 1 - match] == end[-1 - match]) match++;
    return match;
}

// Where in the text the longest match goes on; 0: nowhere.
static int find(const struct draft *d, const int32_t *tokens, int n, int *match) {
    int best = 0;
    if (n < DRAFT_LEAST || !d->n) return 0;
    int at = d->newest[hash_before(tokens + n, d->n_newest)];
    for (int i = 0; i < CANDIDATES && at >= 0 && *match < DRAFT_LONGEST; i++, at = d->previous[at]) {
        const int found = d->text[at] < 0 ? 0 : match_before(d, at, tokens + n, n);
        if (found >= DRAFT_LEAST && found > *match) *match = found, best = at;
    }
    return best;
}

// A text that repeats itself goes on as the guess does: what follows its end is the beginning of the guess.
static void take(struct draft *d, const struct draft *from, int at, bool repeats) {
    d->n_guess = 0;
    for (int i = at; d->n_guess < DRAFT_MOST && (i < from->n || repeats); i++) {
        const int32_t token = i < from->n ? from->text[i] : d->guess[i - from->n];
        if (token < 0) return;
        d->guess[d->n_guess++] = token;
    }
}

void draft_guess(struct draft *d, const int32_t *tokens, int n) {
    d->match = d->n_guess = 0;
    const int at = find(d, tokens, n, &d->match);
    if (at) take(d, d, at, true);
}

void draft_guess_from(struct draft *d, const struct draft *other, const int32_t *tokens, int n) {
    const int at = find(other, tokens, n, &d->match);
    if (at) take(d, other, at, false);
}

// ---- how good they are ----

static int class_of(int match) {
    static const int least[DRAFT_CLASSES] = {DRAFT_LEAST, 4, 6, 10};
    int class = DRAFT_CLASSES - 1;
    while (class > 0 && match < least[class]) class --;
    return class;
}

// Each token that is right makes the match longer.
float draft_chance(const struct draft *d, int i) {
    float chance = 0;
    for (int class = class_of(d->match + i); class >= 0; class --)
        if (d->right[class] > chance) chance = d->right[class];
    return chance;
}

void draft_learn(struct draft *d, int i, bool right) {
    const int class = class_of(d->match + i);
    if (d->tried[class] < MEMORY) d->tried[class]++;
    d->right[class] += ((float)right - d->right[class]) / (float)(d->tried[class] + 1);
}
