// Commands: what the screen carries out itself, and what it hands to the controller.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/match.h"
#include "engine/base/utf8.h"
#include "ui/keys.h"
#include "ui/pane_compare.h"
#include "ui/pane_dialog.h"
#include "ui/pane_links.h"
#include "ui/pane_models.h"
#include "ui/pane_search.h"
#include "ui/pane_settings.h"
#include "ui/pane_tokens.h"
#include "ui/pane_tree.h"
#include "ui/screen_state.h"
#include "ui/slash.h"

#define TITLE_ASKED 40 // columns of a title in a question

// The text is borrowed.
static void hand_out_about(struct screen *s, enum ui_command_id id, int number, const char *text, uint64_t message) {
    if (s->n_queue == SCREEN_QUEUE) return;
    const int token = token_cursor_token(transcript_token_cursor(s->transcript));
    const int block = screen_has_open(s, PANE_SELECT) ? transcript_block(s->transcript) : 0;
    if (id != COMMAND_SEND && composer_searching(s->composer)) composer_leave_search(s->composer);
    s->queue[s->n_queue++] = (struct ui_command){id, number, text, message, block, token};
    s->notice.seen[0] = 0; // the same status again is news again
}

// The message that commands are about; 0: the controller chooses one.
static uint64_t subject(const struct screen *s) {
    if (screen_has_open(s, PANE_COMPARE)) return s->facts.compared;
    if (screen_has_open(s, PANE_TOKENS)) return transcript_token_cursor(s->transcript)->message;
    return screen_has_open(s, PANE_SELECT) ? transcript_selected(s->transcript) : 0;
}

static void hand_out(struct screen *s, enum ui_command_id id, int number, const char *text) {
    hand_out_about(s, id, number, text, subject(s));
}

static const char *kept_text(struct screen *s, const char *text) {
    snprintf(s->answer, sizeof s->answer, "%.*s", SCREEN_ANSWER - 1, text ? text : "");
    return text ? s->answer : NULL;
}

void screen_hand_out(struct screen *s, enum ui_command_id id, int number, const char *text) {
    hand_out(s, id, number, kept_text(s, text));
    if (id != COMMAND_FORK) return;
    screen_close_pane(s, PANE_TOKENS); // what comes of it is to be seen
    transcript_bottom(s->transcript);
}

void screen_hand_out_message(struct screen *s, enum ui_command_id id, uint64_t message, const char *text) {
    hand_out_about(s, id, -1, kept_text(s, text), message);
}

// ---- commands that the screen carries out ----

// A theme that cannot be loaded is passed over; the command's text then says why.
static void next_theme(struct screen *s) {
    int at = 0;
    struct status st = {0};
    for (int i = 0; theme_list(i); i++)
        if (strcmp(theme_list(i), s->theme.name) == 0) at = i + 1;
    for (;; at++) {
        struct status *problem = st.code ? NULL : &st; // the first one is said
        if (!theme_list(at)) at = 0;
        if (theme_load(&s->theme, theme_list(at), problem)) break;
    }
    terminal_forget(s->terminal);
    screen_hand_out(s, COMMAND_THEME, -1, st.code ? st.text : NULL);
}

static void ask_knob(struct screen *s) {
    if (s->facts.knob < 0 || s->facts.knob >= KNOB_COUNT) return;
    const struct sampling_knob *knob = &sampling_knobs[s->facts.knob];
    char value[16], hint[160];
    snprintf(hint, sizeof hint, "%g to %g   %s", knob->low, knob->high, knob->help);
    dialog_ask(s, COMMAND_KNOB_SET, knob->label, hint,
               sampling_format(&s->facts.sampling, (enum sampling_knob_id)s->facts.knob, value));
}

static void ask_delete(struct screen *s) {
    char label[160];
    const char *title = s->facts.title, *more = s->ascii ? "..." : "…";
    size_t size = strlen(title), shown = text_fit(title, size, TITLE_ASKED, NULL);
    if (shown < size) shown = text_fit(title, size, TITLE_ASKED - text_width(more, strlen(more)), NULL);
    snprintf(label, sizeof label, "Delete \"%.*s%s\"?", (int)shown, title, shown < size ? more : "");
    dialog_confirm(s, COMMAND_DELETE, size ? label : "Delete this chat?");
}

// As the title, in the home folder; the ending decides the format.
static void ask_export(struct screen *s) {
    char path[TEXT_FIELD_BYTES] = "~/";
    size_t n = 2;
    for (const char *at = s->facts.title; *at && n < 60; at++)
        path[n++] = *at == '/' || (unsigned char)*at < ' ' || *at == 127 ? '-' : *at;
    n -= utf8_incomplete(path, n);
    snprintf(path + n, sizeof path - n, "%s.md", n == 2 ? "chat" : "");
    dialog_ask(s, COMMAND_EXPORT, "Export to file", ".md, .html or .json", path);
}

static void interrupt(struct screen *s) {
    if (s->facts.editing) {
        hand_out(s, COMMAND_EDIT_STOP, -1, NULL);
    } else if (s->facts.busy) {
        hand_out(s, COMMAND_STOP, -1, NULL);
    } else if (!composer_empty(s->composer)) {
        composer_clear(s->composer);
    } else if (s->facts.stoppable) {
        hand_out(s, COMMAND_MODEL_STOP, -1, NULL);
    } else if (s->facts.loading) { // as with any program that is still starting
        hand_out(s, COMMAND_QUIT, -1, NULL);
    } else {
        const char *key = keys_name(COMMAND_QUIT);
        screen_say(s, false, "%s quits confab", *key ? key : "the command quit");
    }
}

static void toggle_pane(struct screen *s, enum pane_id pane) {
    if (screen_top(s) == pane) screen_close_pane(s, pane);
    else screen_open_pane(s, pane);
}

// Alone on the screen: what else is open would lie over it.
static void read_alone(struct screen *s) {
    const char *key = keys_name(COMMAND_READ);
    s->n_stack = 1;
    screen_open_pane(s, PANE_READ);
    screen_say(s, false, "%s%sEsc leaves the transcript", key, *key ? " or " : "");
}

// Below the last message there is the one being written.
static void select_message(struct screen *s, int step) {
    bool open = screen_has_open(s, PANE_SELECT);
    if (open && transcript_block(s->transcript)) {
        transcript_block_step(s->transcript, step);
    } else if (transcript_select_step(s->transcript, step)) {
        if (!open) screen_open_pane(s, PANE_SELECT);
    } else if (step > 0) {
        screen_close_pane(s, PANE_SELECT);
        transcript_bottom(s->transcript);
    } else if (!open) {
        screen_say(s, false, "there is no message to select");
    }
}

// In the selected message, where none is the last answer; once more selects the whole message again.
static void select_block(struct screen *s) {
    const bool open = screen_has_open(s, PANE_SELECT);
    if (!open) select_message(s, -1);
    if (!screen_has_open(s, PANE_SELECT)) return;
    if (transcript_block(s->transcript)) transcript_block_end(s->transcript);
    else transcript_block_begin(s->transcript, !open);
}

static void select_text(struct screen *s) {
    if (transcript_text_begin(s->transcript)) screen_open_pane(s, PANE_TEXT);
    else screen_say(s, false, "there is no text to select");
}

static void collapse(struct screen *s) {
    const char *key = keys_name(COMMAND_SELECT_PREVIOUS);
    if (screen_has_open(s, PANE_SELECT)) transcript_collapse(s->transcript);
    else screen_say(s, true, "select the message%s%s", *key ? " with " : "", key);
}

// What comes of it is to be seen, and not what was selected; another answer comes beside those that are compared.
static void leave_message(struct screen *s, enum ui_command_id id) {
    hand_out(s, id, -1, NULL);
    screen_close_pane(s, PANE_SELECT);
    if (id != COMMAND_REGENERATE) screen_close_pane(s, PANE_COMPARE);
}

static void compare(struct screen *s) {
    hand_out(s, COMMAND_COMPARE, -1, NULL);
    screen_open_pane(s, PANE_COMPARE);
}

static void ask_fan_out(struct screen *s) {
    char hint[160], initial[16];
    bool knob = s->facts.knob >= 0 && s->facts.knob < KNOB_COUNT;
    snprintf(initial, sizeof initial, "%d", s->facts.fan_out);
    snprintf(hint, sizeof hint, "2 to 8, or values of %s, one for each answer",
             knob ? sampling_knobs[s->facts.knob].label : "a knob");
    dialog_ask(s, COMMAND_FAN_OUT, "Answers at once", hint, initial);
}

static void run_on_selected(struct screen *s, enum ui_command_id id) {
    const char *key = keys_name(COMMAND_SELECT_PREVIOUS);
    struct transcript *t = s->transcript;
    if (!subject(s)) screen_say(s, true, "select the message%s%s", *key ? " with " : "", key);
    else if (id == COMMAND_NAME && screen_has_open(s, PANE_COMPARE)) dialog_ask_name(s, subject(s), "");
    else if (id == COMMAND_NAME) dialog_ask_name(s, transcript_selected(t), transcript_selected_name(t));
    else hand_out(s, id, -1, NULL);
}

static void open_thinking(struct screen *s) {
    bool compared = screen_has_open(s, PANE_COMPARE);
    if (compared ? !compare_open_thinking(s->kept[PANE_COMPARE]) : !transcript_open_thinking(s->transcript))
        screen_say(s, false, "no thinking in sight");
}

static void say_unknown(struct screen *s, const char *line, int size) {
    enum { LIKELY = 2 }; // letters that are wrong
    char word[40];
    int nearest = 0, least = LIKELY + 1;
    snprintf(word, sizeof word, "%.*s", size - 1, line + 1);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const int distance = match_distance(word, ui_commands[c].name);
        if (distance < least) least = distance, nearest = c;
    }
    if (least <= LIKELY)
        screen_say(s, true, "unknown command '/%s'; did you mean /%s?", word, ui_commands[nearest].name);
    else screen_say(s, true, "unknown command '/%s' (begin with // to send a slash)", word);
}

// A command that cannot be carried out stays where it was typed.
static void run_slash(struct screen *s, const char *line, int size) {
    const struct slash slash = slash_read(line, s->completion.settings, s->completion.n_settings);
    const enum ui_command_id id = (enum ui_command_id)slash.command;
    const bool told = slash.command >= 0 && (!*slash.argument || ui_command_argument(id));
    if (slash.setting >= 0 && !told) {
        const bool valued = *slash.argument;
        const char *taken = composer_take(s->composer);
        if (taken && valued) hand_out(s, COMMAND_SETTINGS, -1, taken + 1);
        else if (taken) settings_open(s, s->completion.settings[slash.setting].key);
    } else if (slash.command < 0) {
        say_unknown(s, line, size);
    } else if (!told) {
        screen_say(s, true, "/%s takes nothing behind it", ui_commands[id].name);
    } else {
        const char *taken = composer_take(s->composer), *argument = taken ? slash_argument(taken) : "";
        if (*argument) hand_out(s, id, -1, argument);
        else screen_run(s, id);
    }
}

static void send(struct screen *s) {
    size_t point;
    const char *line = composer_line(s->composer, &point);
    const int size = s->facts.editing || composer_searching(s->composer) ? 0 : (int)slash_size(line);
    const bool waits = s->facts.waiting && composer_empty(s->composer);
    if (size) {
        run_slash(s, line, size);
        return;
    }
    // Where a command could have been meant; comments of programs begin so, too.
    const bool doubled = !s->facts.editing && !strncmp(line, "//", 2) && isalpha((unsigned char)line[2]);
    const char *message = screen_take_message(s);
    if (message || waits) hand_out(s, COMMAND_SEND, -1, doubled ? message + 1 : message);
}

// Commands that change a setting are handed out as well, so that it can be saved.
void screen_run(struct screen *s, enum ui_command_id id) {
    switch (id) {
    case COMMAND_SEND: send(s); return;
    case COMMAND_NEWLINE: composer_newline(s->composer); return;
    case COMMAND_HELP: toggle_pane(s, PANE_HELP); return;
    case COMMAND_PALETTE: toggle_pane(s, PANE_PALETTE); return;
    case COMMAND_READ: read_alone(s); return;
    case COMMAND_SLOW: toggle_pane(s, PANE_SLOW); return;
    case COMMAND_GRAPHS: toggle_pane(s, PANE_GRAPHS); return;
    case COMMAND_KV_MAP: toggle_pane(s, PANE_KV_MAP); return;
    case COMMAND_LOG: toggle_pane(s, PANE_LOG_ENTRIES); return;
    case COMMAND_CLIENTS: toggle_pane(s, PANE_CLIENTS); return;
    case COMMAND_SETTINGS: settings_open(s, ""); return;
    case COMMAND_KNOBS: toggle_pane(s, PANE_KNOBS); return;
    case COMMAND_PROMPT: toggle_pane(s, PANE_PROMPT); return;
    case COMMAND_PLAYGROUND: screen_open_pane(s, PANE_PROMPT); break;
    case COMMAND_RENAME:
        dialog_ask(s, id, "Name of this chat", "Enter keeps it, Esc leaves it as it was", s->facts.title);
        return;
    case COMMAND_DELETE: ask_delete(s); return;
    case COMMAND_PRESET: dialog_ask(s, id, "Preset", "a name that save-preset gave", ""); return;
    case COMMAND_SAVE_PRESET: dialog_ask(s, id, "Name of these knobs", "preset and it set them again", ""); return;
    case COMMAND_SAVE_PROMPT: dialog_ask(s, id, "Name of this prompt", "/system and it set it again", ""); return;
    case COMMAND_ATTACH: dialog_ask(s, id, "File to attach", "a text file; @ and its name do it too", ""); return;
    case COMMAND_INSERT: dialog_ask(s, id, "Command to run", "what it prints comes into the message", ""); return;
    case COMMAND_FIND_CHAT: toggle_pane(s, PANE_FIND); return;
    case COMMAND_SEARCH: search_open(s); return;
    case COMMAND_TAG:
        dialog_ask_tags(s, s->facts.tags);
        return;
    case COMMAND_EXPORT: ask_export(s); return;
    case COMMAND_IMPORT:
        dialog_ask(s, id, "Import from file", "JSON of confab, OpenAI, Open WebUI or LibreChat", "");
        return;
    case COMMAND_SELECT_PREVIOUS: select_message(s, -1); return;
    case COMMAND_SELECT_NEXT: select_message(s, 1); return;
    case COMMAND_BLOCK: select_block(s); return;
    case COMMAND_SELECT_TEXT: select_text(s); return;
    case COMMAND_LINKS: links_open(s, subject(s)); return;
    case COMMAND_COLLAPSE: collapse(s); return;
    case COMMAND_EDIT:
    case COMMAND_EDITOR:
    case COMMAND_QUOTE:
    case COMMAND_REGENERATE:
    case COMMAND_COPY_CHAT: leave_message(s, id); return;
    case COMMAND_FAN_OUT: ask_fan_out(s); return;
    case COMMAND_COMPARE: compare(s); return;
    case COMMAND_TREE: tree_open(s); break;
    case COMMAND_CONTEXT: screen_open_pane(s, PANE_CONTEXT); break;
    case COMMAND_TOKENS: tokens_open(s); return;
    case COMMAND_FORK: tokens_fork(s); return;
    case COMMAND_TOKEN_COLOURS: tokens_colour(s); return;
    case COMMAND_NAME:
    case COMMAND_KEEP:
    case COMMAND_PRUNE: run_on_selected(s, id); return;
    case COMMAND_MODEL: models_open(s, ""); break;
    case COMMAND_KNOB_SET: ask_knob(s); return;
    case COMMAND_THINKING: open_thinking(s); return;
    case COMMAND_PAGE_UP: transcript_pages(s->transcript, -1); return;
    case COMMAND_PAGE_DOWN: transcript_pages(s->transcript, 1); return;
    case COMMAND_TOP: transcript_top(s->transcript); return;
    case COMMAND_BOTTOM: transcript_bottom(s->transcript); return;
    case COMMAND_REDRAW: terminal_forget(s->terminal); return;
    case COMMAND_INTERRUPT: interrupt(s); return;
    case COMMAND_THEME: next_theme(s); return;
    case COMMAND_PANES: screen_next_preset(s); break;
    case COMMAND_FOCUS_PANE: screen_focus_step(s, 1); return;
    case COMMAND_ZOOM: screen_zoom(s); return;
    case COMMAND_WIDER:
    case COMMAND_NARROWER:
    case COMMAND_TALLER:
    case COMMAND_SHORTER:
    case COMMAND_RESET_SIZES: screen_size(s, id); break;
    case COMMAND_ASCII: s->ascii = !s->ascii; break;
#define X(id, ...)                                                                                                     \
    case COMMAND_TOGGLE_##id: screen_choose_panes(s, s->panes ^ 1u << PANE_##id); break;
        PANES(X)
#undef X
    default: break;
    }
    hand_out(s, id, -1, NULL);
}
