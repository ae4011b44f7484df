// A chat over a scripted engine, in front of which sits somebody who presses whatever comes, while the engine says
// whatever comes: nothing crashes, the screen holds together, no message is lost, and the terminal is given back.
//
// test_random_keys [KEYS [SEED]]: so many keys (10,000) by several seeds, or by this one. Given a number of keys and no
// seed, the seeds are new ones. Each is a process of its own, in a folder of its own, with programs that do no harm.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/golden/golden_home.h"
#include "tests/golden/random_checks.h"
#include "tests/golden/random_person.h"
#include "tests/golden/script_engine.h"
#include "tests/golden/script_server.h"
#include "ui/screen_state.h"

enum {
    SEEDS = 8,
    KEYS = 10000,
    SITTING = 2000,      // keys after which the program is started anew
    RECENT = 40,         // that are told when one fails
    PATIENCE_MS = 20000, // for a program or a thread that is waited for
    HANGS_SECONDS = 60,  // that a key may take
    CLOSELY = 8          // of so many keys one is followed by a look at every cell
};

// What the parent tells of a process that died.
static struct progress {
    int keys, sent, sittings;
    char recent[RECENT][64];
} * progress;

struct run {
    struct random_person person;
    uint64_t random; // of the engine and of time
    bool waits;      // for the disk after each key: all is the same each time
    int colours;     // of the terminal
    struct golden_display display;
    struct settings settings;
    char *home, *store, *config, *history;
    struct model_host *host;
    struct engine *engine;
    struct chat *chat; // NULL: it has ended
    struct random_checks *checks;
    uint64_t now;
};

static void die(const char *what) {
    fprintf(stderr, "does not hold: %s\n", what);
    exit(1);
}

// What readline forgets when keys of its own are given up half way.
__attribute__((visibility("default"), used)) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libreadline\n"; }

static void check_bytes(struct golden_display *d) {
    const long foreign = golden_display_foreign(d);
    if (foreign < 0) return;
    fprintf(stderr, "what was sent is no sequence of confab's:");
    for (size_t i = (size_t)foreign; i < d->size && i < (size_t)foreign + 24; i++)
        fprintf(stderr, " %02x", (unsigned char)d->sent[i]);
    fputc('\n', stderr);
    exit(1);
}

// ---- turns ----

static void pass(struct run *r, uint64_t ms) { clock_freeze(r->now += ms * 1000000); }

static bool turn(struct run *r, int ms) {
    const bool goes_on = chat_step(r->chat, ms);
    if (r->waits) chat_wait(r->chat);
    return goes_on;
}

// Until the frame has gone through.
static void show(struct run *r) {
    for (int i = 0; i < PATIENCE_MS; i++) {
        chat_draw(r->chat);
        golden_display_read(&r->display);
        if (screen_output_fd(r->chat->screen) < 0) return;
    }
    die("the terminal does not get the whole screen");
}

// Other programs and threads take their own time.
static bool settle(struct run *r) {
    bool goes_on = true;
    for (int i = 0; i < 3 && goes_on; i++) goes_on = turn(r, 0);
    for (int i = 0; goes_on && (r->chat->editor || model_host_loading(r->host)); i++) {
        if (i == PATIENCE_MS) die("an editor or a model does not come to an end");
        usleep(r->chat->editor ? 0 : 200);
        goes_on = turn(r, r->chat->editor ? 1 : 0);
    }
    r->engine = model_host_engine(r->host);
    if (goes_on) show(r);
    return goes_on;
}

// ---- sittings ----

static void sit_down(struct run *r) {
    struct status st = {0};
    r->host = model_host_open(&r->settings, &script_models, &st);
    if (!r->host) die(st.text);
    for (int i = 0; i < PATIENCE_MS && model_host_poll(r->host, &st) != HOST_LOADED; i++) usleep(200);
    struct chat_params params = {.host = r->host,
                                 .settings = &r->settings,
                                 .config_path = r->config,
                                 .store_path = r->store,
                                 .screen = {.input_fd = r->display.input,
                                            .output_fd = r->display.output,
                                            .history_path = r->history,
                                            .colours = r->colours}};
    r->chat = chat_open(&params, &st);
    if (!r->chat) die(st.text);
    progress->sittings++;
    settle(r);
}

static void get_up(struct run *r) {
    struct status st = {0};
    chat_wait(r->chat); // what is being read is known
    chat_step(r->chat, 0);
    random_checks_closing(r->checks, r->chat);
    if (!chat_close(r->chat, &st)) die(st.text);
    r->chat = NULL;
    golden_display_read(&r->display);
    check_bytes(&r->display);
    if (golden_display_left(&r->display)) die(golden_display_left(&r->display));
    model_host_close(r->host);
    if (!random_checks_closed(r->checks)) exit(1);
}

// ---- what the engine does ----

static void any_token(struct run *r, uint64_t which) {
    static const char *const pieces[] = {"The ",
                                         "answer ",
                                         "is\n",
                                         "\n\n",
                                         "```c\n",
                                         "int x = 1;\n",
                                         "```\n",
                                         "# Head\n",
                                         "- item ",
                                         "1. ",
                                         "> said ",
                                         "| a | b |\n",
                                         "|---|---|\n",
                                         "$x^2$ ",
                                         "**bold** ",
                                         "`code`",
                                         "[a](https://example.org/) ",
                                         "https://example.org/x ",
                                         "- [ ] to do\n",
                                         "漢字",
                                         "👩‍👩‍👧 ",
                                         "\033[31m",
                                         "\xff",
                                         "\t",
                                         "[^1]: note\n",
                                         "![i](a.png)",
                                         "\\[ \\frac{a}{b} \\]\n",
                                         "a-very-long-word-that-does-not-fit-into-a-narrow-window-"};
    const char *piece = pieces[random_below(&r->random, sizeof pieces / sizeof *pieces)];
    const char *const texts[] = {piece, " other", "\n"};
    const float probabilities[] = {0.6f, 0.3f, 0.1f};
    const bool thinks = !random_below(&r->random, 12);
    if (random_below(&r->random, 2)) script_engine_figures(r->engine, 0.6f, 1.3f, texts, probabilities, 3, false);
    if (!random_below(&r->random, 9)) script_engine_logits(r->engine, which, 0, texts, probabilities, 3);
    script_engine_token(r->engine, which, thinks ? CHANNEL_THINKING : CHANNEL_ANSWER, piece, strlen(piece));
}

static void any_end(struct run *r, uint64_t which) {
    static const struct {
        enum request_state state;
        enum finish_reason reason;
    } ends[] = {{REQUEST_FINISHED, FINISH_END},     {REQUEST_FINISHED, FINISH_END},  {REQUEST_FINISHED, FINISH_LENGTH},
                {REQUEST_FINISHED, FINISH_CONTEXT}, {REQUEST_FINISHED, FINISH_TIME}, {REQUEST_FAILED, FINISH_ERROR},
                {REQUEST_FAILED, FINISH_CONTEXT}};
    const int i = random_between(&r->random, 0, sizeof ends / sizeof *ends - 1);
    script_engine_state(r->engine, which, ends[i].state, ends[i].reason,
                        ends[i].state == REQUEST_FAILED ? "it went wrong" : NULL);
}

static void any_figures(struct run *r, uint64_t which) {
    struct engine_metrics *f = script_engine_metrics(r->engine);
    script_engine_rate(r->engine, which, (float)random_between(&r->random, 0, 200));
    script_engine_drafts(r->engine, which, 10, random_between(&r->random, 0, 10));
    script_engine_found(r->engine, random_between(&r->random, 0, 900), 100);
    f->decode_now = (float)random_between(&r->random, 0, 500);
    f->n_pages = random_between(&r->random, 0, 600);
    f->page_tokens = 32;
    for (int i = 0; i < f->n_pages && i < METRICS_MAX_PAGES; i++)
        f->pages[i] = (struct page_metrics){.conversation = 1 + random_below(&r->random, 4),
                                            .references = (uint16_t)random_below(&r->random, 3),
                                            .filled = (uint16_t)random_below(&r->random, 33),
                                            .kept = random_below(&r->random, 2)};
}

// To one of the answers that run, or to the title that is asked for.
static void engine_acts(struct run *r) {
    const struct session *s = r->chat->session;
    const struct session_chat *chat = session_chat(s, random_between(&r->random, 0, session_count(s) - 1));
    if (!session_busy(chat) || random_below(&r->random, 3)) chat = r->chat->current;
    if (!r->engine) return;
    const int index = session_busy(chat) ? chat->answers[random_below(&r->random, (uint32_t)chat->n_answers)].index : 0;
    const uint64_t which = SCRIPT_ANSWER(chat->conversation.id, index);
    switch (random_below(&r->random, 16)) {
    case 0: script_engine_state(r->engine, which, REQUEST_PREFILLING, FINISH_NONE, NULL); break;
    case 1: script_engine_state(r->engine, which, REQUEST_PENDING, FINISH_NONE, NULL); break;
    case 2: script_engine_prefill(r->engine, which, random_between(&r->random, 0, 100), 100); break;
    case 3: script_engine_notice(r->engine, which, "something to know"); break;
    case 4: any_end(r, which); break;
    case 5: any_figures(r, which); break;
    case 6: script_engine_state(r->engine, which, REQUEST_DECODING, FINISH_NONE, NULL); break;
    default: any_token(r, which);
    }
}

// Programs come, are answered and go, where they are served.
static void server_acts(struct run *r) {
    static const char *const names[] = {"curl", "OpenAI", "\xe2\x90\x9b[31m\xe6\xbc\xa2\xe5\xad\x97", "", "127.0.0.1"};
    const uint64_t number = 1 + random_below(&r->random, 2 * SNAPSHOT_CLIENTS);
    struct server_client c = {.number = number,
                              .path = "/v1/chat/completions",
                              .state = (enum request_state)random_below(&r->random, REQUEST_DECODING + 1),
                              .n_tokens = random_between(&r->random, 0, 3000),
                              .tokens_per_second = (float)random_between(&r->random, 0, 200)};
    snprintf(c.name, sizeof c.name, "%s", names[random_below(&r->random, 5)]);
    if (random_below(&r->random, 3)) snprintf(c.model, sizeof c.model, "small");
    if (random_below(&r->random, 3)) script_server_client(&c);
    else script_server_gone(number);
    if (!random_below(&r->random, 20)) script_server_unlisted(random_between(&r->random, 0, 500));
    script_server_stopped();
}

// ---- what the person does ----

static void act(struct run *r, const struct random_act *a) {
    if (a->width) {
        golden_display_resize(&r->display, a->width, a->height);
        raise(SIGWINCH);
    }
    for (size_t at = 0; at < a->size; at += 1000) {
        const size_t size = a->size - at < 1000 ? a->size - at : 1000;
        if (write(r->display.master, a->bytes + at, size) != (ssize_t)size) die("pseudo-terminal");
        if (at + size < a->size && !turn(r, 0)) return;
    }
}

static void next_key(struct run *r) {
    const struct random_act *a = random_person_act(&r->person, &r->chat->screen->frame);
    memcpy(progress->recent[progress->keys++ % RECENT], a->what, sizeof a->what);
    alarm(HANGS_SECONDS);
    random_checks_before(r->checks, r->chat, a->bytes, a->size);
    act(r, a);
    bool goes_on = settle(r);
    pass(r, random_below(&r->random, 50) ? random_below(&r->random, 100) : random_below(&r->random, 20000));
    if (goes_on && a->pauses) pass(r, 60), goes_on = settle(r);
    if (!goes_on) return get_up(r);
    check_bytes(&r->display);
    golden_display_forget(&r->display);
    if (!random_checks_after(r->checks, r->chat, &r->display, progress->keys % CLOSELY == 0)) exit(1);
    progress->sent = random_checks_sent(r->checks);
}

// ---- a process ----

static void write_file(const char *path, const char *text, mode_t mode) {
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) || chmod(path, mode)) die(path);
}

// A folder with all that is run or read, and nothing else.
static void settle_in(struct run *r) {
    golden_home_clear_environment();
    r->home = golden_home_open();
    if (chdir(r->home) || mkdir("bin", 0700) || mkdir(".local", 0700) || mkdir(".local/share", 0700) ||
        mkdir(".local/share/confab", 0700) || mkdir(".local/share/confab/models", 0700))
        die(r->home);
    write_file("bin/editor", "#!/bin/sh\necho edited >> \"$1\"\n", 0700);
    write_file("bin/xdg-open", "#!/bin/sh\n", 0700);
    write_file("notes.md", "# Notes\n\nof a file\n", 0600);
    write_file(".local/share/confab/models/small.gguf", "small", 0600);
    write_file(".local/share/confab/models/large.gguf", "large", 0600);
    script_engine_model("small", "llama", "Q4_0", 100000000, 64 << 20, NULL);
    script_engine_model("large", "qwen3", "Q4_K", 4000000000, 3ull << 30, NULL);
    char *bin = xasprintf("%s/bin", r->home), *editor = xasprintf("%s/editor", bin);
    setenv("PATH", bin, 1);
    setenv("EDITOR", editor, 1);
    setenv("TMPDIR", r->home, 1);
    r->store = xasprintf("%s/confab.db", r->home);
    r->config = xasprintf("%s/config", r->home);
    r->history = xasprintf("%s/history", r->home);
    free(bin), free(editor);
}

static void run(int keys, uint64_t seed) {
    static const int colours[] = {1 << 24, 256, 16, 1};
    struct run r = {.person.random = seed * 0x9e3779b97f4a7c15u + 1,
                    .random = seed * 0xbf58476d1ce4e5b9u + 1,
                    .waits = seed % 4,
                    .colours = colours[seed / 2 % 4],
                    .now = 1000000000000ull,
                    .settings = settings_default()};
    settle_in(&r);
    clock_freeze(r.now);
    r.checks = random_checks_open(r.store);
    golden_display_open(&r.display, 112, 26);
    for (int i = 0; i < keys; i++) {
        if (r.chat && i % SITTING == 0) get_up(&r);
        if (!r.chat) sit_down(&r);
        next_key(&r);
        if (r.chat && random_below(&r.random, 2)) engine_acts(&r);
        if (r.chat && !random_below(&r.random, 4)) server_acts(&r);
    }
    if (r.chat) get_up(&r);
    golden_display_close(&r.display);
    random_checks_close(r.checks);
    settings_free(&r.settings);
    golden_home_close(r.home);
    free(r.store), free(r.config), free(r.history);
}

// ---- all of them ----

static int n_keys = KEYS / SEEDS;

static void tell(uint64_t seed) {
    print_error("seed %llu, after %d keys; again with test_random_keys %d %llu; the last of them:\n",
                (unsigned long long)seed, progress->keys, n_keys, (unsigned long long)seed);
    for (int i = progress->keys > RECENT ? progress->keys - RECENT : 0; i < progress->keys; i++)
        print_error("  %s\n", progress->recent[i % RECENT]);
}

// A process that is suspended goes on at once.
static void test_whatever_is_pressed(void **state) {
    const uint64_t seed = *(const uint64_t *)*state;
    int status;
    fflush(NULL);
    *progress = (struct progress){0};
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        run(n_keys, seed);
        exit(0);
    }
    while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) kill(pid, SIGCONT);
    const bool ended = WIFEXITED(status) && !WEXITSTATUS(status);
    if (!ended) tell(seed);
    if (WIFSIGNALED(status)) fail_msg("seed %llu: signal %d", (unsigned long long)seed, WTERMSIG(status));
    if (!ended) fail_msg("seed %llu", (unsigned long long)seed);
    print_message("seed %llu: %d keys in %d sittings, %d messages sent\n", (unsigned long long)seed, progress->keys,
                  progress->sittings, progress->sent);
    assert_true(progress->sent >= n_keys / 500);
}

int main(int argc, char **argv) {
    uint64_t seeds[SEEDS];
    struct CMUnitTest tests[SEEDS];
    int n = SEEDS;
    for (int i = 0; i < SEEDS; i++) seeds[i] = (argc > 1 ? (uint64_t)time(NULL) : 0) + (uint64_t)i;
    if (argc > 1) n_keys = atoi(argv[1]) / SEEDS;
    if (argc > 2) n = 1, n_keys = atoi(argv[1]), seeds[0] = strtoull(argv[2], NULL, 10);
    for (int i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){
            .name = "whatever is pressed", .test_func = test_whatever_is_pressed, .initial_state = &seeds[i]};
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) return 1;
    return _cmocka_run_group_tests("random keys", tests, (size_t)n, NULL, NULL);
}
