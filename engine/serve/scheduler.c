#include "engine/serve/scheduler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/serve/scheduler_state.h"

enum {
    PARALLEL_LOGITS = 32 * 1024, // so many are sampled by all workers
    LOGITS_BYTES = 32 << 20,     // that the logits of a step may take
    MOST_DRAWS = 64,
    FEWEST_DRAWS = 16,
    SMALL_ROWS = 16, // beside the prompt rows of a full chunk; where more decode a chunk is smaller
};

static int at_least(int n, int least) { return n > least ? n : least; }

static int prefill_chunk(const struct scheduler_params *p) {
    return p->prefill_chunk > 0 ? p->prefill_chunk : SCHEDULER_PREFILL_CHUNK;
}

static int max_draws(int n_vocab) {
    const int n = LOGITS_BYTES / (int)sizeof(float) / n_vocab;
    return n < MOST_DRAWS ? at_least(n, FEWEST_DRAWS) : MOST_DRAWS;
}

struct backend_params scheduler_backend_params(const struct scheduler_params *p) {
    const int draws = max_draws(p->model->spec.n_vocab);
    return (struct backend_params){.model = p->model,
                                   .n_threads = p->n_threads,
                                   .n_pages = p->n_pages,
                                   .context = p->context,
                                   .asked_context = p->asked_context,
                                   .max_rows = at_least(prefill_chunk(p), draws) + SMALL_ROWS,
                                   .max_logits = draws,
                                   .options = p->options};
}

static void open_scratch(struct scheduler *s) {
    s->n_scratch = scheduler_backend(s)->n_workers;
    s->scratch = xcalloc((size_t)s->n_scratch, sizeof *s->scratch);
    for (int i = 0; i < s->n_scratch; i++) s->scratch[i] = sampler_scratch_open(s->n_vocab);
}

static void close_scratch(struct scheduler *s) {
    for (int i = 0; i < s->n_scratch; i++) sampler_scratch_close(s->scratch[i]);
    free(s->scratch);
}

struct scheduler *scheduler_open(const struct scheduler_params *p, struct status *st) {
    const struct backend_params backend = scheduler_backend_params(p);
    const size_t rows = (size_t)backend.max_rows;
    struct scheduler *s = xcalloc(1, sizeof *s);
    *s = (struct scheduler){.events = p->events,
                            .fallback = p->fallback,
                            .backend = backend,
                            .metrics = p->metrics,
                            .context = p->context,
                            .n_vocab = p->model->spec.n_vocab,
                            .prefill_chunk = prefill_chunk(p),
                            .max_rows = backend.max_rows,
                            .max_draws = backend.max_logits,
                            .drafts = p->drafts,
                            .max_running = p->max_running ? p->max_running : at_least(2 * backend.max_logits, 64)};
    if (!(s->placement = placement_open(&p->placement, &backend, st))) {
        free(s);
        return NULL;
    }
    kv_cache_open(&s->cache, p->n_pages);
    prefix_open(&s->prefixes, &s->cache);
    s->rows = xmalloc(rows * sizeof *s->rows);
    s->segments = xmalloc(rows * sizeof *s->segments);
    s->draws = xmalloc((size_t)s->max_draws * sizeof *s->draws);
    s->samples = xmalloc((size_t)s->max_draws * sizeof *s->samples);
    open_scratch(s);
    hibernation_open(s, &p->hibernation);
    return s;
}

static void sequence_free(struct sequence *q) {
    if (!--q->request->n_open) free(q->request);
    draft_close(q->draft);
    constraint_close(q->constraint);
    free(q->tokens);
    free(q);
}

void scheduler_close(struct scheduler *s) {
    for (int i = 0; i < s->n_sequences; i++) {
        kv_cache_release(&s->cache, &s->sequences[i]->kv);
        plan_leave_drafts(s, s->sequences[i], false);
        sequence_free(s->sequences[i]);
    }
    hibernation_close(s);
    prefix_close(&s->prefixes);
    kv_cache_close(&s->cache);
    close_scratch(s);
    placement_close(s->placement);
    drafter_close(s->drafter);
    free(s->sequences);
    free(s->rows);
    free(s->segments);
    free(s->draws);
    free(s->samples);
    free(s->copies);
    free(s);
}

void scheduler_set_drafter(struct scheduler *s, struct drafter *drafter) { s->drafter = drafter; }

// ---- the life of a request ----

void scheduler_enter(struct scheduler *s, struct sequence *q, enum request_state state, const char *message) {
    q->state = state;
    s->events.state(s->events.context, q, message);
}

bool scheduler_before(const struct scheduler *s, const struct sequence *a, const struct sequence *b) {
    const struct request *x = a->request, *y = b->request;
    if (x->read_ahead != y->read_ahead) return y->read_ahead;
    if (x->background != y->background) return y->background;
    const bool x_first = x->conversation == s->focus, y_first = y->conversation == s->focus;
    if (x_first != y_first) return x_first;
    return x->id != y->id ? x->id < y->id : a->answer < b->answer;
}

// Puts q where it belongs among sequences[0 .. n), which are in order; sequences[n] is free.
static void insert(struct scheduler *s, int n, struct sequence *q) {
    for (; n > 0 && scheduler_before(s, q, s->sequences[n - 1]); n--) s->sequences[n] = s->sequences[n - 1];
    s->sequences[n] = q;
}

static void drop(struct scheduler *s, struct sequence *q) {
    int at = 0;
    while (s->sequences[at] != q) at++;
    s->n_sequences--;
    memmove(s->sequences + at, s->sequences + at + 1, (size_t)(s->n_sequences - at) * sizeof *s->sequences);
}

// Ends q. What it computed is cached unless it is not sound; then what was computed after the same pages goes, too.
static void end_as(struct scheduler *s, struct sequence *q, enum request_state state, enum finish_reason reason,
                   bool sound, const char *message) {
    const bool publish = sound && !q->request->forgotten;
    if (!sound) prefix_drop(&s->prefixes, &q->kv);
    else if (!q->request->forgotten && !q->request->read_ahead) hibernation_rest(s, q);
    admission_leave(s, q, publish);
    plan_leave_drafts(s, q, publish);
    drop(s, q);
    q->reason = reason;
    scheduler_enter(s, q, state, message);
    sequence_free(q);
}

static void end(struct scheduler *s, struct sequence *q, enum finish_reason reason, const char *message) {
    static const enum request_state states[] = {
        [FINISH_NONE] = REQUEST_FINISHED,    [FINISH_END] = REQUEST_FINISHED,  [FINISH_LENGTH] = REQUEST_FINISHED,
        [FINISH_CONTEXT] = REQUEST_FINISHED, [FINISH_TIME] = REQUEST_FINISHED, [FINISH_CANCELLED] = REQUEST_CANCELLED,
        [FINISH_ERROR] = REQUEST_FAILED};
    end_as(s, q, states[reason], reason, true, message);
}

static void end_unsound(struct scheduler *s, struct sequence *q, const char *message) {
    end_as(s, q, REQUEST_FAILED, FINISH_ERROR, false, message);
}

// What makes a prompt impossible, as a message; true when there is nothing.
static bool check_prompt(const struct scheduler *s, const struct scheduler_request *q, struct status *st) {
    const int n_prompt = q->n_ids - q->n_begun;
    if (n_prompt < 1) return status_fail(st, STATUS_USAGE, "the prompt is empty");
    if (n_prompt >= s->context)
        return status_fail(
            st, STATUS_LIMIT,
            "the prompt has %d tokens, a conversation may have %d (the KV cache holds %d pages of %d tokens)", n_prompt,
            s->context, s->cache.n_pages, KV_PAGE_TOKENS);
    if (q->room > 0 && q->room > s->context - q->n_ids)
        return status_fail(st, STATUS_LIMIT, "the prompt has %d tokens, which leaves %d of %d for the answer", q->n_ids,
                           s->context - q->n_ids, s->context);
    for (int i = 0; i < q->n_ids; i++)
        if (q->ids[i] < 0 || q->ids[i] >= s->n_vocab)
            return status_fail(st, STATUS_USAGE, "token %d of the prompt is %d, the vocabulary has %d", i, q->ids[i],
                               s->n_vocab);
    return true;
}

static struct request *request_new(const struct scheduler *s, const struct scheduler_request *q) {
    const int n_prompt = q->n_ids - q->n_begun;
    struct request *r = xcalloc(1, sizeof *r);
    *r = (struct request){.id = q->id,
                          .conversation = q->conversation,
                          .disk_owner = q->disk_owner,
                          .read_ahead = q->read_ahead,
                          .background = q->background,
                          .score_prompt = q->score_prompt,
                          .n_prompt = n_prompt,
                          .n_begun = q->n_begun,
                          .n_open = q->n_answers > 1 ? q->n_answers : 1,
                          .limit = s->context,
                          .submitted = q->submitted > 0 ? q->submitted : clock_seconds()};
    if (q->max_tokens > 0 && q->max_tokens <= s->context - n_prompt) {
        r->limit = n_prompt + q->max_tokens;
        r->limited_by_user = true;
    }
    if (q->read_ahead) r->limit = q->n_ids;
    if (q->time_limit > 0) r->deadline = r->submitted + q->time_limit;
    return r;
}

static struct sequence *sequence_new(struct request *r, const struct scheduler_request *q, int answer) {
    const struct sampling sampling = q->samplings ? q->samplings[answer] : sampler_for_answer(&q->sampling, answer);
    struct sequence *sequence = xcalloc(1, sizeof *sequence);
    *sequence = (struct sequence){.request = r,
                                  .answer = answer,
                                  .n_tokens = r->n_prompt,
                                  .sampler = sampler_start(&sampling),
                                  .constraint = q->constraints ? q->constraints[answer] : NULL,
                                  .kv = {.owner = q->conversation},
                                  .owner = q->owners ? q->owners[answer] : NULL};
    return sequence;
}

static void add(struct scheduler *s, struct sequence *q) {
    if (!s->n_sequences) s->last_step = 0;
    if (s->n_sequences == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        s->sequences = xrealloc(s->sequences, (size_t)s->capacity * sizeof(struct sequence *));
    }
    insert(s, s->n_sequences++, q);
    scheduler_enter(s, q, REQUEST_PENDING, "");
}

static void end_full(struct scheduler *s, struct sequence *q) {
    end(s, q, q->request->limited_by_user ? FINISH_LENGTH : FINISH_CONTEXT, "");
}

// Whether a sequence that is at rest has come to its end.
static bool end_complete(struct scheduler *s, struct sequence *q) {
    const char *problem = q->constraint ? constraint_problem(q->constraint) : NULL;
    if (problem) end(s, q, FINISH_ERROR, problem);
    else if (q->constraint && constraint_is_over(q->constraint)) end(s, q, FINISH_END, "");
    else if (q->n_tokens == q->request->limit) end_full(s, q);
    else return false;
    return true;
}

// A token that was given, not drawn.
static struct sample given_token(int32_t token) {
    return (struct sample){.ok = true, .token = token, .probability = NAN, .entropy = NAN};
}

// What is given may end the answer as what is drawn may; the last token that has room ends it too.
static void begin(struct scheduler *s, struct sequence *q, const int32_t *begun, int n) {
    const int room = q->request->limit - q->request->n_prompt;
    sampler_skip(&q->sampler, n);
    for (int i = 0; i < n && i < room; i++) {
        const struct sample given = given_token(begun[i]);
        if (q->constraint) constraint_take(q->constraint, begun[i]);
        if (s->events.token(s->events.context, q, &given)) {
            end(s, q, FINISH_END, "");
            return;
        }
        sequence_propose(q, &begun[i], 1);
        sequence_accept(q, &s->cache, 1);
    }
    end_complete(s, q);
}

// Where all of it is cached nothing is left to do, nor where that is all there was to find out.
static void look_up(struct scheduler *s, struct sequence *q, enum read_ahead how) {
    q->n_reused = prefix_find(&s->prefixes, q->tokens, q->n_tokens).n_tokens;
    if (how == READ_AHEAD_FIND || q->n_reused == q->n_tokens) end(s, q, FINISH_END, "");
}

void scheduler_submit(struct scheduler *s, const struct scheduler_request *q) {
    if (!q->read_ahead) admission_yield(s);
    struct request *r = request_new(s, q);
    struct status st;
    const bool possible = check_prompt(s, q, &st);
    for (int i = 0, n = r->n_open; i < n; i++) {
        struct sequence *sequence = sequence_new(r, q, i);
        add(s, sequence);
        if (!possible) {
            const enum finish_reason reason = st.code == STATUS_LIMIT ? FINISH_CONTEXT : FINISH_ERROR;
            end_as(s, sequence, REQUEST_FAILED, reason, true, st.text);
            continue;
        }
        sequence->tokens = xmalloc((size_t)r->limit * sizeof *sequence->tokens);
        memcpy(sequence->tokens, q->ids, (size_t)r->n_prompt * sizeof *q->ids);
        if (!q->read_ahead) begin(s, sequence, q->ids + r->n_prompt, r->n_begun);
        else look_up(s, sequence, q->read_ahead);
    }
    free(q->ids);
}

// NULL: it has ended.
static struct sequence *find(const struct scheduler *s, uint64_t id, int answer) {
    for (int i = 0; i < s->n_sequences; i++)
        if (s->sequences[i]->request->id == id && s->sequences[i]->answer == answer) return s->sequences[i];
    return NULL;
}

void scheduler_cancel(struct scheduler *s, uint64_t id) {
    for (int i = s->n_sequences - 1; i >= 0; i--)
        if (s->sequences[i]->request->id == id) end(s, s->sequences[i], FINISH_CANCELLED, "");
}

void scheduler_cancel_answer(struct scheduler *s, uint64_t id, int answer) {
    struct sequence *q = find(s, id, answer);
    if (q) end(s, q, FINISH_CANCELLED, "");
}

void scheduler_cancel_all(struct scheduler *s) {
    while (s->n_sequences) end(s, s->sequences[s->n_sequences - 1], FINISH_CANCELLED, "");
}

void scheduler_set_sampling(struct scheduler *s, uint64_t id, const struct sampling *sampling) {
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        const struct sampling own = sampler_for_answer(sampling, q->answer);
        if (q->request->id == id) sampler_change(&q->sampler, &own);
    }
}

void scheduler_set_answer_sampling(struct scheduler *s, uint64_t id, int answer, const struct sampling *sampling) {
    struct sequence *q = find(s, id, answer);
    if (q) sampler_change(&q->sampler, sampling);
}

void scheduler_focus(struct scheduler *s, uint64_t conversation) {
    s->focus = conversation;
    for (int i = 1; i < s->n_sequences; i++) insert(s, i, s->sequences[i]);
}

// What a step computes.
struct step_rows {
    bool persons, background; // rows of these
    bool decodes;             // which persons wait for
};

static struct step_rows step_rows(const struct scheduler *s) {
    struct step_rows rows = {0};
    for (int i = 0; i < s->n_sequences; i++) {
        const struct sequence *q = s->sequences[i];
        if (!q->n_rows || q->request->read_ahead) continue;
        if (q->request->background) rows.background = true;
        else rows.persons = true, rows.decodes |= q->state == REQUEST_DECODING;
    }
    return rows;
}

bool scheduler_computes(const struct scheduler *s, uint64_t id) {
    const struct step_rows rows = step_rows(s);
    for (int i = 0; i < s->n_sequences; i++) {
        const struct sequence *q = s->sequences[i];
        if (q->request->id != id || !q->n_rows) continue;
        return q->request->background ? !rows.persons && !s->decode_rows : !rows.decodes;
    }
    return false;
}

bool scheduler_reads_ahead(const struct scheduler *s) { return s->n_sequences && s->sequences[0]->request->read_ahead; }

bool scheduler_overtakes(const struct scheduler *s, uint64_t conversation, bool background, uint64_t focus) {
    const struct step_rows rows = step_rows(s);
    if (scheduler_reads_ahead(s))
        return s->sequences[0]->request->conversation != conversation; // else it has use for it
    if (rows.background && !rows.persons) return !background;
    if (conversation != focus) return false;
    for (int i = 0; i < s->n_sequences; i++) {
        const struct request *r = s->sequences[i]->request;
        if (s->sequences[i]->n_rows && !r->background && r->conversation != focus) return true;
    }
    return false;
}

uint64_t scheduler_focused(const struct scheduler *s) { return s->focus; }

void scheduler_forget(struct scheduler *s, uint64_t conversation, uint64_t disk_owner) {
    prefix_forget(&s->prefixes, conversation);
    if (s->drafter) drafter_forget(s->drafter, conversation);
    hibernation_forget(s, conversation, disk_owner);
    for (int i = 0; i < s->n_sequences; i++)
        if (s->sequences[i]->request->conversation == conversation) s->sequences[i]->request->forgotten = true;
}

const struct backend_info *scheduler_backend(const struct scheduler *s) { return placement_info(s->placement); }

bool scheduler_prepare(struct scheduler *s) { return placement_repack(s->placement); }

bool scheduler_idle(const struct scheduler *s) { return !s->n_sequences; }

// ---- a step ----

static void expire(struct scheduler *s, double now) {
    for (int i = s->n_sequences - 1; i >= 0; i--) {
        const double deadline = s->sequences[i]->request->deadline;
        if (deadline > 0 && now >= deadline) end(s, s->sequences[i], FINISH_TIME, "");
    }
}

// What draw number i of d is made from; below 0: a score.
static struct sampler_input draw_input(const struct scheduler *s, const struct scheduler_draw *d, int i) {
    const struct sequence *q = d->sequence;
    return (struct sampler_input){.logits = s->logits + (size_t)(d->first + i) * (size_t)s->n_vocab,
                                  .n_vocab = s->n_vocab,
                                  .tokens = q->tokens,
                                  .n_tokens = q->n_tokens + i};
}

static int32_t scored_token(const struct scheduler_draw *d, int k) {
    const struct sequence *q = d->sequence;
    return q->tokens[sequence_silent(q) + 1 + d->n_scores + k];
}

// Scores, where that is wanted. Draws the next token, and goes on from the rows of the proposed ones as long as it is
// what was drawn: so each is drawn once, in order and from the same logits as without them.
static void sample_sequence(void *context, int i, int worker) {
    struct scheduler *s = context;
    struct scheduler_draw *d = &s->draws[i];
    struct sequence *q = d->sequence;
    const int32_t *proposed = q->tokens + q->n_tokens;
    struct sample *drawn;
    d->n_drawn = 0;
    for (int k = -d->n_scores; k < 0; k++) {
        const struct sampler_input in = draw_input(s, d, k);
        s->samples[d->first + k] = sampler_score(s->scratch[worker], &in, scored_token(d, k));
    }
    if (sequence_missing(q)) return;
    do {
        const struct sampler_input in = draw_input(s, d, d->n_drawn);
        drawn = &s->samples[d->first + d->n_drawn++];
        if (q->constraint && !constraint_mask(q->constraint, in.logits, in.n_vocab)) {
            drawn->ok = false;
            break;
        }
        *drawn = sampler_next(&q->sampler, s->scratch[worker], &in);
        drawn->accepted = drawn->ok && d->n_drawn <= q->n_proposed && drawn->token == proposed[d->n_drawn - 1];
        if (q->constraint && drawn->ok && !constraint_take(q->constraint, drawn->token)) break;
    } while (drawn->accepted);
}

// Waking the workers costs more than a few small rows.
static void sample_all(struct scheduler *s) {
    if (s->n_draws > 1 && (int64_t)s->n_draws * s->n_vocab >= PARALLEL_LOGITS)
        placement_for_each(s->placement, s->n_draws, sample_sequence, s);
    else
        for (int i = 0; i < s->n_draws; i++) sample_sequence(s, i, 0);
}

// Of n tokens that came together. One that waited for pages was not slow to compute, but to come.
static void note_latency(struct scheduler *s, struct sequence *q, struct metrics_step *step, int n) {
    const bool first = q->last_token <= 0, preempted = !first && q->state != REQUEST_DECODING;
    const double waited = (step->end - (first ? q->request->submitted : q->last_token)) / n;
    for (int i = 0; i < n; i++) {
        metrics_add_latency(first ? &s->metrics->first_token : &s->metrics->next_token, waited);
        if (!first && !preempted) q->interval = q->interval > 0 ? 0.9 * q->interval + 0.1 * waited : waited;
    }
    if (!first && (float)waited > step->slowest.seconds) {
        step->slowest.seconds = (float)waited;
        step->slowest.conversation = q->request->conversation;
        step->slowest.preempted = preempted;
    }
    q->last_token = step->end;
}

void scheduler_publish(struct scheduler *s, const struct sequence *q, int n) {
    if (q->request->read_ahead) prefix_add_ahead(&s->prefixes, &q->kv, q->tokens, n);
    else prefix_add(&s->prefixes, &q->kv, q->tokens, n);
}

// Pages that committed tokens have filled can be found; `before` were full already.
static void publish_pages(struct scheduler *s, const struct sequence *q, int before) {
    const int n = q->kv.n_tokens < q->n_tokens ? q->kv.n_tokens : q->n_tokens, full = n / KV_PAGE_TOKENS;
    if (full > before && !q->request->forgotten) scheduler_publish(s, q, full * KV_PAGE_TOKENS);
}

// Commits the first n of the drawn tokens: all but the last one drawn were proposed already. Returns how many of them
// were.
static int commit(struct scheduler *s, const struct scheduler_draw *d, int n) {
    struct sequence *q = d->sequence;
    const int before = q->n_tokens / KV_PAGE_TOKENS, drafted = n < d->n_drawn ? n : d->n_drawn - 1;
    q->n_drafted += q->n_proposed;
    q->n_accepted += drafted;
    sequence_accept(q, &s->cache, drafted);
    if (n > drafted) {
        sequence_propose(q, &s->samples[d->first + drafted].token, 1);
        sequence_accept(q, &s->cache, 1);
    }
    if (drafted) publish_pages(s, q, before);
    return drafted;
}

// Whoever did not decode in this step, after a pre-emption, has a guess for what was drawn before it.
static void learn_guess(const struct scheduler *s, const struct scheduler_draw *d) {
    struct draft *draft = d->sequence->draft;
    if (!draft || draft->n_own != d->sequence->n_tokens) return;
    for (int i = 0; i < d->n_drawn && i < draft->n_guess; i++)
        draft_learn(draft, i, s->samples[d->first + i].token == draft->guess[i]);
}

static void tell_score(const struct scheduler *s, struct sequence *q, const struct sample *score) {
    q->n_scored++;
    if (s->events.scored) s->events.scored(s->events.context, q, score);
}

// Hands on how likely the prompt's tokens are; of the first nobody knows. False: nobody can say.
static bool deliver_scores(const struct scheduler *s, const struct scheduler_draw *d) {
    struct sequence *q = d->sequence;
    if (!sequence_scores(q)) return true;
    const struct sample first = given_token(q->tokens[0]);
    if (!q->n_scored) tell_score(s, q, &first);
    for (int k = -d->n_scores; k < 0 && sequence_scores(q); k++) {
        if (!s->samples[d->first + k].ok) return false;
        tell_score(s, q, &s->samples[d->first + k]);
    }
    return true;
}

static void end_not_finite(struct scheduler *s, struct sequence *q) {
    end_unsound(s, q, "the model's output holds NaN or infinity; its pages in the KV cache were dropped");
}

// Hands the drawn tokens on, up to one that ends the answer.
static void deliver_drawn(struct scheduler *s, const struct scheduler_draw *d, struct metrics_step *step) {
    struct sequence *q = d->sequence;
    const struct sample *samples = s->samples + d->first;
    const bool ok = samples[d->n_drawn - 1].ok;
    const int n = d->n_drawn - !ok;
    int accepted = 0;
    bool ends = false;
    if (n) note_latency(s, q, step, n);
    if (n && q->state != REQUEST_DECODING) scheduler_enter(s, q, REQUEST_DECODING, "");
    while (accepted < n && !ends) {
        ends = s->events.token(s->events.context, q, &samples[accepted]);
        accepted += !ends;
    }
    if (s->events.drawn && accepted) {
        const struct sampler_input in = draw_input(s, d, accepted - 1);
        s->events.drawn(s->events.context, q, &in, samples[accepted - 1].token);
    }
    learn_guess(s, d);
    step->drafted += q->n_proposed;
    const int drafted = commit(s, d, accepted);
    step->accepted += drafted;
    if (q->draft && !q->draft->match) s->writing.n_accepted += drafted;
    step->decode_rows += drafted;
    step->decoded += accepted;
    if (ends) end(s, q, FINISH_END, "");
    else if (!end_complete(s, q) && !ok) end_not_finite(s, q);
}

static void deliver(struct scheduler *s, const struct scheduler_draw *d, struct metrics_step *step) {
    if (!deliver_scores(s, d)) end_not_finite(s, d->sequence);
    else if (d->n_drawn) deliver_drawn(s, d, step);
}

static void fail_batch(struct scheduler *s, const char *message) {
    for (int i = s->n_sequences - 1; i >= 0; i--)
        if (s->sequences[i]->n_rows) end_unsound(s, s->sequences[i], message);
}

// The rows of a step that was given up are to be computed again, and it says nothing about drafts.
static void take_back(struct scheduler *s) {
    s->writing.seconds = 0;
    for (int i = 0; i < s->n_sequences; i++) sequence_take_back(s->sequences[i], &s->cache);
}

// The rows of the step are computed, pages that they filled can be found.
static void advance(struct scheduler *s) {
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *q = s->sequences[i];
        const int before = sequence_computed(q) / KV_PAGE_TOKENS;
        sequence_advance(q);
        publish_pages(s, q, before);
    }
}

// Of prompts that are read ahead nothing more is wanted.
static void end_ahead(struct scheduler *s) {
    for (int i = s->n_sequences - 1; i >= 0 && s->sequences[i]->request->read_ahead; i--)
        if (!sequence_missing(s->sequences[i])) end(s, s->sequences[i], FINISH_END, "");
}

// The model is opened anew before the failed device is closed: where that fails too, requests do.
static bool fall_back(struct scheduler *s, const struct status *why) {
    struct status st;
    struct backend_params backend = s->backend;
    backend.options.quick_start = true;
    backend.options.progress = NULL;
    struct placement *next = s->fallback.n ? placement_open(&s->fallback, &backend, &st) : NULL;
    if (!next) {
        if (s->fallback.n) log_error("engine", "the model could not be opened elsewhere: %s", st.text);
        return false;
    }
    close_scratch(s);
    placement_close(s->placement);
    s->placement = next;
    s->fallback.n = 0;
    open_scratch(s);
    hibernation_renew(s);
    admission_restart(s);
    if (s->events.moved) s->events.moved(s->events.context, why->text);
    return true;
}

// Where a batch fails nobody knows which of the copies were made: so nothing is cached that they may be a part of.
bool scheduler_run(struct scheduler *s, struct batch *batch, struct backend_result *out, bool *lost,
                   struct status *st) {
    batch->copies = s->copies;
    batch->n_copies = s->n_copies;
    s->n_copies = 0;
    *lost = false;
    if (placement_run(s->placement, batch, out, st)) return true;
    if (st->code == STATUS_CANCELLED) return false;
    if (batch->n_copies) prefix_clear(&s->prefixes);
    *lost = (st->code == STATUS_DEVICE || st->code == STATUS_MEMORY) && fall_back(s, st);
    return false;
}

bool scheduler_step(struct scheduler *s) {
    double start = clock_seconds();
    expire(s, start);
    const uint64_t preemptions = s->metrics->preemptions;
    const int64_t woken = s->hibernation.woken_tokens;
    plan_step(s);
    const double planned = clock_seconds();
    if (!s->batch.n_rows) return false;

    struct metrics_step step = {.start = start,
                                .pause = s->last_step > 0 ? start - s->last_step : 0,
                                .prefilled = s->batch.n_rows - s->decode_rows - s->draft_rows,
                                .decode_rows = s->decode_rows};
    report_step(s, &step.slowest);
    step.slowest.preemptions = (int)(s->metrics->preemptions - preemptions);
    step.slowest.woken_tokens = (int)(s->hibernation.woken_tokens - woken);
    struct status st = {0};
    s->last_step = 0;
    struct backend_result result;
    bool lost;
    if (!scheduler_run(s, &s->batch, &result, &lost, &st)) {
        if (lost) return true;
        if (st.code == STATUS_CANCELLED) take_back(s);
        else fail_batch(s, st.text);
        return true;
    }
    advance(s);
    double ran = clock_seconds();
    s->logits = result.logits;
    sample_all(s);
    step.end = clock_seconds();
    step.work = result.work;
    step.work.stages[STAGE_SAMPLE].seconds = step.end - ran;
    for (int i = 0; i < s->n_draws; i++) deliver(s, &s->draws[i], &step);
    end_ahead(s);
    step.end = s->last_step = clock_seconds();
    plan_learn(s, step.prefilled, step.end - planned);
    metrics_add_step(s->metrics, &step);
    return true;
}
