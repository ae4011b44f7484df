#include "tests/golden/golden_script.h"

#include <readline/readline.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/bench/limits_file.h"
#include "app/chat/chat.h"
#include "app/models/model_host.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/reader.h"
#include "engine/base/utf8.h"
#include "tests/golden/golden_display.h"
#include "tests/golden/golden_home.h"
#include "tests/golden/script_engine.h"
#include "tests/golden/script_server.h"
#include "tests/golden/xterm_keys.h"
#include "ui/terminal.h"

enum { WORDS = 64, PIECE = 1000, SLICE_MS = 50, PATIENCE_MS = 10000, KV_BYTES = 64 * 1024 /* of a token */ };

struct script {
    const char *path;
    int line;
    bool update, failed, opened, ended, loading;
    int width, height, colours;
    char *limits; // a file
    char *home;   // a folder of its own, when there are files in it
    char *store;  // a file in it; NULL: chats are not saved
    struct settings settings;
    struct golden_display display;
    struct model_host *host;
    struct engine *engine;
    struct chat *chat;
    uint64_t now; // ns
    char **words; // of the line, the command first; each followed by what `sizes` says
    size_t *sizes;
    int count;
};

static void script_fail(struct script *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void script_fail(struct script *s, const char *format, ...) {
    va_list args;
    fprintf(stderr, "%s:%d: ", s->path, s->line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    s->failed = true;
}

static int word_int(const struct script *s, int i) { return i < s->count ? atoi(s->words[i]) : 0; }

static uint64_t word_chat(const struct script *s) {
    const char *dot = s->count > 1 ? strchr(s->words[1], '.') : NULL;
    return SCRIPT_ANSWER((uint64_t)word_int(s, 1), dot ? atoi(dot + 1) - 1 : 0);
}

// ---- time and turns ----

static void script_settle(struct script *s) {
    for (int i = 0; i < 4 && !s->ended; i++) {
        s->ended = !chat_step(s->chat, 0);
        chat_wait(s->chat); // as if the disk took no time
    }
    if (!s->ended) chat_draw(s->chat);
    golden_display_read(&s->display);
}

static void script_pass(struct script *s, int ms) {
    while (ms > 0) {
        int slice = ms < SLICE_MS ? ms : SLICE_MS;
        clock_freeze(s->now += (uint64_t)slice * 1000000);
        ms -= slice;
        script_settle(s);
    }
}

static void script_open(struct script *s) {
    struct status st = {0};
    if (s->opened) return;
    s->opened = true;
    golden_display_open(&s->display, s->width, s->height);
    clock_freeze(s->now);
    if (s->loading) script_engine_hold();
    s->host = model_host_open(&s->settings, &script_models, &st);
    if (!s->host) panic("%s", st.text);
    for (int i = 0; !s->loading && i < PATIENCE_MS && model_host_poll(s->host, &st) != HOST_LOADED; i++) usleep(1000);
    s->engine = model_host_engine(s->host);
    script_engine_hold();
    struct chat_params params = {
        .host = s->host,
        .settings = &s->settings,
        .limits_path = s->limits,
        .store_path = s->store,
        .screen = {.input_fd = s->display.input, .output_fd = s->display.output, .colours = s->colours}};
    s->chat = chat_open(&params, &st);
    if (!s->chat) panic("%s", st.text);
    script_settle(s);
}

static void script_close(struct script *s) {
    struct golden_display *d = &s->display;
    script_open(s);
    chat_close(s->chat, NULL);
    golden_display_read(d);
    long foreign = golden_display_foreign(d);
    if (foreign >= 0) script_fail(s, "byte %ld of what was sent begins no sequence of confab's", foreign);
    const char *left = golden_display_left(d);
    if (left) script_fail(s, "the terminal was not restored: %s", left);
    script_engine_abort();
    model_host_close(s->host);
    golden_display_close(d);
    golden_home_close(s->home);
    free(s->store);
    if (s->limits) remove(s->limits);
    free(s->limits);
}

// ---- what a person does ----

static void script_input(struct script *s, const char *bytes, size_t size) {
    while (size && !s->ended) {
        size_t n = size < PIECE ? size : PIECE;
        if (write(s->display.master, bytes, n) != (ssize_t)n) panic("pseudo-terminal");
        bytes += n, size -= n;
        script_settle(s);
    }
}

static void do_key(struct script *s) {
    for (int i = 1; i < s->count; i++) {
        struct key k;
        char bytes[XTERM_BYTES];
        size_t n = key_parse(s->words[i], &k) ? xterm_key(&k, bytes) : 0;
        if (!n) script_fail(s, "no such key: %s", s->words[i]);
        script_input(s, bytes, n);
        if (k.code == KEY_ESCAPE) script_pass(s, 60);
    }
}

static void do_type(struct script *s) { script_input(s, s->words[1], s->sizes[1]); }

static void do_paste(struct script *s) {
    script_input(s, "\033[200~", 6);
    script_input(s, s->words[1], s->sizes[1]);
    script_input(s, "\033[201~", 6);
}

static void script_mouse(struct script *s, int button, int x, int y) {
    char bytes[2 * XTERM_BYTES];
    size_t n = xterm_mouse(button, x, y, false, bytes);
    n += xterm_mouse(button, x, y, true, bytes + n);
    script_input(s, bytes, n);
}

static void do_click(struct script *s) { script_mouse(s, 0, word_int(s, 1), word_int(s, 2)); }

static void do_drag(struct script *s) {
    const int x = word_int(s, 1) + 1, y = word_int(s, 2) + 1, to_x = word_int(s, 3) + 1, to_y = word_int(s, 4) + 1;
    char bytes[96];
    int n = snprintf(bytes, sizeof bytes, "\033[<0;%d;%dM\033[<32;%d;%dM\033[<0;%d;%dm", x, y, to_x, to_y, to_x, to_y);
    script_input(s, bytes, (size_t)n);
}

static void do_wheel(struct script *s) {
    script_mouse(s, strcmp(s->words[1], "up") == 0 ? 64 : 65, word_int(s, 2), word_int(s, 3));
}

static void do_resize(struct script *s) {
    golden_display_resize(&s->display, word_int(s, 1), word_int(s, 2));
    raise(SIGWINCH);
    script_settle(s);
}

// ---- what the engine does ----

static void script_token(struct script *s, enum channel channel, const char *text, size_t size) {
    if (!script_engine_token(s->engine, word_chat(s), channel, text, size))
        script_fail(s, "chat %s does not generate", s->words[1]);
}

static void do_token(struct script *s) {
    for (int i = 2; i < s->count; i++) script_token(s, CHANNEL_ANSWER, s->words[i], s->sizes[i]);
    script_settle(s);
}

// Of the next token: "word 0.6|other 0.3" are its alternatives.
static void do_figures(struct script *s) {
    const char *texts[SAMPLING_TOP];
    float probabilities[SAMPLING_TOP];
    int n = 0;
    char *rest = NULL;
    for (char *one = strtok_r(s->words[3], "|", &rest); one && n < SAMPLING_TOP; one = strtok_r(NULL, "|", &rest)) {
        char *space = strrchr(one, ' ');
        if (!space) script_fail(s, "%s has no probability", one);
        *space = 0;
        texts[n] = one;
        probabilities[n++] = strtof(space + 1, NULL);
    }
    const bool accepted = s->count > 4 && !strcmp(s->words[4], "accepted");
    script_engine_figures(s->engine, strtof(s->words[1], NULL), strtof(s->words[2], NULL), texts, probabilities, n,
                          accepted);
}

static void script_speak(struct script *s, enum channel channel) {
    const char *text = s->words[3];
    for (size_t at = 0; at < s->sizes[3];) {
        size_t n = 1 + strcspn(text + at + 1, " \n");
        script_token(s, channel, text + at, n);
        at += n;
        script_pass(s, word_int(s, 2));
    }
    script_settle(s);
}

static void do_answer(struct script *s) { script_speak(s, CHANNEL_ANSWER); }
static void do_think(struct script *s) { script_speak(s, CHANNEL_THINKING); }

static void do_notice(struct script *s) {
    if (!script_engine_notice(s->engine, word_chat(s), s->words[2]))
        script_fail(s, "chat %s does not generate", s->words[1]);
    script_settle(s);
}

static int find_state(const char *name) {
    for (int i = 0; i < REQUEST_STATE_COUNT; i++)
        if (strcmp(request_state_name((enum request_state)i), name) == 0) return i;
    return -1;
}

static void do_state(struct script *s) {
    static const char *const reasons[] = {"none", "end", "length", "context", "time", "cancelled", "error"};
    int state = find_state(s->words[2]), reason = 0;
    for (int i = 0; s->count > 3 && i < (int)(sizeof reasons / sizeof *reasons); i++)
        if (strcmp(reasons[i], s->words[3]) == 0) reason = i;
    bool done = state >= 0 && script_engine_state(s->engine, word_chat(s), (enum request_state)state,
                                                  (enum finish_reason)reason, s->count > 4 ? s->words[4] : NULL);
    if (!done) script_fail(s, "chat %s cannot become %s", s->words[1], s->words[2]);
    script_settle(s);
}

static void do_prefill(struct script *s) {
    if (!script_engine_prefill(s->engine, word_chat(s), word_int(s, 2), word_int(s, 3)))
        script_fail(s, "chat %s has no request", s->words[1]);
    script_settle(s);
}

static void do_found(struct script *s) { script_engine_found(s->engine, word_int(s, 1), word_int(s, 2)); }

static void do_rate(struct script *s) {
    if (!script_engine_rate(s->engine, word_chat(s), (float)atof(s->words[2])))
        script_fail(s, "chat %s has no request", s->words[1]);
}

static void do_drafts(struct script *s) {
    if (!script_engine_drafts(s->engine, word_chat(s), word_int(s, 2), word_int(s, 3)))
        script_fail(s, "chat %s has no request", s->words[1]);
}

static void do_logits(struct script *s) {
    enum { VOCABULARY = 200 };
    char names[VOCABULARY][20];
    const char *texts[VOCABULARY];
    float logits[VOCABULARY];
    for (int i = 0; i < VOCABULARY; i++) {
        snprintf(names[i], sizeof names[i], " rare%d", i);
        texts[i] = i + 4 < s->count ? s->words[i + 4] : names[i];
        logits[i] = -(float)i * (float)atof(s->words[3]);
    }
    script_engine_logits(s->engine, word_chat(s), word_int(s, 2), texts, logits, VOCABULARY);
    script_settle(s);
}

#define METRICS(F, I)                                                                                                  \
    F(decode_now)                                                                                                      \
    F(prefill_now)                                                                                                     \
    F(decode_peak)                                                                                                     \
    F(first_token.p50)                                                                                                 \
    F(first_token.p90)                                                                                                 \
    F(first_token.p99) F(next_token.p50) F(next_token.p90) F(next_token.p99) I(first_token.count) I(next_token.count)  \
        I(decode_tokens) I(prefill_tokens) I(reused_tokens) I(batch_rows) I(batch_decode_rows) I(steps) I(preemptions) \
            I(kv_bytes) I(disk_bytes) I(disk_budget) I(drafted_tokens) F(acceptance) F(step_tokens)

static bool figure_set(struct engine_metrics *f, const char *name, double value) {
#define F(field)                                                                                                       \
    if (strcmp(name, #field) == 0) return f->field = (float)value, true;
#define I(field)                                                                                                       \
    if (strcmp(name, #field) == 0) return f->field = (__typeof__(f->field))value, true;
    METRICS(F, I)
#undef F
#undef I
    return false;
}

static void do_metrics(struct script *s) {
    for (int i = 1; i + 1 < s->count; i += 2)
        if (!figure_set(script_engine_metrics(s->engine), s->words[i], atof(s->words[i + 1])))
            script_fail(s, "no such figure: %s", s->words[i]);
    script_settle(s);
}

// DEVICE FIRST-LAYER END-LAYER WEIGHTS KV BUFFERS, the last three in MiB
static void do_part(struct script *s) {
    struct engine_metrics *f = script_engine_metrics(s->engine);
    if (f->n_parts == METRICS_MAX_PARTS) panic("too many parts");
    struct part_metrics *p = &f->parts[f->n_parts++];
    *p = (struct part_metrics){.first_layer = word_int(s, 2),
                               .end_layer = word_int(s, 3),
                               .weights = (int64_t)word_int(s, 4) << 20,
                               .kv = (int64_t)word_int(s, 5) << 20,
                               .buffers = (int64_t)word_int(s, 6) << 20};
    snprintf(p->device, sizeof p->device, "%s", s->words[1]);
    script_settle(s);
}

static void do_work(struct script *s) {
    static const char *const names[] = {
#define X(id, name) name,
        BACKEND_STAGES(X)
#undef X
            "decode",
        "prefill"};
    struct engine_metrics *f = script_engine_metrics(s->engine);
    struct stage_work work = {atof(s->words[2]), atof(s->words[3]) * 1e9, atof(s->words[4]) * 1e9};
    int found = -1;
    for (int i = 0; i < STAGE_COUNT + 2; i++)
        if (strcmp(names[i], s->words[1]) == 0) found = i;
    if (found < 0) script_fail(s, "no such stage: %s", s->words[1]);
    else if (found < STAGE_COUNT) f->stages[found] = work;
    else *(found == STAGE_COUNT ? &f->decode : &f->prefill) = work;
}

static void pages_count(struct engine_metrics *f) {
    f->pages_used = f->pages_shared = f->pages_free = f->pages_kept = 0;
    for (int i = 0; i < f->n_pages; i++) {
        const struct page_metrics *p = &f->pages[i];
        if (!p->references) f->pages_free++;
        else if (p->kept) f->pages_kept++;
        else f->pages_used++;
        if (p->references > 1) f->pages_shared++;
    }
}

static void do_pages(struct script *s) {
    struct engine_metrics *f = script_engine_metrics(s->engine);
    f->n_pages = word_int(s, 1) < METRICS_MAX_PAGES ? word_int(s, 1) : METRICS_MAX_PAGES;
    f->page_tokens = word_int(s, 2);
    f->kv_bytes = (uint64_t)f->n_pages * (uint64_t)f->page_tokens * KV_BYTES;
    pages_count(f);
    script_settle(s);
}

static void do_page(struct script *s) {
    struct engine_metrics *f = script_engine_metrics(s->engine);
    int chat = word_int(s, 3);
    for (int i = word_int(s, 1); i <= word_int(s, 2) && i < f->n_pages; i++)
        f->pages[i] = (struct page_metrics){.conversation = chat ? (uint64_t)chat : 1,
                                            .references = (uint16_t)word_int(s, 4),
                                            .filled = (uint16_t)word_int(s, 5),
                                            .kept = chat == 0};
    pages_count(f);
    script_settle(s);
}

#define MOMENT(N)                                                                                                      \
    N(rows)                                                                                                            \
    N(prompt_rows) N(reader) N(n_readers) N(preempted) N(preemptions) N(repacking) N(repacks) N(saving)                \
        N(woken_tokens) N(steal) N(faults) N(switches)

static bool moment_set(struct latency_moment *m, const char *name, double value) {
#define N(field)                                                                                                       \
    if (strcmp(name, #field) == 0) return m->field = (__typeof__(m->field))value, true;
    MOMENT(N)
#undef N
    return false;
}

static void do_moment(struct script *s) {
    struct engine_metrics *f = script_engine_metrics(s->engine);
    const int64_t number = (int64_t)(clock_seconds() / METRICS_MOMENT_SECONDS);
    struct latency_moment *m = &f->moments[number % METRICS_MOMENTS];
    *m = (struct latency_moment){.number = number,
                                 .conversation = word_chat(s),
                                 .seconds = (float)atof(s->words[2]),
                                 .usual = (float)atof(s->words[3])};
    for (int i = 4; i + 1 < s->count; i += 2)
        if (!moment_set(m, s->words[i], atof(s->words[i + 1]))) script_fail(s, "no such cause: %s", s->words[i]);
    script_pass(s, 250);
}

static void do_saved(struct script *s) {
    for (int i = word_int(s, 1); i <= word_int(s, 2); i++) script_engine_metrics(s->engine)->pages[i].on_disk = true;
    script_settle(s);
}

static void do_drafted(struct script *s) {
    for (int i = word_int(s, 1); i <= word_int(s, 2); i++) script_engine_metrics(s->engine)->pages[i].proposed = true;
    script_settle(s);
}

static void do_unknown(struct script *s) {
    metrics_set_unknown(script_engine_metrics(s->engine));
    script_settle(s);
}

static void do_log(struct script *s) {
    enum log_level level = LOG_LEVEL_DEBUG;
    while (level > LOG_LEVEL_ERROR && strcmp(log_level_name(level), s->words[1])) level--;
    log_set_level(LOG_LEVEL_DEBUG);
    log_write(level, s->words[2], "%s", s->words[3]);
    script_settle(s);
}

static void do_tick(struct script *s) { script_pass(s, word_int(s, 1)); }

// ---- what the server does ----

static void do_client(struct script *s) {
    const int state = find_state(s->words[5]);
    struct server_client c = {.number = (uint64_t)word_int(s, 1)};
    if (state < 0) script_fail(s, "no such state: %s", s->words[5]);
    snprintf(c.name, sizeof c.name, "%s", s->words[2]);
    snprintf(c.path, sizeof c.path, "%s", s->words[3]);
    snprintf(c.model, sizeof c.model, "%s", s->words[4]);
    c.state = (enum request_state)state;
    if (c.state == REQUEST_PREFILLING) c.prefill_done = word_int(s, 6), c.prefill_total = word_int(s, 7);
    if (c.state == REQUEST_DECODING) c.n_tokens = word_int(s, 6);
    if (c.state == REQUEST_DECODING && s->count > 7) c.tokens_per_second = (float)atof(s->words[7]);
    if (s->count > 8) c.first_token = (float)atof(s->words[8]);
    if (!script_server_client(&c)) script_fail(s, "too many clients");
    script_settle(s);
}

static void do_gone(struct script *s) {
    if (!script_server_gone((uint64_t)word_int(s, 1))) script_fail(s, "there is no client %s", s->words[1]);
    script_settle(s);
}

static void do_unlisted(struct script *s) {
    script_server_unlisted(word_int(s, 1));
    script_settle(s);
}

static void do_taken(struct script *s) { script_server_refuse(s->words[1]); }

static void do_stopped(struct script *s) {
    if (!script_server_stopped()) script_fail(s, "the server was not told to stop");
    script_settle(s);
}

static void do_cancelled(struct script *s) {
    const uint64_t latest = script_server_cancelled();
    if (latest != (uint64_t)word_int(s, 1)) script_fail(s, "the latest that was cancelled is %d", (int)latest);
}

// ---- what must be so ----

static void compare_screens(struct script *s, const char *path, const char *want, const char *got) {
    if (strcmp(want, got) == 0) return;
    int row = 0;
    const char *a = want, *b = got;
    for (const char *p = want, *q = got; *p && *p == *q; p++, q++)
        if (*p == '\n') row++, a = p + 1, b = q + 1;
    script_fail(s, "the screen is not as in %s, line %d:\n  want %.*s\n  got  %.*s\n%s", path, row + 1,
                (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b, got);
}

static void check_contrast(struct script *s) {
    char *faint = golden_display_faint(&s->display);
    if (faint) script_fail(s, "%s", faint);
    free(faint);
}

static void do_screen(struct script *s) {
    check_contrast(s);
    char *path = xasprintf("%.*s/%s.screen", (int)(strrchr(s->path, '/') - s->path), s->path, s->words[1]);
    char *got = golden_display_text(&s->display, s->count > 2);
    struct status st = {0};
    size_t size;
    if (s->update) {
        FILE *f = fopen(path, "w");
        if (!f || fputs(got, f) < 0 || fclose(f) != 0) script_fail(s, "%s cannot be written", path);
    } else {
        char *want = file_read(path, 1 << 20, &size, &st);
        if (want) compare_screens(s, path, want, got);
        else script_fail(s, "%s\n%s", st.text, got);
        free(want);
    }
    free(got);
    free(path);
}

static bool on_screen(const struct script *s, const char *text) {
    bool found = false;
    for (int y = 0; y < s->display.height && !found; y++) {
        char *row = golden_display_row(&s->display, y);
        found = strstr(row, text);
        free(row);
    }
    return found;
}

static void do_sees(struct script *s) {
    check_contrast(s);
    if (on_screen(s, s->words[1])) return;
    char *text = golden_display_text(&s->display, false);
    script_fail(s, "'%s' is not on the screen\n%s", s->words[1], text);
    free(text);
}

static void do_misses(struct script *s) {
    if (on_screen(s, s->words[1])) script_fail(s, "'%s' is on the screen", s->words[1]);
}

static void do_plain(struct script *s) {
    for (int y = 0; y < s->display.height; y++) {
        char *row = golden_display_row(&s->display, y);
        size_t size = strlen(row), used;
        for (size_t at = 0; at < size; at += used) {
            uint32_t code;
            used = utf8_decode(row + at, size - at, &code);
            bool allowed = code < 0x7f || memmem(s->words[1], s->sizes[1], row + at, used);
            if (!allowed) script_fail(s, "'%.*s' is not ASCII: %s", (int)used, row + at, row);
        }
        free(row);
    }
}

static void do_sampling(struct script *s) {
    const struct sampling *sampling = script_engine_sampling(s->engine, word_chat(s));
    for (int knob = 0; sampling && knob < KNOB_COUNT; knob++) {
        char text[16];
        if (strcmp(sampling_knobs[knob].key, s->words[2]) != 0) continue;
        if (strcmp(sampling_format(sampling, (enum sampling_knob_id)knob, text), s->words[3]) == 0) return;
        script_fail(s, "the engine has %s = %s", s->words[2], text);
    }
    if (!sampling) script_fail(s, "the engine knows no chat %s", s->words[1]);
}

// Threads come and go in real time.
static void wait_for_load(struct script *s) {
    const struct model_loading *loading = model_host_loading(s->host);
    char *title = loading ? xstrdup(loading->title) : NULL;
    for (int i = 0; i < PATIENCE_MS; i++) {
        script_settle(s);
        loading = model_host_loading(s->host);
        if (!loading || !title || strcmp(loading->title, title)) break;
        usleep(1000);
    }
    if (loading && title && !strcmp(loading->title, title)) script_fail(s, "%s is still being loaded", title);
    s->engine = model_host_engine(s->host);
    free(title);
}

static void do_progress(struct script *s) {
    script_engine_progress(atof(s->words[1]));
    script_settle(s);
}

static void do_loaded(struct script *s) {
    script_engine_release(NULL);
    wait_for_load(s);
}

static void do_load_fails(struct script *s) {
    script_engine_release(s->words[1]);
    wait_for_load(s);
}

static void do_load_ends(struct script *s) {
    script_engine_progress(1); // which is refused
    usleep(20000);
    wait_for_load(s);
}

static void do_listed(struct script *s) {
    for (int i = 0; i < PATIENCE_MS && model_host_looking(s->host); i++) {
        script_settle(s);
        usleep(1000);
    }
    if (model_host_looking(s->host)) script_fail(s, "there is no list of models");
    script_settle(s);
}

static void do_prompt(struct script *s) {
    const char *prompt = script_engine_prompt(s->engine, word_chat(s));
    if (!prompt || strcmp(prompt, s->words[2]) != 0)
        script_fail(s, "the engine was asked: %s", prompt ? prompt : "nothing");
}

static void do_begun(struct script *s) {
    const char *begun = script_engine_begun(s->engine, word_chat(s));
    if (!begun || strcmp(begun, s->words[2]) != 0) script_fail(s, "it begins with: %s", begun ? begun : "nothing");
}

static void do_sent(struct script *s) {
    if (!memmem(s->display.sent, s->display.size, s->words[1], s->sizes[1])) script_fail(s, "not sent");
}

static void do_unsent(struct script *s) {
    if (memmem(s->display.sent, s->display.size, s->words[1], s->sizes[1])) script_fail(s, "sent");
}

static void do_ended(struct script *s) {
    if (!s->ended) script_fail(s, "the chat goes on");
}

// ---- before the chat opens ----

static void do_size(struct script *s) { s->width = word_int(s, 1), s->height = word_int(s, 2); }
static void do_colours(struct script *s) { s->colours = word_int(s, 1); }
static void do_locale(struct script *s) { setenv("LC_ALL", s->words[1], 1); }

static void do_memory(struct script *s) { script_engine_memory((uint64_t)word_int(s, 1) << 20); }

// A home folder of the script's own.
static void home_make(struct script *s) {
    if (!s->home) s->home = golden_home_open();
}

static void do_store(struct script *s) {
    home_make(s);
    s->store = xasprintf("%s/confab.db", s->home);
}

// Makes a file in it.
static void home_file(struct script *s, const char *folder, const char *text, off_t size) {
    home_make(s);
    struct status st = {0};
    char *path = xasprintf("%s/%s/%s", s->home, folder, s->words[1]);
    FILE *f = path_make_parents(path, &st) ? fopen(path, "w") : NULL;
    if (!f || fputs(text, f) < 0 || ftruncate(fileno(f), size) || fclose(f)) panic("%s cannot be made", path);
    free(path);
}

static void do_config(struct script *s) { home_file(s, ".config/confab", s->words[2], (off_t)s->sizes[2]); }

static void do_inputrc(struct script *s) { rl_parse_and_bind(s->words[1]); }

static void do_file(struct script *s) {
    home_file(s, ".local/share/confab/models", "", (off_t)word_int(s, 2) << 20);
    const char *slash = strrchr(s->words[1], '/'), *base = slash ? slash + 1 : s->words[1];
    char *name = xstrndup(base, strcspn(base, "."));
    script_engine_model(name, s->words[3], s->words[4], (uint64_t)atof(s->words[5]), (uint64_t)word_int(s, 6) << 20,
                        s->count > 7 ? s->words[7] : NULL);
    free(name);
}

static void do_limits(struct script *s) {
    char path[] = "/tmp/confab-golden-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) panic("no temporary file");
    close(file);
    s->limits = xstrdup(path);
    const struct machine_limits limits = {.read_bytes = atof(s->words[1]) * 1e9,
                                          .int8_operations = atof(s->words[2]) * 1e9};
    limits_file_add(path, SCRIPT_BACKEND, &limits, true);
}

static void do_loading(struct script *s) { s->loading = true; }

static void do_set(struct script *s) {
    struct status st = {0};
    int id = setting_find(s->words[1]);
    if (id < 0 || !setting_parse(&s->settings, id, s->words[2], &st)) script_fail(s, "%s: %s", s->words[1], st.text);
}

// ---- lines ----

static const struct {
    const char *name;
    int words; // at least, after the name
    bool before;
    void (*run)(struct script *s);
} commands[] = {
    {"size", 2, true, do_size},
    {"colours", 1, true, do_colours},
    {"locale", 1, true, do_locale},
    {"memory", 1, false, do_memory},
    {"file", 6, true, do_file},
    {"config", 2, true, do_config},
    {"store", 0, true, do_store},
    {"inputrc", 1, false, do_inputrc},
    {"limits", 2, true, do_limits},
    {"progress", 1, false, do_progress},
    {"listed", 0, false, do_listed},
    {"load-fails", 1, false, do_load_fails},
    {"load-ends", 0, false, do_load_ends},
    {"set", 2, true, do_set},
    {"key", 1, false, do_key},
    {"type", 1, false, do_type},
    {"paste", 1, false, do_paste},
    {"click", 2, false, do_click},
    {"drag", 4, false, do_drag},
    {"wheel", 3, false, do_wheel},
    {"resize", 2, false, do_resize},
    {"token", 2, false, do_token},
    {"figures", 3, false, do_figures},
    {"answer", 3, false, do_answer},
    {"state", 2, false, do_state},
    {"prefill", 3, false, do_prefill},
    {"found", 2, false, do_found},
    {"rate", 2, false, do_rate},
    {"moment", 3, false, do_moment},
    {"saved", 2, false, do_saved},
    {"drafted", 2, false, do_drafted},
    {"logits", 4, false, do_logits},
    {"drafts", 3, false, do_drafts},
    {"metrics", 2, false, do_metrics},
    {"part", 6, false, do_part},
    {"unknown", 0, false, do_unknown},
    {"work", 4, false, do_work},
    {"pages", 2, false, do_pages},
    {"page", 5, false, do_page},
    {"log", 3, false, do_log},
    {"client", 5, false, do_client},
    {"gone", 1, false, do_gone},
    {"unlisted", 1, false, do_unlisted},
    {"taken", 1, true, do_taken},
    {"stopped", 0, false, do_stopped},
    {"cancelled", 1, false, do_cancelled},
    {"tick", 1, false, do_tick},
    {"screen", 1, false, do_screen},
    {"sees", 1, false, do_sees},
    {"misses", 1, false, do_misses},
    {"plain", 1, false, do_plain},
    {"sampling", 3, false, do_sampling},
    {"prompt", 2, false, do_prompt},
    {"begun", 2, false, do_begun},
    {"sent", 1, false, do_sent},
    {"unsent", 1, false, do_unsent},
    {"ended", 0, false, do_ended},
    {"loading", 0, true, do_loading},
    {"loaded", 0, false, do_loaded},
    {"think", 3, false, do_think},
    {"notice", 2, false, do_notice},
};

// Reads one escape after a backslash; returns the characters it took.
static size_t word_escape(const char *p, char *out) {
    static const char names[] = "nrte", values[] = "\n\r\t\033";
    const char *name = *p ? strchr(names, *p) : NULL;
    if (*p == 'x') {
        char digits[3] = {p[1], p[1] ? p[2] : 0, 0};
        *out = (char)strtol(digits, NULL, 16);
        return 3;
    }
    *out = name ? values[name - names] : *p;
    return 1;
}

static void line_split(struct script *s, char *line) {
    s->count = 0;
    for (char *p = line; s->count < WORDS;) {
        p += strspn(p, " ");
        if (!*p || (*p == '#' && s->count == 0)) return;
        bool quoted = *p == '"';
        char *out = p += quoted, *start = p;
        while (*p && *p != (quoted ? '"' : ' ')) {
            if (quoted && *p == '\\') p++, p += word_escape(p, out++);
            else *out++ = *p++;
        }
        bool more = *p;
        s->words[s->count] = start;
        s->sizes[s->count++] = (size_t)(out - start);
        *out = 0;
        if (!more) return;
        p++;
    }
}

static void line_play(struct script *s) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, s->words[0]) != 0) continue;
        if (s->count - 1 < commands[i].words || (commands[i].before && s->opened)) break;
        if (!commands[i].before) script_open(s);
        commands[i].run(s);
        return;
    }
    script_fail(s, "this cannot be done here: %s", s->words[0]);
}

bool golden_script_play(const char *path, bool update) {
    char *words[WORDS];
    size_t sizes[WORDS], size;
    struct status st = {0};
    struct script s = {.path = path,
                       .update = update,
                       .width = 112,
                       .height = 26,
                       .colours = 1 << 24,
                       .now = 1000000000000ull,
                       .words = words,
                       .sizes = sizes};
    s.settings = settings_default();
    char *text = file_read(path, 1 << 20, &size, &st);
    if (!text) panic("%s", st.text);
    for (char *line = text, *next; line && *line && !s.failed; line = next) {
        if ((next = strchr(line, '\n'))) *next++ = 0;
        s.line++;
        line_split(&s, line);
        if (s.count) line_play(&s);
    }
    script_close(&s);
    settings_free(&s.settings);
    free(text);
    return !s.failed;
}
