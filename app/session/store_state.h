// The inside of the store, shared by store.c (the file and its statements), store_read.c, store_write.c,
// store_drafts.c, store_search.c and store_words.c. Nobody else includes this.
#ifndef CONFAB_APP_STORE_STATE_H
#define CONFAB_APP_STORE_STATE_H

#include <sqlite3.h>

#include "app/session/store.h"

// X(enumerator, statement): prepared once
#define STORE_STATEMENTS(X)                                                                                            \
    X(SQL_BEGIN, "BEGIN IMMEDIATE")                                                                                    \
    X(SQL_COMMIT, "COMMIT")                                                                                            \
    X(SQL_ROLLBACK, "ROLLBACK")                                                                                        \
    X(SQL_LIST, "SELECT id, title, named, sampling, settings, created, used, pinned, archived, tags, waiting "         \
                "FROM conversation ORDER BY archived DESC, pinned, used, id")                                          \
    X(SQL_LAST, "SELECT last FROM conversation WHERE id = ?1")                                                         \
    X(SQL_READ, "SELECT id, parent, role, state, text, note, tokens, model, thinking, thinking_tokens, "               \
                "thinking_seconds, notice, created, begun, ended, name, use, own_tokens, drawn, edit, sampling "       \
                "FROM message WHERE conversation = ?1 ORDER BY id")                                                    \
    X(SQL_ADD_CONVERSATION, "INSERT INTO conversation (title, named, sampling, settings, used, pinned, archived, "     \
                            "tags, created, waiting) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                \
    X(SQL_SET_CONVERSATION, "UPDATE conversation SET title = ?1, named = ?2, sampling = ?3, settings = ?4, "           \
                            "used = ?5, pinned = ?6, archived = ?7, tags = ?8, waiting = ?10 WHERE id = ?9")           \
    X(SQL_SET_LAST, "UPDATE conversation SET last = ?1 WHERE id = ?2")                                                 \
    X(SQL_SET_MESSAGE, "INSERT INTO message (role, state, text, note, tokens, model, thinking, thinking_tokens, "      \
                       "thinking_seconds, notice, created, begun, ended, name, use, own_tokens, conversation, parent, "\
                       "id, drawn, edit, sampling) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, "   \
                       "?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22) ON CONFLICT (id) DO UPDATE SET role = ?1, "       \
                       "state = ?2, text = ?3, "                                                                       \
                       "note = ?4, tokens = ?5, model = ?6, thinking = ?7, thinking_tokens = ?8, "                     \
                       "thinking_seconds = ?9, notice = ?10, created = ?11, begun = ?12, ended = ?13, name = ?14, "    \
                       "use = ?15, own_tokens = ?16, drawn = ?20, edit = ?21, sampling = ?22")                         \
    X(SQL_DELETE_MESSAGE, "DELETE FROM message WHERE id = ?1")                                                         \
    X(SQL_UNCHAIN, "UPDATE message SET parent = NULL WHERE conversation = ?1 AND parent IS NOT NULL")                  \
    X(SQL_DELETE, "DELETE FROM conversation WHERE id = ?1")                                                            \
    X(SQL_READ_DRAFT, "SELECT text, folds, point FROM draft WHERE conversation = ?1")                                  \
    X(SQL_SET_DRAFT, "INSERT OR REPLACE INTO draft (conversation, text, folds, point) SELECT ?1, ?2, ?3, ?4 "          \
                     "WHERE ?1 = 0 OR EXISTS (SELECT 1 FROM conversation WHERE id = ?1)")                              \
    X(SQL_DELETE_DRAFT, "DELETE FROM draft WHERE conversation = ?1")                                                   \
    X(SQL_SEARCH, "SELECT message.conversation, message.id, relevance(message_search) "                                \
                  "FROM message_search CROSS JOIN message ON message.id = message_search.rowid "                       \
                  "WHERE message_search MATCH ?1 ORDER BY message_search.rowid DESC LIMIT ?2")                         \
    X(SQL_MESSAGE_TEXT, "SELECT text FROM message WHERE id = ?1")
enum store_statement {
#define X(id, sql) id,
    STORE_STATEMENTS(X)
#undef X
        SQL_COUNT
};

struct store {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[SQL_COUNT];
};

bool store_fail(struct store *s, struct status *st);                          // with SQLite's message
sqlite3_stmt *store_statement(struct store *s, enum store_statement id);      // with nothing bound
bool store_perform(struct store *s, sqlite3_stmt *query, struct status *st);  // one that gives no rows

void store_bind_text(sqlite3_stmt *query, int at, const char *text); // borrowed; NULL binds NULL
void store_bind_time(sqlite3_stmt *query, int at, int64_t time);     // 0: NULL, not known
const char *store_column_text(sqlite3_stmt *query, int column);      // "" of NULL

bool store_prepare_search(struct store *s, struct status *st); // before the statements
bool store_add_words(fts5_api *fts);                           // the tokenizer 'words', with the options of unicode61

#endif
