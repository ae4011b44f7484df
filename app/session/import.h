// Import: chats out of JSON that confab or another program wrote.
//
//   confab        what export.h writes
//   OpenAI        a list of {"role", "content"}, {"messages": a list of them}, or a list of such objects
//   Open WebUI    its export: a list of {"chat": {"history": {"messages", "currentId"}}}
//   LibreChat     its export: {"messagesTree"} with "children", or {"messages"} with "messageId" and "parentMessageId"
//
// A file has one of them or several, one behind the other (JSON Lines). All of it is hostile: size, depth, numbers and
// references between messages are checked, and text is UTF-8.
#ifndef CONFAB_APP_IMPORT_H
#define CONFAB_APP_IMPORT_H

#include "app/session/conversation.h"
#include "engine/base/reader.h"

#define IMPORT_OWN_FORMAT  "confab" // member "format" of a chat
#define IMPORT_OWN_VERSION 1
#define IMPORT_LIMIT       ((size_t)1 << 30) // bytes of a file

struct import_counts {
    int chats, messages, skipped; // skipped: messages that are no text of a person or a model
};

typedef void import_visitor(void *context, struct conversation *found); // takes it over
// Hands out every chat that has messages. Those that came before a mistake are handed out too; the message names the
// file ("-": standard input, unless it has to be a regular one) and the line. What a chat does not say of its settings
// is as in `initial`.
bool import_file(const char *path, bool regular, const struct settings *initial, import_visitor *each, void *context,
                 struct import_counts *counts, struct status *st);
bool import_text(struct span text, const struct settings *initial, import_visitor *each, void *context,
                 struct import_counts *counts, struct status *st);

#endif
