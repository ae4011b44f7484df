// long_answer [KILOBYTES [TOKENS]]: what it costs to draw an answer of so many kilobytes (100) that comes at so many
// tokens a second (100): prose, lists and tables, and as its second and third quarter one block of code. The engine is
// scripted and time passes as fast as it can, so that nothing but the chat and its screen is measured. Prints of each
// quarter the processor's time as a share of the answer's.
#include <fcntl.h>
#include <locale.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/chat/chat.h"
#include "app/models/model_host.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/golden/script_engine.h"

enum { PIPE_BYTES = 1 << 20, TOKEN = 4 /* bytes */, QUARTERS = 4 };

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

// ---- the answer ----

struct answer {
    char *text;
    size_t size, room;
};

static void add(struct answer *a, const char *text) {
    const size_t n = strlen(text);
    if (a->size + n <= a->room) memcpy(a->text + a->size, text, n);
    a->size += n;
}

static void add_words(struct answer *a, int count) {
    static const char *const words[] = {
        "the ",   "of ",       "memory ",  "model ", "answers ", "**bold** ", "`code` ",
        "for ",   "reads ",    "a ",       "while ", "*here* ",  "then ",     "[a link](http://example.org/page) ",
        "value ", "computes ", "quickly ", "naïve ", "token ",   "with ",     "page, "};
    while (count--) add(a, words[draw(sizeof words / sizeof *words)]);
}

static void add_prose(struct answer *a, size_t end) {
    while (a->size < end) {
        if (!draw(6)) add(a, "## A heading\n\n");
        if (!draw(8)) add(a, "| name | value |\n|---|--:|\n| one | 1 |\n| two | 22 |\n| three | 333 |\n\n");
        const int items = draw(3) ? 0 : 5;
        for (int i = 0; i < items; i++) add(a, "- "), add_words(a, 12), add(a, "\n");
        if (items) add(a, "\n");
        add_words(a, 60);
        add(a, "\n\n");
    }
}

static void add_code(struct answer *a, size_t end) {
    static const char *const lines[] = {
        "    int count = add(values, 12, \"text\"); // how many there are\n",
        "    for (size_t i = 0; i < count; i++) {\n",
        "    }\n",
        "\n",
        "static const char *name_of(struct thing *thing) {\n",
        "        total += values[i] * 3.14f; /* scaled */\n",
        "    if (!total || total > MOST) return fail(status, \"%d is too large\", total);\n"};
    add(a, "```c\n");
    while (a->size + 8 < end) add(a, lines[draw(sizeof lines / sizeof *lines)]);
    add(a, "```\n\n");
}

static struct answer make_answer(size_t size) {
    struct answer a = {xmalloc(size + 4096), 0, size + 4096};
    add_prose(&a, size / 4);
    add_code(&a, size / 4 * 3);
    add_prose(&a, size);
    return a;
}

// ---- the chat ----

struct terminal_ends {
    int master, input, read_end, output;
};

static struct terminal_ends open_ends(int width, int height) {
    struct winsize size = {.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
    struct terminal_ends e;
    int ends[2];
    if (openpty(&e.master, &e.input, NULL, NULL, &size) || pipe2(ends, O_CLOEXEC)) panic("no pseudo-terminal");
    e.read_end = ends[0], e.output = ends[1];
    fcntl(e.read_end, F_SETFL, O_NONBLOCK);
    fcntl(e.read_end, F_SETPIPE_SZ, PIPE_BYTES);
    return e;
}

static double processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct cost {
    double processor, slowest;
    int frames;
    size_t bytes; // sent to the terminal
};

static void step(struct chat *chat, const struct terminal_ends *e, struct cost *cost) {
    static char sent[PIPE_BYTES];
    const double start = processor_seconds();
    chat_step(chat, 0);
    const double took = processor_seconds() - start;
    const ssize_t n = read(e->read_end, sent, sizeof sent);
    cost->processor += took;
    cost->slowest = took > cost->slowest ? took : cost->slowest;
    if (n > 0) cost->frames++, cost->bytes += (size_t)n;
}

static size_t token_size(const struct answer *a, size_t at) {
    size_t n = a->size - at < TOKEN ? a->size - at : TOKEN;
    while (at + n < a->size && ((unsigned char)a->text[at + n] & 0xc0) == 0x80) n++;
    return n;
}

static void ask(struct chat *chat, const struct terminal_ends *e, struct engine *engine) {
    struct cost ignored = {0};
    if (write(e->master, "Hello\r", 6) != 6) panic("pseudo-terminal");
    for (int i = 0; i < 50 && !script_engine_state(engine, 1, REQUEST_DECODING, FINISH_NONE, NULL); i++) {
        usleep(1000);
        clock_freeze(clock_ns() + NANOSECONDS / 30);
        step(chat, e, &ignored);
    }
    script_engine_metrics(engine)->decode_now = 40;
}

static void measure(const struct answer *a, int width, int height, int rate) {
    struct settings settings = settings_default();
    struct status st = {0};
    struct cost quarters[QUARTERS] = {{0}};
    const struct terminal_ends e = open_ends(width, height);
    struct model_host *host = model_host_open(&settings, &script_models, &st);
    if (!host) panic("%s", st.text);
    while (model_host_poll(host, &st) != HOST_LOADED) usleep(1000);
    struct engine *engine = model_host_engine(host);
    struct chat_params params = {.host = host,
                                 .settings = &settings,
                                 .screen = {.input_fd = e.input, .output_fd = e.output, .colours = 1 << 24}};
    struct chat *chat = chat_open(&params, &st);
    if (!chat) panic("%s", st.text);
    ask(chat, &e, engine);
    uint64_t token = clock_ns(), frame = token;
    for (size_t at = 0, n; at < a->size; at += n) {
        n = token_size(a, at);
        for (token += NANOSECONDS / (uint64_t)rate; frame <= token; frame += NANOSECONDS / 30 + 1) {
            clock_freeze(frame);
            step(chat, &e, &quarters[at * QUARTERS / a->size]);
        }
        clock_freeze(token);
        script_engine_token(engine, 1, CHANNEL_ANSWER, a->text + at, n);
    }
    printf("%3d x %-3d %5zu kB at %d tokens/s:", width, height, a->size / 1000, rate);
    const double seconds = (double)a->size / TOKEN / rate / QUARTERS;
    double all = 0, slowest = 0;
    int frames = 0;
    for (int i = 0; i < QUARTERS; i++) {
        const struct cost *c = &quarters[i];
        all += c->processor, frames += c->frames, slowest = c->slowest > slowest ? c->slowest : slowest;
        printf(" %5.2f", 100 * c->processor / seconds);
    }
    printf(" %% of a core; %.0f us a frame, the slowest %.1f ms\n", all / frames * 1e6, slowest * 1e3);
    chat_close(chat, NULL);
    model_host_close(host);
    close(e.master), close(e.input), close(e.output), close(e.read_end);
}

int main(int argc, char **argv) {
    const size_t size = (argc > 1 ? (size_t)atoi(argv[1]) : 100) * 1000;
    const int rate = argc > 2 ? atoi(argv[2]) : 100;
    if (size < 1000 || rate < 1) {
        fprintf(stderr, "usage: %s [KILOBYTES [TOKENS]]\n", argv[0]);
        return 2;
    }
    setenv("TERM", "xterm-256color", 1);
    setlocale(LC_ALL, "C.UTF-8");
    clock_freeze(NANOSECONDS);
    const struct answer answer = make_answer(size);
    measure(&answer, 120, 40, rate);
    measure(&answer, 200, 60, rate);
    free(answer.text);
    return 0;
}
