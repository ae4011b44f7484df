// drafts MODEL [PAIRS [TOKENS]]: what drafts by lookup bring and cost, in turn with an engine that has none.
//
// The model computes whatever it computes, with all its weights; the text is forced upon it: after every row that has
// the right tokens before it the next one of a script is by far the likeliest. So speeds are those of a real model
// whose text repeats itself as real text does, which one of random weights would not write. Scripts are files of this
// repository, a word a token. Run from its root. Medians of PAIRS (5) pairs of TOKENS (120) tokens, ratios per pair.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "engine/backend.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"
#include "engine/serve/local_engine_state.h"

enum {
    MOST_SCRIPTS = 8,
    MOST_SCRIPT = 8192,
    KV_TOKENS = 1 << 15,
    MOST_PAIRS = 64,
    PROMPT = 300,
    BESIDE = 4,
    SPECIAL = 20
};

struct script {
    int32_t tokens[MOST_SCRIPT]; // prompt and answer
    int n, n_prompt;
};

static struct script scripts[MOST_SCRIPTS];
static int n_scripts;
static struct known { // of an engine
    const struct backend *backend;
    int script_of_page[KV_TOKENS / KV_PAGE_TOKENS]; // of a sequence, by its first page
} arenas[2];
static int n_vocab;

// ---- the backend that is told its text ----

static int *script_of(const struct backend *b, int32_t page) {
    struct known *a = arenas;
    while (a->backend && a->backend != b) a++;
    a->backend = b;
    return &a->script_of_page[page];
}

static int find_script(const struct backend *backend, const struct batch *b, const struct batch_segment *s) {
    int *found = script_of(backend, s->pages[0]);
    if (s->position) return *found;
    for (int i = 0; i < n_scripts; i++) {
        int k = 0;
        while (k < s->n_rows && k < 8 && b->rows[s->first_row + k].token == scripts[i].tokens[k]) k++;
        if (k == s->n_rows || k == 8) return *found = i;
    }
    panic("no script begins so");
}

static bool forced_run(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    if (!cpu_backend.run(b, batch, out, st)) return false;
    float *logits = out->logits;
    for (int i = 0; i < batch->n_segments; i++) {
        const struct batch_segment *s = &batch->segments[i];
        const struct script *script = &scripts[find_script(b, batch, s)];
        for (int k = 0; k < s->n_rows; k++) {
            if (!batch->rows[s->first_row + k].output) continue;
            const int at = s->position + k;
            if (batch->rows[s->first_row + k].token == script->tokens[at]) logits[script->tokens[at + 1]] += 1000;
            logits += n_vocab;
        }
    }
    return true;
}

// ---- scripts ----

// A token for every word, mark, or run of spaces.
static int tokens_of_file(const char *path, int skip, int32_t *out, int most) {
    FILE *file = fopen(path, "r");
    if (!file) panic("%s: cannot be read; run this from the root of the repository", path);
    char word[256];
    int n = 0, seen = 0, next = fgetc(file);
    while (next != EOF && n < most) {
        size_t size = 0;
        do word[size++] = (char)next, next = fgetc(file);
        while (next != EOF && size < sizeof word && (isalnum(next) || next == '_') &&
               (isalnum(word[0]) || word[0] == '_'));
        uint64_t hash = 1;
        for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)word[i]) * 0x9e3779b97f4a7c15u;
        if (*word != ' ' && seen++ >= skip)
            out[n++] = SPECIAL + (int32_t)((hash >> 33) % (uint64_t)(n_vocab - SPECIAL));
    }
    fclose(file);
    return n;
}

// A file as prompt, and as answer the same with a word in so many changed, and one in so many left out.
static void script_edited(const char *path, int every) {
    struct script *s = &scripts[n_scripts++];
    tokens_of_file(path, 0, s->tokens, PROMPT);
    s->tokens[0] = SPECIAL + n_scripts; // none begins like another
    s->n_prompt = s->n = PROMPT;
    for (int i = 0; s->n < MOST_SCRIPT; i++) {
        const int at = i % PROMPT;
        if (i % every == every - 1) continue;
        s->tokens[s->n++] = i % every == every / 2 ? SPECIAL + n_scripts : s->tokens[at];
    }
}

static void script_other(const char *prompt, const char *answer, int skip) {
    struct script *s = &scripts[n_scripts++];
    tokens_of_file(prompt, skip, s->tokens, PROMPT);
    s->tokens[0] = SPECIAL + n_scripts;
    s->n_prompt = PROMPT;
    s->n = PROMPT + tokens_of_file(answer, skip, s->tokens + PROMPT, MOST_SCRIPT - PROMPT);
}

// ---- measuring ----

struct side {
    struct engine *engine;
    struct engine_client *client;
    uint64_t conversations;
};

static uint64_t submit(struct side *e, const struct script *s, int n_tokens) {
    return engine_submit(e->client, &(struct request_params){.conversation = ++e->conversations,
                                                             .ids = s->tokens,
                                                             .n_ids = s->n_prompt,
                                                             .sampling = sampling_default(),
                                                             .max_tokens = n_tokens,
                                                             .ignore_end = true});
}

// Runs these scripts at once; tokens a second of the first, and of all the others, from when all answer to when the
// first has n_tokens more. Prompts are in the KV cache once they have run before.
static void run(struct side *e, const int *which, int n, int n_tokens, double *first, double *others) {
    const uint64_t base = e->conversations + 1;
    uint64_t requests[BESIDE + 1];
    double all = 0, last = 0;
    int counts[BESIDE + 1] = {0}, since[BESIDE + 1] = {0}, begun = 0;
    struct engine_event event;
    for (int i = 0; i < n; i++) requests[i] = submit(e, &scripts[which[i]], MOST_SCRIPT);
    while (!all || counts[0] < since[0] + n_tokens) {
        engine_wait(e->client, &event, -1);
        const int c = (int)(event.conversation - base);
        if (event.kind == EVENT_STATE && event.state >= REQUEST_FINISHED)
            panic("an answer ended early: %s", event.text);
        if (event.kind != EVENT_TEXT || event.token < 0) continue;
        if (event.token != scripts[which[c]].tokens[PROMPT + counts[c]]) panic("the text is not the script's");
        last = (double)event.at * 1e-9;
        begun += !counts[c]++;
        if (begun < n || all > 0) continue;
        all = last;
        memcpy(since, counts, sizeof since);
    }
    *first = (counts[0] - since[0]) / (last - all);
    *others = 0;
    for (int i = 1; i < n; i++) *others += (counts[i] - since[i]) / (last - all);
    for (int i = 0; i < n; i++) engine_cancel(e->client, requests[i]);
    for (int running = n; running;) {
        engine_wait(e->client, &event, -1);
        running -= event.kind == EVENT_STATE && event.state >= REQUEST_FINISHED;
    }
}

static void measure(struct side *sides, const char *name, const int *which, int n, int pairs, int n_tokens) {
    double first[3][MOST_PAIRS], others[3][MOST_PAIRS];
    for (int i = -1; i < pairs; i++) { // the first one warms up
        for (int k = 0; k < 2; k++)
            run(&sides[k], which, n, n_tokens, &first[k][i < 0 ? 0 : i], &others[k][i < 0 ? 0 : i]);
        if (i < 0) continue;
        first[2][i] = first[1][i] / first[0][i];
        others[2][i] = others[1][i] / others[0][i];
    }
    printf("| %s | %d | %.1f | %.1f | %.2f |", name, pairs, bench_median(first[0], pairs),
           bench_median(first[1], pairs), bench_median(first[2], pairs));
    if (n > 1)
        printf(" %.1f | %.1f | %.2f |\n", bench_median(others[0], pairs), bench_median(others[1], pairs),
               bench_median(others[2], pairs));
    else printf(" | | |\n");
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: drafts MODEL [PAIRS [TOKENS]]\n");
        return 2;
    }
    const int pairs = argc > 2 ? atoi(argv[2]) : 5, n_tokens = argc > 3 ? atoi(argv[3]) : 120;
    if (pairs < 1 || pairs > MOST_PAIRS || n_tokens < 8 || n_tokens > 4000) panic("PAIRS or TOKENS are out of range");
    struct status st = {0};
    struct model_file *file = model_file_open(argv[1], &st);
    if (!file) panic("%s", st.text);
    struct backend_ops forced = cpu_backend;
    forced.run = forced_run;
    n_vocab = model_file_info(file)->n_vocab;
    struct side sides[2];
    for (int i = 0; i < 2; i++) {
        const struct engine_params params = {
            .n_threads = 2, .context = MOST_SCRIPT, .kv_tokens = KV_TOKENS, .draft = i ? DRAFT_LOOKUP : DRAFT_OFF};
        struct engine *engine = local_engine_open_on(file, &params, &forced, &st);
        sides[i] = (struct side){.engine = engine, .client = engine ? engine_client_open(engine, &st) : NULL};
        if (!sides[i].client) panic("%s", st.text);
    }
    script_edited("engine/serve/scheduler.c", 40);
    script_edited("README.md", 1 << 20);
    script_other("CONTRIBUTING.md", "README.md", 10);
    for (int i = 0; i < BESIDE; i++) script_other("CONTRIBUTING.md", "README.md", 100 + 60 * i);
    printf("| text | pairs | off | lookup | ratio | four beside: off | lookup | ratio "
           "|\n|---|---|---|---|---|---|---|---|\n");
    measure(sides, "code edited", (const int[]){0}, 1, pairs, n_tokens);
    measure(sides, "text quoted", (const int[]){1}, 1, pairs, n_tokens);
    measure(sides, "other text", (const int[]){2}, 1, pairs, n_tokens);
    measure(sides, "code edited, four beside", (const int[]){0, 3, 4, 5, 6}, 5, pairs, n_tokens);
    measure(sides, "other text, four beside", (const int[]){2, 3, 4, 5, 6}, 5, pairs, n_tokens);
    for (int i = 0; i < 2; i++) {
        engine_client_close(sides[i].client);
        engine_close(sides[i].engine);
    }
    model_file_close(file);
    return 0;
}
