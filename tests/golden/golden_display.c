#include "tests/golden/golden_display.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

enum { PIPE_BYTES = 1 << 20, STYLES = 90 };

// ---- life ----

static int on_property(VTermProp property, VTermValue *value, void *context) {
    struct golden_display *d = context;
    if (property == VTERM_PROP_ALTSCREEN) d->other_screen = value->boolean;
    if (property == VTERM_PROP_MOUSE) d->mouse = value->number != VTERM_PROP_MOUSE_NONE;
    if (property == VTERM_PROP_CURSORVISIBLE) d->cursor_visible = value->boolean;
    return 1;
}

void golden_display_open(struct golden_display *d, int width, int height) {
    static const VTermScreenCallbacks callbacks = {.settermprop = on_property};
    struct winsize size = {.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
    int ends[2];
    *d = (struct golden_display){.width = width, .height = height, .cursor_visible = true};
    if (openpty(&d->master, &d->input, NULL, NULL, &size) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        panic("no pseudo-terminal: %s", strerror(errno));
    d->pipe_end = ends[0], d->output = ends[1];
    fcntl(d->pipe_end, F_SETFL, O_NONBLOCK);
    fcntl(d->pipe_end, F_SETPIPE_SZ, PIPE_BYTES); // room for a frame before it is read
    d->vterm = vterm_new(height, width);
    vterm_set_utf8(d->vterm, 1);
    d->screen = vterm_obtain_screen(d->vterm);
    vterm_screen_set_callbacks(d->screen, &callbacks, d);
    vterm_screen_enable_altscreen(d->screen, 1);
    vterm_screen_reset(d->screen, 1);
}

void golden_display_close(struct golden_display *d) {
    vterm_free(d->vterm);
    close(d->master), close(d->input), close(d->output), close(d->pipe_end);
    free(d->sent);
}

void golden_display_resize(struct golden_display *d, int width, int height) {
    struct winsize size = {.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
    ioctl(d->master, TIOCSWINSZ, &size);
    vterm_set_size(d->vterm, height, width);
    d->width = width, d->height = height;
}

void golden_display_read(struct golden_display *d) {
    for (;;) {
        if (d->capacity - d->size < PIPE_BYTES) {
            d->capacity = 2 * d->capacity + PIPE_BYTES;
            d->sent = xrealloc(d->sent, d->capacity);
        }
        ssize_t n = read(d->pipe_end, d->sent + d->size, PIPE_BYTES);
        if (n <= 0) return;
        vterm_input_write(d->vterm, d->sent + d->size, (size_t)n);
        d->size += (size_t)n;
    }
}

// ---- what may be sent ----

// Length of one of confab's own sequences at p[0..n), 0 when it is none.
static size_t own_sequence(const char *p, size_t n) {
    static const char clipboard[] = "\033]52;c;";
    if (n >= sizeof clipboard && memcmp(p, clipboard, sizeof clipboard - 1) == 0) {
        size_t at = sizeof clipboard - 1;
        while (at < n && p[at] && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", p[at]))
            at++;
        return at < n && p[at] == 7 ? at + 1 : at + 1 < n && p[at] == 033 && p[at + 1] == '\\' ? at + 2 : 0;
    }
    if (n >= 3 && p[1] == ']' && strchr("279", p[2])) { // title and notices
        const char *end = memchr(p + 1, 033, n - 1);
        return end && end + 1 < p + n && end[1] == '\\' ? (size_t)(end - p) + 2 : 0;
    }
    if (n < 3 || p[1] != '[') return 0;
    size_t at = 2;
    while (at < n && p[at] && strchr("0123456789;?", p[at])) at++;
    if (at + 1 < n && p[at] == ' ' && p[at + 1] == 'q') return at + 2;
    return at < n && p[at] && strchr("hlsrtHCmJ", p[at]) ? at + 1 : 0;
}

// Modes of the terminal that confab changes, and how they are before.
static const struct {
    int number;
    bool on;
    const char *what;
} modes[] = {{7, true, "long lines do not wrap"},
             {25, true, "the cursor is hidden"},
             {1000, false, "the mouse is taken"},
             {1002, false, "the mouse is followed while it drags"},
             {1002, false, "the mouse's moves are told"},
             {1006, false, "the mouse's coordinates are decimal"},
             {1036, false, "Esc comes for Alt"},
             {1049, false, "it shows the other screen"},
             {2004, false, "pastes are bracketed"},
             {2026, false, "it shows nothing that comes"}};
enum { MODES = sizeof modes / sizeof *modes };

// 'r' restores what 's' has put aside. A mode that is not in the table is left for good.
static void take_mode(struct golden_display *d, int number, char how) {
    int at = 0;
    while (at < MODES && modes[at].number != number) at++;
    const bool same = how == 'r' || how == (modes[at < MODES ? at : 0].on ? 'h' : 'l');
    if (how == 's') return;
    if (at < MODES && same) d->changed &= ~(1u << at);
    else d->changed |= 1u << at;
}

static void take_sequence(struct golden_display *d, const char *p, size_t size) {
    const char last = p[size - 1];
    if (size < 3 || p[1] != '[') return;
    if (p[2] == '?') take_mode(d, atoi(p + 3), last);
    else if (last == 'q') d->shaped = p[2] != '0';
    else if (last == 'm') d->coloured = size != 4 || p[2] != '0';
    else if (last == 't') d->titles += atoi(p + 2) == 22 ? 1 : -1;
}

long golden_display_foreign(struct golden_display *d) {
    while (d->looked_at < d->size) {
        const char *p = d->sent + d->looked_at;
        const size_t left = d->size - d->looked_at;
        uint32_t code;
        size_t used = utf8_decode(p, left, &code);
        if (code == 033 && (used = own_sequence(p, left))) take_sequence(d, p, used);
        else if (code != '\a' && (code < 0x20 || (code >= 0x7f && code < 0xa0))) used = 0;
        if (!used) return (long)d->looked_at;
        d->looked_at += used;
    }
    return -1;
}

const char *golden_display_left(const struct golden_display *d) {
    for (int i = 0; i < MODES; i++)
        if (d->changed >> i & 1) return modes[i].what;
    if (d->changed) return "a mode that is not known here";
    if (d->shaped) return "the cursor has another shape";
    if (d->coloured) return "what is written has a colour";
    if (d->titles) return d->titles > 0 ? "the window's title is put aside" : "the window's title was taken back twice";
    return d->other_screen || d->mouse || !d->cursor_visible ? "the emulator sees more" : NULL;
}

void golden_display_forget(struct golden_display *d) {
    d->size -= d->looked_at;
    memmove(d->sent, d->sent + d->looked_at, d->size);
    d->looked_at = 0;
}

// ---- reading the screen ----

static VTermScreenCell cell_at(const struct golden_display *d, int x, int y) {
    VTermScreenCell cell = {0};
    vterm_screen_get_cell(d->screen, (VTermPos){.row = y, .col = x}, &cell);
    return cell;
}

char *golden_display_row(const struct golden_display *d, int y) {
    char *text = xmalloc((size_t)d->width * VTERM_MAX_CHARS_PER_CELL * 4 + 1);
    size_t n = 0;
    for (int x = 0; x < d->width; x++) {
        VTermScreenCell cell = cell_at(d, x, y);
        if (cell.chars[0] == (uint32_t)-1) continue; // the right half of a wide one
        if (!cell.chars[0]) text[n++] = ' ';
        for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell.chars[i]; i++) n += utf8_encode(cell.chars[i], text + n);
    }
    while (n && text[n - 1] == ' ') n--;
    text[n] = 0;
    return text;
}

static const char *colour_text(VTermColor c, char out[16]) {
    if (VTERM_COLOR_IS_DEFAULT_FG(&c) || VTERM_COLOR_IS_DEFAULT_BG(&c)) return "own";
    if (VTERM_COLOR_IS_INDEXED(&c)) snprintf(out, 16, "%d", c.indexed.idx);
    else snprintf(out, 16, "#%02x%02x%02x", c.rgb.red, c.rgb.green, c.rgb.blue);
    return out;
}

static void style_text(const VTermScreenCell *c, char out[96]) {
    char fore[16], back[16];
    snprintf(out, 96, "%s on %s%s%s%s%s%s", colour_text(c->fg, fore), colour_text(c->bg, back),
             c->attrs.bold ? " bold" : "", c->attrs.italic ? " italic" : "", c->attrs.underline ? " underline" : "",
             c->attrs.reverse ? " reverse" : "", c->attrs.strike ? " strike" : "");
}

static void write_styles(const struct golden_display *d, FILE *out) {
    static char legend[STYLES][96];
    int count = 0;
    fprintf(out, "---- styles\n");
    for (int y = 0; y < d->height; y++) {
        for (int x = 0; x < d->width; x++) {
            char text[96];
            VTermScreenCell cell = cell_at(d, x, y);
            style_text(&cell, text);
            int i = 0;
            while (i < count && strcmp(legend[i], text) != 0) i++;
            if (i == count && count < STYLES) memcpy(legend[count++], text, sizeof text);
            fputc(i < STYLES ? '!' + i : ' ', out);
        }
        fputc('\n', out);
    }
    for (int i = 0; i < count; i++) fprintf(out, "%c %s\n", '!' + i, legend[i]);
}

// ---- contrast (WCAG 2) ----

static double luminance(VTermColor c) {
    const double weights[] = {0.2126, 0.7152, 0.0722};
    const uint8_t channels[] = {c.rgb.red, c.rgb.green, c.rgb.blue};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double v = channels[i] / 255.0;
        sum += weights[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(VTermColor a, VTermColor b) {
    double x = luminance(a), y = luminance(b);
    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

// Lines of boxes, bars, graphs and empty places of gauges: they are not read, so 3 is enough for them instead of 4.5.
static bool is_drawing(uint32_t code) {
    return code == 0xb7 || (code >= 0x2500 && code < 0x25a0) || (code >= 0x2800 && code < 0x2900);
}

// With the ASCII characters that drawings are made of otherwise they cannot be told from text.
static bool draws_in_ascii(const struct golden_display *d) {
    for (int i = 0; i < d->width * d->height; i++)
        if (cell_at(d, i % d->width, i / d->width).chars[0] == 0x2500) return false;
    return true;
}

char *golden_display_faint(const struct golden_display *d) {
    if (draws_in_ascii(d)) return NULL;
    for (int y = 0; y < d->height; y++) {
        for (int x = 0; x < d->width; x++) {
            VTermScreenCell cell = cell_at(d, x, y);
            bool shown = cell.chars[0] && cell.chars[0] != ' ' && cell.chars[0] != (uint32_t)-1;
            if (!shown || !VTERM_COLOR_IS_RGB(&cell.fg) || !VTERM_COLOR_IS_RGB(&cell.bg)) continue;
            double ratio = contrast(cell.fg, cell.bg);
            if (ratio >= (is_drawing(cell.chars[0]) ? 3 : 4.5)) continue;
            char style[96], *row = golden_display_row(d, y), *text = NULL;
            style_text(&cell, style);
            text = xasprintf("U+%04X at %d,%d has a contrast of %.2f: %s\n%s", (unsigned)cell.chars[0], x, y, ratio,
                             style, row);
            free(row);
            return text;
        }
    }
    return NULL;
}

char *golden_display_text(const struct golden_display *d, bool styles) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    VTermPos cursor;
    vterm_state_get_cursorpos(vterm_obtain_state(d->vterm), &cursor);
    fprintf(out, "---- %dx%d, cursor ", d->width, d->height);
    if (d->cursor_visible) fprintf(out, "at %d,%d\n", cursor.col, cursor.row);
    else fprintf(out, "hidden\n");
    for (int y = 0; y < d->height; y++) {
        char *row = golden_display_row(d, y);
        fprintf(out, "%s\n", row);
        free(row);
    }
    if (styles) write_styles(d, out);
    fclose(out);
    return text;
}
