#include "ui/composer.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"
#include "ui/history.h"
#include "ui/lines.h"
#include "ui/pastes.h"

#define SEND_KEYS   "\033[57399;77~" // bound to accept-line in every keymap; no terminal sends it

struct composer {
    char *history_path;
    bool forgets; // what is taken is not written there
    struct worker *worker;
    FILE *nowhere;
    const char *bytes; // that readline has not read yet
    size_t n_bytes;
    char *accepted;           // by readline's accept-line; NULL: none
    char *taken, *taken_line; // the last message, and the line it was, with the marks of its pastes
    struct pastes pastes;
    struct flow flow; // what is drawn
    size_t point;     // the cursor's offset in the flow
    int columns;      // of the last draw
    int scroll;       // first line in sight
};

static struct composer *the_composer; // readline's callbacks carry no argument

// ---- what readline calls ----

// A command that wants another key when none is there is told to abort.
static int next_byte(FILE *stream) {
    (void)stream;
    struct composer *c = the_composer;
    if (c->n_bytes == 0) return 'g' & 0x1f;
    c->n_bytes--;
    return (unsigned char)*c->bytes++;
}

static int bytes_wait(void) { return the_composer->n_bytes > 0; }

static void draw_nothing(void) {} // the canvas is drawn when the screen is

// readline 8.2 may leave entries of the history with undo lists that it has freed: they are taken from it.
static void accept_line(char *line) {
    HIST_ENTRY **list = history_list();
    for (int i = 0; list && list[i]; i++) list[i]->data = NULL;
    free(the_composer->accepted);
    the_composer->accepted = line;
}

static char **complete_nothing(const char *text, int start, int end) {
    (void)text, (void)start, (void)end;
    rl_attempted_completion_over = 1;
    return NULL;
}

// ---- life ----

static void bind_keys(void) {
    static const struct {
        const char *keys;
        rl_command_func_t *function;
    } keys[] = {
        {"\033[H", rl_beg_of_line},   {"\033[1~", rl_beg_of_line},    {"\033OH", rl_beg_of_line},
        {"\033[F", rl_end_of_line},   {"\033[4~", rl_end_of_line},    {"\033OF", rl_end_of_line},
        {"\033[3~", rl_delete},       {"\033[1;5C", rl_forward_word}, {"\033[1;5D", rl_backward_word},
        {"\033[C", rl_forward_char},  {"\033[D", rl_backward_char},   {"\033OC", rl_forward_char},
        {"\033OD", rl_backward_char},
    };
    static const char *const keymaps[] = {"emacs-standard", "vi-insert", "vi-move"};
    for (size_t m = 0; m < sizeof keymaps / sizeof *keymaps; m++) {
        Keymap map = rl_get_keymap_by_name(keymaps[m]);
        rl_bind_keyseq_in_map(SEND_KEYS, rl_newline, map);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            rl_bind_keyseq_if_unbound_in_map(keys[i].keys, keys[i].function, map);
    }
}

// Recording macros is let go: readline 8.2 crashes when one calls itself under the callback interface. Macros of
// inputrc are none of these.
static void unbind_macros(void) {
    static rl_command_func_t *const functions[] = {rl_start_kbd_macro, rl_end_kbd_macro, rl_call_last_kbd_macro,
                                                   rl_print_last_kbd_macro};
    static const char *const keymaps[] = {"emacs-standard", "emacs-meta", "emacs-ctlx", "vi-insert", "vi-move"};
    for (size_t m = 0; m < sizeof keymaps / sizeof *keymaps; m++)
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            rl_unbind_function_in_map(functions[i], rl_get_keymap_by_name(keymaps[m]));
}

// What is written is UTF-8, whatever the person's locale is, which readline sets again for every line.
static void speak_utf8(void) {
    if (MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
}

struct composer *composer_open(const char *history_path, struct worker *worker) {
    struct composer *c = xcalloc(1, sizeof *c);
    c->history_path = history_path ? xstrdup(history_path) : NULL;
    c->worker = worker;
    c->nowhere = fopen("/dev/null", "r+");
    if (!c->nowhere) panic("/dev/null cannot be opened");
    the_composer = c;
    rl_readline_name = "confab";
    rl_catch_signals = rl_catch_sigwinch = rl_change_environment = 0;
    rl_instream = rl_outstream = c->nowhere;
    rl_prep_term_function = NULL;
    rl_deprep_term_function = NULL;
    rl_getc_function = next_byte;
    rl_input_available_hook = bytes_wait;
    rl_redisplay_function = draw_nothing;
    rl_attempted_completion_function = complete_nothing;
    speak_utf8();
    rl_initialize();
    rl_variable_bind("bell-style", "none");
    rl_variable_bind("convert-meta", "off");
    bind_keys();
    unbind_macros();
    history_load(c->history_path);
    rl_callback_handler_install("", accept_line);
    return c;
}

void composer_close(struct composer *c) {
    if (!c) return;
    rl_callback_handler_remove();
    rl_getc_function = rl_getc;
    rl_input_available_hook = NULL;
    rl_instream = stdin;
    rl_outstream = stdout;
    the_composer = NULL;
    fclose(c->nowhere);
    pastes_free(&c->pastes);
    free(c->history_path);
    free(c->accepted);
    free(c->taken);
    free(c->taken_line);
    flow_free(&c->flow);
    free(c);
}

// ---- editing ----

static void read_bytes(struct composer *c, const char *bytes, size_t size) {
    c->bytes = bytes, c->n_bytes = size;
    while (c->n_bytes > 0) speak_utf8(), rl_callback_read_char();
}

bool composer_searching(const struct composer *c) {
    (void)c;
    return RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH) != 0;
}

// Ends what readline is in the middle of (a search, an argument, half a key sequence), before the line is changed from
// here. What is searched for may stand in place of what was written.
static void settle(void) {
    if (RL_ISSTATE(RL_STATE_NSEARCH)) read_bytes(the_composer, "\a", 1);
    rl_callback_sigcleanup();
}

void composer_leave_search(struct composer *c) {
    if (composer_searching(c)) read_bytes(c, "\a", 1);
    settle();
}

// readline 8.2 crashes in a history search on a prefix (C-x) with a key behind it that is not bound. ESC ends searches.
static bool breaks_search(const struct composer *c, unsigned char byte) {
    return composer_searching(c) && byte != '\033' && rl_get_keymap()[byte].type == ISKMAP;
}

void composer_bytes(struct composer *c, const char *bytes, size_t size) {
    if (size && breaks_search(c, (unsigned char)bytes[0])) settle();
    read_bytes(c, bytes, size);
    if (c->accepted) { // by another key than the one that sends: keep what was written
        rl_insert_text(c->accepted);
        free(c->accepted);
        c->accepted = NULL;
    }
}

void composer_sequence(struct composer *c, const char *bytes, size_t size) {
    int type;
    if (rl_function_of_keyseq_len(bytes, size, NULL, &type)) composer_bytes(c, bytes, size);
}

// Outside vi mode readline would take it for the beginning of a Meta key and nothing would show that it waits: the next
// letter would be a command, M-r one that empties the line. Meta keys come whole, by composer_bytes.
void composer_escape(struct composer *c) {
    if (composer_takes_escape(c)) composer_bytes(c, "\033", 1);
    else settle();
}

bool composer_takes_escape(const struct composer *c) { return !rl_editing_mode || composer_searching(c); }

void composer_newline(struct composer *c) {
    (void)c;
    settle();
    rl_insert_text("\n");
}

void composer_paste(struct composer *c, const char *text, size_t size) {
    settle();
    char *clean = pastes_clean(text, size), mark[PASTE_MARK + 1] = "";
    bool folded = pastes_is_long(clean) && pastes_fold(&c->pastes, clean, strlen(clean), mark);
    rl_insert_text(folded ? mark : clean);
    free(clean);
}

void composer_quote(struct composer *c, const char *text, size_t size) {
    char *quoted;
    size_t quoted_size;
    FILE *f = open_memstream(&quoted, &quoted_size);
    while (size && text[size - 1] == '\n') size--;
    if (!composer_empty(c)) fputc('\n', f);
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        const size_t end = newline ? (size_t)(newline - text) : size;
        fputs(end > at ? "> " : ">", f);
        fwrite(text + at, 1, end - at, f);
        fputc('\n', f);
        at = end + 1;
    }
    fputc('\n', f);
    fclose(f);
    composer_paste(c, quoted, quoted_size);
    free(quoted);
}

// Lets readline end the line as Enter would, so that it puts history lines back that were edited on the way.
static void accept_now(struct composer *c) { read_bytes(c, SEND_KEYS, sizeof SEND_KEYS - 1); }

static void empty_line(struct composer *c) {
    accept_now(c);
    free(c->accepted);
    c->accepted = NULL;
    using_history();
}

void composer_clear(struct composer *c) {
    settle();
    rl_mark = 0, rl_point = rl_end;
    if (rl_end) rl_copy_region_to_kill(1, 0);
    empty_line(c);
}

// The last message, but for blanks at its end.
static bool was_taken(const struct composer *c, const char *text) {
    size_t size = strlen(text);
    return c->taken && strncmp(c->taken, text, size) == 0 && !c->taken[size + strspn(c->taken + size, " \t\r\n")];
}

void composer_set(struct composer *c, const char *text) {
    composer_clear(c);
    if (was_taken(c, text)) rl_insert_text(c->taken_line);
    else composer_paste(c, text, strlen(text));
}

const char *composer_line(const struct composer *c, size_t *point) {
    (void)c;
    *point = (size_t)rl_point;
    return rl_line_buffer;
}

void composer_replace(struct composer *c, size_t from, size_t to, const char *text) {
    (void)c;
    settle();
    rl_begin_undo_group();
    rl_delete_text((int)from, (int)to);
    rl_point = (int)from;
    rl_insert_text(text);
    rl_end_undo_group();
}

bool composer_empty(const struct composer *c) {
    (void)c;
    return rl_end == 0;
}

size_t composer_size(const struct composer *c) { return pastes_unfolded_size(&c->pastes, rl_line_buffer); }

// ---- drafts ----

void composer_draft(const struct composer *c, struct draft *out) {
    if (rl_end) pastes_draft(&c->pastes, rl_line_buffer, (size_t)rl_point, out);
    else *out = (struct draft){0};
}

void composer_set_draft(struct composer *c, const struct draft *d) {
    size_t point;
    settle();
    empty_line(c);
    c->scroll = 0;
    if (!d->text) return;
    char *line = pastes_line(&c->pastes, d, &point);
    rl_insert_text(line);
    rl_free_undo_list();
    rl_point = (int)point;
    free(line);
}

void composer_rewrite(struct composer *c, const char *text) {
    struct draft d = {.text = pastes_clean(text, strlen(text))};
    pastes_find_folds(&c->pastes, rl_line_buffer, &d);
    d.point = strlen(d.text);
    composer_set_draft(c, &d);
    draft_free(&d);
}

void composer_keep_history(struct composer *c, bool keep) { c->forgets = !keep; }

const char *composer_take(struct composer *c) {
    bool searching = composer_searching(c);
    if (RL_ISSTATE(RL_STATE_NSEARCH)) read_bytes(c, "\r", 1); // finds what was typed
    settle();
    if (searching) return NULL;
    if (strspn(rl_line_buffer, " \t\n") == (size_t)rl_end) return NULL;
    accept_now(c);
    if (!c->accepted) return NULL;
    free(c->taken);
    free(c->taken_line);
    c->taken = pastes_unfold(&c->pastes, c->accepted);
    c->taken_line = c->accepted;
    c->accepted = NULL;
    c->scroll = 0;
    history_append(c->forgets ? NULL : c->history_path, c->worker, c->taken, c->taken_line);
    return c->taken;
}

// ---- drawing ----

static struct style style_of(enum theme_role role, int attributes) {
    return (struct style){.role = (uint8_t)role, .ground = ROLE_GROUND, .attributes = (uint8_t)attributes};
}

// The mode, for those whose inputrc says show-mode-in-prompt; readline itself would put it into the prompt.
static void add_mode(struct composer *c) {
    const char *show = rl_variable_value("show-mode-in-prompt");
    if (!show || strcmp(show, "on") != 0) return;
    bool command = rl_get_keymap() == vi_movement_keymap;
    const char *name = rl_editing_mode ? "emacs-mode-string" : command ? "vi-cmd-mode-string" : "vi-ins-mode-string";
    const char *mode = rl_variable_value(name);
    for (bool shown = true; mode && *mode; mode++) { // between \1 and \2 stand escape sequences
        if (*mode == '\001' || *mode == '\002') shown = *mode == '\002';
        else if (shown) flow_add(&c->flow, style_of(ROLE_DIM, 0), mode, 1);
    }
}

static void begin_flow(struct composer *c) {
    flow_clear(&c->flow);
    add_mode(c);
    if (rl_display_prompt && rl_display_prompt[0]) flow_add_text(&c->flow, style_of(ROLE_DIM, 0), rl_display_prompt);
}

// Adds the character at rl_line_buffer[at], a paste by its label; returns its bytes.
static int flow_character(struct composer *c, int at) {
    uint32_t code;
    int step = (int)utf8_decode(rl_line_buffer + at, (size_t)(rl_end - at), &code);
    const struct paste *p = pastes_find(&c->pastes, code);
    if (!p) return flow_add(&c->flow, style_of(ROLE_TEXT, 0), rl_line_buffer + at, (size_t)step), step;
    char label[PASTE_LABEL];
    pastes_label(p, label);
    flow_add_text(&c->flow, style_of(ROLE_ACCENT, CELL_ITALIC), label);
    return step;
}

static void make_flow(struct composer *c) {
    begin_flow(c);
    c->point = c->flow.size;
    for (int at = 0; at < rl_end;) {
        at += flow_character(c, at);
        if (at <= rl_point) c->point = c->flow.size;
    }
}

// The place in readline's buffer of a place in the flow.
static int buffer_offset(struct composer *c, size_t offset) {
    int at = 0;
    begin_flow(c);
    while (at < rl_end && c->flow.size < offset) at += flow_character(c, at);
    return at;
}

// Lines of the flow at a width, and the one the cursor is on. Ends with an empty line after a final newline.
struct composer_walk {
    size_t start, end, next;
    int line;
    bool done;
};

static bool walk(const struct composer *c, struct composer_walk *w, int columns) {
    const struct flow *f = &c->flow;
    if (w->done) return false;
    w->start = w->next;
    w->line++;
    if (w->start == f->size) return w->end = f->size, w->done = true;
    w->next = flow_break(f->text, f->size, w->start, columns, &w->end);
    w->done = w->next == f->size && f->text[f->size - 1] != '\n';
    if (w->done) w->end = f->size; // blanks at the very end can be seen by the cursor
    return true;
}

static bool holds_point(const struct composer *c, const struct composer_walk *w) {
    return c->point >= w->start && (w->done || c->point < w->next);
}

static const struct composer_walk walk_begin = {.line = -1};

static int usable(int columns) { return columns > 1 ? columns - 1 : 1; } // a column stays free for the cursor

int composer_lines(struct composer *c, int columns) {
    struct composer_walk w = walk_begin;
    make_flow(c);
    while (walk(c, &w, usable(columns))) {
    }
    return w.line + 1;
}

void composer_draw(struct composer *c, struct canvas *canvas, struct rect area, int *x, int *y) {
    struct composer_walk w = walk_begin;
    int cursor = 0;
    int lines = composer_lines(c, area.width);
    c->columns = area.width;
    while (walk(c, &w, usable(area.width)))
        if (holds_point(c, &w)) cursor = w.line;
    if (c->scroll > lines - area.height) c->scroll = lines > area.height ? lines - area.height : 0;
    if (c->scroll > cursor) c->scroll = cursor;
    if (c->scroll < cursor - area.height + 1) c->scroll = cursor - area.height + 1;
    struct lines row = {0};
    for (w = walk_begin; walk(c, &w, usable(area.width));) {
        int at = area.y + w.line - c->scroll;
        lines_cut(&row, (struct lines_mark){0});
        lines_row(&row);
        lines_flow(&row, 0, &c->flow, w.start, w.end);
        if (at >= area.y && at < area.y + area.height) lines_draw(&row, 0, canvas, area, area.x, at, area.width);
        if (w.line != cursor) continue;
        size_t point = c->point < w.end ? c->point : w.end;
        int column = text_width(c->flow.text + w.start, point - w.start);
        *x = area.x + (column < area.width ? column : area.width - 1), *y = at;
    }
    lines_free(&row);
    if (c->flow.size == 0) canvas_text(canvas, area, area.x, area.y, style_of(ROLE_DIM, 0), "Write here", 10);
    if (c->scroll > 0) canvas_symbol(canvas, area, area.x + area.width - 1, area.y, style_of(ROLE_ACCENT, 0), "▲", '^');
    if (c->scroll + area.height < lines)
        canvas_symbol(canvas, area, area.x + area.width - 1, area.y + area.height - 1, style_of(ROLE_ACCENT, 0), "▼",
                      'v');
}

// ---- up and down ----

static bool move_line(struct composer *c, int by) {
    struct composer_walk w = walk_begin, from = walk_begin;
    int columns = usable(c->columns ? c->columns : 80);
    make_flow(c);
    while (walk(c, &w, columns))
        if (holds_point(c, &w)) from = w;
    size_t point = c->point < from.end ? c->point : from.end;
    int column = text_width(c->flow.text + from.start, point - from.start), target = from.line + by;
    for (w = walk_begin; walk(c, &w, columns);) {
        if (w.line != target) continue;
        size_t offset = w.start + text_fit(c->flow.text + w.start, w.end - w.start, column, NULL);
        rl_point = buffer_offset(c, offset);
        return true;
    }
    return false;
}

bool composer_up(struct composer *c) { return !composer_searching(c) && move_line(c, -1); }

bool composer_down(struct composer *c) { return !composer_searching(c) && move_line(c, 1); }
