// Several answers to one message at once, and the versions of a message side by side.
#include <stdlib.h>
#include <string.h>

#include "app/chat/chat_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "ui/keys.h"

// ---- asking ----

struct fan {
    int n;
    bool own; // each has knobs of its own
    struct sampling samplings[SESSION_ANSWERS];
};

// One number is how many; several are values of the chosen knob.
static bool fan_parse(struct chat *c, const char *text, struct fan *fan, struct status *st) {
    struct settings typed = {.fan_out = c->p.settings->fan_out, .sampling = *chat_sampling(c)};
    char *copy = xstrdup(text), *rest = NULL, *first = strtok_r(copy, " ,\t", &rest), *word = first;
    bool fits = true;
    *fan = (struct fan){.own = rest && rest[strspn(rest, " ,\t")]};
    for (; fan->own && word && fits; word = strtok_r(NULL, " ,\t", &rest)) {
        fits = setting_parse(&typed, SETTING_FIRST_KNOB + c->knob, word, st);
        if (fan->n == SESSION_ANSWERS)
            fits = status_fail(st, STATUS_USAGE, "at most %d answers at once", SESSION_ANSWERS);
        if (fits) fan->samplings[fan->n++] = typed.sampling;
    }
    if (!fan->own) {
        fits = setting_parse(&typed, SETTING_fan_out, first ? first : "", st);
        fan->n = typed.fan_out;
    }
    free(copy);
    return fits;
}

// What was in the composer, in the conversation; −1: it cannot be there, which has been said.
static int fan_write(struct chat *c, const char *text) {
    struct session_chat *chat = c->current;
    char *message = chat_typed(text);
    int written = -1;
    c->draft_at = clock_ns(); // it is none any more
    if (chat->editing) {
        written = session_edit_text(chat, chat->edited, message, strlen(message));
        chat_draft_edit_end(c, chat);
    } else if (chat_can_write(c, message)) {
        written = session_write(c->session, chat, message, strlen(message));
    }
    free(message);
    return written;
}

// The message to answer: the one that is selected, otherwise what stands in the composer, otherwise the end of the
// path. −1: none, which has been said.
static int fan_parent(struct chat *c, const struct ui_command *command) {
    const struct conversation *talk = &c->current->conversation;
    const bool chosen = chat_message(c, command->message) >= 0;
    const char *text = chosen || talk->unread_rows ? NULL : screen_take_message(c->screen);
    int subject = text ? fan_write(c, text) : chat_subject(c, command);
    if (text && subject < 0) return -1;
    if (subject >= 0 && talk->messages[subject].role == MESSAGE_MODEL) subject = talk->messages[subject].parent;
    if (subject < 0) chat_say(c, true, "there is no message to answer");
    return subject;
}

void chat_fan_out(struct chat *c, const struct ui_command *command) {
    struct fan fan;
    struct status st = {0};
    if (!fan_parse(c, command->text ? command->text : "", &fan, &st)) {
        chat_say(c, true, "%s", st.text);
        return;
    }
    int parent = fan_parent(c, command);
    if (parent < 0) return;
    session_ask(c->session, c->current, parent, fan.n, fan.own ? fan.samplings : NULL);
    c->comparing = c->current;
    c->compared = conversation_last(&c->current->conversation);
    screen_compare(c->screen);
    if (c->p.settings->fan_out == fan.n) return;
    c->p.settings->fan_out = fan.n;
    chat_save_setting(c, SETTING_fan_out);
}

// ---- comparing ----

void chat_compare(struct chat *c, const struct ui_command *command) {
    int total, message = chat_versions_of(c, command, &total);
    bool one = chat_message(c, command->message) >= 0;
    c->comparing = message >= 0 ? c->current : NULL;
    c->compared = message;
    if (message < 0) chat_say(c, false, "there is one version of %s", one ? "this message" : "every message here");
}

void chat_keep(struct chat *c, const struct ui_command *command) {
    int message = chat_message(c, command->message);
    if (message < 0) return;
    int count = session_keep(c->session, c->current, message);
    if (count) chat_pruned(c, "discarded", count);
    else chat_say(c, false, "there is no other version");
}

void chat_mark(struct chat *c, const struct ui_command *command) {
    int message = chat_message(c, command->message), total;
    if (message < 0) {
        chat_say(c, false, "select a message first (%s)", keys_name(COMMAND_SELECT_PREVIOUS));
        return;
    }
    conversation_version(&c->current->conversation, message, &total);
    if (total < 2) {
        chat_say(c, false, "there is one version of this message");
        return;
    }
    int marked = session_mark(c->current, message);
    if (marked) chat_say(c, false, "marked %d of %d versions, to be kept together", marked, total);
    else chat_say(c, false, "no version is marked");
}

// The version that the path leads through; −1: none is compared.
static int focus(const struct chat *c) {
    const struct conversation *talk = &c->current->conversation;
    if (c->comparing != c->current || c->compared >= talk->count || !screen_has_open(c->screen, PANE_COMPARE))
        return -1;
    int parent = talk->messages[c->compared].parent, m = talk->first;
    while (m >= 0 && talk->messages[m].parent != parent) m = talk->messages[m].chosen;
    return m;
}

int chat_compared_answer(const struct chat *c) {
    int message = focus(c);
    return message >= 0 && session_answer_at(c->current, message) ? message : -1;
}

const struct sampling *chat_sampling(const struct chat *c) {
    const struct conversation *talk = &c->current->conversation;
    int answer = chat_compared_answer(c);
    return answer >= 0 ? talk->messages[answer].sampling : &talk->settings.sampling;
}

static struct view_column column_of(const struct chat *c, const struct engine_metrics *f, int index,
                                    struct view_message *out) {
    const struct message *m = &c->current->conversation.messages[index];
    const struct session_answer *a = session_answer_at(c->current, index);
    const struct request_metrics *r = chat_request(f, a);
    struct view_column column = {
        .id = chat_message_id(&c->current->conversation, index),
        .messages = out,
        .n_messages = chat_show_message(c, f, index, out),
        .sampling = m->sampling,
        .author = chat_other_model(c, m),
        .marked = m->marked,
        .streaming = a,
        .failed = m->state == MESSAGE_FAILED,
        .state = a ? a->state : REQUEST_FINISHED,
        .n_tokens = a ? a->n_tokens : 0,
        .tokens_per_second = r ? r->tokens_per_second : 0,
        .note = m->note,
    };
    for (int i = 0; i < column.n_messages; i++) out[i].bare = true, out[i].note = NULL, out[i].n_versions = 1;
    return column;
}

void chat_compare_show(struct chat *c, const struct engine_metrics *f, struct screen_view *view) {
    const struct conversation *talk = &c->current->conversation;
    int chosen = focus(c), n = 0, total;
    if (chosen < 0) return;
    int parent = talk->messages[chosen].parent;
    conversation_version(talk, chosen, &total);
    c->view_columns = xrealloc(c->view_columns, (size_t)total * sizeof *c->view_columns);
    c->column_messages = xrealloc(c->column_messages, MOST_VIEWS * (size_t)total * sizeof *c->column_messages);
    for (int i = 0; i < talk->count; i++) {
        if (talk->messages[i].parent != parent || talk->messages[i].pruned) continue;
        if (i == chosen) view->column = n;
        c->view_columns[n] = column_of(c, f, i, c->column_messages + n * MOST_VIEWS);
        n++;
    }
    view->columns = c->view_columns;
    view->n_columns = n;
    for (int i = 0; parent >= 0 && i < view->n_messages; i++)
        if (view->messages[i].id == chat_message_id(talk, parent)) view->asked = &view->messages[i];
}
