#include "tests/golden/random_person.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "tests/golden/xterm_keys.h"
#include "ui/keys.h"

uint32_t random_below(uint64_t *state, uint32_t n) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return (uint32_t)((*state >> 11) % n);
}

int random_between(uint64_t *state, int low, int high) {
    return low + (int)random_below(state, (uint32_t)(high - low + 1));
}

#define PICK(p, list) ((list)[random_below(&(p)->random, sizeof(list) / sizeof *(list))])

// ---- what is still to be done ----

static struct random_act *add(struct random_person *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static struct random_act *add(struct random_person *p, const char *format, ...) {
    struct random_act *act = &p->todo[p->n_todo++];
    va_list args;
    *act = (struct random_act){0};
    va_start(args, format);
    vsnprintf(act->what, sizeof act->what, format, args);
    va_end(args);
    return act;
}

static void put(struct random_act *act, const char *bytes, size_t size) {
    if (size > ACT_BYTES - act->size) size = ACT_BYTES - act->size;
    memcpy(act->bytes + act->size, bytes, size);
    act->size += size;
}

static void type(struct random_person *p, const char *text) { put(add(p, "type %s", text), text, strlen(text)); }

static void press_key(struct random_person *p, const struct key *k) {
    char name[KEY_NAME], bytes[XTERM_BYTES];
    const size_t size = xterm_key(k, bytes);
    struct random_act *act = add(p, "key %s", key_format(k, name));
    put(act, bytes, size);
    act->pauses = k->code == KEY_ESCAPE && random_below(&p->random, 4);
}

static void press(struct random_person *p, const char *name) {
    struct key k;
    if (key_parse(name, &k)) press_key(p, &k);
}

// ---- keys ----

// The most are of those that cut no file and run no other program where they come into a command's line.
static void any_character(struct random_person *p) {
    static const char *const strange[] = {
        "é", "漢", "👩‍👩‍👧", "e\xcc\x81", "\xe2\x80\xae", "\xc2\xad", "ﷺ", "\xff", "\xf0\x9f"};
    static const char plain[] = " abcdefghijklmnopqrstuvwxyz0123456789.,:/@#*_-+=?!'\"()[]{}%^~\\";
    if (!random_below(&p->random, 8)) {
        type(p, PICK(p, strange));
    } else {
        const char one[] = {plain[random_below(&p->random, sizeof plain - 1)], 0};
        type(p, one);
    }
}

static void any_word(struct random_person *p) {
    static const char *const words[] = {
        "the ",  "quick ", "brown fox ", "//",       "/",     "@",    "0.7",
        "model", "wide ",  "answer",     "notes.md", "1 2 3", "yes ", "Antidisestablishmentarianism "};
    type(p, PICK(p, words));
}

static void editing_key(struct random_person *p) {
    static const char *const names[] = {"Up",   "Down", "Left",   "Right",  "Home",   "End",       "PgUp",
                                        "PgDn", "Tab",  "Delete", "Insert", "Escape", "Backspace", "Enter",
                                        "Up",   "Down", "Escape", "Enter",  "Escape", "Shift+Tab", "Alt+Backspace",
                                        "Esc",  "Esc",  "Space"};
    press(p, PICK(p, names));
}

static void with_modifiers(struct random_person *p) {
    struct key k = {.code = (enum key_code)random_between(&p->random, KEY_UP, KEY_FUNCTION),
                    .modifiers = random_between(&p->random, 0, 7),
                    .number = random_between(&p->random, 1, 12)};
    press_key(p, &k);
}

static void control_key(struct random_person *p) {
    struct key k = {.code = KEY_CONTROL, .number = random_between(&p->random, '@', '_')};
    k.number = isupper(k.number) ? tolower(k.number) : k.number;
    if (!random_below(&p->random, 4)) k.modifiers = KEY_ALT;
    press_key(p, &k);
}

static void alt_key(struct random_person *p) {
    const char letter = (char)random_between(&p->random, ' ' + 1, '~');
    press_key(p, &(struct key){.code = KEY_TEXT, .modifiers = KEY_ALT, .text = &letter, .size = 1});
}

static enum ui_command_id any_command(struct random_person *p) {
    return (enum ui_command_id)random_below(&p->random, COMMAND_COUNT);
}

static void bound_key(struct random_person *p) {
    enum ui_command_id id;
    do id = any_command(p);
    while (!*keys_name(id));
    press(p, keys_name(id));
}

static void command_by_name(struct random_person *p, enum ui_command_id id) {
    press(p, "Ctrl+P");
    type(p, ui_commands[id].name);
    press(p, "Enter");
}

// Opens a pane and moves about in it.
static void browse(struct random_person *p) {
    static const enum ui_command_id openers[] = {
#define X(id, module, title, command) command,
        PANES_OVER(X)
#undef X
    };
    static const char *const names[] = {"Up",   "Down", "Left",  "Right", "Home",  "End", "PgUp",
                                        "PgDn", "Tab",  "Enter", "Space", "+",     "-",   "a",
                                        "m",    "n",    "p",     "?",     "Delete"};
    enum ui_command_id id = PICK(p, openers);
    if (id == COMMAND_COUNT) id = random_below(&p->random, 2) ? COMMAND_SELECT_PREVIOUS : COMMAND_RENAME;
    if (*keys_name(id) && random_below(&p->random, 4)) press(p, keys_name(id));
    else command_by_name(p, id);
    for (int n = random_between(&p->random, 1, 5); n > 0; n--) press(p, PICK(p, names));
}

// ---- whole commands and messages ----

static const char *any_argument(struct random_person *p) {
    static const char *const arguments[] = {
        "",     "",     "",      "notes.md", "~/out.html", "out.json",    "true",     "echo words",
        "0.7",  "off",  "on",    "4",        "small",      "large",       "drop",     "stop",
        "bell", "osc9", "brief", "none",     "~/all.json", "0.1 0.5 0.9", "red blue", "a name"};
    return PICK(p, arguments);
}

static void by_slash(struct random_person *p) {
    char line[128];
    const bool setting = !random_below(&p->random, 4);
    static const char *const settings[] = {"temp",     "top-k",   "theme",      "ascii",     "panes", "collapse",
                                           "overflow", "system",  "max-tokens", "notify",    "title", "stop",
                                           "ask-quit", "fan-out", "reasoning",  "read-ahead"};
    snprintf(line, sizeof line, "/%s %s", setting ? PICK(p, settings) : ui_commands[any_command(p)].name,
             any_argument(p));
    if (random_below(&p->random, 2)) press(p, "Ctrl+U");
    type(p, line);
    press(p, "Enter");
    if (!random_below(&p->random, 2)) return;
    type(p, any_argument(p));
    press(p, "Enter");
}

static void by_palette(struct random_person *p) {
    command_by_name(p, any_command(p));
    if (!random_below(&p->random, 2)) return;
    type(p, any_argument(p));
    press(p, "Enter");
}

static void message(struct random_person *p) {
    static const char *const ends[] = {"", " and more of it", " `code`", "  ", " 漢字", "\\", " https://example.org/"};
    char text[80];
    if (random_below(&p->random, 2)) press(p, "Esc");
    snprintf(text, sizeof text, "message %d%s", ++p->messages, PICK(p, ends));
    type(p, text);
    press(p, random_below(&p->random, 12) ? "Enter" : "Alt+J");
}

static void paste(struct random_person *p) {
    static const char *const pieces[] = {"a line\n",     "another line of it\r\n",
                                         "\ttabbed\r",   "```c\nint x;\n```\n",
                                         "漢字\n",       "\033[31m",
                                         "\a\b\x01\x7f", "\xff\xfe",
                                         "/quit\n",      "\xef\x80\x80",
                                         "word "};
    const int n = random_below(&p->random, 3) ? random_between(&p->random, 1, 6) : random_between(&p->random, 30, 400);
    struct random_act *act = add(p, "paste of %d pieces", n);
    put(act, "\033[200~", 6);
    for (int i = 0; i < n && act->size < ACT_BYTES - 100; i++) {
        const char *piece = PICK(p, pieces);
        put(act, piece, strlen(piece));
    }
    put(act, "\033[201~", 6);
}

// ---- the mouse and the window ----

static void button(struct random_person *p, int number, int x, int y, bool release) {
    char bytes[XTERM_BYTES];
    struct random_act *act = add(p, "button %d at %d,%d%s", number, x, y, release ? " up" : "");
    put(act, bytes, xterm_mouse(number, x, y, release, bytes));
}

static void mouse(struct random_person *p, const struct view_frame *frame) {
    uint64_t *r = &p->random;
    int x = random_between(r, 0, frame->canvas->width + 1), y = random_between(r, 0, frame->canvas->height + 1);
    const uint32_t kind = random_below(r, 8);
    if (frame->n_hits && random_below(r, 3)) {
        const struct rect area = frame->hits[random_below(r, (uint32_t)frame->n_hits)].area;
        x = area.x + random_between(r, 0, area.width - 1), y = area.y + random_between(r, 0, area.height - 1);
    }
    if (kind < 2) { // the wheel
        button(p, 64 + (int)kind, x, y, false);
    } else if (kind < 3) { // any button, with any modifiers
        button(p, random_between(r, 0, 99), x, y, random_below(r, 2));
    } else {
        button(p, 0, x, y, false);
        if (kind < 4) button(p, 32, x + random_between(r, -9, 9) + 9, y + 2, false);
        button(p, 0, x, y, true);
    }
}

static void resize(struct random_person *p) {
    static const int sizes[][2] = {{20, 5},   {40, 10},   {80, 24},  {112, 26}, {120, 40},
                                   {200, 60}, {300, 100}, {20, 100}, {300, 5}};
    const int *size = PICK(p, sizes);
    const bool usual = random_below(&p->random, 2);
    const int width = usual ? size[0] : random_between(&p->random, 20, 300);
    const int height = usual ? size[1] : random_between(&p->random, 5, 100);
    struct random_act *act = add(p, "%dx%d", width, height);
    act->width = width, act->height = height;
}

static void odd_bytes(struct random_person *p) {
    static const char *const odd[] = {"\033[I",
                                      "\033[O",
                                      "\033[",
                                      "\033]11;rgb:00/00/00\033\\",
                                      "\033[?1;2c",
                                      "\033O",
                                      "\033[200~",
                                      "\033[201~",
                                      "\033[<0;1M",
                                      "\033[<0;1;1;1M",
                                      "\033\033",
                                      "\2331~",
                                      "\033[27;5;13~",
                                      "\033[13;2u",
                                      "\033[999999999999~",
                                      "\033P+q\033\\",
                                      "\xc3",
                                      "\033[<-1;-1;-1M"};
    const char *bytes = PICK(p, odd);
    struct random_act *act = add(p, "odd bytes");
    put(act, bytes, strlen(bytes));
    for (size_t i = 0, n = strlen(act->what); i < act->size && n + 5 < sizeof act->what; i++)
        n += (size_t)snprintf(act->what + n, sizeof act->what - n, " %02x", (unsigned char)act->bytes[i]);
    act->pauses = random_below(&p->random, 2);
}

// ---- what to do next ----

const struct random_act *random_person_act(struct random_person *p, const struct view_frame *frame) {
    static const struct {
        void (*act)(struct random_person *p);
        int weight; // of 100; the rest is the mouse's
    } kinds[] = {{any_character, 13}, {any_word, 5},   {editing_key, 14}, {with_modifiers, 4}, {control_key, 5},
                 {alt_key, 3},        {bound_key, 10}, {browse, 9},       {by_slash, 5},       {by_palette, 6},
                 {message, 9},        {paste, 2},      {resize, 2},       {odd_bytes, 2}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    if (p->done < p->n_todo) return &p->todo[p->done++];
    p->n_todo = p->done = 0;
    int drawn = random_between(&p->random, 0, 99), kind = 0;
    while (kind < KINDS && drawn >= kinds[kind].weight) drawn -= kinds[kind++].weight;
    if (kind < KINDS) kinds[kind].act(p);
    else mouse(p, frame);
    if (!p->n_todo) editing_key(p);
    return &p->todo[p->done++];
}
