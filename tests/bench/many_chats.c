// many_chats FOLDER [CHATS [MESSAGES [PROGRAM]]]: a store with CHATS (10,000) chats of MESSAGES (50) messages and one
// of 5,000, made in FOLDER unless it is there. Prints what it takes to list it and to search it, and then, of PROGRAM
// (build/release/confab) in a terminal of 120 x 40: the time until its screen shows the chats and its memory, until a
// chat is found by words of its text, and until the chat of 5,000 messages is open and has scrolled by a page.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/session/store.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"

enum { WORDS = 20000, LONG = 5000, SEEN = 1 << 20, PAGES = 60 };

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

// Words of one to four syllables; a small number is a common word.
static size_t add_word(char *out, uint32_t word) {
    static const char syllables[] = "kalemirosutanevidopyxu";
    size_t n = 0;
    for (uint32_t rest = word + 3; rest; rest /= 11)
        out[n++] = syllables[2 * (rest % 11)], out[n++] = syllables[2 * (rest % 11) + 1];
    return n;
}

// Ten to a hundred words, as often as words of a language are: a word half as common stands twice as far down.
static size_t make_text(char *out, size_t room) {
    size_t n = 0;
    for (uint32_t left = 10 + draw(90); left && n + 16 < room; left--) {
        uint32_t most = WORDS;
        for (uint32_t halved = draw(15); halved; halved--) most = most / 2 + 1;
        n += add_word(out + n, draw(most));
        out[n++] = left % 12 ? ' ' : '\n';
    }
    return n;
}

static void check(bool done, const struct status *st) {
    if (!done) panic("%s", st->text);
}

static void make_chat(struct store *s, int number, int messages, const struct settings *settings) {
    char text[2048], title[64];
    struct status st = {0};
    struct conversation c;
    conversation_open(&c, 1, settings);
    for (int m = 0; m < messages; m++) {
        const size_t size = make_text(text, sizeof text);
        conversation_add(&c, m - 1, m % 2 ? MESSAGE_MODEL : MESSAGE_USER, text, size);
    }
    snprintf(text, sizeof text, "needle%d in a haystack", number); // of each chat a word of its own
    conversation_add(&c, messages - 1, MESSAGE_USER, text, strlen(text));
    snprintf(title, sizeof title, "Talk-%d", number);
    conversation_rename(&c, title);
    check(store_save(s, &c, &st), &st);
    conversation_close(&c);
}

static void make_store(const char *path, int chats, int messages) {
    struct status st = {0};
    struct settings settings = settings_default();
    const double start = clock_seconds();
    struct store *s = store_open(path, &st);
    check(s, &st);
    for (int i = 1; i < chats; i++) make_chat(s, i, messages - 1, &settings);
    make_chat(s, chats, LONG - 1, &settings);
    store_close(s);
    printf("made in %.1f s\n", clock_seconds() - start);
}

// ---- the store alone ----

static void count_chat(void *context, struct conversation *found) {
    ++*(int *)context;
    conversation_close(found);
}

static double milliseconds(double start) { return (clock_seconds() - start) * 1e3; }

static void time_search(struct store *s, const char *words) {
    double best = 1e9, worst = 0;
    int count = 0;
    for (int k = 0; k < 9; k++) {
        struct store_match *matches = NULL;
        struct status st = {0};
        const double start = clock_seconds();
        count = store_search(s, words, &matches, &st);
        const double took = milliseconds(start);
        check(count >= 0, &st);
        store_free_matches(matches, count);
        if (took < best) best = took;
        if (took > worst) worst = took;
    }
    printf("search %-24s %3d chats  %6.1f to %.1f ms\n", words, count, best, worst);
}

static void time_store(const char *path) {
    struct status st = {0};
    struct settings settings = settings_default();
    int count = 0;
    double start = clock_seconds();
    struct store *s = store_open(path, &st);
    check(s, &st);
    printf("store opened in %.1f ms\n", milliseconds(start));
    start = clock_seconds();
    check(store_list(s, &settings, count_chat, &count, &st), &st);
    printf("%d chats listed in %.1f ms\n", count, milliseconds(start));
    static const char *const words[] = {"needle4711", "needle47", "nee",          "ro",  "ro su ta",
                                        "\"ro su\"",  "takale",   "takale ro su", "kale", "take", "haystack"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) time_search(s, words[i]);
    store_close(s);
}

// ---- the program ----

struct screen {
    pid_t child;
    int fd;
    char seen[SEEN]; // what was sent since the last key, without escape sequences; of blanks nobody knows
    size_t n;
    bool escape;
};

// Takes what is sent within so many milliseconds; false: nothing came.
static bool take(struct screen *s, int timeout) {
    char bytes[65536];
    struct pollfd fd = {.fd = s->fd, .events = POLLIN};
    if (poll(&fd, 1, timeout) <= 0) return false;
    const ssize_t n = read(s->fd, bytes, sizeof bytes);
    if (n <= 0) panic("the program has ended");
    for (ssize_t i = 0; i < n; i++) {
        const char c = bytes[i];
        if (c == 27) s->escape = true;
        else if (!s->escape && s->n + 1 < SEEN) s->seen[s->n++] = c;
        else if (s->escape && ((c >= '@' && c <= 'Z') || (c >= 'a' && c <= 'z')) && c != '[') s->escape = false;
    }
    s->seen[s->n] = 0;
    return true;
}

static void quiet(struct screen *s) {
    while (take(s, 300)) continue;
}

static void press(struct screen *s, const char *keys) {
    s->n = 0;
    s->seen[0] = 0;
    if (write(s->fd, keys, strlen(keys)) < 0) panic("write");
}

// Milliseconds since `start` until a text has come.
static double until(struct screen *s, double start, const char *text) {
    while (!strstr(s->seen, text) && clock_seconds() < start + 30) take(s, 1000);
    if (!strstr(s->seen, text)) panic("'%s' never came: %s", text, s->seen);
    return milliseconds(start);
}

static double memory(const struct screen *s, const char *key) {
    char path[64], line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)s->child);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key))) kib = strtod(line + strlen(key) + 1, NULL);
    if (f) fclose(f);
    return kib / 1024;
}

// Milliseconds of the processor that it has taken so far.
static double processor(const struct screen *s) {
    char path[64];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)s->child);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) user = 0;
    if (f) fclose(f);
    return (double)(user + system) * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

static void time_program(const char *program, const char *folder, int chats) {
    struct screen *s = xcalloc(1, sizeof *s);
    struct winsize size = {.ws_row = 40, .ws_col = 120};
    char last[64], words[64];
    setenv("XDG_DATA_HOME", folder, 1), setenv("XDG_CONFIG_HOME", folder, 1), setenv("XDG_STATE_HOME", folder, 1);
    setenv("TERM", "xterm-256color", 1);
    snprintf(last, sizeof last, "Talk-%d", chats);
    const double start = clock_seconds();
    s->child = forkpty(&s->fd, NULL, NULL, &size);
    if (s->child < 0) panic("forkpty");
    if (!s->child) {
        execl(program, program, "--kv-disk", "off", "--panes", "1", (char *)NULL);
        _exit(127);
    }
    while (!s->n) take(s, 1000);
    printf("program: first bytes after %.0f ms", milliseconds(start));
    printf(", chats listed after %.0f ms\n", until(s, start, last));
    quiet(s);
    printf("memory: %.0f MiB resident, %.0f of it not of files\n", memory(s, "VmRSS:"), memory(s, "RssAnon:"));
    press(s, "\033o");
    printf("all chats in the pane to find one after %.0f ms\n", until(s, clock_seconds(), "type"));
    quiet(s);
    snprintf(words, sizeof words, "needle%d", chats / 2);
    press(s, words);
    printf("found by its text after %.0f ms\n", until(s, clock_seconds(), "haystack"));
    quiet(s);
    press(s, "\025");
    quiet(s);
    press(s, last);
    quiet(s);
    press(s, "\r");
    snprintf(words, sizeof words, "needle%d", chats);
    printf("the chat of %d messages is there after %.0f ms\n", LONG, until(s, clock_seconds(), words));
    quiet(s);
    const double pages = clock_seconds(), before = processor(s);
    for (int i = 0; i < PAGES; i++) {
        press(s, "\033[5~");
        while (!take(s, 1000)) continue;
    }
    printf("scrolls by %d pages in %.0f ms, of the processor %.0f\n", PAGES, milliseconds(pages),
           processor(s) - before);
    quiet(s);
    press(s, "\033[1;5H"); // to the top
    const double top = clock_seconds();
    while (!take(s, 1000)) continue;
    printf("goes to the top in %.0f ms\n", milliseconds(top));
    printf("memory: %.0f MiB resident, %.0f of it not of files\n", memory(s, "VmRSS:"), memory(s, "RssAnon:"));
    press(s, "\021");
    kill(s->child, SIGKILL);
    waitpid(s->child, NULL, 0);
    free(s);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER [CHATS [MESSAGES [PROGRAM]]]\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const int chats = argc > 2 ? atoi(argv[2]) : 10000, messages = argc > 3 ? atoi(argv[3]) : 50;
    char *path = xasprintf("%s/confab/confab.db", argv[1]);
    if (access(path, F_OK)) make_store(path, chats, messages);
    time_store(path);
    time_program(argc > 4 ? argv[4] : "build/release/confab", argv[1], chats);
    free(path);
    return 0;
}
