#include "engine/serve/draft.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

enum {
    FEWEST_HASHES = 256,
    CANDIDATES = 8, // that are compared for a guess
    MEMORY = 32,    // guesses over which the share of right ones is taken
    SURE = 8        // of a class; where there were fewer it is taken to be as good as the one below
};

struct draft *draft_open(void) {
    // Of the text nothing is expected until it was right; a model is taken at its word at first.
    static const float said[DRAFT_WRITTEN] = {0.2f, 0.4f, 0.6f, 0.8f, 0.9f};
    struct draft *d = xcalloc(1, sizeof *d);
    memcpy(d->right + DRAFT_MATCHES, said, sizeof said);
    return d;
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

// ---- how good they are ----

static int class_of_match(int match) {
    static const int least[DRAFT_MATCHES] = {DRAFT_LEAST, 4, 6, 10};
    int kind = DRAFT_MATCHES - 1;
    while (kind > 0 && match < least[kind]) kind--;
    return kind;
}

static int class_of_written(float probability) {
    static const float least[DRAFT_WRITTEN] = {0, 0.3f, 0.6f, 0.8f, 0.95f};
    int kind = DRAFT_WRITTEN - 1;
    while (kind > 0 && probability < least[kind]) kind--;
    return DRAFT_MATCHES + kind;
}

float draft_chance(const struct draft *d, int i) {
    int kind = d->classes[i];
    const int first = kind < DRAFT_MATCHES ? 0 : DRAFT_MATCHES;
    float chance = d->right[kind];
    for (; kind > first && d->tried[kind] < SURE; kind--)
        if (d->right[kind - 1] > chance) chance = d->right[kind - 1];
    return chance;
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
        d->classes[d->n_guess] = (int8_t)class_of_match(d->match + d->n_guess); // each that is right makes it longer
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

void draft_write(struct draft *d, int32_t token, float probability) {
    d->classes[d->n_guess] = (int8_t)class_of_written(probability);
    d->guess[d->n_guess++] = token;
}

void draft_learn(struct draft *d, int i, bool right) {
    const int kind = d->classes[i];
    if (d->tried[kind] < MEMORY) d->tried[kind]++;
    d->right[kind] += ((float)right - d->right[kind]) / (float)(d->tried[kind] + 1);
}
