// What a person does on the chat screen, command by command.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/base/config.h"
#include "app/chat/chat_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "ui/keys.h"

void chat_select(struct chat *c, struct session_chat *chat) {
    c->current = chat;
    chat->unread = false;
    session_read(c->session, chat);
    chat_draft_show(c, chat);
    if (c->client) engine_focus(c->client, chat->conversation.id);
}

void chat_new(struct chat *c) { chat_select(c, session_new(c->session)); }

// ---- chats ----

void chat_new_or_empty(struct chat *c) {
    for (int i = 0; i < session_count(c->session); i++) { // one empty chat is enough
        struct session_chat *chat = session_chat(c->session, i);
        if (chat->conversation.count || chat->conversation.unread_rows || chat->conversation.named) continue;
        if (chat->own_settings || chat->conversation.private) continue; // it is to be another one
        chat_select(c, chat);
        return;
    }
    chat_new(c);
}

static void command_new(struct chat *c, const struct ui_command *command) {
    (void)command;
    chat_new_or_empty(c);
}

static void command_private(struct chat *c, const struct ui_command *command) {
    (void)command;
    chat_select(c, session_new_private(c->session));
    chat_say(c, false, "a private chat: it is gone when confab ends");
}

static void select_place(struct chat *c, int place) {
    if (place >= 0 && place < session_listed(c->session)) chat_select(c, session_chat(c->session, place));
}

static void command_previous(struct chat *c, const struct ui_command *command) {
    select_place(c, command->number >= 0 ? command->number : session_index(c->session, c->current) - 1);
}

static void command_next(struct chat *c, const struct ui_command *command) {
    select_place(c, command->number >= 0 ? command->number : session_index(c->session, c->current) + 1);
}

static void command_rename(struct chat *c, const struct ui_command *command) {
    session_rename(c->current, command->text ? command->text : "");
    chat_say(c, false, "renamed to %s", c->current->conversation.title);
}

// ---- answers ----

// A pasted page ends in a newline.
char *chat_typed(const char *text) {
    size_t size = strlen(text);
    while (size && strchr(" \t\r\n", text[size - 1])) size--;
    return xstrndup(text, size);
}

bool chat_can_write(struct chat *c, const char *message) {
    if (!session_answer_at(c->current, conversation_last(&c->current->conversation))) return true;
    screen_set_composer(c->screen, message);
    chat_say(c, true, "this chat is still answering: stop it first, or begin another chat");
    return false;
}

static void say_waiting(struct chat *c) {
    const char *key = keys_name(COMMAND_STEER);
    if (c->current->conversation.waiting.count)
        chat_say(c, false, "sent when this answer ends; Up takes it back%s%s%s", *key ? ", " : "", key,
                 *key ? " sends it now" : "");
}

static void command_send(struct chat *c, const struct ui_command *command) {
    const char *text = command->text ? command->text : "";
    if (!text[strspn(text, " \t\r\n")]) {
        if (!session_send_waiting(c->session, c->current)) chat_say(c, false, "it is sent when this answer ends");
        return;
    }
    c->draft_at = clock_ns(); // it is none any more
    const bool raw = settings_raw(&c->current->conversation.settings); // blanks at the end count
    char *message = raw ? xstrdup(text) : chat_typed(text); // the screen may use its copy for what follows
    if (c->current->editing) {
        session_edit(c->session, c->current, c->current->edited, message, strlen(message));
        chat_draft_edit_end(c, c->current);
    } else {
        session_send(c->session, c->current, message);
        say_waiting(c);
    }
    free(message);
}

// A message that waits, the last one or that which was clicked on, is in the composer again.
static void command_take_back(struct chat *c, const struct ui_command *command) {
    const int count = c->current->conversation.waiting.count;
    const int place = command->number >= 0 && command->number < count ? command->number : count - 1;
    struct draft written;
    screen_draft(c->screen, &written);
    if (count && !written.text && !c->current->editing) {
        char *text = session_take_waiting(c->current, place);
        screen_set_composer(c->screen, text);
        chat_draft_take(c); // in one go with the line
        free(text);
    } else {
        chat_say(c, false, count ? "send or clear what is written first" : "no message waits");
    }
    draft_free(&written);
}

static void command_steer(struct chat *c, const struct ui_command *command) {
    (void)command;
    if (c->current->editing || c->current->conversation.unread_rows) {
        chat_say(c, false, "Enter sends this one");
        return;
    }
    const char *text = screen_take_message(c->screen);
    char *message = text ? chat_typed(text) : NULL;
    c->draft_at = clock_ns(); // it is none any more
    if (message || c->current->conversation.waiting.count) session_steer(c->session, c->current, message);
    else chat_say(c, false, "no message is written");
    free(message);
}

// The answer in question; where that is complete, those of other branches.
static void stop(struct chat *c, const struct ui_command *command) {
    int message = chat_subject(c, command);
    if (session_answer_at(c->current, message)) session_stop_answer(c->session, c->current, message);
    else session_stop(c->session, c->current);
}

static void command_stop(struct chat *c, const struct ui_command *command) {
    if (session_busy(c->current)) stop(c, command);
    else chat_say(c, false, "nothing runs in this chat");
}

static void command_stop_all(struct chat *c, const struct ui_command *command) {
    (void)command;
    int stopped = 0;
    for (int i = 0; i < session_count(c->session); i++) {
        struct session_chat *chat = session_chat(c->session, i);
        stopped += chat->n_answers;
        session_stop(c->session, chat);
    }
    chat_say(c, false, stopped == 1 ? "stopped 1 answer" : "stopped %d answers", stopped);
}

static void command_interrupt(struct chat *c, const struct ui_command *command) {
    if (session_busy(c->current)) stop(c, command);
    else screen_set_composer(c->screen, "");
}

// ---- model ----

static void command_model(struct chat *c, const struct ui_command *command) { chat_model_choose(c, command->text); }

static void command_model_stop(struct chat *c, const struct ui_command *command) {
    (void)command;
    chat_model_stop(c);
}

// ---- settings ----

struct setting_save {
    struct chat *chat;
    struct settings settings;
    int id;
    struct status status;
};

static void setting_write(void *job) {
    struct setting_save *s = job;
    config_save(&s->settings, s->id, s->chat->p.config_path, &s->status);
}

static void setting_written(void *job) {
    struct setting_save *s = job;
    if (s->status.code) chat_say(s->chat, true, "not saved: %s", s->status.text);
    settings_free(&s->settings);
    free(s);
}

void chat_save_setting(struct chat *c, int id) {
    if (!c->p.config_path) return;
    struct setting_save *s = xcalloc(1, sizeof *s);
    *s = (struct setting_save){.chat = c, .settings = settings_copy(c->p.settings), .id = id};
    worker_do(session_worker(c->session), setting_write, setting_written, s);
}

static void say_knob(struct chat *c, enum sampling_knob_id knob) {
    const struct session_chat *chat = c->current;
    char value[16];
    chat_say(c, false, "%s is now %s%s", sampling_knobs[knob].key,
             sampling_format(&chat->conversation.settings.sampling, knob, value),
             session_busy(chat) ? ", from the next token on" : "");
}

// Of the answer that has the focus among those compared; false: there is none.
static bool change_answer(struct chat *c, enum sampling_knob_id knob, double value) {
    int answer = chat_compared_answer(c), total;
    if (answer < 0) return false;
    struct sampling sampling = *chat_sampling(c);
    char text[16];
    sampling_set(&sampling, knob, value);
    session_set_answer_sampling(c->session, c->current, answer, &sampling);
    int number = conversation_version(&c->current->conversation, answer, &total);
    chat_say(c, false, "%s of answer %d is now %s, from its next token on", sampling_knobs[knob].key, number,
             sampling_format(&sampling, knob, text));
    return true;
}

// Later chats begin with it. `own`: the person's value, which stays with other models too; otherwise the model's.
static void change_knob(struct chat *c, double value, bool own) {
    enum sampling_knob_id knob = (enum sampling_knob_id)c->knob;
    if (change_answer(c, knob, value)) return;
    uint32_t bit = 1u << knob, *set = &c->p.settings->knobs_set;
    struct sampling sampling = c->current->conversation.settings.sampling;
    sampling_set(&sampling, knob, value);
    sampling_set(&c->p.settings->sampling, knob, value);
    *set = own ? *set | bit : *set & ~bit;
    session_set_sampling(c->session, c->current, &sampling);
    session_begin_with_defaults(c->session);
    say_knob(c, knob);
    chat_save_setting(c, SETTING_FIRST_KNOB + c->knob);
}

static void set_knob(struct chat *c, double value) { change_knob(c, value, true); }

static void step_knob(struct chat *c, int direction) {
    enum sampling_knob_id knob = (enum sampling_knob_id)c->knob;
    set_knob(c, sampling_get(chat_sampling(c), knob) + direction * sampling_knobs[knob].step);
}

static void choose_knob(struct chat *c, int step) {
    c->knob = (c->knob + step + KNOB_COUNT) % KNOB_COUNT;
    chat_say(c, false, "%s", sampling_knobs[c->knob].help);
}

static void command_knob_next(struct chat *c, const struct ui_command *command) {
    if (command->number >= 0 && command->number < KNOB_COUNT) c->knob = command->number - 1; // a click on it
    choose_knob(c, 1);
}

static void command_knob_previous(struct chat *c, const struct ui_command *command) {
    (void)command;
    choose_knob(c, -1);
}

static void command_knob_up(struct chat *c, const struct ui_command *command) {
    (void)command;
    step_knob(c, 1);
}

static void command_knob_down(struct chat *c, const struct ui_command *command) {
    (void)command;
    step_knob(c, -1);
}

static void command_knob_reset(struct chat *c, const struct ui_command *command) {
    (void)command;
    change_knob(c, sampling_get(&model_host_info(c->p.host)->sampling, (enum sampling_knob_id)c->knob), false);
}

static void command_knob_set(struct chat *c, const struct ui_command *command) {
    struct settings typed = {.sampling = *chat_sampling(c)};
    struct status st = {0};
    if (!setting_parse(&typed, SETTING_FIRST_KNOB + c->knob, command->text ? command->text : "", &st))
        chat_say(c, true, "%s", st.text);
    else if (typed.knobs_set >> c->knob & 1)
        set_knob(c, sampling_get(&typed.sampling, (enum sampling_knob_id)c->knob));
    else command_knob_reset(c, command); // the word for it, as in the configuration
}

static void command_knob_reset_all(struct chat *c, const struct ui_command *command) {
    (void)command;
    const struct sampling *initial = &model_host_info(c->p.host)->sampling;
    int answer = chat_compared_answer(c);
    if (answer >= 0) {
        session_set_answer_sampling(c->session, c->current, answer, initial);
        chat_say(c, false, "all knobs of this answer are at their defaults");
        return;
    }
    c->p.settings->sampling = *initial;
    session_set_sampling(c->session, c->current, &c->p.settings->sampling);
    session_begin_with_defaults(c->session);
    c->p.settings->knobs_set = 0;
    chat_say(c, false, "all knobs are at their defaults");
    for (int knob = 0; knob < KNOB_COUNT; knob++) chat_save_setting(c, SETTING_FIRST_KNOB + knob);
}

// The next choice that makes a difference to this model.
static void command_reasoning(struct chat *c, const struct ui_command *command) {
    (void)command;
    const struct model_info *info = model_host_info(c->p.host);
    struct settings *own = &c->current->conversation.settings;
    int next = own->reasoning;
    do next = (next + 1) % REASONING_COUNT;
    while (!reasoning_fits(info, (enum reasoning)next));
    if (!info->chooses_thinking && !info->chooses_effort) {
        chat_say(c, false, "this model's chat template lets nobody choose how much it thinks");
        return;
    }
    own->reasoning = c->p.settings->reasoning = next; // later chats begin with it
    c->found.at = 0; // templates say it in the prompt
    session_changed(c->current);
    session_begin_with_defaults(c->session);
    char *value = setting_format(own, SETTING_reasoning);
    chat_say(c, false, "reasoning is now %s, from the next message on", value);
    free(value);
    chat_save_setting(c, SETTING_reasoning);
}

static void command_theme(struct chat *c, const struct ui_command *command) {
    const char *problem = command->text;
    setting_parse(c->p.settings, SETTING_theme, screen_theme(c->screen), NULL);
    chat_say(c, problem != NULL, "theme %s%s%s", screen_theme(c->screen), problem ? "; " : "", problem ? problem : "");
    chat_save_setting(c, SETTING_theme);
}

// Appends the names of these panes behind `lead` if there are any.
static void append_panes(char text[160], const char *lead, uint32_t set) {
    for (int p = PANES_FIRST; p < PANES_END; p++) {
        if (!(set >> p & 1)) continue;
        snprintf(text + strlen(text), 160 - strlen(text), "%s%s", lead, panes[p].title);
        lead = ", ";
    }
}

static void command_panes(struct chat *c, const struct ui_command *command) {
    (void)command;
    const struct pane_choice choice = screen_pane_choice(c->screen);
    uint32_t wanted = screen_panes(c->screen), shown = screen_panes_with_room(c->screen);
    const bool moved = c->p.settings->layout != (int)choice.arrangement;
    static const char *const leads[ARRANGE_COUNT] = {"panes: ", "at both sides: ", "above the chat: "};
    c->p.settings->panes = choice.shown;
    c->p.settings->layout = (int)choice.arrangement;
    char text[160] = "";
    append_panes(text, leads[choice.arrangement], shown);
    append_panes(text, *text ? "; no room for " : "no room for ", wanted & ~shown);
    chat_say(c, false, "%s", *text ? text : "no panes beside the chat");
    chat_save_setting(c, SETTING_panes);
    if (moved) chat_save_setting(c, SETTING_layout);
}

static void command_sizes(struct chat *c, const struct ui_command *command) {
    (void)command;
    c->p.settings->sizes = screen_pane_choice(c->screen).sizes;
    chat_save_setting(c, SETTING_sizes);
}

static void command_measure(struct chat *c, const struct ui_command *command) {
    (void)command;
    chat_limits_measure(c);
}

static void command_ascii(struct chat *c, const struct ui_command *command) {
    (void)command;
    c->p.settings->ascii = screen_ascii(c->screen);
    chat_say(c, false, c->p.settings->ascii ? "plain ASCII characters" : "all characters");
    chat_save_setting(c, SETTING_ascii);
}

// ---- screen ----

static void command_suspend(struct chat *c, const struct ui_command *command) {
    (void)command;
    screen_suspend(c->screen);
}

static int running(const struct chat *c) {
    int count = chat_serve_clients(c);
    for (int i = 0; i < session_count(c->session); i++) count += session_chat(c->session, i)->n_answers;
    return count;
}

// False: a person is asked first. Once more instead of an answer means yes.
static bool may_leave(struct chat *c, const struct ui_command *command) {
    const int count = running(c);
    const bool answered = command->text || (c->asks_to_leave && screen_has_open(c->screen, PANE_DIALOG));
    c->asks_to_leave = c->p.settings->ask_quit && count && !answered;
    if (!c->asks_to_leave) return true;
    char question[80];
    snprintf(question, sizeof question, count == 1 ? "An answer is still running. Quit?"
                                                   : "%d answers are still running. Quit?", count);
    screen_confirm(c->screen, COMMAND_QUIT, question);
    return false;
}

// Once more after a save that fails, and not at the first time of asking: messages would be lost.
static void command_quit(struct chat *c, const struct ui_command *command) {
    if (!may_leave(c, command)) return;
    c->ending = c->leaving || !session_unsaved(c->session) || chat_save_all(c);
    c->leaving = true;
}

typedef void command_handler(struct chat *c, const struct ui_command *command);

void chat_command(struct chat *c, const struct ui_command *command) {
    static command_handler *const handlers[COMMAND_COUNT] = {
        // the others are the screen's own
        [COMMAND_SEND] = command_send,
        [COMMAND_TAKE_BACK] = command_take_back,
        [COMMAND_STEER] = command_steer,
        [COMMAND_EDITOR] = chat_editor_open,
        [COMMAND_ATTACH] = chat_attach,
        [COMMAND_INSERT] = chat_insert,
        [COMMAND_NEW] = command_new,
        [COMMAND_PRIVATE] = command_private,
        [COMMAND_PLAYGROUND] = chat_playground,
        [COMMAND_PREVIOUS] = command_previous,
        [COMMAND_NEXT] = command_next,
        [COMMAND_RENAME] = command_rename,
        [COMMAND_DELETE] = chat_delete,
        [COMMAND_UNDELETE] = chat_undelete,
        [COMMAND_FIND_CHAT] = chat_find_go,
        [COMMAND_PIN_CHAT] = chat_pin_chat,
        [COMMAND_ARCHIVE] = chat_archive,
        [COMMAND_TAG] = chat_tag,
        [COMMAND_EXPORT] = chat_export,
        [COMMAND_IMPORT] = chat_import,
        [COMMAND_TREE] = chat_go,
        [COMMAND_CONTEXT] = chat_go,
        [COMMAND_FORK] = chat_fork,
        [COMMAND_EDIT] = chat_edit,
        [COMMAND_EDIT_STOP] = chat_edit_stop,
        [COMMAND_NAME] = chat_name,
        [COMMAND_PRUNE] = chat_prune,
        [COMMAND_RESTORE] = chat_restore,
        [COMMAND_COPY_CHAT] = chat_copy_chat,
        [COMMAND_PIN] = chat_pin,
        [COMMAND_FOLD] = chat_fold,
        [COMMAND_DROP] = chat_drop,
        [COMMAND_MAKE_ROOM] = chat_make_room,
        [COMMAND_REGENERATE] = chat_regenerate,
        [COMMAND_FAN_OUT] = chat_fan_out,
        [COMMAND_COMPARE] = chat_compare,
        [COMMAND_KEEP] = chat_keep,
        [COMMAND_MARK] = chat_mark,
        [COMMAND_STOP] = command_stop,
        [COMMAND_STOP_ALL] = command_stop_all,
        [COMMAND_VERSION_PREVIOUS] = chat_version_previous,
        [COMMAND_VERSION_NEXT] = chat_version_next,
        [COMMAND_COPY] = chat_copy,
        [COMMAND_COPY_ALL] = chat_copy_all,
        [COMMAND_LINKS] = chat_link_open,
        [COMMAND_QUOTE] = chat_quote,
        [COMMAND_SAVE] = chat_save,
        [COMMAND_KNOB_NEXT] = command_knob_next,
        [COMMAND_KNOB_PREVIOUS] = command_knob_previous,
        [COMMAND_KNOB_UP] = command_knob_up,
        [COMMAND_KNOB_DOWN] = command_knob_down,
        [COMMAND_KNOB_SET] = command_knob_set,
        [COMMAND_KNOB_RESET] = command_knob_reset,
        [COMMAND_KNOB_RESET_ALL] = command_knob_reset_all,
        [COMMAND_REASONING] = command_reasoning,
        [COMMAND_SERVE] = chat_serve,
        [COMMAND_CLIENTS] = chat_serve_cancel,
        [COMMAND_MODEL] = command_model,
        [COMMAND_MODEL_STOP] = command_model_stop,
        [COMMAND_RELOAD] = chat_model_reload,
        [COMMAND_SETTINGS] = chat_settings_set,
        [COMMAND_PRESET] = chat_preset,
        [COMMAND_SAVE_PRESET] = chat_save_preset,
        [COMMAND_SAVE_PROMPT] = chat_save_prompt,
        [COMMAND_THEME] = command_theme,
#define X(id, ...) [COMMAND_TOGGLE_##id] = command_panes,
        PANES(X)
#undef X
        [COMMAND_PANES] = command_panes,
        [COMMAND_WIDER] = command_sizes,
        [COMMAND_NARROWER] = command_sizes,
        [COMMAND_TALLER] = command_sizes,
        [COMMAND_SHORTER] = command_sizes,
        [COMMAND_RESET_SIZES] = command_sizes,
        [COMMAND_MEASURE] = command_measure,
        [COMMAND_ASCII] = command_ascii,
        [COMMAND_INTERRUPT] = command_interrupt,
        [COMMAND_SUSPEND] = command_suspend,
        [COMMAND_QUIT] = command_quit,
    };
    if (!handlers[command->id]) return;
    chat_say(c, false, "%s", "");
    if (command->id != COMMAND_QUIT) c->leaving = false;
    handlers[command->id](c, command);
    chat_find_changed(c);
}
