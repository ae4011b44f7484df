// Chats as export_json.c wrote them.
#include <stdlib.h>

#include "app/base/config.h"
#include "app/session/import_state.h"
#include "app/session/sampling_text.h"
#include "engine/base/panic.h"

enum { MOST_TOKENS = 1 << 28 };
#define MOST_TIME 253402300799000 // the end of the year 9999

void import_own_members(struct conversation *c, int message, const json_t *own) {
    const char *thinking = import_string(own, "thinking"), *name = import_string(own, "name");
    const char *sampling = import_string(own, "sampling"), *state = import_string(own, "state");
    const char *use = import_string(own, "use");
    const double seconds = json_number_value(json_object_get(own, "thinking_seconds"));
    if (thinking)
        conversation_think(c, message, thinking, json_string_length(json_object_get(own, "thinking")),
                           seconds > 0 && seconds < 1e9 ? seconds : 0);
    conversation_note(c, message, import_string(own, "note"));
    conversation_notice(c, message, import_string(own, "notice"));
    if (name) conversation_name(c, message, name);
    if (sampling) {
        const struct sampling initial = sampling_default(), drawn_under = sampling_text_read(sampling, &initial);
        conversation_set_sampling(c, message, &drawn_under);
    }
    struct message *m = &c->messages[message];
    if (state) m->state = message_state_named(state);
    if (m->state == MESSAGE_STREAMING) m->state = MESSAGE_STOPPED;
    if (use) m->use = message_use_named(use);
    m->thinking_tokens = (int)import_number(own, "thinking_tokens", MOST_TOKENS);
    m->tokens = (int)import_number(own, "tokens", MOST_TOKENS);
    m->own_tokens = (int)import_number(own, "own_tokens", MOST_TOKENS);
    m->begun = import_number(own, "begun", MOST_TIME);
    m->ended = import_number(own, "ended", MOST_TIME);
}

static char *id_of(const json_t *message, const char *key) {
    const int64_t number = import_number(message, key, INT64_C(1) << 40);
    return number ? xasprintf("%lld", (long long)number) : NULL;
}

static void add_message(struct import_tree *tree, const json_t *message) {
    const json_t *text = json_object_get(message, "text");
    const char *role = import_string(message, "role");
    const size_t size = json_string_length(text);
    import_tree_add(tree, &(struct import_message){.id = id_of(message, "id"),
                                                   .parent = id_of(message, "parent"),
                                                   .role = role ? message_role_named(role) : MESSAGE_USER,
                                                   .text = xstrndup(size ? json_string_value(text) : "", size),
                                                   .size = size,
                                                   .model = import_string(message, "model"),
                                                   .created = import_number(message, "created", MOST_TIME),
                                                   .own = message});
}

bool import_own(struct import *i, const json_t *chat, struct status *st) {
    const json_t *messages = import_array(chat, "messages");
    const char *title = import_string(chat, "title"), *sampling = import_string(chat, "sampling");
    const char *settings = import_string(chat, "settings"), *tags = import_string(chat, "tags");
    if (import_number(chat, "version", INT64_MAX) > IMPORT_OWN_VERSION)
        return status_fail(st, STATUS_UNSUPPORTED, "written by a newer confab; this one reads version %d",
                           IMPORT_OWN_VERSION);
    if (!messages) return status_fail(st, STATUS_FORMAT, "no list 'messages' in the chat");
    struct conversation c;
    struct import_tree tree = {0};
    conversation_open(&c, 0, i->initial);
    if (sampling) c.settings.sampling = sampling_text_read(sampling, &i->initial->sampling);
    if (settings) config_read_conversation(&c.settings, settings);
    for (size_t m = 0; m < json_array_size(messages); m++) {
        const json_t *message = json_array_get(messages, m);
        if (json_is_object(message)) add_message(&tree, message);
        else i->counts->skipped++;
    }
    char *last = id_of(chat, "last");
    import_tree_end(&tree, &c, last);
    free(last);
    if (title) conversation_rename(&c, title);
    c.named = json_is_true(json_object_get(chat, "named"));
    c.pinned = json_is_true(json_object_get(chat, "pinned"));
    c.archived = json_is_true(json_object_get(chat, "archived"));
    if (tags) conversation_tag(&c, tags);
    c.created = import_number(chat, "created", MOST_TIME);
    const int64_t used = import_number(chat, "used", MOST_TIME);
    if (used) c.used = used; // otherwise now
    import_found(i, &c);
    return true;
}
