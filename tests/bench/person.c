// person MODEL [TIMES]: what programs that load the engine cost a person's chat. A person asks TIMES (5) times, with a
// prompt of 200 tokens for an answer of 128: alone, then while eight programs ask, each again as soon as it has its
// answer (prompts of 20 to 600 tokens, answers of 64), then alone again. Prints the time to the first token and between
// tokens, with and without them, and what the programs get before, beside and after the person. All prompts differ.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/model_file.h"

enum {
    PROGRAMS = 8,
    PROMPT = 200,
    ANSWER = 128,
    LEAST_PROMPT = 20,
    MOST_PROMPT = 600,
    PROGRAM_ANSWER = 64,
    MOST_TIMES = 64,
    WARM_SECONDS = 8, // of the programs without the person
    PAUSE_SECONDS = 1 // between two questions
};

struct figures {
    double first[MOST_TIMES], gaps[MOST_TIMES * ANSWER];
    int n_first, n_gaps;
};

struct share { // what the programs get
    double seconds;
    int prompt, answer; // tokens
};

static struct engine *engine;
static struct engine_client *person, *programs;
static int n_vocab, n_loads; // n_loads: programs that ask
static uint64_t chance = 88172645463325252u;
static uint64_t question; // that the person waits for the answer to; 0: none
static double asked, last;
static struct figures *figures;
static struct share *share;

static int random_below(int n) {
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    return (int)(chance % (uint64_t)n);
}

static uint64_t submit(struct engine_client *client, uint64_t conversation, int n_prompt, int n_answer) {
    int32_t ids[MOST_PROMPT];
    for (int i = 0; i < n_prompt; i++) ids[i] = random_below(n_vocab);
    return engine_submit(client, &(struct request_params){.conversation = conversation,
                                                          .ids = ids,
                                                          .n_ids = n_prompt,
                                                          .sampling = sampling_default(),
                                                          .max_tokens = n_answer,
                                                          .ignore_end = true,
                                                          .background = client == programs});
}

static void ask_as_program(uint64_t conversation) {
    submit(programs, conversation, LEAST_PROMPT + random_below(MOST_PROMPT - LEAST_PROMPT + 1), PROGRAM_ANSWER);
}

static void note_person(const struct engine_event *e) {
    if (e->request != question) return;
    if (e->kind == EVENT_STATE && e->state >= REQUEST_FINISHED) question = 0;
    if (e->kind != EVENT_TEXT || e->token < 0) return;
    const double now = (double)e->at * 1e-9;
    if (last > 0) figures->gaps[figures->n_gaps++] = now - last;
    else figures->first[figures->n_first++] = now - asked;
    last = now;
}

static void note_program(const struct engine_event *e) {
    const bool state = e->kind == EVENT_STATE;
    if (state && e->state == REQUEST_DECODING) share->prompt += e->n_prompt;
    if (e->kind == EVENT_TEXT && e->token >= 0) share->answer++;
    if (state && e->state >= REQUEST_FINISHED && n_loads) ask_as_program(e->conversation);
}

static void hear(int timeout_ms) {
    struct pollfd fds[] = {{.fd = engine_event_fd(person), .events = POLLIN},
                           {.fd = engine_event_fd(programs), .events = POLLIN}};
    struct engine_event e;
    poll(fds, 2, timeout_ms);
    while (engine_poll(person, &e)) {
        if (e.kind == EVENT_STATE && e.state == REQUEST_FAILED) panic("%s", e.text);
        note_person(&e);
    }
    while (engine_poll(programs, &e)) note_program(&e);
}

// Adds to what the programs get.
static void pass(double seconds, struct share *during) {
    const double begun = clock_seconds();
    share = during;
    while (clock_seconds() < begun + seconds) hear(10);
    during->seconds += clock_seconds() - begun;
}

static void ask(struct figures *f, struct share *during) {
    figures = f, share = during;
    asked = clock_seconds(), last = 0;
    question = submit(person, 1, PROMPT, ANSWER);
    while (question) hear(-1);
    during->seconds += clock_seconds() - asked;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct summary {
    double first, mean, middle, late; // late: the p99
};

static struct summary summarise(struct figures *f) {
    struct summary s = {0};
    for (int i = 0; i < f->n_gaps; i++) s.mean += f->gaps[i] / f->n_gaps;
    qsort(f->first, (size_t)f->n_first, sizeof *f->first, compare);
    qsort(f->gaps, (size_t)f->n_gaps, sizeof *f->gaps, compare);
    s.first = f->first[f->n_first / 2];
    s.middle = f->gaps[f->n_gaps / 2];
    s.late = f->gaps[f->n_gaps * 99 / 100];
    return s;
}

static void print_figures(const char *label, const struct summary *s) {
    printf("| %s | %.1f | %.2f | %.2f | %.2f |\n", label, 1e3 * s->first, 1e3 * s->mean, 1e3 * s->middle,
           1e3 * s->late);
}

static void print_share(const char *label, const struct share *s) {
    printf("| %s | %.1f | %.1f |\n", label, s->prompt / s->seconds, s->answer / s->seconds);
}

static void measure(int times) {
    static struct figures alone, beside, none;
    struct share nobody = {0}, before = {0}, during = {0}, after = {0};
    ask(&none, &nobody); // what is done once
    for (int i = 0; i < times; i++) ask(&alone, &nobody);
    for (n_loads = 0; n_loads < PROGRAMS;) ask_as_program((uint64_t)++n_loads);
    pass(WARM_SECONDS, &nobody);
    pass(WARM_SECONDS, &before);
    for (int i = 0; i < times; i++) {
        ask(&beside, &during);
        pass(PAUSE_SECONDS, &nobody);
    }
    pass(WARM_SECONDS, &after);
    n_loads = 0;
    engine_client_close(programs);
    struct status st;
    if (!(programs = engine_client_open(engine, &st))) panic("%s", st.text);
    for (int i = 0; i < times; i++) ask(&alone, &nobody);

    const struct summary a = summarise(&alone), b = summarise(&beside);
    printf("| person, ms | first token | between tokens, mean | p50 | p99 |\n|---|---|---|---|---|\n");
    print_figures("alone", &a);
    print_figures("beside eight programs", &b);
    printf("| ratio | %.2f | %.2f | %.2f | %.2f |\n\n", b.first / a.first, b.mean / a.mean, b.middle / a.middle,
           b.late / a.late);
    printf("| programs, tokens/s | prompt | answer |\n|---|---|---|\n");
    print_share("before", &before);
    print_share("beside the person", &during);
    print_share("after", &after);
}

int main(int argc, char **argv) {
    const int times = argc > 2 ? atoi(argv[2]) : 5;
    if (argc < 2 || argc > 3 || times < 1 || times > MOST_TIMES / 2) {
        fprintf(stderr, "usage: person MODEL [TIMES]\n");
        return 2;
    }
    struct status st = {0};
    struct model_file *file = model_file_open(argv[1], &st);
    const struct engine_params params = {.context = 2048, .kv_tokens = 16384};
    engine = file ? local_engine_open(file, &params, &st) : NULL;
    if (!engine || !(person = engine_client_open(engine, &st)) || !(programs = engine_client_open(engine, &st)))
        panic("%s", st.text);
    n_vocab = model_file_info(file)->n_vocab;
    measure(times);
    engine_client_close(person);
    engine_client_close(programs);
    engine_close(engine);
    model_file_close(file);
    return 0;
}
