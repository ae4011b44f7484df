// Drafts: which guesses become rows of the next step.
//
// Those that decode share a step, and each gets its next tokens when it is over. So a guess is worth a row where it
// brings more tokens than the time that it takes from all, and where nobody waits noticeably longer for it: what steps
// take is measured by their rows, how often guesses are right by each sequence itself. Beside prompt rows there are no
// drafts.
#include <stdlib.h>

#include "engine/base/panic.h"
#include "engine/serve/scheduler_state.h"

#define WORTH     1.03  // times as many tokens a second, at least
#define MOST_LOSS 0.985 // of anybody's speed

enum { MOST_BRANCHES = 1 << 16 }; // tokens of other branches

static bool decodes(const struct sequence *q) { return q->state == REQUEST_DECODING && q->n_rows; }

// ---- guesses ----

static void add_branches(const struct scheduler *s, struct sequence *q) {
    int32_t *tokens = xmalloc(MOST_BRANCHES * sizeof *tokens);
    const int n = prefix_branches(&s->prefixes, q->kv.owner, q->tokens, q->n_tokens, tokens, MOST_BRANCHES);
    draft_add(q->draft, tokens, n);
    free(tokens);
}

static void guess(const struct scheduler *s, struct sequence *q) {
    if (!q->draft) {
        q->draft = draft_open();
        add_branches(s, q);
    }
    struct draft *d = q->draft;
    draft_add(d, q->tokens + d->n_own, q->n_tokens - d->n_own);
    d->n_own = q->n_tokens;
    draft_guess(d, q->tokens, q->n_tokens);
    for (int i = 0; i < s->n_sequences; i++) {
        const struct sequence *other = s->sequences[i];
        if (other != q && other->draft && other->request->conversation == q->request->conversation)
            draft_guess_from(d, other->draft, q->tokens, q->n_tokens);
    }
}

// ---- rows ----

// A sequence that guesses, and how many of its guesses would be rows.
struct offer {
    struct sequence *sequence;
    int n, most;
    double chance; // that the last of them is right
    double tokens; // that they bring
};

static double next_chance(const struct offer *a) {
    return a->n < a->most ? a->chance * (double)draft_chance(a->sequence->draft, a->n) : 0;
}

static struct offer *likeliest(struct offer *all, int n) {
    struct offer *best = NULL;
    for (int i = 0; i < n; i++)
        if (next_chance(&all[i]) > (best ? next_chance(best) : 0)) best = &all[i];
    return best;
}

// Of those that decode; at least one has no guess where there are fewer offers.
static double fewest_tokens(const struct offer *all, int n, int n_decoding) {
    if (n < n_decoding) return 0;
    double fewest = all[0].tokens;
    for (int i = 1; i < n; i++)
        if (all[i].tokens < fewest) fewest = all[i].tokens;
    return fewest;
}

// Adds guesses one by one, the likeliest first, and leaves `rows` where tokens come fastest.
static void choose(const struct scheduler *s, struct offer *all, int n, int n_decoding, int *rows) {
    const double alone = speed_decode_lately(&s->speed, n_decoding);
    double best = WORTH, brought = 0;
    struct offer *next;
    for (int k = 1; n_decoding + k <= s->max_draws && alone > 0 && (next = likeliest(all, n)); k++) {
        next->chance = next_chance(next);
        next->tokens += next->chance;
        next->n++;
        brought += next->chance;
        const double seconds = speed_decode_lately(&s->speed, n_decoding + k);
        if (seconds <= 0) return;
        const double faster = (1 + brought / n_decoding) * alone / seconds;
        if ((1 + fewest_tokens(all, n, n_decoding)) * alone < MOST_LOSS * seconds || faster < best) continue;
        best = faster;
        for (int i = 0; i < n; i++) rows[i] = all[i].n;
    }
}

void plan_drafts(struct scheduler *s) {
    struct offer all[SPEED_ROWS];
    int rows[SPEED_ROWS] = {0}, n = 0, n_decoding = 0, n_rows = 0;
    for (int i = 0; s->drafts && i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        n_rows += q->n_rows;
        if (!decodes(q)) continue;
        n_decoding++;
        guess(s, q);
        const int left = q->request->limit - q->n_tokens - 1, n_guess = q->draft->n_guess;
        const int most = n_guess < left ? n_guess : left;
        if (most > 0 && n < SPEED_ROWS) all[n++] = (struct offer){.sequence = q, .most = most, .chance = 1};
    }
    if (!n || n_rows > n_decoding) return;
    choose(s, all, n, n_decoding, rows);
    for (int i = 0; i < n; i++) {
        struct sequence *q = all[i].sequence;
        if (!rows[i]) continue;
        sequence_propose(q, q->draft->guess, rows[i]);
        if (!admission_reserve_cached(s, q, rows[i])) sequence_withdraw(q);
    }
}
