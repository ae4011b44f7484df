// Store: the conversations of a person, in one SQLite file.
//
// Every change is one transaction, so that a confab killed at any moment leaves a store that opens with everything that
// was acknowledged. Several confabs may use one store: write-ahead log, short transactions, waiting when the other
// writes. Order is by row number, never by a clock. When a write fails (disk full, store locked), what was to be
// written stays dirty in memory and the next call tries again. One thread at a time.
#ifndef CONFAB_APP_STORE_H
#define CONFAB_APP_STORE_H

#include "app/session/conversation.h"
#include "engine/base/status.h"
#include "ui/draft.h"

struct store;

struct store *store_open(const char *path, struct status *st); // makes file and folders when missing
void store_close(struct store *s);

// Calls `each` for every conversation with its head (title, settings, times, tags) and unread_rows true: in the
// reverse of the order of lists: archived ones, then those used last at the end, then pinned ones. `each` takes over
// what it owns.
typedef void store_visitor(void *context, struct conversation *found);
// Settings that an older confab did not write are those of `initial`.
bool store_list(struct store *s, const struct settings *initial, store_visitor *each, void *context, struct status *st);
// Reads the messages of a conversation that has unread_rows.
bool store_read(struct store *s, struct conversation *c, struct status *st);

// Writes what is dirty of a conversation. True: all of it is in the store and nothing is dirty any more. One that
// another confab has deleted is written again as a whole; a copy that has no texts of what is not dirty is `gone` then.
bool store_save(struct store *s, struct conversation *c, struct status *st);
bool store_delete(struct store *s, struct conversation *c, struct status *st); // with its draft

// A message that has all the words searched for, of each conversation the best one.
struct store_match {
    int64_t conversation, message; // rows
    double relevance;
    char *snippet; // one line, around the first of the words
};
enum { STORE_MATCHES = 100 }; // at most
// Finds words in the texts of all messages, letter case and accents aside, the best matches first: many of the words in
// a short message, and of equals the newest. The last word may be a beginning of at least three letters; "words in
// quotes" follow each other. Of words that are very common only the newest messages are looked at. Returns how many
// were found; −1: failed. The caller frees with store_free_matches.
int store_search(struct store *s, const char *words, struct store_match **out, struct status *st);
void store_free_matches(struct store_match *matches, int count);

// The draft of the conversation with this row; of row 0 it is that of the one that has not begun. Whoever writes last
// is right. One that is not there is empty, and an empty one is not there.
bool store_read_draft(struct store *s, int64_t row, struct draft *out, struct status *st); // the caller frees
bool store_save_draft(struct store *s, int64_t row, const struct draft *d, struct status *st);

#endif
