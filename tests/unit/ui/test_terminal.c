// The renderer against a terminal emulator, and the terminal itself on a pseudo-terminal: what it leaves behind on each
// way out.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>
#include <vterm.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/utf8.h"
#include "tests/unit/xorshift.h"
#include "ui/terminal_parts.h"

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n) { return xorshift_below(&random_state, n); }

// ---- the renderer ----

enum { WIDTH = 37, HEIGHT = 9 };

struct emulator {
    VTerm *vterm;
    VTermScreen *screen;
};

static struct emulator emulator_open(int width, int height) {
    struct emulator e = {.vterm = vterm_new(height, width)};
    vterm_set_utf8(e.vterm, 1);
    e.screen = vterm_obtain_screen(e.vterm);
    vterm_screen_enable_altscreen(e.screen, 1);
    vterm_screen_reset(e.screen, 1);
    vterm_input_write(e.vterm, "\033[?7l", 5);
    return e;
}

static VTermScreenCell emulator_cell(const struct emulator *e, int x, int y) {
    VTermScreenCell cell = {0};
    vterm_screen_get_cell(e->screen, (VTermPos){.row = y, .col = x}, &cell);
    return cell;
}

static void draw_something(struct canvas *c) {
    static const char *const pieces[] = {"plain text",
                                         "日本語",
                                         "한국어",
                                         "e\u0301t\u00e9",
                                         "\U0001f600",
                                         "\u2764\ufe0f",
                                         "\U0001f468\u200d\U0001f469\u200d\U0001f467",
                                         "\U0001f1f3\U0001f1f4",
                                         "─│╭╮╰╯",
                                         "⣀⣤⣶⣿",
                                         "\u0928\u093f",
                                         "a\u0300\u0301\u0302\u0303\u0304\u0305\u0306",
                                         " ",
                                         "x",
                                         "\033[31m\a\u202e",
                                         "\xff\xc3"};
    struct style s = {.role = (uint8_t)random_below(ROLE_COUNT),
                      .ground = (uint8_t)random_below(ROLE_COUNT),
                      .attributes = (uint8_t)(random_below(3) ? 0 : random_below(32)),
                      .shade = (uint8_t)(random_below(2) ? 0 : random_below(102))};
    const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
    canvas_text(c, (struct rect){0, 0, WIDTH, HEIGHT}, (int)random_below(WIDTH + 4) - 4, (int)random_below(HEIGHT), s,
                piece, strlen(piece));
}

static void assert_colour(VTermColor got, uint32_t encoded) {
    switch (encoded >> 24) {
    case 0: assert_true(VTERM_COLOR_IS_DEFAULT_FG(&got) || VTERM_COLOR_IS_DEFAULT_BG(&got)); break;
    case 1:
        assert_true(VTERM_COLOR_IS_INDEXED(&got));
        assert_int_equal(got.indexed.idx, encoded & 0xff);
        break;
    default:
        assert_true(VTERM_COLOR_IS_RGB(&got));
        assert_int_equal(got.rgb.red << 16 | got.rgb.green << 8 | got.rgb.blue, encoded & 0xffffff);
    }
}

// The emulator knows no clusters: of those it may keep the first code point only, but never move what follows.
static void assert_cell(const struct renderer *r, const struct emulator *e, const struct canvas *c, int x, int y) {
    const struct cell *want = &c->cells[y * c->width + x];
    VTermScreenCell got = emulator_cell(e, x, y);
    if (want->width == 0) return;
    uint32_t first = got.chars[0] ? got.chars[0] : ' ';
    assert_int_equal(first, want->codes[0]);
    uint8_t role = want->role, ground = want->ground ? want->ground : ROLE_GROUND;
    assert_colour(got.fg, r->palette[role][want->shade]);
    assert_colour(got.bg, r->palette[ground][0]);
    assert_true(!(want->attributes & CELL_BOLD) || got.attrs.bold);
    assert_int_equal(got.attrs.italic, (want->attributes & CELL_ITALIC) != 0);
    assert_int_equal(got.attrs.strike, (want->attributes & CELL_STRIKE) != 0);
    if (r->palette[role][want->shade] >> 24) assert_int_equal(got.attrs.bold, (want->attributes & CELL_BOLD) != 0);
    if (r->palette[role][want->shade] >> 24)
        assert_int_equal(got.attrs.underline, (want->attributes & CELL_UNDERLINE) != 0);
    bool plain = want->codes[0] < 0x2000 && want->codes[1] >= 0x300 && want->codes[1] < 0x370;
    for (int i = 1; plain && i < CELL_CODES && i < VTERM_MAX_CHARS_PER_CELL; i++)
        assert_int_equal(got.chars[i], want->codes[i]);
}

static void assert_same(const struct renderer *r, const struct emulator *e, const struct canvas *c) {
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++) assert_cell(r, e, c, x, y);
}

static void draw_frames(int colours, const char *theme_name) {
    struct theme theme;
    assert_true(theme_load(&theme, theme_name, NULL));
    struct canvas c;
    struct renderer r;
    canvas_open(&c, WIDTH, HEIGHT);
    renderer_open(&r, colours, true);
    struct emulator e = emulator_open(WIDTH, HEIGHT);
    for (int frame = 0; frame < 400; frame++) {
        if (random_below(40) == 0) canvas_clear(&c);
        if (random_below(100) == 0) renderer_forget(&r);
        for (uint32_t n = random_below(6); n > 0; n--) draw_something(&c);
        int x = (int)random_below(WIDTH + 1) - 1, y = (int)random_below(HEIGHT);
        renderer_frame(&r, &c, &theme, x, y);
        vterm_input_write(e.vterm, r.out, r.size);
        assert_same(&r, &e, &c);
        VTermPos cursor;
        vterm_state_get_cursorpos(vterm_obtain_state(e.vterm), &cursor);
        if (x >= 0) assert_true(cursor.col == x && cursor.row == y);
        renderer_frame(&r, &c, &theme, x, y);
        assert_int_equal(r.size, 0); // the same again is nothing
    }
    vterm_free(e.vterm);
    renderer_close(&r);
    canvas_close(&c);
}

static void test_frames_reach_the_screen(void **state) {
    (void)state;
    static const int depths[] = {1, 16, 256, 1 << 24};
    for (int i = 0; i < 4; i++) draw_frames(depths[i], "confab-dark");
    draw_frames(1 << 24, "mono");
}

static void test_nearest_colours(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int in_256, in_16;
    } samples[] = {{"#ff0000", 196, 9}, {"#000000", 16, 0},  {"#ffffff", 231, 15}, {"#00cd00", 40, 2},
                   {"#808080", 244, 8}, {"#101418", 233, 0}, {"#5f87af", 67, -1},  {"#ffff00", 226, 11}};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char text[64];
        struct theme theme;
        struct canvas c;
        snprintf(text, sizeof text, "text = \"%s\"", samples[i].text);
        assert_true(theme_parse(&theme, "test", text, strlen(text), NULL));
        canvas_open(&c, 1, 1);
        for (int colours = 16; colours <= 256; colours += 240) {
            struct renderer r;
            struct emulator e = emulator_open(1, 1);
            renderer_open(&r, colours, true);
            renderer_frame(&r, &c, &theme, -1, 0);
            vterm_input_write(e.vterm, r.out, r.size);
            int want = colours == 16 ? samples[i].in_16 : samples[i].in_256;
            if (want >= 0) assert_int_equal(emulator_cell(&e, 0, 0).fg.indexed.idx, want);
            vterm_free(e.vterm);
            renderer_close(&r);
        }
        canvas_close(&c);
    }
}

static void test_small_change_is_few_bytes(void **state) {
    (void)state;
    struct theme theme;
    theme_load(&theme, "confab-dark", NULL);
    struct canvas c;
    struct renderer r;
    struct rect all = {0, 0, 200, 60};
    canvas_open(&c, 200, 60);
    renderer_open(&r, 1 << 24, true);
    renderer_frame(&r, &c, &theme, 3, 3);
    canvas_print(&c, all, 100, 30, (struct style){.role = ROLE_TEXT}, "token");
    renderer_frame(&r, &c, &theme, 3, 3);
    assert_true(r.size > 5 && r.size < 80);
    renderer_close(&r);
    canvas_close(&c);
}

// Only the sequences of the renderer itself may be in a frame: CSI with digits, ';', '?' and one of h l H C m J.
static void assert_own_sequences(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        assert_true((uint8_t)p[i] >= 0x20 || p[i] == 033);
        assert_int_not_equal(p[i], 0x7f);
        if ((uint8_t)p[i] == 0xc2 && i + 1 < n) assert_true((uint8_t)p[i + 1] >= 0xa0);
        if (p[i] != 033) continue;
        assert_int_equal(p[++i], '[');
        for (i++; i < n && strchr("0123456789;?", p[i]); i++) {
        }
        assert_true(i < n && strchr("hlHCmJ", p[i]));
    }
}

static void test_hostile_text_sends_no_sequence(void **state) {
    (void)state;
    static const char hostile[] = "\033]0;owned\a\033[2J\033[?1000h\033P1$r\033\\\x9b"
                                  "31m\xc2\x9b"
                                  "31m\x00\x07\x08\x7f\r\xe2\x80\xae\xe2\x81\xa6\xff\xed\xa0\x80";
    struct theme theme;
    theme_load(&theme, "confab-dark", NULL);
    struct canvas c;
    struct renderer r;
    canvas_open(&c, 120, 4);
    for (int unicode = 0; unicode < 2; unicode++) {
        renderer_open(&r, 1 << 24, unicode);
        canvas_text(&c, (struct rect){0, 0, 120, 4}, 0, 0, (struct style){.role = ROLE_TEXT}, hostile,
                    sizeof hostile - 1);
        canvas_fill(&c, (struct rect){0, 1, 3, 1}, (struct style){.role = ROLE_TEXT},
                    033); // even put straight into a cell
        canvas_fill(&c, (struct rect){0, 2, 3, 1}, (struct style){.role = ROLE_TEXT}, 0x9b);
        renderer_frame(&r, &c, &theme, 0, 0);
        assert_own_sequences(r.out, r.size);
        assert_null(memmem(r.out, r.size, "\xe2\x80\xae", 3));
        for (size_t i = 0; !unicode && i < r.size; i++) assert_true((uint8_t)r.out[i] < 0x80);
        renderer_close(&r);
    }
    canvas_close(&c);
}

static void test_without_unicode_columns_stay(void **state) {
    (void)state;
    struct theme theme;
    theme_load(&theme, "mono", NULL);
    struct canvas c;
    struct renderer r;
    canvas_open(&c, 12, 1);
    renderer_open(&r, 1, false);
    canvas_print(&c, (struct rect){0, 0, 12, 1}, 0, 0, (struct style){.role = ROLE_TEXT}, "a日b\u00e9|");
    renderer_frame(&r, &c, &theme, -1, 0);
    assert_non_null(memmem(r.out, r.size, "a? b?|", 6));
    renderer_close(&r);
    canvas_close(&c);
}

// With 16 colours a light ground needs dark letters: neither cyan nor grey can be read there.
static void test_a_light_theme_in_16_colours(void **state) {
    (void)state;
    struct theme theme;
    struct canvas c;
    struct renderer r;
    canvas_open(&c, 1, 1);
    assert_true(theme_load(&theme, "confab-light", NULL));
    renderer_open(&r, 16, true);
    renderer_frame(&r, &c, &theme, -1, 0);
    static const enum theme_role letters[] = {ROLE_TEXT, ROLE_STRONG, ROLE_TITLE, ROLE_USER, ROLE_MODEL, ROLE_ACCENT};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        uint32_t index = r.palette[letters[i]][0] & 0xff;
        assert_true(index < 8 && index != 7 && index != 6 && index != 3);
    }
    renderer_close(&r);
    canvas_close(&c);
}

static void test_selected_line_is_seen_without_colours(void **state) {
    (void)state;
    struct theme theme;
    struct canvas c;
    canvas_open(&c, 4, 1);
    canvas_fill(&c, (struct rect){0, 0, 4, 1}, (struct style){.role = ROLE_SELECTED, .ground = ROLE_SELECTED_GROUND},
                'x');
    for (int i = 0; i < 2; i++) {
        theme_load(&theme, i ? "mono" : "confab-dark", NULL);
        struct renderer r;
        renderer_open(&r, i ? 1 << 24 : 1, true);
        renderer_frame(&r, &c, &theme, -1, 0);
        struct emulator e = emulator_open(4, 1);
        vterm_input_write(e.vterm, r.out, r.size);
        assert_true(emulator_cell(&e, 2, 0).attrs.reverse);
        vterm_free(e.vterm);
        renderer_close(&r);
    }
    canvas_close(&c);
}

// ---- a whole terminal, on a pseudo-terminal, in a process of its own ----

enum way_out { OUT_CLOSE, OUT_EXIT, OUT_PANIC, OUT_SIGNAL, OUT_CRASH };

struct session {
    pid_t pid;
    int master;
    char seen[65536];
    size_t size;
};

static void session_child(enum way_out out, int signal_number) {
    struct terminal *t = terminal_open(&(struct terminal_options){.input_fd = 0, .output_fd = 1}, NULL);
    if (!t) _exit(9);
    struct canvas c;
    struct theme theme;
    int width, height;
    terminal_size(t, &width, &height);
    canvas_open(&c, width, height);
    theme_load(&theme, "confab-dark", NULL);
    canvas_print(&c, (struct rect){0, 0, width, height}, 0, 0, (struct style){.role = ROLE_TEXT}, "ready %dx%d", width,
                 height);
    terminal_draw(t, &c, &theme, 0, 0);
    canvas_close(&c);
    if (out == OUT_EXIT) exit(0);
    if (out == OUT_PANIC) panic("on purpose");
    if (out == OUT_SIGNAL) raise(signal_number);
    if (out == OUT_CRASH) *(volatile int *)(uintptr_t)signal_number = 1;
    terminal_close(t);
    _exit(0);
}

static void session_open(struct session *s, enum way_out out, int signal_number) {
    struct winsize size = {.ws_row = 7, .ws_col = 43};
    *s = (struct session){0};
    s->pid = forkpty(&s->master, NULL, NULL, &size);
    assert_true(s->pid >= 0);
    if (s->pid) return;
    setenv("TERM", "xterm-256color", 1);
    unsetenv("COLORTERM");
    for (int i = 1; i < 32; i++) signal(i, SIG_DFL); // some are the test library's
    session_child(out, signal_number);
}

static void session_read(struct session *s) {
    struct pollfd p = {.fd = s->master, .events = POLLIN};
    while (poll(&p, 1, 10000) > 0) {
        ssize_t n = read(s->master, s->seen + s->size, sizeof s->seen - s->size - 1);
        if (n <= 0) break;
        s->size += (size_t)n;
    }
    s->seen[s->size] = 0;
}

static size_t position_of(const struct session *s, const char *bytes) {
    const char *last = NULL;
    for (const char *p = s->seen; (p = strstr(p, bytes)); p++) last = p;
    return last ? (size_t)(last - s->seen) + 1 : 0;
}

// The last word about every mode is that it is off.
static void assert_restored(const struct session *s) {
    static const char *const modes[][2] = {{"\033[?1049h", "\033[?1049l"}, {"\033[?1000h", "\033[?1000l"},
                                           {"\033[?1002h", "\033[?1002l"},
                                           {"\033[?1006h", "\033[?1006l"}, {"\033[?2004h", "\033[?2004l"},
                                           {"\033[?25l", "\033[?25h"},     {"\033[?7l", "\033[?7h"},
                                           {"\033[6 q", "\033[0 q"},       {"\033[?2026h", "\033[?2026l"},
                                           {"\033[?1036h", "\033[?1036r"}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_true(position_of(s, modes[i][0]) > 0);
        if (position_of(s, modes[i][1]) < position_of(s, modes[i][0])) fail_msg("left on: %s", modes[i][0] + 1);
    }
}

static void check_way_out(enum way_out out, int signal_number, int want_signal, int want_exit) {
    struct session s;
    session_open(&s, out, signal_number);
    session_read(&s);
    int status;
    struct termios modes;
    bool known = tcgetattr(s.master, &modes) == 0;
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    close(s.master);
    assert_non_null(strstr(s.seen, "ready"));
    assert_non_null(strstr(s.seen, "43x7"));
    assert_restored(&s);
    if (known) assert_true((modes.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG));
    if (want_signal) assert_true(WIFSIGNALED(status) && WTERMSIG(status) == want_signal);
    else assert_true(WIFEXITED(status) && WEXITSTATUS(status) == want_exit);
}

static void test_every_way_out_restores(void **state) {
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT};
    check_way_out(OUT_CLOSE, 0, 0, 0);
    check_way_out(OUT_EXIT, 0, 0, 0);
    check_way_out(OUT_PANIC, 0, 0, 1);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) check_way_out(OUT_SIGNAL, signals[i], signals[i], 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they answer these signals in their own way
    check_way_out(OUT_SIGNAL, SIGBUS, SIGBUS, 0);
    check_way_out(OUT_SIGNAL, SIGFPE, SIGFPE, 0);
    check_way_out(OUT_CRASH, 8, SIGSEGV, 0);
#endif
}

// Stopped with Ctrl-Z and continued: given back meanwhile, taken again and drawn afresh after.
static void suspend_child(void) {
    struct terminal *t = terminal_open(&(struct terminal_options){.input_fd = 0, .output_fd = 1}, NULL);
    if (!t) _exit(9);
    struct canvas c;
    struct theme theme;
    canvas_open(&c, 43, 7);
    theme_load(&theme, "mono", NULL);
    for (int i = 0; i < 2; i++) {
        canvas_print(&c, (struct rect){0, 0, 43, 7}, 0, 0, (struct style){.role = ROLE_TEXT}, "same text");
        terminal_draw(t, &c, &theme, 0, 0);
        if (i == 0) terminal_suspend(t);
    }
    terminal_close(t);
    canvas_close(&c);
    _exit(0);
}

// Job control needs a session whose leader stays: the child of the pseudo-terminal's first process is what stops.
static void suspend_leader(void) {
    setenv("TERM", "xterm-256color", 1);
    signal(SIGTTOU, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        tcsetpgrp(0, getpid());
        signal(SIGTTOU, SIG_DFL);
        suspend_child();
    }
    int status;
    waitpid(pid, &status, WUNTRACED);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTSTP) _exit(5);
    struct termios modes;
    tcgetattr(0, &modes);
    if (!(modes.c_lflag & ICANON)) _exit(6);
    printf("|stopped|");
    fflush(stdout);
    kill(pid, SIGCONT);
    waitpid(pid, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 7);
}

static void test_suspend_and_resume(void **state) {
    (void)state;
    struct session s = {0};
    struct winsize size = {.ws_row = 7, .ws_col = 43};
    s.pid = forkpty(&s.master, NULL, NULL, &size);
    if (s.pid == 0) suspend_leader();
    session_read(&s);
    int status;
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    close(s.master);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    char *stopped = strstr((char *)s.seen, "|stopped|");
    assert_non_null(stopped);
    assert_non_null(strstr(stopped, "\033[?1049h"));
    assert_non_null(strstr(stopped, "same text"));
    *stopped = 0;
    assert_restored(&s);
    *stopped = '|';
    assert_restored(&s);
}

static void say_now(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(8);
}

static void lending_child(void) {
    setenv("TERM", "xterm-256color", 1);
    signal(SIGINT, SIG_DFL);
    struct terminal *t = terminal_open(&(struct terminal_options){.input_fd = 0, .output_fd = 1}, NULL);
    if (!t) _exit(9);
    struct canvas c;
    struct theme theme;
    struct termios modes;
    canvas_open(&c, 43, 7);
    theme_load(&theme, "mono", NULL);
    canvas_print(&c, (struct rect){0, 0, 43, 7}, 0, 0, (struct style){.role = ROLE_TEXT}, "same text");
    terminal_draw(t, &c, &theme, 0, 0);
    terminal_lend(t);
    say_now("|lent|");
    tcgetattr(0, &modes);
    if (!(modes.c_lflag & ICANON)) _exit(6);
    raise(SIGINT); // Ctrl+C is the other program's
    terminal_draw(t, &c, &theme, 0, 0);
    say_now("|back|");
    terminal_reclaim(t);
    terminal_draw(t, &c, &theme, 0, 0);
    terminal_lend(t);
    terminal_reclaim(t); // nothing is shown before
    raise(SIGCONT);
    terminal_draw(t, &c, &theme, 0, 0);
    raise(SIGCONT);
    terminal_draw(t, &c, &theme, 0, 0);
    terminal_lend(t);
    terminal_reclaim(t); // and closed before anything is shown
    terminal_close(t);
    canvas_close(&c);
    _exit(0);
}

static int count_of(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) n++;
    return n;
}

static void test_the_terminal_is_lent_and_taken_over_again(void **state) {
    (void)state;
    struct session s = {0};
    struct winsize size = {.ws_row = 7, .ws_col = 43};
    s.pid = forkpty(&s.master, NULL, NULL, &size);
    if (s.pid == 0) lending_child();
    session_read(&s);
    int status;
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    close(s.master);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_restored(&s);
    char *lent = strstr(s.seen, "|lent|"), *back = strstr(s.seen, "|lent||back|");
    assert_true(lent && lent == back); // nothing was drawn between
    assert_non_null(strstr(back, "\033[?1049h"));
    assert_non_null(strstr(back, "same text"));
    assert_int_equal(count_of(s.seen, "\033[22;2t"), count_of(s.seen, "\033[23;2t")); // its title is put aside and back
    *lent = 0;
    assert_restored(&s);
}

static void test_suspend_with_nobody_to_stop_for(void **state) {
    (void)state;
    struct session s = {0};
    struct winsize size = {.ws_row = 7, .ws_col = 43};
    s.pid = forkpty(&s.master, NULL, NULL, &size);
    if (s.pid == 0) {
        setenv("TERM", "xterm-256color", 1);
        suspend_child(); // leads its session: the kernel does not stop an orphaned group
    }
    session_read(&s);
    int status;
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    close(s.master);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_restored(&s);
}

// ---- a terminal that takes no bytes ----

static void draw_number(struct terminal *t, struct canvas *c, const struct theme *theme, int number) {
    canvas_clear(c);
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++)
            canvas_print(c, (struct rect){0, 0, c->width, c->height}, x, y, (struct style){.role = ROLE_TEXT}, "%d",
                         (x + y + number) % 10);
    canvas_print(c, (struct rect){0, 0, c->width, c->height}, 0, 0, (struct style){.role = ROLE_TEXT}, "frame %06d",
                 number);
    terminal_draw(t, c, theme, -1, -1);
}

static size_t read_available(int fd, char *out, size_t size) {
    ssize_t n = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 200) > 0 ? read(fd, out, size) : 0;
    return n > 0 ? (size_t)n : 0;
}

static void test_a_stalled_terminal_holds_nobody_up(void **state) {
    (void)state;
    enum { COLUMNS = 200, LINES = 60, FRAMES = 300 };
    struct winsize size = {.ws_row = LINES, .ws_col = COLUMNS};
    struct canvas c;
    struct theme theme;
    struct termios raw;
    int master, slave, frame = 0;
    static char bytes[1 << 16];
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    alarm(60); // instead of waiting for ever
    setenv("TERM", "xterm-256color", 1);
    theme_load(&theme, "confab-dark", NULL);
    canvas_open(&c, COLUMNS, LINES);
    struct terminal *t = terminal_open(&(struct terminal_options){slave, slave, 0}, NULL);
    assert_non_null(t);
    tcgetattr(slave, &raw);
    raw.c_oflag &= ~(tcflag_t)OPOST;
    tcsetattr(slave, TCSANOW, &raw);
    while (frame < FRAMES) draw_number(t, &c, &theme, frame++);
    int waits_on = terminal_output_fd(t);
    assert_true(waits_on >= 0);
    assert_int_equal(poll(&(struct pollfd){.fd = waits_on, .events = POLLOUT}, 1, 0), 0);
    assert_int_equal(fcntl(slave, F_GETFL) & O_NONBLOCK, 0); // the shell's writing is as it was
    assert_false(terminal_write(t, "\033]52;c;YQ==\a", 13));

    // It takes bytes again: what is on the screen in the end is the last frame.
    struct emulator e = emulator_open(COLUMNS, LINES);
    for (size_t n; (n = read_available(master, bytes, sizeof bytes)) || terminal_output_fd(t) >= 0;) {
        vterm_input_write(e.vterm, bytes, n);
        if (terminal_output_fd(t) >= 0) draw_number(t, &c, &theme, frame);
    }
    for (int y = 0; y < LINES; y++)
        for (int x = 0; x < COLUMNS; x++)
            assert_int_equal(emulator_cell(&e, x, y).chars[0], c.cells[y * COLUMNS + x].codes[0]);
    while (terminal_output_fd(t) < 0) draw_number(t, &c, &theme, ++frame);
    terminal_close(t); // comes back too
    alarm(0);
    vterm_free(e.vterm);
    canvas_close(&c);
    close(master), close(slave);
}

static void stalled_child(int signal_number) {
    struct terminal *t = terminal_open(&(struct terminal_options){.input_fd = 0, .output_fd = 1}, NULL);
    if (!t) _exit(9);
    struct canvas c;
    struct theme theme;
    theme_load(&theme, "confab-dark", NULL);
    canvas_open(&c, 200, 60);
    for (int i = 0; terminal_output_fd(t) < 0; i++) draw_number(t, &c, &theme, i);
    raise(signal_number);
}

// The signal ends it although nobody reads, and who reads then finds everything given back.
static void test_a_signal_ends_it_on_a_stalled_terminal(void **state) {
    (void)state;
    static const int signals[] = {SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct session s = {0};
        struct winsize size = {.ws_row = 60, .ws_col = 200};
        s.pid = forkpty(&s.master, NULL, NULL, &size);
        if (s.pid == 0) {
            setenv("TERM", "xterm-256color", 1);
            for (int n = 1; n < 32; n++) signal(n, SIG_DFL);
            stalled_child(signals[i]);
        }
        int status;
        alarm(60);
        assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
        alarm(0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        session_read(&s);
        close(s.master);
        assert_restored(&s);
    }
}

static void test_depth_of_colour(void **state) {
    (void)state;
    static const struct {
        const char *term, *colorterm, *no_color;
        int want, colours;
    } samples[] = {{"xterm-256color", NULL, NULL, 0, 256},
                   {"unheard-of-direct", NULL, NULL, 0, 1 << 24},
                   {"xterm-256color", "truecolor", NULL, 0, 1 << 24},
                   {"xterm", NULL, NULL, 0, 16},
                   {"vt100", NULL, NULL, 0, 1},
                   {"xterm-256color", "24bit", "1", 0, 1},
                   {"linux", NULL, NULL, 0, 16},
                   {"xterm-256color", NULL, "1", 16, 16},
                   {"no-such-terminal", NULL, NULL, 0, 16},
                   {"other-256color", NULL, "", 0, 256}};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        int in[2], out[2];
        assert_true(pipe(in) == 0 && pipe(out) == 0);
        setenv("TERM", samples[i].term, 1);
        samples[i].colorterm ? setenv("COLORTERM", samples[i].colorterm, 1) : unsetenv("COLORTERM");
        samples[i].no_color ? setenv("NO_COLOR", samples[i].no_color, 1) : unsetenv("NO_COLOR");
        struct status st = {0};
        struct terminal *t = terminal_open(&(struct terminal_options){in[0], out[1], samples[i].want}, &st);
        if (!t) fail_msg("%s: %s", samples[i].term, st.text);
        assert_int_equal(terminal_colours(t), samples[i].colours);
        close(in[1]);
        struct key k;
        assert_false(terminal_key(t, &k));
        assert_true(terminal_ended(t));
        terminal_close(t);
        close(in[0]), close(out[0]), close(out[1]);
    }
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    struct status st = {0};
    assert_null(terminal_open(&(struct terminal_options){0, 1, 0}, &st));
    assert_non_null(strstr(st.text, "dumb"));
}

// Both halves of a key were there before anybody looked again, however long that took.
static void test_a_key_in_halves_that_is_read_late(void **state) {
    (void)state;
    static const struct {
        const char *first, *rest;
        enum key_code code;
    } samples[] = {{"\xe3", "\x81\x93", KEY_TEXT}, {"\033", "[A", KEY_UP}, {"\033[", "B", KEY_DOWN}};
    setenv("TERM", "xterm", 1);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        int in[2], out[2];
        struct status st = {0};
        struct key k;
        assert_true(pipe(in) == 0 && pipe(out) == 0);
        struct terminal *t = terminal_open(&(struct terminal_options){in[0], out[1], 0}, &st);
        if (!t) fail_msg("%s", st.text);
        clock_freeze(1000000000);
        assert_true(write(in[1], samples[i].first, strlen(samples[i].first)) > 0);
        assert_false(terminal_key(t, &k));
        assert_true(write(in[1], samples[i].rest, strlen(samples[i].rest)) > 0);
        clock_freeze(60000000000);
        assert_true(terminal_key(t, &k));
        assert_int_equal(k.code, samples[i].code);
        if (k.code == KEY_TEXT) assert_memory_equal(k.text, "こ", 3);
        assert_false(terminal_key(t, &k));
        clock_freeze(0);
        terminal_close(t);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
    }
}

int main(void) {
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_reach_the_screen),
        cmocka_unit_test(test_nearest_colours),
        cmocka_unit_test(test_small_change_is_few_bytes),
        cmocka_unit_test(test_hostile_text_sends_no_sequence),
        cmocka_unit_test(test_without_unicode_columns_stay),
        cmocka_unit_test(test_a_light_theme_in_16_colours),
        cmocka_unit_test(test_selected_line_is_seen_without_colours),
        cmocka_unit_test(test_every_way_out_restores),
        cmocka_unit_test(test_suspend_and_resume),
        cmocka_unit_test(test_suspend_with_nobody_to_stop_for),
        cmocka_unit_test(test_the_terminal_is_lent_and_taken_over_again),
        cmocka_unit_test(test_a_key_in_halves_that_is_read_late),
        cmocka_unit_test(test_a_stalled_terminal_holds_nobody_up),
        cmocka_unit_test(test_a_signal_ends_it_on_a_stalled_terminal),
        cmocka_unit_test(test_depth_of_colour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
