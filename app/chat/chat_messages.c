// What a person does with the messages of a chat: of the path that is shown, and of all branches.
#include <string.h>

#include "app/chat/chat_state.h"
#include "app/session/asked.h"
#include "engine/base/panic.h"
#include "ui/keys.h"

int chat_subject(const struct chat *c, const struct ui_command *command) {
    int message = chat_message(c, command->message);
    return message >= 0 ? message : conversation_last(&c->current->conversation);
}

void chat_lead_to(struct chat *c, int message) {
    struct conversation *talk = &c->current->conversation;
    int last = conversation_last(talk);
    while (last >= 0 && last != message) last = talk->messages[last].parent;
    if (last == message) return;
    conversation_choose(talk, message);
    session_changed(c->current);
}

void chat_edit(struct chat *c, const struct ui_command *command) {
    const struct conversation *talk = &c->current->conversation;
    int message = chat_message(c, command->message);
    if (message < 0 && c->current->editing) {
        chat_say(c, false, "Enter keeps the message as a new version, Esc stops editing");
        return;
    }
    if (message < 0) // the last one of the person's own
        for (message = conversation_last(talk); message >= 0; message = talk->messages[message].parent)
            if (talk->messages[message].role == MESSAGE_USER) break;
    bool written = !session_answer_at(c->current, message);
    if (message < 0) chat_say(c, true, "there is no message to edit");
    else if (!written) chat_say(c, true, "this answer is still being written: stop it first");
    else chat_lead_to(c, message), chat_draft_edit(c, message);
}

void chat_edit_stop(struct chat *c, const struct ui_command *command) {
    (void)command;
    if (!c->current->editing) return;
    screen_set_composer(c->screen, ""); // readline can bring it back
    chat_draft_edit_end(c, c->current);
}

void chat_regenerate(struct chat *c, const struct ui_command *command) {
    const struct conversation *talk = &c->current->conversation;
    int message = chat_subject(c, command), asked = message;
    if (message >= 0 && talk->messages[message].role == MESSAGE_MODEL) asked = talk->messages[message].parent;
    bool answering = session_answer_at(c->current, message);
    if (answering) chat_say(c, true, "this chat is still answering: stop it first");
    else if (asked < 0) chat_say(c, true, "there is no answer yet");
    else session_ask(c->session, c->current, asked, 1, NULL);
}

int chat_versions_of(const struct chat *c, const struct ui_command *command, int *total) {
    const struct conversation *talk = &c->current->conversation;
    const bool one = chat_message(c, command->message) >= 0;
    int message = chat_subject(c, command);
    for (*total = 0; message >= 0; message = one ? -1 : talk->messages[message].parent) {
        conversation_version(talk, message, total);
        if (*total > 1) break;
    }
    return message;
}

static void version(struct chat *c, const struct ui_command *command, int step) {
    struct conversation *talk = &c->current->conversation;
    int total, message = chat_versions_of(c, command, &total);
    bool one = chat_message(c, command->message) >= 0;
    if (message >= 0 && conversation_switch(talk, message, step)) session_changed(c->current);
    else if (message >= 0) chat_say(c, false, "this is the %s of %d versions", step < 0 ? "first" : "last", total);
    else if (one) chat_say(c, false, "there is one version of this message; edit or regenerate makes another");
    else chat_say(c, false, "there is one version of every message here; edit or regenerate makes another");
}

void chat_version_previous(struct chat *c, const struct ui_command *command) { version(c, command, -1); }

void chat_version_next(struct chat *c, const struct ui_command *command) { version(c, command, 1); }

// ---- what the model is asked with ----

const char *chat_use_name(enum message_use use) {
    static const char *const names[] = {[USE_PINNED] = "pinned", [USE_FOLDED] = "folded", [USE_DROPPED] = "left out"};
    return use == USE_WHOLE ? NULL : names[use];
}

// Toggles: the same again makes it whole.
static void use_message(struct chat *c, const struct ui_command *command, enum message_use use, const char *said,
                        const char *undone) {
    const struct conversation *talk = &c->current->conversation;
    const int message = chat_message(c, command->message);
    if (message < 0) {
        chat_say(c, true, "select a message first (%s)", keys_name(COMMAND_SELECT_PREVIOUS));
        return;
    }
    const bool off = talk->messages[message].use == use;
    bool guessed;
    session_use(c->current, message, off ? USE_WHOLE : use);
    c->found.at = 0; // what is cached is another thing now
    const int tokens = asked_tokens(talk, message, USE_WHOLE, &guessed);
    chat_say(c, false, "%s (%s%d token%s)", off ? undone : said, guessed ? "about " : "", tokens,
             tokens == 1 ? "" : "s");
}

void chat_pin(struct chat *c, const struct ui_command *command) {
    use_message(c, command, USE_PINNED, "pinned: kept when the context is full", "not pinned any more");
}

void chat_fold(struct chat *c, const struct ui_command *command) {
    use_message(c, command, USE_FOLDED, "folded: the model sees its beginning", "the model sees all of it");
}

void chat_drop(struct chat *c, const struct ui_command *command) {
    use_message(c, command, USE_DROPPED, "left out: the model does not see it", "restored: the model sees it");
}

void chat_make_room(struct chat *c, const struct ui_command *command) {
    (void)command;
    if (session_busy(c->current)) chat_say(c, true, "this chat is still answering: stop it first");
    else if (!session_make_room(c->session, c->current)) chat_say(c, true, "there is no answer yet");
}

// ---- branches ----

void chat_go(struct chat *c, const struct ui_command *command) {
    int message = chat_message(c, command->message);
    if (message >= 0) chat_lead_to(c, message);
}

void chat_name(struct chat *c, const struct ui_command *command) {
    int message = chat_message(c, command->message);
    if (message < 0) return;
    session_name(c->current, message, command->text ? command->text : "");
    const char *name = c->current->conversation.messages[message].name;
    if (name) chat_say(c, false, "this branch is called %s", name);
    else chat_say(c, false, "this branch has no name");
}

void chat_pruned(struct chat *c, const char *how, int count) {
    struct session_chat *chat = c->current;
    if (chat->editing && chat->conversation.messages[chat->edited].pruned) chat_draft_edit_end(c, chat);
    chat_say(c, false, "%s %d message%s; the command restore brings %s back until confab ends", how, count,
             count == 1 ? "" : "s", count == 1 ? "it" : "them");
}

void chat_prune(struct chat *c, const struct ui_command *command) {
    int message = chat_message(c, command->message);
    if (message < 0) return;
    chat_pruned(c, "pruned", session_prune(c->session, c->current, message));
}

void chat_restore(struct chat *c, const struct ui_command *command) {
    (void)command;
    if (session_restore(c->current) < 0) chat_say(c, true, "nothing was pruned in this chat since confab began");
    else chat_say(c, false, "the messages pruned last are there again");
}

void chat_copy_chat(struct chat *c, const struct ui_command *command) {
    int message = chat_subject(c, command);
    if (message < 0) {
        chat_say(c, true, "there is no message to copy");
        return;
    }
    chat_select(c, session_copy(c->session, c->current, message));
    chat_say(c, false, "this chat is a copy, it shares the pages of the other one");
}

// ---- the tree, as the screen is shown it ----

// Those before it come earlier.
static struct view_node node_of(const struct chat *c, int index) {
    const struct conversation *talk = &c->current->conversation;
    const struct message *m = &talk->messages[index];
    bool answered = m->size || m->state != MESSAGE_FAILED || !m->note;
    int before = m->parent >= 0 ? c->view_nodes[m->parent].tokens : 0;
    bool guessed;
    int own = asked_tokens(talk, index, USE_WHOLE, &guessed);
    return (struct view_node){
        .id = m->pruned ? 0 : chat_message_id(talk, index),
        .parent = m->parent,
        .chosen = m->chosen,
        .streaming = session_answer_at(c->current, index),
        .failed = m->state == MESSAGE_FAILED,
        .role = m->role == MESSAGE_USER ? VIEW_USER : VIEW_MODEL,
        .author = chat_other_model(c, m),
        .text = answered ? m->text : m->note,
        .size = answered ? m->size : strlen(m->note),
        .name = m->name,
        .version = c->versions[index],
        .n_versions = c->versions[talk->count + m->parent + 1],
        .tokens = m->tokens ? m->tokens : before + own,
    };
}

void chat_tree_show(struct chat *c, struct screen_view *view) {
    const struct conversation *talk = &c->current->conversation;
    if (!screen_has_open(c->screen, PANE_TREE) || !talk->count) return;
    c->view_nodes = xrealloc(c->view_nodes, (size_t)talk->count * sizeof *c->view_nodes);
    for (int i = 0; i < talk->count; i++) c->view_nodes[i] = node_of(c, i);
    for (int m = talk->first; m >= 0; m = talk->messages[m].chosen) c->view_nodes[m].on_path = true;
    view->nodes = c->view_nodes;
    view->n_nodes = talk->count;
}
