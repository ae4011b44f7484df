// Drafts: which guesses become rows of the next step.
//
// Those that decode share a step, and each gets its next tokens when it is over. So a guess is worth a row where it
// brings more tokens than the time that it takes from all, and where nobody waits noticeably longer for it: what steps
// take is measured by their rows, how often guesses are right by each sequence itself. Beside prompt rows there are no
// drafts. A small model writes where lookup finds nothing that is likely, as long as what it wins is worth its time.
#include <math.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/serve/scheduler_state.h"

#define WORTH     1.03  // times as many tokens a second, at least
#define MOST_LOSS 0.985 // of anybody's speed
#define LIKELY    0.7f  // a guess by lookup: nothing need be written
#define MOST_LOST 2     // by one attempt of a small model, in steps without drafts

enum {
    MOST_BRANCHES = 1 << 16, // tokens of other branches
    FIRST_WRITTEN = 2,       // tokens that a small model writes ahead,
    MOST_WRITTEN = 8,        // once that has won time
    FIRST_REST = 16,         // steps
    LONGEST_REST = 1024
};

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
        q->draft->kv.owner = q->kv.owner;
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

#define FORCED 0.95f // a grammar forces the text, which the model may spell with other tokens

// Where a grammar leaves no choice its text is the guess, unless there is one that fits for longer.
static void guess_forced(struct sequence *q) {
    struct draft *d = q->draft;
    int32_t tokens[DRAFT_MOST];
    const int n = constraint_forced(q->constraint, tokens, DRAFT_MOST);
    if (!n || constraint_fits(q->constraint, d->guess, d->n_guess) >= n) return;
    d->n_guess = 0;
    for (int i = 0; i < n; i++) draft_write(d, tokens[i], FORCED);
    d->match = DRAFT_LONGEST; // no model wrote it
}

// ---- a small model that writes ----

static void give_up_drafter(struct scheduler *s, const struct status *why) {
    log_error("engine", "the draft model failed and is not used any more: %s", why->text);
    for (int i = 0; i < s->n_sequences; i++) plan_leave_drafts(s, s->sequences[i], false);
    drafter_close(s->drafter);
    s->drafter = NULL;
}

// For those of whom lookup knows little.
static void write_ahead(struct scheduler *s, int n_decoding) {
    struct scheduler_writing *writing = &s->writing;
    struct drafter_text texts[DRAFTER_TEXTS];
    struct status st;
    int n = 0;
    if (writing->rest > 0) {
        writing->rest--;
        return;
    }
    for (int i = 0; i < s->n_sequences && n < DRAFTER_TEXTS; i++) {
        const struct sequence *q = s->sequences[i];
        if (!decodes(q) || (q->draft->n_guess && draft_chance(q->draft, 0) >= LIKELY)) continue;
        texts[n++] = (struct drafter_text){.draft = q->draft, .tokens = q->tokens, .n = q->n_tokens};
    }
    if (!writing->most) writing->most = FIRST_WRITTEN;
    writing->plain = speed_decode_lately(&s->speed, n_decoding);
    if (!n || writing->plain <= 0) return; // or what a step takes without drafts has to be measured first
    const double start = clock_seconds();
    if (!drafter_write(s->drafter, texts, n, writing->most, &st)) give_up_drafter(s, &st);
    bool wrote = false; // or it has only read so far, which is no reason to give it up
    for (int i = 0; s->drafter && i < n; i++) wrote |= texts[i].draft->n_guess > 0 && !texts[i].draft->match;
    writing->n_decoding = n_decoding;
    writing->seconds = wrote ? clock_seconds() - start : 0;
}

// A token is worth what one takes without drafts; what it took more than that was the price.
void plan_learn_drafts(struct scheduler *s, double seconds) {
    struct scheduler_writing *w = &s->writing;
    if (w->seconds > 0) {
        const double gained = w->n_accepted * w->plain / w->n_decoding - w->seconds - (seconds - w->plain);
        const double won = fmax(gained, -MOST_LOST * w->plain); // more was lost to something else, such as Ctrl+Z
        w->won = 0.9 * w->won + 0.1 * won;
        w->most = w->won <= 0 ? FIRST_WRITTEN : w->most < MOST_WRITTEN ? w->most + 1 : MOST_WRITTEN;
        if (w->won > 0) w->pause = 0;
        else {
            w->pause = w->pause ? 2 * w->pause : FIRST_REST;
            if (w->pause > LONGEST_REST) w->pause = LONGEST_REST;
            w->rest = w->pause;
        }
    }
    w->seconds = w->n_accepted = 0;
}

void plan_leave_drafts(struct scheduler *s, struct sequence *q, bool publish) {
    if (s->drafter && q->draft) drafter_leave(s->drafter, q->draft, q->tokens, q->n_tokens, publish);
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

static void propose(struct scheduler *s, struct sequence *q, int n) {
    if (!n) return;
    sequence_propose(q, q->draft->guess, n);
    if (!admission_reserve_cached(s, q, n)) sequence_withdraw(q);
}

// Of those that decode; returns how many have a guess.
static int make_offers(const struct scheduler *s, struct offer *all) {
    int n = 0;
    for (int i = 0; i < s->n_sequences && n < SPEED_ROWS; i++) {
        struct sequence *q = s->sequences[i];
        if (!decodes(q)) continue;
        const int left = q->request->limit - q->n_tokens - 1, n_guess = q->draft->n_guess;
        int most = n_guess < left ? n_guess : left;
        if (q->constraint && most > 0) most = constraint_fits(q->constraint, q->draft->guess, most);
        if (most > 0) all[n++] = (struct offer){.sequence = q, .most = most, .chance = 1};
    }
    return n;
}

void plan_drafts(struct scheduler *s) {
    struct offer all[SPEED_ROWS];
    int rows[SPEED_ROWS] = {0}, n_decoding = 0, n_rows = 0;
    for (int i = 0; s->drafts && i < s->n_sequences; i++) {
        n_rows += s->sequences[i]->n_rows;
        if (!decodes(s->sequences[i])) continue;
        n_decoding++;
        guess(s, s->sequences[i]);
        if (s->sequences[i]->constraint) guess_forced(s->sequences[i]);
    }
    if (!n_decoding || n_rows > n_decoding) return;
    if (s->drafter) write_ahead(s, n_decoding);
    const int n = make_offers(s, all);
    if (n) choose(s, all, n, n_decoding, rows);
    for (int i = 0; i < n; i++) propose(s, all[i].sequence, rows[i]);
}
