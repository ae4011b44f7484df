// What a person takes out of a chat: a message or a block of it, or all, to the clipboard, into a file, or quoted in
// the message being written.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/base/units.h"
#include "app/chat/chat_state.h"
#include "app/session/export.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "ui/message_blocks.h"

// The message that is selected, otherwise the last answer that has a text; −1: there is none.
static int message_of(const struct chat *c, const struct ui_command *command) {
    const struct conversation *talk = &c->current->conversation;
    const int chosen = chat_message(c, command->message);
    int message = chat_subject(c, command);
    while (message >= 0 && chosen < 0 &&
           (talk->messages[message].role != MESSAGE_MODEL || !talk->messages[message].size))
        message = talk->messages[message].parent;
    return message;
}

// Its block when one is chosen, otherwise the whole message. `source`: as it was written, otherwise as it is copied.
// The caller frees.
static char *text_of(const struct chat *c, int message, int block, bool source, size_t *size) {
    const struct message *m = &c->current->conversation.messages[message];
    struct message_block b;
    const bool whole = !block || !message_block_find(m->text, m->size, block, &b);
    *size = whole ? m->size : b.end - b.start;
    if (whole || source) return xstrndup(m->text + (whole ? 0 : b.start), *size);
    return message_block_text(m->text, &b, size);
}

// ---- clipboard ----

static void copy(struct chat *c, const char *text, size_t size) {
    char how[128] = "";
    const bool copied = screen_copy(c->screen, text, size, how);
    chat_say(c, !copied, "%s", how);
}

void chat_copy(struct chat *c, const struct ui_command *command) {
    const int message = message_of(c, command);
    if (message < 0) {
        chat_say(c, true, "there is no answer to copy");
        return;
    }
    size_t size;
    char *text = text_of(c, message, command->block, false, &size);
    copy(c, text, size);
    free(text);
}

void chat_copy_all(struct chat *c, const struct ui_command *command) {
    (void)command;
    const struct conversation *talk = &c->current->conversation;
    size_t size;
    if (talk->unread_rows || !talk->count) {
        chat_say(c, true, talk->count ? "this chat is still being read" : "there is no message to copy");
        return;
    }
    char *text = export_document(talk, EXPORT_MARKDOWN, &size);
    copy(c, text, size);
    free(text);
}

// ---- quotation ----

void chat_quote(struct chat *c, const struct ui_command *command) {
    const int message = message_of(c, command);
    if (message < 0) {
        chat_say(c, true, "there is no message to quote");
        return;
    }
    size_t size;
    char *text = text_of(c, message, command->block, true, &size);
    screen_quote(c->screen, text, size);
    chat_draft_typed(c);
    free(text);
}

// ---- files ----

struct saving {
    struct chat *chat;
    char *path, *text;
    size_t size;
    bool replace, exists;
    struct status status;
};

static void saving_free(struct saving *s) {
    if (!s) return;
    free(s->path);
    free(s->text);
    free(s);
}

void chat_save_close(struct chat *c) {
    saving_free(c->saving);
    c->saving = NULL;
}

static void save_work(void *job) {
    struct saving *s = job;
    struct output_file file;
    struct stat there;
    s->exists = !s->replace && !stat(s->path, &there) && S_ISREG(there.st_mode);
    if (s->exists || !output_file_open(&file, s->path, s->replace, &s->status)) return;
    if (output_file_write(&file, s->text, s->size, &s->status)) output_file_keep(&file, &s->status);
    else output_file_discard(&file);
}

static void save_done(void *job) {
    struct saving *s = job;
    struct chat *c = s->chat;
    char size[24], question[160];
    c->stale = true;
    if (s->exists && c->screen) {
        chat_save_close(c);
        c->saving = s;
        const size_t long_path = strlen(s->path) > 100 ? strlen(s->path) - 100 : 0;
        snprintf(question, sizeof question, "%s already exists. Overwrite it?", s->path + long_path);
        screen_confirm(c->screen, COMMAND_SAVE, question);
        return;
    }
    if (s->exists) chat_say(c, true, "%s: already exists", s->path);
    else if (s->status.code) chat_say(c, true, "%s", s->status.text);
    else chat_say(c, false, "saved %s (%s)", s->path, units_bytes((double)s->size, size));
    saving_free(s);
}

static void save(struct chat *c, struct saving *s) { worker_do(session_worker(c->session), save_work, save_done, s); }

static void ask_path(struct chat *c, int message, int block) {
    const struct message *m = &c->current->conversation.messages[message];
    struct message_block b;
    char name[64] = "answer.md";
    const bool found = block && message_block_find(m->text, m->size, block, &b);
    if (found && b.kind == BLOCK_CODE) message_block_file_name(m->text, &b, name);
    else if (found) snprintf(name, sizeof name, b.kind == BLOCK_TABLE ? "table.tsv" : "text.md");
    screen_ask(c->screen, COMMAND_SAVE, "Save to file", "Enter saves it, Esc does not", name);
}

// Without a path, asks for one; an empty one is the answer yes to whether a file is to be overwritten.
void chat_save(struct chat *c, const struct ui_command *command) {
    const int message = message_of(c, command);
    if (command->text && !*command->text && c->saving) {
        struct saving *again = c->saving;
        c->saving = NULL;
        again->replace = true;
        save(c, again);
    } else if (message < 0) {
        chat_say(c, true, "there is no message to save");
    } else if (!command->text || !*command->text) {
        ask_path(c, message, command->block);
    } else {
        struct saving *s = xcalloc(1, sizeof *s);
        *s = (struct saving){.chat = c, .path = path_expand(command->text)};
        s->text = text_of(c, message, command->block, false, &s->size);
        save(c, s);
    }
}
