// The token cursor: what it shows of a token, and forks.
#include <math.h>

#include "app/chat/chat_state.h"

// Another version begins with the whole answer, and with what was typed.
static void go_on(struct chat *c, int message, const char *text) {
    const int n = c->current->conversation.messages[message].drawn.count;
    if (!session_answer_at(c->current, message)) session_fork(c->session, c->current, message, n, -1, text);
    else chat_say(c, false, "this answer is still being written: stop it first");
}

// With the alternative of this number, or what was typed.
void chat_fork(struct chat *c, const struct ui_command *command) {
    const int message = chat_message(c, command->message);
    const struct message_tokens *drawn = message >= 0 ? &c->current->conversation.messages[message].drawn : NULL;
    struct token_alternative alternatives[SAMPLING_TOP];
    if (!drawn || !drawn->count || command->token < 0) return;
    if (command->token >= drawn->count) {
        go_on(c, message, command->text);
        return;
    }
    const int n = message_tokens_alternatives(drawn, command->token, alternatives);
    const bool likeliest = n > 1 && alternatives[0].id == drawn->tokens[command->token].id;
    const int chosen = command->number >= 0 ? command->number : likeliest;
    if (command->text) session_fork(c->session, c->current, message, command->token, -1, command->text);
    else if (chosen < n) session_fork(c->session, c->current, message, command->token, alternatives[chosen].id, NULL);
    else chat_say(c, true, "this token has no alternatives: type what the answer is to go on with");
}

void chat_token_show(struct chat *c, struct screen_view *view) {
    struct view_token *t = &c->view_token;
    uint64_t id;
    int at;
    const int message = screen_token(c->screen, view, &id, &at) ? chat_message(c, id) : -1;
    if (message < 0) return;
    const struct message *m = &c->current->conversation.messages[message];
    view->token = t;
    if (at == m->drawn.count) { // the end
        *t = (struct view_token){.message = id, .token = at, .count = at, .text = "", .figures.probability = NAN};
        return;
    }
    const struct message_token *token = &m->drawn.tokens[at];
    const bool thought = token->channel == CHANNEL_THINKING;
    uint32_t from = 0;
    for (int i = at; i > 0 && !from; i--)
        if (m->drawn.tokens[i - 1].channel == token->channel) from = m->drawn.tokens[i - 1].end;
    *t = (struct view_token){.message = id,
                             .token = at,
                             .count = m->drawn.count,
                             .figures = *token,
                             .text = (thought ? m->thinking : m->text) + from,
                             .size = token->end - from};
    if (!t->size) t->text = "";
    t->n = message_tokens_alternatives(&m->drawn, at, t->alternatives);
}
