// Plan: the rows of the next step.
//
// Every decoding sequence gets a row; where a step draws fewer tokens they take turns, and some are left for prompts.
// Prompt rows are as many as the others can bear. Half of them are for the first in the order of service, so that
// everybody's turn comes; the others for the prompts with the fewest rows left, so that a short one never waits for a
// long one. Where only other programs ask, steps may become the longer the more of them there are: many rows at once
// are computed faster, and so nobody's first token is long in coming. Seven eighths of these rows are in the order of
// service. Where there are no prompt rows guesses may follow those that decode (plan_drafts.c), and what is read ahead
// has the rows that a step is measured to have to spare.
//
// Where persons ask all of that is for their sequences. Those of other programs yield: they have rows beside theirs, as
// many as lengthen these steps by three tenths on average, by what such steps were measured to take. They take turns,
// so that each goes on however long persons write. Rather a row in every step than many in one: only where one alone
// takes more than that do some steps go without. With nothing of a person's to compute nobody yields, and what a person
// has read ahead is the first of the prompts.
#include <assert.h>
#include <math.h>

#include "engine/serve/scheduler_state.h"

#define STEP_SECONDS          2.5  // a prompt alone may hold the engine this long, unless the step is given up
#define STEP_SECONDS_SHARED   0.12 // the pause that prompt rows may put between the tokens of others
#define STEP_SECONDS_PROGRAMS 1.0  // likewise where only other programs ask
#define STEP_SECONDS_AHEAD    0.12 // while a message is still being written: who comes then may wait that long
#define SHARED_STEP           1.6  // times as long as without them: even with what disturbs it seldom twice
#define SPARE_STEP            1.01 // likewise with rows that nobody is to notice
#define BESIDE_SHARE          0.3  // of a person's step, for other programs' rows
enum {
    SMALLEST_CHUNK = 16, // rows; fewer would not use the matrix kernels well
    SMALLEST_SHARE = 2,  // while others decode
    FIRST_CHUNK = 128,   // while the machine's speed is not known
    KEPT_FOR_SHORT = 8,  // one in so many prompt rows of other programs is for the shortest
    MANY_ROWS = 16,      // of persons: others beside them take as long as each of these
    ALONE_STEPS = 16,    // one in so many of a few rows has no others: what it takes without them is measured
};

// ---- who yields ----

static bool is_persons(const struct sequence *q) { return !q->request->background && !q->request->read_ahead; }

// Persons' are the first in the order of service.
static bool any_person(const struct scheduler *s) { return s->n_sequences && is_persons(s->sequences[0]); }

// Those of other programs, unless a person waits for what they compute. Their turns are counted from then on.
static void decide_who_yields(struct scheduler *s, bool persons) {
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        q->yields = persons && q->request->background;
        if (q->yields && !q->last_turn) q->last_turn = s->turn;
    }
    for (int i = 0; i < s->n_sequences; i++)
        if (is_persons(s->sequences[i]) && s->sequences[i]->waits_for) s->sequences[i]->waits_for->yields = false;
}

// ---- how many prompt rows ----

static int rows_in(double seconds, double row, int most) { return seconds / row < most ? (int)(seconds / row) : most; }

// What a step of n_rows that decode may take with prompt rows; 0: not known. A person sees each pause. Of programs each
// adds as much to what prompts may take: who waits for a first token is one of them. What such a step takes without
// prompts may have to be reckoned, as some always wait.
static double shared_seconds(const struct scheduler *s, int n_rows) {
    const double decode = speed_decode(&s->speed, n_rows);
    if (any_person(s)) return decode + fmin((SHARED_STEP - 1) * decode, STEP_SECONDS_SHARED);
    const double alone = fmax(decode, n_rows * s->speed.prompt_row);
    return alone + fmin(s->n_sequences * (SHARED_STEP - 1) * alone, STEP_SECONDS_PROGRAMS);
}

// Half as many rows again take at most half as long again, so that half of what others have are never too many.
static int shared_chunk(const struct scheduler *s, int n_rows) {
    const int least = n_rows / 2 > SMALLEST_SHARE ? n_rows / 2 : SMALLEST_SHARE;
    if (s->speed.shared_row <= 0) return least;
    const double seconds = shared_seconds(s, n_rows);
    const int rows = rows_in(seconds > 0 ? seconds : STEP_SECONDS_SHARED, s->speed.shared_row, s->max_rows) - n_rows;
    return rows > least ? rows : least;
}

static int chunk_alone(const struct scheduler *s) {
    const bool ahead = scheduler_reads_ahead(s);
    if (s->speed.prompt_row <= 0) return ahead ? SMALLEST_CHUNK : FIRST_CHUNK;
    const double seconds = ahead ? STEP_SECONDS_AHEAD : STEP_SECONDS;
    const int rows = rows_in(seconds, s->speed.prompt_row, s->max_rows) / SMALLEST_CHUNK * SMALLEST_CHUNK;
    return rows > SMALLEST_CHUNK ? rows : SMALLEST_CHUNK;
}

// Beside the n_rows that are in the step already.
static int chunk_size(const struct scheduler *s, int n_rows) {
    int rows = s->decode_rows ? shared_chunk(s, n_rows) : chunk_alone(s);
    if (rows > s->prefill_chunk) rows = s->prefill_chunk;
    return rows < s->max_rows - n_rows ? rows : s->max_rows - n_rows;
}

// ---- whose rows ----

// The decoding sequence without a row whose last one is the longest ago; of the conversation in focus, if any.
static struct sequence *next_to_decode(const struct scheduler *s) {
    struct sequence *next = NULL;
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        if (q->state != REQUEST_DECODING || q->n_rows || q->yields) continue;
        if (q->request->conversation == s->focus) return q;
        if (!next || q->last_turn < next->last_turn) next = q;
    }
    return next;
}

// What is read ahead beside persons' sequences is no prompt that a step has a share for.
static bool has_share(const struct scheduler *s, const struct sequence *q) {
    return !q->request->read_ahead || !any_person(s);
}

static bool reads_prompt(const struct scheduler *s, const struct sequence *q) {
    return q->state == REQUEST_PREFILLING && has_share(s, q) && !q->yields;
}

static bool any_prompt(const struct scheduler *s) {
    const bool places = s->n_running < s->max_running;
    for (int i = 0; i < s->n_sequences; i++) {
        const struct sequence *q = s->sequences[i];
        const bool comes = places && q->state == REQUEST_PENDING && has_share(s, q) && !q->yields;
        if (comes || reads_prompt(s, q)) return true;
    }
    return false;
}

static void plan_decode_rows(struct scheduler *s) {
    struct sequence *q;
    int left = any_prompt(s) ? s->max_draws - (s->max_draws + 3) / 4 : s->max_draws;
    for (; left > 0 && (q = next_to_decode(s)); left--)
        if (admission_reserve(s, q, 1)) q->last_turn = s->turn;
}

// The first prompt in the order of service, or the one that it waits for; but before programs' a person's.
static struct sequence *first_prompt(const struct scheduler *s) {
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        if (q->request->read_ahead && reads_prompt(s, q) && sequence_missing(q)) return q;
    }
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        if (reads_prompt(s, q) && sequence_missing(q)) return q;
        if (q->state == REQUEST_PENDING && q->waits_for && !q->yields) return q->waits_for;
    }
    return NULL;
}

struct share {
    int rows, draws; // that are left; draws: rows with logits
};

// Of what q has left to compute, as much as draws are left for.
static int rows_within(const struct sequence *q, const struct share *share) {
    const int silent = sequence_silent(q) - q->kv.n_tokens, missing = sequence_missing(q);
    const int most = (silent > 0 ? silent : 0) + share->draws;
    return missing < most ? missing : most;
}

// The prompt without rows that has the fewest left to compute, and can have one.
static struct sequence *shortest_prompt(const struct scheduler *s, const struct sequence *but,
                                        const struct share *share) {
    struct sequence *shortest = NULL;
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        if (!reads_prompt(s, q) || q->n_rows || q == but) continue;
        if (!rows_within(q, share)) continue;
        if (!shortest || sequence_missing(q) < sequence_missing(shortest)) shortest = q;
    }
    return shortest;
}

// Gives a prompt up to n rows, as far as draws are left: for the last one, and for those that score.
static void give(struct scheduler *s, struct sequence *q, int n, struct share *share) {
    const int most = rows_within(q, share), before = sequence_outputs(q);
    if (n > most) n = most;
    if (n <= 0 || !admission_reserve(s, q, n)) return;
    share->rows -= n;
    share->draws -= sequence_outputs(q) - before;
}

// Rows in the step so far: one each of those that decode or begin to.
static int count_rows(const struct scheduler *s) {
    int n = 0;
    for (int i = 0; i < s->n_sequences; i++) n += s->sequences[i]->n_rows;
    return n;
}

// Prompts of which one row is left begin to decode: that is no more than the next step will bear anyway.
static void plan_last_rows(struct scheduler *s) {
    s->decode_rows = count_rows(s);
    struct share share = {.draws = s->max_draws - s->decode_rows};
    for (int i = 0; i < s->n_sequences && share.draws > 0; i++) {
        struct sequence *q = s->sequences[i];
        if (reads_prompt(s, q) && sequence_missing(q) == 1) give(s, q, 1, &share);
    }
}

// In the order of service, as long as more rows are left than `kept`.
static void plan_in_order(struct scheduler *s, int kept, struct share *share) {
    for (int i = 0; i < s->n_sequences && share->rows > kept; i++) {
        struct sequence *q = s->sequences[i];
        if (reads_prompt(s, q) && !q->n_rows) give(s, q, share->rows - kept, share);
    }
}

static void plan_prompt_rows(struct scheduler *s) {
    const int n_rows = count_rows(s);
    struct share share = {.rows = chunk_size(s, n_rows), .draws = s->max_draws - n_rows};
    struct sequence *first = first_prompt(s), *q;
    if (!first) return;
    const bool alone = !shortest_prompt(s, first, &share), persons = any_person(s);
    const int kept = alone ? 0 : share.rows / (persons ? 2 : KEPT_FOR_SHORT);
    give(s, first, share.rows - kept, &share);
    if (!persons) plan_in_order(s, kept, &share);
    while (share.rows > 0 && (q = shortest_prompt(s, first, &share))) give(s, q, share.rows, &share);
    if (first->state == REQUEST_PREFILLING) give(s, first, share.rows, &share);
}

// ---- rows beside persons' ----

// By how much so many more rows lengthen a step of n_rows.
static double cost_beside(const struct scheduler *s, int n_rows, int more) {
    return speed_beside(&s->speed, n_rows + more) - speed_beside(&s->speed, n_rows);
}

// What a step leaves over is saved for later ones, until it is enough for a row.
static int rows_beside(struct scheduler *s, int n_rows) {
    struct scheduler_beside *b = &s->beside;
    const double allowed = BESIDE_SHARE * speed_beside(&s->speed, n_rows);
    int n = 0;
    if (!(b->few = n_rows < MANY_ROWS)) return s->speed.prompt_row > 0 ? (int)(BESIDE_SHARE * n_rows) : 0;
    if (allowed <= 0 || s->turn % ALONE_STEPS == 0) return 0;
    b->left = fmin(b->left + allowed, fmax(allowed, cost_beside(s, n_rows, 1)));
    while (speed_beside(&s->speed, n_rows + n + 1) > 0 && cost_beside(s, n_rows, n + 1) <= b->left) n++;
    return n;
}

static int count_draws(const struct scheduler *s) {
    int n = 0;
    for (int i = 0; i < s->n_sequences; i++) n += sequence_outputs(s->sequences[i]);
    return n;
}

// The one without rows that had its last one the longest ago; a last row only where a token can be drawn.
static struct sequence *next_beside(const struct scheduler *s, const struct share *share) {
    struct sequence *next = NULL;
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        if (!q->yields || !sequence_runs(q) || q->n_rows || !rows_within(q, share)) continue;
        if (!next || q->last_turn < next->last_turn) next = q;
    }
    return next;
}

// A row for each of those that yield, and the rest for prompts.
static void plan_rows_beside(struct scheduler *s, int n_rows) {
    const int rows = rows_beside(s, n_rows), room = s->max_rows - n_rows;
    struct share share = {.rows = rows < room ? rows : room, .draws = s->max_draws - count_draws(s)};
    struct sequence *q;
    while (share.rows > 0 && (q = next_beside(s, &share))) {
        q->last_turn = s->turn;
        give(s, q, 1, &share);
    }
    for (int i = 0; share.rows > 0 && i < s->n_sequences; i++) {
        q = s->sequences[i];
        if (q->yields && q->state == REQUEST_PREFILLING) give(s, q, share.rows, &share);
    }
    s->beside.rows = count_rows(s) - n_rows;
    if (!s->beside.few || !s->beside.rows) return;
    s->beside.cost = fmax(cost_beside(s, n_rows, s->beside.rows), 0);
    s->beside.left -= s->beside.cost;
}

// ---- rows to spare ----

// The first that reads ahead beside persons', where all only decode; NULL: there is none.
static struct sequence *reads_beside(const struct scheduler *s) {
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        if (q->state == REQUEST_PREFILLING && !has_share(s, q)) return q;
        if (q->n_rows && q->state != REQUEST_DECODING) return NULL;
    }
    return NULL;
}

static void plan_spare_rows(struct scheduler *s) {
    struct sequence *q = reads_beside(s);
    const int n_rows = count_rows(s);
    const double most = SPARE_STEP * speed_decode_lately(&s->speed, n_rows);
    int n = 0;
    s->spare_rows = 0;
    if (!q || !n_rows) return;
    while (n < sequence_missing(q) && n_rows + n < s->max_rows) {
        const double seconds = speed_decode_lately(&s->speed, n_rows + n + 1);
        if (seconds <= 0 || seconds > most) break;
        n++;
    }
    if (n && admission_reserve_cached(s, q, n)) s->spare_rows = n;
}

// ---- the batch ----

static void build_batch(struct scheduler *s) {
    struct batch *b = &s->batch;
    *b = (struct batch){.rows = s->rows, .segments = s->segments};
    s->n_draws = s->decode_rows = s->draft_rows = 0;
    int n_logits = 0;
    bool hurries = false; // a person waits for the next token
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        if (!q->n_rows) continue;
        const int position = sequence_computed(q);
        s->segments[b->n_segments++] = (struct batch_segment){
            .first_row = b->n_rows, .n_rows = q->n_rows, .position = position, .pages = q->kv.pages};
        for (int k = 0; k < q->n_rows; k++) s->rows[b->n_rows++] = (struct batch_row){.token = q->tokens[position + k]};
        s->decode_rows += q->state == REQUEST_DECODING;
        hurries |= q->state == REQUEST_DECODING && !q->request->background;
        const int outputs = q->request->read_ahead ? 0 : sequence_outputs(q);
        if (!outputs) continue;
        const int scores = sequence_scores(q) ? outputs - !sequence_missing(q) : 0;
        s->draws[s->n_draws++] = (struct scheduler_draw){.sequence = q, .first = n_logits + scores, .n_scores = scores};
        n_logits += outputs;
        s->draft_rows += q->n_proposed;
        for (int k = 0; k < outputs; k++) s->rows[b->n_rows - 1 - k].output = ROW_LOGITS;
        for (int k = 0; k < q->n_proposed; k++)
            s->cache.pages[q->kv.pages[(q->kv.n_tokens - 1 - k) / KV_PAGE_TOKENS]].drafted = (uint32_t)s->turn;
    }
    assert(b->n_rows <= s->max_rows && n_logits <= s->max_draws);
    if (hurries) return; // a short step
    b->stop = s->events.stop;
    b->stop_context = s->events.context;
}

void plan_step(struct scheduler *s) {
    bool persons = any_person(s);
    s->turn++;
    s->beside.rows = 0, s->beside.cost = 0, s->beside.few = false;
    decide_who_yields(s, persons);
    plan_decode_rows(s);
    admission_run(s);
    decide_who_yields(s, persons);
    plan_last_rows(s);
    plan_prompt_rows(s);
    if (persons && !count_rows(s)) { // they wait for the disk
        decide_who_yields(s, persons = false);
        plan_decode_rows(s);
        plan_last_rows(s);
        plan_prompt_rows(s);
    }
    plan_drafts(s);
    if (persons) plan_rows_beside(s, count_rows(s));
    plan_spare_rows(s);
    build_batch(s);
}

// What a prompt's rows take beside others is not known from steps of both persons and programs.
void plan_learn(struct scheduler *s, int prompt_rows, double seconds) {
    if (!prompt_rows || !s->beside.rows) speed_learn(&s->speed, s->batch.n_rows, prompt_rows - s->spare_rows, seconds);
    if (s->beside.few) speed_learn_beside(&s->speed, s->batch.n_rows, seconds);
    plan_learn_drafts(s, seconds - s->beside.cost);
}
