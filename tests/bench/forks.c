// forks MODEL [PAIRS [TOKENS]]: what a fork of a conversation of so many tokens (4000) costs, and answers to one prompt
// at once against one after the other. Medians of PAIRS (5) pairs, two threads, no drafts. Of a model with less context
// it is what that holds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/bench/bench.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/metrics.h"

enum { KV_TOKENS = 1 << 14, MOST_PAIRS = 64, FIRST = 32, AFTER = 8, ANSWERS = 4, PROMPT = 32, ANSWER = 96 };

static struct engine_client *client;
static int n_vocab;
static uint64_t conversations, random_state = 1;

static int32_t *random_ids(int n) {
    int32_t *ids = xmalloc((size_t)n * sizeof *ids);
    for (int i = 0; i < n; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((random_state >> 33) % (uint64_t)n_vocab);
    }
    return ids;
}

static struct request_params params_of(const int32_t *ids, int n, int n_tokens) {
    struct request_params p = {.conversation = ++conversations,
                               .ids = ids,
                               .n_ids = n,
                               .sampling = sampling_default(),
                               .max_tokens = n_tokens,
                               .ignore_end = true};
    p.sampling.seed = 1;
    return p;
}

struct run {
    int32_t *tokens; // of the first answer
    int n;
    double first, last; // seconds by events: of the first and last token that was drawn
    double end;
    int n_reused, own_pages; // own: when the first token was there
};

static int own_pages(uint64_t conversation) {
    const struct engine_metrics *f = engine_metrics(client);
    int n = 0;
    for (int i = 0; i < f->n_pages && i < METRICS_MAX_PAGES; i++)
        n += f->pages[i].references && !f->pages[i].kept && f->pages[i].conversation == conversation;
    return n;
}

static struct run run(const struct request_params *p) {
    struct run r = {.tokens = xmalloc((size_t)p->max_tokens * sizeof *r.tokens)};
    struct engine_event e;
    engine_submit(client, p);
    for (int open = p->n_answers > 1 ? p->n_answers : 1; open;) {
        engine_wait(client, &e, -1);
        if (e.kind == EVENT_STATE && e.state == REQUEST_FAILED) panic("%s", e.text);
        if (e.kind == EVENT_STATE && e.state >= REQUEST_FINISHED) open--, r.n_reused = e.n_reused;
        if (e.kind != EVENT_TEXT || e.token < 0) continue;
        if (!e.answer) r.tokens[r.n++] = e.token;
        if (isnan(e.probability)) continue;
        r.last = (double)e.at * 1e-9;
        if (!r.first) r.first = r.last;
        const int pages = own_pages(p->conversation); // as they are published
        if (pages > r.own_pages) r.own_pages = pages;
    }
    r.end = clock_seconds();
    return r;
}

// In turn: the conversation itself, whose last tokens tell what a step takes, and a fork of it near its end, with
// another token than it has there. All pairs share one prompt, which is computed once.
static void measure_fork(int pairs, int n_tokens) {
    double steps[MOST_PAIRS], step[MOST_PAIRS], first[MOST_PAIRS];
    int pages = 0, fresh = 0;
    int32_t *ids = random_ids(n_tokens - FIRST);
    for (int i = -1; i < pairs; i++) { // the first one warms up
        struct request_params p = params_of(ids, n_tokens - FIRST, FIRST);
        p.sampling.seed = 2u + (uint32_t)i;
        struct run whole = run(&p);
        whole.tokens[FIRST - 1] = (whole.tokens[FIRST - 1] + 1) % n_vocab;
        p.conversation = ++conversations;
        p.begun = whole.tokens;
        p.n_begun = FIRST;
        p.max_tokens = FIRST + AFTER;
        const double start = clock_seconds();
        struct run fork = run(&p);
        const int at = i < 0 ? 0 : i;
        step[at] = (whole.last - whole.first) / (FIRST - 1) * 1e3;
        first[at] = (fork.first - start) * 1e3;
        steps[at] = first[at] / step[at];
        if (fork.own_pages > pages) pages = fork.own_pages;
        if (n_tokens - fork.n_reused > fresh) fresh = n_tokens - fork.n_reused;
        free(whole.tokens), free(fork.tokens);
        engine_forget(client, p.conversation, 0);
    }
    free(ids);
    printf(
        "| fork at %d tokens | %d | a step %.2f ms | first token %.2f ms | %.2f steps | %d pages of its own, %d tokens "
        "computed |\n",
        n_tokens, pairs, bench_median(step, pairs), bench_median(first, pairs), bench_median(steps, pairs), pages,
        fresh);
}

// In turn, each with a prompt of its own: the answers in one request, and one after the other.
static void measure_answers(int pairs) {
    double together[MOST_PAIRS], apart[MOST_PAIRS], ratio[MOST_PAIRS];
    const double all = ANSWERS * ANSWER;
    for (int i = -1; i < pairs; i++) {
        const int at = i < 0 ? 0 : i;
        int32_t *ids = random_ids(PROMPT);
        struct request_params p = params_of(ids, PROMPT, ANSWER);
        p.n_answers = ANSWERS;
        double start = clock_seconds();
        struct run r = run(&p);
        together[at] = all / (r.end - start);
        free(r.tokens), free(ids);
        engine_forget(client, p.conversation, 0);
        ids = random_ids(PROMPT);
        p = params_of(ids, PROMPT, ANSWER);
        start = clock_seconds();
        for (int k = 0; k < ANSWERS; k++) {
            p.sampling.seed = 1 + (uint32_t)k;
            r = run(&p);
            free(r.tokens);
        }
        apart[at] = all / (r.end - start);
        ratio[at] = together[at] / apart[at];
        free(ids);
        engine_forget(client, p.conversation, 0);
    }
    printf("| %d answers | %d | one after the other %.1f tok/s | at once %.1f tok/s | %.2f times |\n", ANSWERS, pairs,
           bench_median(apart, pairs), bench_median(together, pairs), bench_median(ratio, pairs));
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: forks MODEL [PAIRS [TOKENS]]\n");
        return 2;
    }
    const int pairs = argc > 2 ? atoi(argv[2]) : 5;
    int n_tokens = argc > 3 ? atoi(argv[3]) : 4000;
    if (pairs < 1 || pairs > MOST_PAIRS || n_tokens < 2 * FIRST || n_tokens > KV_TOKENS / 2)
        panic("PAIRS or TOKENS are out of range");
    struct status st = {0};
    struct model_file *file = model_file_open(argv[1], &st);
    if (!file) panic("%s", st.text);
    n_vocab = model_file_info(file)->n_vocab;
    const struct engine_params params = {
        .n_threads = 2, .context = n_tokens + 2 * FIRST, .kv_tokens = KV_TOKENS, .draft = DRAFT_OFF};
    struct engine *engine = local_engine_open(file, &params, &st);
    client = engine ? engine_client_open(engine, &st) : NULL;
    if (!client) panic("%s", st.text);
    const int context = engine_metrics(client)->context;
    if (context && n_tokens > context - AFTER) n_tokens = context - AFTER;
    measure_fork(pairs, n_tokens);
    measure_answers(pairs);
    engine_client_close(client);
    engine_close(engine);
    model_file_close(file);
    return 0;
}
