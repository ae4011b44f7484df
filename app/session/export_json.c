// Chats as JSON, as import_own.c reads them. Members that say nothing are left out.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/base/config.h"
#include "app/session/export.h"
#include "app/session/import.h"
#include "app/session/sampling_text.h"
#include "engine/base/panic.h"
#include "engine/base/utf8.h"

// Bytes that are no UTF-8, which nothing of confab's own writes, become U+FFFD.
static json_t *json_text(const char *text, size_t size) {
    json_t *value = json_stringn(text, size);
    if (value) return value;
    struct utf8_stream stream = {.n_held = 0};
    char *clean = xmalloc(3 * (size + 4) + 12);
    size_t n = utf8_stream_push(&stream, text, size, clean);
    n += utf8_stream_finish(&stream, clean + n);
    value = json_stringn(clean, n);
    free(clean);
    return value;
}

static void set_text(json_t *object, const char *key, const char *text) {
    if (text && *text) json_object_set_new(object, key, json_text(text, strlen(text)));
}

static void set_number(json_t *object, const char *key, int64_t number) {
    if (number) json_object_set_new(object, key, json_integer(number));
}

static void set_true(json_t *object, const char *key, bool value) {
    if (value) json_object_set_new(object, key, json_true());
}

static json_t *message_json(const struct conversation *c, int index) {
    const struct message *m = &c->messages[index];
    json_t *object = json_pack("{s:i}", "id", index + 1);
    set_number(object, "parent", m->parent + 1);
    set_text(object, "role", message_role_name(m->role));
    if (m->state) set_text(object, "state", message_state_name(m->state));
    json_object_set_new(object, "text", json_text(m->text, m->size));
    if (m->thinking_size) json_object_set_new(object, "thinking", json_text(m->thinking, m->thinking_size));
    set_number(object, "thinking_tokens", m->thinking_tokens);
    if (m->thinking_seconds > 0) json_object_set_new(object, "thinking_seconds", json_real(m->thinking_seconds));
    set_text(object, "note", m->note);
    set_text(object, "notice", m->notice);
    set_text(object, "name", m->name);
    set_text(object, "model", m->model);
    set_number(object, "tokens", m->tokens);
    set_number(object, "own_tokens", m->own_tokens);
    if (m->use) set_text(object, "use", message_use_name(m->use));
    char *sampling = m->sampling ? sampling_text_write(m->sampling) : NULL;
    set_text(object, "sampling", sampling);
    free(sampling);
    set_number(object, "created", m->created);
    set_number(object, "begun", m->begun);
    set_number(object, "ended", m->ended);
    return object;
}

void export_json_chat(FILE *out, const struct conversation *c) {
    json_t *object = json_pack("{s:s, s:i}", "format", IMPORT_OWN_FORMAT, "version", IMPORT_OWN_VERSION);
    json_t *messages = json_array();
    char *sampling = sampling_text_write(&c->settings.sampling), *settings = config_write_conversation(&c->settings);
    set_text(object, "title", c->title);
    set_true(object, "named", c->named);
    set_number(object, "created", c->created);
    set_number(object, "used", c->used);
    set_true(object, "pinned", c->pinned);
    set_true(object, "archived", c->archived);
    set_text(object, "tags", c->tags);
    set_text(object, "sampling", sampling);
    set_text(object, "settings", settings);
    set_number(object, "last", conversation_last(c) + 1);
    for (int i = 0; i < c->count; i++)
        if (!c->messages[i].pruned) json_array_append_new(messages, message_json(c, i));
    json_object_set_new(object, "messages", messages);
    json_dumpf(object, out, JSON_COMPACT);
    fputc('\n', out);
    free(sampling), free(settings);
    json_decref(object);
}
