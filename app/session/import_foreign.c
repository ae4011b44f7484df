// Chats that other programs wrote: OpenAI's lists of messages, Open WebUI, LibreChat.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/session/import_state.h"
#include "engine/base/panic.h"

#define SECONDS_MOST 100000000000 // a larger number is of milliseconds

int64_t import_time(const json_t *object, const char *key) {
    const char *text = import_string(object, key);
    const double number = json_number_value(json_object_get(object, key));
    struct tm day = {0};
    if (text && strptime(text, "%Y-%m-%dT%H:%M:%S", &day)) return (int64_t)timegm(&day) * 1000;
    if (!(number > 0 && number < 253402300799000.)) return 0;
    return (int64_t)(number < SECONDS_MOST ? number * 1000 : number);
}

// ---- the text of a message: a string, or a list of parts of which some are text ----

struct words {
    char *text;
    size_t size;
};

static void words_add(struct words *w, const json_t *string) {
    const size_t size = json_string_length(string);
    if (!size) return;
    w->text = xrealloc(w->text, w->size + size + 3);
    if (w->size) memcpy(w->text + w->size, "\n\n", 2), w->size += 2;
    memcpy(w->text + w->size, json_string_value(string), size);
    w->size += size;
    w->text[w->size] = 0;
}

// {"type": "text", "text": "…"}; LibreChat has {"value": "…"} in the place of the text.
static void part_add(struct words *w, const json_t *part) {
    const json_t *text = json_object_get(part, "text");
    if (json_is_string(part)) words_add(w, part);
    else words_add(w, json_is_object(text) ? json_object_get(text, "value") : text);
}

static struct words words_of(const json_t *message) {
    static const char *const keys[] = {"content", "text"};
    struct words w = {0};
    for (size_t k = 0; k < sizeof keys / sizeof *keys && !w.size; k++) {
        const json_t *content = json_object_get(message, keys[k]);
        words_add(&w, content); // nothing where that is no string
        for (size_t i = 0; i < json_array_size(content); i++) part_add(&w, json_array_get(content, i));
    }
    return w;
}

// ---- one message ----

enum kind { KIND_USER, KIND_MODEL, KIND_SYSTEM, KIND_OTHER };

static enum kind kind_of(const json_t *message) {
    static const char *const names[] = {[KIND_USER] = "user", [KIND_MODEL] = "assistant", [KIND_SYSTEM] = "system"};
    const char *role = import_string(message, "role");
    const json_t *by_user = json_object_get(message, "isCreatedByUser");
    if (!role) return json_is_true(by_user) ? KIND_USER : json_is_false(by_user) ? KIND_MODEL : KIND_OTHER;
    if (!strcmp(role, "developer")) return KIND_SYSTEM;
    for (int k = 0; k < KIND_OTHER; k++)
        if (!strcmp(role, names[k])) return (enum kind)k;
    return KIND_OTHER;
}

static char *copied(const char *text) { return text ? xstrdup(text) : NULL; }

// A chat that is being put together.
struct chat {
    struct import *import;
    struct conversation conversation;
    struct import_tree tree;
};

static struct chat chat_begin(struct import *i) {
    struct chat c = {.import = i};
    conversation_open(&c.conversation, 0, i->initial);
    return c;
}

static void set_system(struct chat *c, const char *text) {
    if (text && *text) setting_parse(&c->conversation.settings, SETTING_system, text, NULL);
}

// The system prompt is no message but a setting; what has no text is skipped, and what tools said.
static void chat_add(struct chat *c, const json_t *message, const char *id, const char *parent) {
    const enum kind kind = kind_of(message);
    const struct words w = words_of(message);
    const char *model = import_string(message, "modelName");
    const bool dated = json_object_get(message, "createdAt");
    const bool skipped = !w.size || (kind != KIND_USER && kind != KIND_MODEL);
    if (!model) model = import_string(message, "model");
    if (kind == KIND_SYSTEM) set_system(c, w.text);
    else c->import->counts->skipped += skipped;
    import_tree_add(&c->tree,
                    &(struct import_message){.id = copied(id),
                                             .parent = copied(parent),
                                             .skipped = skipped,
                                             .role = kind == KIND_USER ? MESSAGE_USER : MESSAGE_MODEL,
                                             .text = w.text,
                                             .size = w.size,
                                             .model = kind == KIND_USER ? NULL : model,
                                             .created = import_time(message, dated ? "createdAt" : "timestamp")});
}

static void chat_end(struct chat *c, const char *title, int64_t created, const char *last) {
    struct conversation *talk = &c->conversation;
    int64_t used = created;
    import_tree_end(&c->tree, talk, last);
    for (int m = 0; m < talk->count; m++)
        if (talk->messages[m].created > used) used = talk->messages[m].created;
    talk->created = created ? created : talk->count ? talk->messages[0].created : 0;
    if (used) talk->used = used; // otherwise now
    if (title && *title) conversation_rename(talk, title);
    import_found(c->import, talk);
}

// ---- lists: every message follows the one before ----

static bool is_message(const json_t *value) { return import_string(value, "role"); }

static void list_import(struct import *i, const json_t *chat, const json_t *messages) {
    struct chat c = chat_begin(i);
    for (size_t m = 0; m < json_array_size(messages); m++) {
        char id[24], parent[24];
        snprintf(id, sizeof id, "%zu", m + 1), snprintf(parent, sizeof parent, "%zu", m);
        chat_add(&c, json_array_get(messages, m), id, parent);
    }
    set_system(&c, import_string(chat, "system"));
    chat_end(&c, import_string(chat, "title"), import_time(chat, "created"), NULL);
}

// ---- Open WebUI: an object of messages by their ids ----

static void webui_import(struct import *i, const json_t *outer, json_t *chat) {
    json_t *history = import_object(chat, "history"), *messages = import_object(history, "messages"), *message;
    const json_t *dated = json_object_get(outer, "created_at") ? outer : chat;
    const char *title = import_string(outer, "title"), *id;
    struct chat c = chat_begin(i);
    json_object_foreach(messages, id, message) chat_add(&c, message, id, import_string(message, "parentId"));
    set_system(&c, import_string(import_object(chat, "params"), "system"));
    set_system(&c, import_string(chat, "system"));
    c.conversation.pinned = json_is_true(json_object_get(outer, "pinned"));
    c.conversation.archived = json_is_true(json_object_get(outer, "archived"));
    chat_end(&c, title ? title : import_string(chat, "title"),
             import_time(dated, dated == outer ? "created_at" : "timestamp"), import_string(history, "currentId"));
}

// ---- LibreChat: a list of messages that name the one before, or a tree of them ----

static void libre_add(struct chat *c, const json_t *message) {
    chat_add(c, message, import_string(message, "messageId"), import_string(message, "parentMessageId"));
}

static void libre_tree(struct chat *c, const json_t *messages) { // as deep as the parser lets them be
    for (size_t m = 0; m < json_array_size(messages); m++) {
        const json_t *message = json_array_get(messages, m);
        libre_add(c, message);
        libre_tree(c, import_array(message, "children"));
    }
}

static void libre_import(struct import *i, const json_t *chat, const json_t *messages) {
    struct chat c = chat_begin(i);
    libre_tree(&c, messages);
    set_system(&c, import_string(import_object(chat, "options"), "promptPrefix"));
    chat_end(&c, import_string(chat, "title"), 0, NULL);
}

// ---- which of them it is ----

static bool import_object_of(struct import *i, json_t *value) {
    json_t *inner = import_object(value, "chat"), *messages = import_array(value, "messages");
    json_t *chat = inner ? inner : value, *tree = import_array(value, "messagesTree");
    if (import_object(import_object(chat, "history"), "messages")) webui_import(i, value, chat);
    else if (tree) libre_import(i, value, tree);
    else if (messages && import_string(json_array_get(messages, 0), "messageId")) libre_import(i, value, messages);
    else if (messages) list_import(i, value, messages);
    else return false;
    return true;
}

bool import_foreign(struct import *i, const json_t *value, struct status *st) {
    static const char expected[] = "no chat of a known form (see confab(1))";
    if (json_is_object(value))
        return import_object_of(i, (json_t *)value) || status_fail(st, STATUS_FORMAT, "%s", expected);
    if (json_is_array(value) && is_message(json_array_get(value, 0))) return list_import(i, NULL, value), true;
    if (!json_is_array(value)) return status_fail(st, STATUS_FORMAT, "%s", expected);
    for (size_t k = 0; k < json_array_size(value); k++)
        if (!import_object_of(i, json_array_get(value, k)))
            return status_fail(st, STATUS_FORMAT, "element %zu of the list: %s", k, expected);
    return true;
}
