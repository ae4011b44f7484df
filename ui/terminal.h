// Terminal: the only module that knows terminfo and escape sequences. Owns raw mode and the alternate screen; writes
// the difference between what is shown and a canvas; decodes keys, mouse and pastes.
//
// Restored on every way out: terminal_close, exit(), SIGTERM, SIGINT, SIGHUP, SIGSEGV and its like (restore, then
// re-raise), a panic, Ctrl+Z and back.
//
// A terminal that takes no bytes (a connection that hangs) holds nobody up: the rest of a frame stays here, and no
// other one is made until it is through.
#ifndef CONFAB_UI_TERMINAL_H
#define CONFAB_UI_TERMINAL_H

#include "ui/canvas.h"

enum key_code {
    KEY_NONE, KEY_TEXT, // text: UTF-8 bytes of one character or a run of them
    KEY_ENTER, KEY_TAB, KEY_BACKSPACE, KEY_ESCAPE, KEY_UP, KEY_DOWN, KEY_LEFT, KEY_RIGHT, KEY_HOME, KEY_END,
    KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_INSERT, KEY_DELETE, KEY_FUNCTION, // number: 1–12
    KEY_MOUSE, KEY_PASTE, // mouse: number is the button, 0–2; paste: the whole pasted text, lines ended by '\n'
    KEY_CONTROL,          // number: the letter, 'a'–'z' and @ [ \ ] ^ _
};
enum key_modifier { KEY_SHIFT = 1, KEY_ALT = 2, KEY_CTRL = 4 };
enum mouse_action { MOUSE_PRESS, MOUSE_RELEASE, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN, MOUSE_DRAG };

struct key {
    enum key_code code;
    int modifiers, number;
    enum mouse_action action; // KEY_MOUSE
    int x, y;                 // KEY_MOUSE, 0-based
    const char *text;         // KEY_TEXT, KEY_PASTE: valid until the next terminal_key; not NUL-free
    size_t size;
    const char *raw;          // the bytes as they came (for readline)
    size_t raw_size;
};

struct terminal;
struct terminal_options {
    int input_fd, output_fd;
    int colours; // 0: ask terminfo, COLORTERM and NO_COLOR
};

// A file descriptor that is no terminal (a pipe of a test) is used as it is. One terminal at a time.
struct terminal *terminal_open(const struct terminal_options *o, struct status *st);
void terminal_close(struct terminal *t);
void terminal_size(const struct terminal *t, int *width, int *height); // asks the kernel; falls back to 80×24
bool terminal_key(struct terminal *t, struct key *out); // false: no whole key waits
bool terminal_ended(const struct terminal *t);
// Milliseconds until a lone ESC counts as a key; 0 also when the screen must be drawn; −1: nothing pends.
int terminal_timeout(const struct terminal *t);
// Writes what differs between the canvas and what the terminal shows. The cursor is shown at (x, y), or hidden when
// x < 0.
void terminal_draw(struct terminal *t, const struct canvas *c, const struct theme *theme, int cursor_x, int cursor_y);
// When it has room the last frame is to be drawn again; −1: all is shown.
int terminal_output_fd(const struct terminal *t);
void terminal_forget(struct terminal *t); // what is shown is unknown: draw everything next time
void terminal_suspend(struct terminal *t);
// To another program, and over again. Between the two nothing is drawn, no key is read, and what the keyboard makes of
// Ctrl+C and Ctrl+\ is for that program alone.
void terminal_lend(struct terminal *t);
void terminal_reclaim(struct terminal *t);
bool terminal_lent(const struct terminal *t);
bool terminal_unicode(const struct terminal *t); // the locale is UTF-8
int terminal_colours(const struct terminal *t); // 1 (mono), 16, 256 or 1 << 24
void terminal_mouse(struct terminal *t, bool ours); // otherwise its buttons are the terminal's own
bool terminal_write(struct terminal *t, const char *bytes, size_t size); // for OSC only; false: none of it goes
// How often it was taken over, each time with its window's title put aside; 0: it has none.
unsigned terminal_taken(const struct terminal *t);

// "F1", "Ctrl+P", "Alt+Up", "Shift+F5", "PgUp", "Alt+Enter", "Ctrl+Home" ↔ keys. False when the text names no key. The
// text of a character's key ("Alt+1") is borrowed from `name`. Control with a letter is KEY_CONTROL without KEY_CTRL;
// "Ctrl+I" is Tab, "Ctrl+M" Enter, "Ctrl+H" Backspace, as terminals send them; "Alt+R" is a small letter,
// "Alt+Shift+R" the capital.
#define KEY_NAME 32
bool key_parse(const char *name, struct key *out);
const char *key_format(const struct key *k, char out[KEY_NAME]); // as key_parse reads it
bool key_equal(const struct key *a, const struct key *b);

#endif
