// Screen: the whole chat screen. It owns the terminal, the layout, scroll positions, the composer and open dialogs; it
// draws what a struct screen_view shows it and turns keys into commands. It holds no conversation of its own.
//
// One thread. The controller's loop: poll terminal + engine + timer → screen_input → handle commands → screen_draw.
#ifndef CONFAB_UI_SCREEN_H
#define CONFAB_UI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/worker.h"
#include "ui/commands.h"
#include "ui/draft.h"
#include "ui/pane_sizes.h"
#include "ui/panes.h"

struct ui_command {
    enum ui_command_id id;
    int number;       // what was clicked on: index of the chat or knob; COMMAND_FIND_CHAT and what is done to a chat in
                      // its pane: index of those found; otherwise −1
    const char *text; // COMMAND_SEND: the message; COMMAND_RENAME, COMMAND_KNOB_SET, COMMAND_NAME, COMMAND_FAN_OUT:
                      // what was typed (the dialog already happened; COMMAND_DELETE: confirmed); COMMAND_EDITOR: the
                      // key of a setting, or NULL; COMMAND_SETTINGS: "KEY VALUE"; of these two number says whether the
                      // chat's (0) or the program's (1) is meant, −1: the chat's if it has its own;
                      // COMMAND_CLIENTS: the id of a request to cancel;
                      // COMMAND_MODEL: the name that was picked, NULL: the list was opened and is to be brought up to
                      // date. Valid until the next screen call.
    uint64_t message; // id in the view of the one that was clicked on or is selected, or to go to; 0: none
    int block;        // of the selected message, which commands are about instead, from 1 on; 0: none
    int token;        // COMMAND_FORK: of this message; number: the alternative that is forced, −1: the likeliest
                      // that was not drawn, where there is no text
};

struct screen_options {
    int input_fd, output_fd;
    const char *theme;       // name; NULL: "confab-dark"
    struct status *theme_problem; // filled in when it cannot be loaded, and the default one is shown
    bool ascii;
    bool title;              // the terminal's window is called as the chat is
    int colours;             // 0: ask the terminal; 1 (mono), 16, 256, 1 << 24
    struct pane_choice panes;
    const char *history_path; // of the composer; NULL: not saved
    struct worker *worker;   // that writes it
    struct worker *reader;   // of folders, where paths are completed; NULL: they are not
};

struct screen;

// Takes the terminal over (raw, alternate screen, mouse, bracketed paste); every way out restores it.
struct screen *screen_open(const struct screen_options *o, struct status *st);
void screen_close(struct screen *s);

// Reads what waits on the input (never blocks) and hands out the commands it means, one a call; false when there are
// no more. Keys that edit, scroll, toggle panes, switch themes or work in a dialog are handled inside; for those that
// change a setting (theme, panes and their sizes, ascii) the command is handed out too, after the fact, so that it can
// be saved.
bool screen_input(struct screen *s, struct ui_command *out);
bool screen_ended(const struct screen *s);                    // end of input: the terminal is gone
// Where the token cursor is in the messages of this view, which is then to show that token; false: there is none.
bool screen_token(struct screen *s, const struct screen_view *v, uint64_t *message, int *token);
// Draws the view if anything differs from what is shown; only changed cells are written.
void screen_draw(struct screen *s, const struct screen_view *v);
// To wait on for room: the terminal has stalled and has not taken all of the last frame, which is then to be drawn
// again. −1: it has.
int screen_output_fd(const struct screen *s);
// Milliseconds until the screen wants to be drawn again by itself (animation, a pending key sequence, a fading status);
// −1: never.
int screen_timeout(const struct screen *s);
void screen_resized(struct screen *s);   // after SIGWINCH
void screen_suspend(struct screen *s);   // restores the terminal, stops the process, takes it over again
void screen_lend(struct screen *s); // the terminal to another program: nothing is drawn and no key read until it is
void screen_reclaim(struct screen *s); // taken over again
// A line of text, which goes out with the command.
void screen_ask(struct screen *s, enum ui_command_id id, const char *label, const char *hint, const char *initial);
void screen_confirm(struct screen *s, enum ui_command_id id, const char *question); // yes hands the command out
void screen_compare(struct screen *s); // opens the pane of the versions that the view has from now on
// The message in the composer, as if it was sent; NULL: there is none. Valid until the next call.
const char *screen_take_message(struct screen *s);
void screen_set_composer(struct screen *s, const char *text); // e.g. a message that could not be sent
void screen_insert(struct screen *s, const char *text); // into it, as it is pasted
void screen_quote(struct screen *s, const char *text, size_t size); // into it, as a quotation
size_t screen_message_size(const struct screen *s);     // bytes that it has with all that is folded
void screen_rewrite(struct screen *s, const char *text); // what stands in it, as another program has edited it
void screen_draft(const struct screen *s, struct draft *out); // what stands in the composer; the caller frees
void screen_set_draft(struct screen *s, const struct draft *d); // of another chat

const char *screen_theme(const struct screen *s);
bool screen_set_theme(struct screen *s, const char *name, struct status *st); // false: it cannot be loaded
void screen_set_ascii(struct screen *s, bool ascii);
void screen_set_panes(struct screen *s, const struct pane_choice *choice);
struct pane_choice screen_pane_choice(const struct screen *s);
uint32_t screen_panes(const struct screen *s); // that are wanted now
uint32_t screen_panes_with_room(const struct screen *s); // those of them that this size can show
bool screen_has_open(const struct screen *s, enum pane_id pane); // of those over the others
// What is looked for in the pane to find a chat; NULL: it is not open. Valid until the next screen call.
const char *screen_finding(const struct screen *s, enum find_order *order);
// Selects a message of a chat, which the next view shows.
void screen_show_message(struct screen *s, uint64_t chat, uint64_t message);
int screen_page(const struct screen *s); // that is looked at in the map of pages; −1: none
bool screen_ascii(const struct screen *s);

// Draws a person's attention to a chat that is not on the screen, in the way that the terminal knows.
void screen_notify(struct screen *s, int kind, const char *title); // kind: enum window_notice
void screen_set_title(struct screen *s, bool title); // as of struct screen_options

// Copies text to the clipboard; says in `how` which way was taken and whether it can be known to have worked.
bool screen_copy(struct screen *s, const char *text, size_t size, char how[128]);

#endif
