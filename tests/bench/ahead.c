// ahead MODEL [TIMES [WORDS]]: what reading a message ahead brings: from sending a paste of WORDS (700) words to the
// first token of the answer, once without and then with the message read ahead, and the time between tokens that
// follow. Text is this repository's; run from its root. Medians of TIMES (5).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/model_file.h"

enum { MOST_TIMES = 64, TOKENS = 24, CONTEXT = 4096 };

static struct engine_client *client;
static char text[1 << 20];

static void read_text(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) panic("%s: cannot be read; run this from the root of the repository", path);
    const size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = 0;
    fclose(file);
}

// So many words of the text, from this one on; its first word is `number`, so that none begins like another.
static char *paste(int number, int n_words) {
    const char *from = text, *to;
    for (int i = 0; i < number * 7; i++) from += strcspn(from, " \n") + 1;
    to = from;
    for (int i = 0; i < n_words; i++) to += strcspn(to, " \n") + 1;
    if (to > text + strlen(text)) panic("WORDS are more than the text has");
    return xasprintf("%d %.*s", number, (int)(to - from - 1), from);
}

static uint64_t submit(const char *message, enum read_ahead ahead) {
    const struct engine_message one = {.role = "user", .text = message};
    return engine_submit(client, &(struct request_params){.conversation = 1,
                                                          .messages = &one,
                                                          .n_messages = 1,
                                                          .sampling = sampling_default(),
                                                          .max_tokens = ahead ? 0 : TOKENS,
                                                          .ignore_end = true,
                                                          .read_ahead = ahead});
}

struct outcome {
    double first, step; // seconds
    int n_prompt, n_reused;
};

static struct outcome ask(const char *message, enum read_ahead ahead) {
    struct engine_event event;
    struct outcome o = {0};
    double gaps[TOKENS], last = 0;
    int n = 0;
    const double begun = clock_seconds();
    const uint64_t id = submit(message, ahead);
    do {
        engine_wait(client, &event, -1);
        if (event.request != id || event.kind != EVENT_TEXT || event.token < 0) continue;
        const double now = (double)event.at * 1e-9;
        if (last > 0) gaps[n++] = now - last;
        else o.first = now - begun;
        last = now;
    } while (event.request != id || event.kind != EVENT_STATE || event.state < REQUEST_FINISHED);
    if (event.state == REQUEST_FAILED) panic("%s", event.text);
    o.n_prompt = event.n_prompt, o.n_reused = event.n_reused;
    o.step = bench_median(gaps, n);
    return o;
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: ahead MODEL [TIMES [WORDS]]\n");
        return 2;
    }
    const int times = argc > 2 ? atoi(argv[2]) : 5, n_words = argc > 3 ? atoi(argv[3]) : 700;
    if (times < 1 || times > MOST_TIMES || n_words < 10) panic("TIMES or WORDS are out of range");
    struct status st = {0};
    struct model_file *file = model_file_open(argv[1], &st);
    const struct engine_params params = {.n_threads = 2, .context = CONTEXT, .kv_tokens = 4 * CONTEXT};
    struct engine *engine = file ? local_engine_open(file, &params, &st) : NULL;
    if (!engine || !(client = engine_client_open(engine, &st))) panic("%s", st.text);
    read_text("CONTRIBUTING.md");
    double first[MOST_TIMES], steps[MOST_TIMES], ratios[MOST_TIMES];
    struct outcome o = {0};
    char *plain = paste(1, n_words);
    const double without = ask(plain, READ_AHEAD_OFF).first;
    for (int i = 0; i < times; i++) {
        char *sent = paste(i + 2, n_words);
        ask(sent, READ_AHEAD_ALL);
        o = ask(sent, READ_AHEAD_OFF);
        first[i] = o.first, steps[i] = o.step, ratios[i] = o.first / o.step;
        free(sent);
    }
    free(plain);
    printf("| prompt tokens | read ahead | first token without, ms | with, ms | step, ms | with / step |\n"
           "|---|---|---|---|---|---|\n| %d | %d | %.0f | %.1f | %.1f | %.2f |\n",
           o.n_prompt, o.n_reused, 1e3 * without, 1e3 * bench_median(first, times), 1e3 * bench_median(steps, times),
           bench_median(ratios, times));
    engine_client_close(client);
    engine_close(engine);
    model_file_close(file);
    return 0;
}
