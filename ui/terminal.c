#include "ui/terminal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "ui/terminal_parts.h"

#define NCURSES_NOMACROS // last: it takes many a name for itself
#include <curses.h>
#include <term.h>

enum {
    TRUE_COLOUR = 1 << 24,
    WIDEST = 1000,
    TALLEST = 500,
    READ_BYTES = 64 * 1024,
    PATIENCE_MS = 20, // that a terminal may let us wait for room
    MOST_WAITS = 50,  // for one that takes few bytes at a time
};

struct terminal {
    int input, output;
    int own_output; // that was opened here; −1: none
    bool ended;
    struct key_decoder keys;
    struct renderer renderer;
    size_t entered;     // bytes of hold.enter that were written
    const char *unsent; // what a stalled terminal has not taken yet, of the renderer or of `copied`
    size_t n_unsent;
    char *copied;
    bool behind; // it shows less than was drawn
    bool mouse_lent;
    int mouse_takes; // hold.takes as of which
};

// ---- taking the terminal over and giving it back ----
//
// Kept apart from struct terminal, because signal handlers and the panic hook use it: everything they need is computed
// beforehand, and they call nothing but write, tcsetattr and the signal functions.
//
//   free ──take──► taken ──give_back──► free        SIGTSTP: give back, stop; SIGCONT: take again, unless it is lent
static struct {
    int input, output;
    bool is_terminal; // of the input: its modes are ours to change
    struct termios before, raw;
    char enter[128], leave[128];
    atomic_bool taken, lent;       // lent: to another program, which is stopped and continued with this one
    volatile sig_atomic_t entered; // `enter` was written, at least in part
    bool open;                     // between terminal_open and terminal_close
    volatile sig_atomic_t resumed; // what is shown is unknown
    volatile sig_atomic_t takes;   // so far
    bool titles;                   // its window may have one
    pthread_t thread;              // that draws
    stack_t stack_before;
    _Alignas(16) char stack[64 * 1024]; // for handlers: the ordinary one may be what overflowed
} hold;

// Returns the bytes that the terminal took before its room ended; *gone: it will take none ever. Async-signal-safe.
static size_t write_some(int fd, const char *bytes, size_t size, int patience_ms, bool *gone) {
    size_t at = 0;
    for (int waits = 0; at < size && waits < MOST_WAITS && !*gone;) {
        ssize_t n = write(fd, bytes + at, size - at);
        if (n > 0) at += (size_t)n;
        else if (n < 0 && errno == EINTR) continue;
        else if (n < 0 && errno != EAGAIN) *gone = true;
        else if (waits++, poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, patience_ms) == 0) break;
    }
    return at;
}

// At once: to wait for what was written before would be for ever where the terminal has stalled.
static void modes_set(const struct termios *modes) {
    while (hold.is_terminal && tcsetattr(hold.input, TCSANOW, modes) < 0 && errno == EINTR) {
    }
}

// A terminal that has stalled may come back: what it was to show before makes room for what it must hear.
static void hold_give_back(void) {
    if (!atomic_exchange(&hold.taken, false)) return;
    size_t size = hold.entered ? strlen(hold.leave) : 0;
    bool gone = false;
    hold.entered = 0;
    if (write_some(hold.output, hold.leave, size, PATIENCE_MS, &gone) < size && !gone) {
        tcflush(hold.output, TCOFLUSH);
        write_some(hold.output, hold.leave, size, PATIENCE_MS, &gone);
    }
    if (hold.is_terminal) tcflush(hold.input, TCIFLUSH); // mouse reports on their way are not for the shell
    modes_set(&hold.before);
}

// In the background the modes stop the process again until it is in front. The next frame enters.
static void hold_take(void) {
    modes_set(&hold.raw);
    atomic_store(&hold.taken, true);
    hold.resumed = 1;
    hold.takes = hold.takes + 1;
}

// ---- signals ----

static const int fatal_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { FATAL_SIGNALS = sizeof fatal_signals / sizeof *fatal_signals };
static struct sigaction fatal_before[FATAL_SIGNALS], stop_before, continue_before, interrupt_before, quit_before;

// What was there before us decides what the signal does next: mostly to die of it.
static void on_fatal(int signal_number) {
    int saved = errno;
    hold_give_back();
    for (int i = 0; i < FATAL_SIGNALS; i++)
        if (fatal_signals[i] == signal_number) sigaction(signal_number, &fatal_before[i], NULL);
    raise(signal_number); // blocked until this returns
    errno = saved;
}

static void stop_install(void);

static void on_stop(int signal_number) {
    int saved = errno;
    hold_give_back();
    signal(signal_number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    raise(signal_number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); // stops here
    stop_install();
    if (!atomic_load(&hold.taken) && !hold.lent) hold_take(); // not by SIGCONT's handler: nobody to stop for
    errno = saved;
}

static void on_continue(int signal_number) {
    int saved = errno;
    if (hold.lent) return;
    if (!pthread_equal(pthread_self(), hold.thread)) {
        pthread_kill(hold.thread, signal_number); // whose poll() must wake up to draw
    } else {
        hold_give_back(); // where it was stopped without being asked, or not at all
        hold_take();
    }
    errno = saved;
}

static void stop_install(void) {
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTSTP, &action, NULL);
}

static void signals_install(void) {
    hold.thread = pthread_self();
    stack_t stack = {.ss_sp = hold.stack, .ss_size = sizeof hold.stack};
    sigaltstack(&stack, &hold.stack_before);
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK};
    sigfillset(&action.sa_mask);
    for (int i = 0; i < FATAL_SIGNALS; i++) {
        sigaction(fatal_signals[i], NULL, &fatal_before[i]);
        if (fatal_before[i].sa_handler != SIG_IGN) sigaction(fatal_signals[i], &action, NULL);
    }
    sigaction(SIGTSTP, NULL, &stop_before);
    stop_install();
    action = (struct sigaction){.sa_handler = on_continue, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGCONT, &action, &continue_before);
}

static void signals_remove(void) {
    for (int i = 0; i < FATAL_SIGNALS; i++) sigaction(fatal_signals[i], &fatal_before[i], NULL);
    sigaction(SIGTSTP, &stop_before, NULL);
    sigaction(SIGCONT, &continue_before, NULL);
    if (!(hold.stack_before.ss_flags & SS_DISABLE)) sigaltstack(&hold.stack_before, NULL);
    else sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
}

// ---- what the terminal can do ----

struct abilities {
    bool moves_cursor, other_screen, cursor_shape;
    int colours;
    bool is_xterm; // or calls itself one
};

static bool capability(const char *name) {
    const char *text = tigetstr(name);
    return text && text != (char *)-1;
}

// Colours that terminfo announces: 24-bit ones by the flags RGB or Tc, which are no standard capabilities.
static int terminfo_colours(void) {
    if (tigetflag("RGB") > 0 || tigetnum("RGB") > 0 || capability("RGB") || tigetflag("Tc") > 0) return TRUE_COLOUR;
    int n = tigetnum("colors");
    return n >= TRUE_COLOUR ? TRUE_COLOUR : n >= 256 ? 256 : n >= 8 ? 16 : 1;
}

// A terminal that no terminfo entry describes is most likely a modern one; its name may say how many colours it has.
static struct abilities abilities_ask(const char *term, int output) {
    if (!term || !*term) return (struct abilities){0};
    int error, colours = strstr(term, "-direct") ? TRUE_COLOUR : strstr(term, "256color") ? 256 : 16;
    struct abilities a = {true, true, true, colours, false};
    if (setupterm(term, output, &error) != OK) return a;
    a = (struct abilities){capability("cup"), capability("smcup"), capability("Ss"), terminfo_colours(),
                           !strncmp(term, "xterm", 5)};
    del_curterm(cur_term);
    return a;
}

static int colours_choose(int wanted, int announced) {
    const char *none = getenv("NO_COLOR"), *true_colour = getenv("COLORTERM");
    if (wanted) return wanted;
    if (none && *none) return 1;
    if (true_colour && (strcmp(true_colour, "truecolor") == 0 || strcmp(true_colour, "24bit") == 0)) return TRUE_COLOUR;
    return announced;
}

// Alternate screen, no wrapping at the right edge, bracketed paste, mouse buttons, dragging and wheel with coordinates
// in decimal, a bar as cursor; from an xterm, Esc for Alt, which otherwise makes letters of a key. And back, in any
// state.
static void hold_prepare(const struct abilities *a) {
    snprintf(hold.enter, sizeof hold.enter, "%s\033[?7l\033[?2004h\033[?1000h\033[?1002h\033[?1006h%s%s\033[?25l",
             a->other_screen ? "\033[?1049h\033[22;2t" : "", a->is_xterm ? "\033[?1036s\033[?1036h" : "",
             a->cursor_shape ? "\033[6 q" : "");
    snprintf(hold.leave, sizeof hold.leave,
             "\033[?2026l\033[0m\033[?1006l\033[?1002l\033[?1000l\033[?2004l\033[?7h%s%s\033[?25h%s",
             a->is_xterm ? "\033[?1036r" : "", a->cursor_shape ? "\033[0 q" : "",
             a->other_screen ? "\033[23;2t\033[?1049l" : "\033[H\033[2J");
    hold.titles = a->other_screen;
}

// ---- the terminal ----

// The terminal once more, for writing that never blocks: the description that we were given is shared with the shell,
// whose writing is to stay as it is. −1: not a terminal.
static int output_open(int fd) {
    char name[256];
    if (ttyname_r(fd, name, sizeof name) != 0) return -1;
    return open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

// False: there is more than the terminal takes now.
static bool flush(struct terminal *t, int patience_ms) {
    size_t size = strlen(hold.enter);
    if (!atomic_load(&hold.taken)) return true; // resumed later, with a whole frame
    if (t->entered < size) {
        hold.entered = 1;
        t->entered += write_some(t->output, hold.enter + t->entered, size - t->entered, patience_ms, &t->ended);
    }
    if (t->entered < size) return false;
    size_t n = write_some(t->output, t->unsent, t->n_unsent, patience_ms, &t->ended);
    t->unsent += n, t->n_unsent -= n;
    return t->n_unsent == 0;
}

struct terminal *terminal_open(const struct terminal_options *o, struct status *st) {
    static bool registered;
    assert(!hold.open);
    setlocale(LC_CTYPE, "");
    const char *term = getenv("TERM");
    struct abilities a = abilities_ask(term, o->output_fd);
    if (!a.moves_cursor) {
        if (term && *term)
            status_fail(st, STATUS_UNSUPPORTED,
                        "the terminal (TERM=%.64s) cannot move its cursor; see `confab run --help`", term);
        else status_fail(st, STATUS_UNSUPPORTED, "TERM is not set: what the terminal can do is not known");
        return NULL;
    }
    int own_output = output_open(o->output_fd);
    hold.input = o->input_fd, hold.output = own_output >= 0 ? own_output : o->output_fd;
    hold.is_terminal = tcgetattr(o->input_fd, &hold.before) == 0;
    hold.raw = hold.before;
    cfmakeraw(&hold.raw);
    hold.raw.c_cc[VMIN] = 1, hold.raw.c_cc[VTIME] = 0;
    hold_prepare(&a);
    struct terminal *t = xcalloc(1, sizeof *t);
    t->input = o->input_fd, t->output = hold.output, t->own_output = own_output, t->unsent = "";
    t->keys.rxvt = strncmp(term, "rxvt", 4) == 0;
    renderer_open(&t->renderer, colours_choose(o->colours, a.colours), strcmp(nl_langinfo(CODESET), "UTF-8") == 0);
    hold.open = true;
    signals_install();
    if (!registered) registered = atexit(hold_give_back) == 0;
    panic_set_hook(hold_give_back);
    hold_take();
    hold.resumed = 0; // nothing was shown before
    flush(t, PATIENCE_MS);
    return t;
}

static void lend_end(void) {
    hold.lent = false;
    sigaction(SIGINT, &interrupt_before, NULL);
    sigaction(SIGQUIT, &quit_before, NULL);
}

void terminal_lend(struct terminal *t) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)t;
    hold.lent = true;
    sigaction(SIGINT, &ignore, &interrupt_before);
    sigaction(SIGQUIT, &ignore, &quit_before);
    hold_give_back();
}

void terminal_reclaim(struct terminal *t) {
    (void)t;
    lend_end();
    hold_take();
}

bool terminal_lent(const struct terminal *t) { return (void)t, hold.lent; }

void terminal_close(struct terminal *t) {
    if (!t) return;
    if (hold.lent) lend_end();
    hold_give_back();
    signals_remove();
    panic_set_hook(NULL);
    hold.open = false;
    key_decoder_close(&t->keys);
    renderer_close(&t->renderer);
    if (t->own_output >= 0) close(t->own_output);
    free(t->copied);
    free(t);
}

void terminal_size(const struct terminal *t, int *width, int *height) {
    struct winsize size = {0};
    if (ioctl(t->output, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row) ioctl(t->input, TIOCGWINSZ, &size);
    bool known = size.ws_col && size.ws_row;
    *width = !known ? 80 : size.ws_col < WIDEST ? size.ws_col : WIDEST;
    *height = !known ? 24 : size.ws_row < TALLEST ? size.ws_row : TALLEST;
}

// Reads what waits, if anything does.
static bool terminal_read(struct terminal *t) {
    struct pollfd p = {.fd = t->input, .events = POLLIN};
    if (t->ended || poll(&p, 1, 0) <= 0) return false;
    ssize_t n = read(t->input, key_decoder_room(&t->keys, READ_BYTES), READ_BYTES);
    if (n > 0) key_decoder_filled(&t->keys, (size_t)n);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) t->ended = true;
    return n > 0;
}

bool terminal_key(struct terminal *t, struct key *out) {
    if (hold.lent) return false;
    // Half a key that is old may be so because nobody read meanwhile: its other half comes before it is given up.
    if (key_decoder_timeout(&t->keys) == 0) terminal_read(t);
    do {
        if (key_decoder_next(&t->keys, out)) return true;
    } while (terminal_read(t));
    return false;
}

bool terminal_ended(const struct terminal *t) { return t->ended; }

// At once after SIGCONT, so that who sleeps on this draws again.
int terminal_timeout(const struct terminal *t) {
    return hold.lent ? -1 : hold.resumed ? 0 : key_decoder_timeout(&t->keys);
}

static void draw_anew(struct terminal *t) {
    hold.resumed = 0;
    renderer_forget(&t->renderer);
    t->entered = t->n_unsent = 0;
}

// A frame that has begun is finished before there is another, so that its sequences stay whole.
void terminal_draw(struct terminal *t, const struct canvas *c, const struct theme *theme, int cursor_x, int cursor_y) {
    if (hold.lent) return;
    do {
        if (hold.resumed) draw_anew(t);
        t->behind = !flush(t, 0);
        if (t->behind) continue;
        renderer_frame(&t->renderer, c, theme, cursor_x, cursor_y);
        t->unsent = t->renderer.out, t->n_unsent = t->renderer.size;
        t->behind = !flush(t, PATIENCE_MS);
    } while (hold.resumed); // stopped and continued meanwhile
}

int terminal_output_fd(const struct terminal *t) { return t->behind && !t->ended && !hold.lent ? t->output : -1; }

void terminal_forget(struct terminal *t) { renderer_forget(&t->renderer); }

void terminal_suspend(struct terminal *t) {
    (void)t;
    raise(SIGTSTP);
}

bool terminal_unicode(const struct terminal *t) { return t->renderer.unicode; }

int terminal_colours(const struct terminal *t) { return t->renderer.colours; }

unsigned terminal_taken(const struct terminal *t) { return (void)t, hold.titles ? (unsigned)hold.takes : 0; }

bool terminal_write(struct terminal *t, const char *bytes, size_t size) {
    if (!atomic_load(&hold.taken) || !flush(t, 0)) return false;
    free(t->copied);
    t->copied = memcpy(xmalloc(size), bytes, size);
    t->unsent = t->copied, t->n_unsent = size;
    t->behind = !flush(t, PATIENCE_MS);
    if (t->n_unsent < size) return !t->ended; // the rest follows
    t->n_unsent = 0;
    return false;
}

void terminal_mouse(struct terminal *t, bool ours) {
    static const char on[] = "\033[?1000h\033[?1002h\033[?1006h", off[] = "\033[?1006l\033[?1002l\033[?1000l";
    if (t->mouse_takes != hold.takes) t->mouse_lent = false; // it was asked for with all else
    t->mouse_takes = hold.takes;
    if (t->mouse_lent == !ours) return;
    if (terminal_write(t, ours ? on : off, sizeof on - 1)) t->mouse_lent = !ours;
}
