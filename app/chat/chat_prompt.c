// The prompt, token by token: what the model is asked with once the message being written is sent, or, where none is,
// what the last answer was asked with; and chats without a template.
#include <stdlib.h>
#include <string.h>

#include "app/chat/chat_state.h"
#include "app/session/asked.h"
#include "engine/base/checksum.h"
#include "engine/base/panic.h"

#define MOST_BYTES (64u << 10) // longer prompts would hold up the keys

struct chat_prompt {
    uint64_t seen; // checksum of what the tokens are of; 0: there are none
    struct prompt_tokens tokens;
    bool known, long_one;
    struct view_prompt view;
};

static uint64_t add_text(uint64_t sum, const char *text) { return checksum(text, strlen(text) + 1, sum); }

static uint64_t sum_of(const struct chat *c, const struct asked *asked, size_t *bytes) {
    const struct settings *s = &c->current->conversation.settings;
    uint64_t sum = add_text((uint64_t)s->reasoning + 1, s->template ? s->template : "");
    sum = checksum(&c->client, sizeof c->client, add_text(sum, c->model_name));
    *bytes = asked->raw ? strlen(asked->raw) : 0;
    if (asked->raw) return add_text(sum, asked->raw);
    for (int i = 0; i < asked->count; i++) {
        const struct engine_message *m = &asked->messages[i];
        const char *thinking = m->thinking ? m->thinking : "";
        *bytes += strlen(m->text) + strlen(thinking);
        sum = add_text(add_text(add_text(sum, m->role), m->text), thinking);
    }
    return sum;
}

// Up to the message that is being written, or up to what the last answer is one to.
static struct asked asked_now(const struct session_chat *chat, const char *written) {
    const struct conversation *talk = &chat->conversation;
    int last = chat->editing ? talk->messages[chat->edited].parent : conversation_last(talk);
    const bool asks = !chat->editing || talk->messages[chat->edited].role == MESSAGE_USER;
    if (!written && last >= 0 && talk->messages[last].role == MESSAGE_MODEL) last = talk->messages[last].parent;
    return asked_open_with(talk, last, asks ? written : NULL);
}

static void take(struct chat *c, struct chat_prompt *p) {
    struct draft written;
    screen_draft(c->screen, &written);
    struct asked asked = asked_now(c->current, written.text);
    size_t bytes;
    const uint64_t sum = sum_of(c, &asked, &bytes);
    if (sum != p->seen) {
        free(p->tokens.tokens);
        p->tokens = (struct prompt_tokens){0};
        p->long_one = bytes > MOST_BYTES;
        p->known = !p->long_one && session_prompt(c->session, &c->current->conversation, &asked, &p->tokens);
        p->seen = sum;
    }
    asked_close(&asked);
    draft_free(&written);
}

// A file without its folders.
static const char *template_of(const struct settings *s) {
    const char *file = settings_template_file(s), *slash = file ? strrchr(file, '/') : NULL;
    return settings_raw(s) ? "raw" : slash ? slash + 1 : file;
}

void chat_prompt_show(struct chat *c, struct screen_view *view) {
    view->template = template_of(&c->current->conversation.settings);
    view->raw = settings_raw(&c->current->conversation.settings);
    struct chat_prompt *p = c->prompt;
    if (!screen_has_open(c->screen, PANE_PROMPT) || c->current->conversation.unread_rows) {
        if (p) p->seen = 0; // a template's file may be another until it is opened again
        return;
    }
    if (!p) p = c->prompt = xcalloc(1, sizeof *p);
    take(c, p);
    p->view = (struct view_prompt){.tokens = p->tokens.tokens,
                                   .n_tokens = p->tokens.n,
                                   .problem = p->long_one              ? "too long to be shown token by token"
                                              : !p->known              ? "not known while no model is loaded"
                                              : p->tokens.refused.code ? p->tokens.refused.text
                                                                       : NULL};
    view->prompt = &p->view;
}

void chat_prompt_close(struct chat *c) {
    if (c->prompt) free(c->prompt->tokens.tokens);
    free(c->prompt);
    c->prompt = NULL;
}

void chat_playground(struct chat *c, const struct ui_command *command) {
    (void)command;
    const struct conversation *talk = &c->current->conversation;
    if (talk->count || talk->unread_rows) chat_new(c);
    chat_settings_set(c, &(struct ui_command){.id = COMMAND_SETTINGS, .number = 0, .text = "template raw"});
}
