// turns MODEL [PROMPT [TOKENS]]: four conversations stream; then a prompt of PROMPT tokens (8000) arrives, and after it
// one of 20. Prints the time between tokens of the four, over TOKENS (200) of each: before the prompts came and just
// after, at their end and afterwards. The four grow longer meanwhile, so each is compared with what is next to it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/model_file.h"

enum { STREAMS = 4, LONG = STREAMS + 1, SHORT, SHORT_PROMPT = 20, MOST_GAPS = 1 << 20 };

struct turns {
    struct engine *engine;
    struct engine_client *client;
    int n_vocab;
    double last[SHORT + 1];  // token of each conversation
    double first[SHORT + 1]; // 0: not yet
    double gaps[MOST_GAPS];  // of the streams
    int n_gaps;
};

static void submit(struct turns *t, int conversation, int n_prompt, int max_tokens) {
    int32_t *ids = xmalloc((size_t)n_prompt * sizeof *ids);
    uint32_t random = (uint32_t)conversation;
    for (int i = 0; i < n_prompt; i++) {
        random = random * 1664525u + 1013904223u;
        ids[i] = (int32_t)((random >> 8) % (uint32_t)t->n_vocab);
    }
    engine_submit(t->client, &(struct request_params){.conversation = (uint64_t)conversation,
                                                      .ids = ids,
                                                      .n_ids = n_prompt,
                                                      .sampling = sampling_default(),
                                                      .max_tokens = max_tokens,
                                                      .ignore_end = true});
    free(ids);
}

static void note(struct turns *t, const struct engine_event *e) {
    if (e->kind == EVENT_STATE && e->state == REQUEST_FAILED) panic("%s", e->text);
    if (e->kind != EVENT_TEXT || e->token < 0) return;
    const double now = (double)e->at * 1e-9, last = t->last[e->conversation];
    if (!t->first[e->conversation]) t->first[e->conversation] = now;
    if (last > 0 && e->conversation <= STREAMS && t->n_gaps < MOST_GAPS) t->gaps[t->n_gaps++] = now - last;
    t->last[e->conversation] = now;
}

static void wait_one(struct turns *t) {
    struct engine_event event;
    if (engine_wait(t->client, &event, -1)) note(t, &event);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The p99 of the gaps [from, end).
static double print_gaps(struct turns *t, const char *label, int from, int end) {
    const int n = end - from;
    double *gaps = xmalloc((size_t)n * sizeof *gaps);
    memcpy(gaps, t->gaps + from, (size_t)n * sizeof *gaps);
    qsort(gaps, (size_t)n, sizeof *gaps, compare);
    const double p50 = gaps[n / 2], p99 = gaps[(size_t)n * 99 / 100];
    printf("%-24s %6d tokens   p50 %7.2f ms   p99 %7.2f ms\n", label, n, p50 * 1e3, p99 * 1e3);
    free(gaps);
    return p99;
}

static void wait_gaps(struct turns *t, int n) {
    for (n += t->n_gaps; t->n_gaps < n;) wait_one(t);
}

static void measure(struct turns *t, int n_prompt, int n_tokens) {
    for (int i = 1; i <= STREAMS; i++) submit(t, i, 16, 1 << 20);
    while (!t->first[1] || !t->first[2] || !t->first[3] || !t->first[4]) wait_one(t);
    wait_gaps(t, 20 * STREAMS);
    const int some = n_tokens * STREAMS, start = t->n_gaps;
    wait_gaps(t, some);
    const int arrival = t->n_gaps;
    const double arrived = clock_seconds();
    submit(t, LONG, n_prompt, 1);
    submit(t, SHORT, SHORT_PROMPT, 1);
    while (!t->first[LONG] || !t->first[SHORT]) wait_one(t);
    const int end = t->n_gaps, part = end - arrival < some ? end - arrival : some;
    wait_gaps(t, some);
    const double before = print_gaps(t, "four alone", start, arrival);
    const double early = print_gaps(t, "as two prompts arrive", arrival, arrival + part);
    const double late = print_gaps(t, "as the long one ends", end - part, end);
    const double after = print_gaps(t, "four alone again", end, t->n_gaps);
    printf("p99 is %.2f and %.2f times as long\n", early / before, late / after);
    printf("first token: prompt of %d after %.2f s, of %d after %.2f s\n", SHORT_PROMPT, t->first[SHORT] - arrived,
           n_prompt, t->first[LONG] - arrived);
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: turns MODEL [PROMPT [TOKENS]]\n");
        return 2;
    }
    const int n_prompt = argc > 2 ? atoi(argv[2]) : 8000, n_tokens = argc > 3 ? atoi(argv[3]) : 200;
    struct status st = {0};
    struct model_file *file = model_file_open(argv[1], &st);
    struct turns *t = xcalloc(1, sizeof *t);
    const struct engine_params params = {.kv_tokens = 4 * n_prompt + 4096};
    if (n_prompt < 1 || n_tokens < 1) status_fail(&st, STATUS_USAGE, "PROMPT and TOKENS must be positive");
    else if (file && (t->engine = local_engine_open(file, &params, &st)) &&
             (t->client = engine_client_open(t->engine, &st))) {
        t->n_vocab = model_file_info(file)->n_vocab;
        measure(t, n_prompt, n_tokens);
        engine_client_close(t->client);
    }
    if (st.code != STATUS_OK) fprintf(stderr, "turns: %s\n", st.text);
    engine_close(t->engine);
    model_file_close(file);
    free(t);
    return st.code != STATUS_OK;
}
