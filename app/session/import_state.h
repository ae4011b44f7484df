// The inside of import, shared by import.c (files and what is in them), import_own.c and import_foreign.c (chats of
// confab and of others) and import_tree.c (messages that name the one before). Nobody else includes this.
#ifndef CONFAB_APP_IMPORT_STATE_H
#define CONFAB_APP_IMPORT_STATE_H

#include <jansson.h>

#include "app/session/import.h"

struct import {
    const struct settings *initial;
    import_visitor *each;
    void *context;
    struct import_counts *counts;
};

// A message, before its place is known.
struct import_message {
    char *id, *parent; // owned; id NULL: nobody names it; parent NULL: a first one
    bool skipped;      // it is no message of the chat
    enum message_role role;
    char *text; // owned
    size_t size;
    const char *model; // borrowed, like what follows; NULL: not known
    int64_t created;
    const json_t *own; // of confab's own, the other members
};

struct import_tree {
    struct import_message *messages;
    int count, capacity;
};

// Texts are taken over.
void import_tree_add(struct import_tree *t, const struct import_message *m);
// Adds them to a conversation, each behind the one that it names, in their order; one whose parent is not there is a
// first one, and those that are their own ancestors are left out. The path leads to the message `last` (NULL: to the
// last one). Frees them.
void import_tree_end(struct import_tree *t, struct conversation *c, const char *last);

// Members of any JSON value; NULL and 0 where there is none of that kind.
const char *import_string(const json_t *object, const char *key);
json_t *import_object(const json_t *object, const char *key);
json_t *import_array(const json_t *object, const char *key);
int64_t import_number(const json_t *object, const char *key, int64_t most); // not below 0
// Seconds or milliseconds since 1970, or "2026-01-02T03:04:05.678Z"; in milliseconds.
int64_t import_time(const json_t *object, const char *key);

void import_found(struct import *i, struct conversation *c); // with all its messages; takes it over

void import_own_members(struct conversation *c, int message, const json_t *own);
bool import_own(struct import *i, const json_t *chat, struct status *st);
bool import_foreign(struct import *i, const json_t *value, struct status *st);

#endif
