#include "app/session/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/session/store_state.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"

#define OPEN_PATIENCE 5000 // ms another confab may keep us waiting at the start
#define SAVE_PATIENCE 250  // and while the screen waits; a save that had to give up is tried again

// What makes each version of the store out of the one before; the first out of nothing. Steps are only ever added.
static const char *const store_steps[] = {
    "CREATE TABLE conversation ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT," // order of making; numbers are never used again
    "  title TEXT NOT NULL,"
    "  named INTEGER NOT NULL,"
    "  sampling TEXT NOT NULL," // 'temp=0.70 top-p=0.95 …'
    "  last INTEGER);"          // message at the end of the chosen path
    "CREATE TABLE message ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  conversation INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,"
    "  parent INTEGER REFERENCES message ON DELETE CASCADE,"
    "  role TEXT NOT NULL, state TEXT NOT NULL, text TEXT NOT NULL, note TEXT,"
    "  tokens INTEGER NOT NULL);"
    "CREATE INDEX message_conversation ON message (conversation);"
    "CREATE INDEX message_parent ON message (parent);",
    "ALTER TABLE message ADD COLUMN model TEXT;", // that wrote it
    "ALTER TABLE message ADD COLUMN thinking TEXT;"
    "ALTER TABLE message ADD COLUMN thinking_tokens INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE message ADD COLUMN thinking_seconds REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE message ADD COLUMN notice TEXT;",
    "CREATE TABLE draft ("
    "  conversation INTEGER PRIMARY KEY," // 0: the one that has not begun
    "  text TEXT NOT NULL,"
    "  folds TEXT,"              // places in the text, 'OFFSET+BYTES …'
    "  point INTEGER NOT NULL);" // of the cursor
    "CREATE TRIGGER draft_of_deleted AFTER DELETE ON conversation "
    "BEGIN DELETE FROM draft WHERE conversation = old.id; END;",
    "ALTER TABLE conversation ADD COLUMN settings TEXT;"   // other than sampling, as lines of the configuration; NULL:
                                                           // none
    "ALTER TABLE conversation ADD COLUMN created INTEGER;" // times: milliseconds since 1970; NULL: not known
    "ALTER TABLE message ADD COLUMN created INTEGER;"
    "ALTER TABLE message ADD COLUMN begun INTEGER;"
    "ALTER TABLE message ADD COLUMN ended INTEGER;",
    "ALTER TABLE message ADD COLUMN name TEXT;", // of the branch that begins there
    ("ALTER TABLE message ADD COLUMN use TEXT;" // what of it the model is asked with; NULL: all
     "ALTER TABLE message ADD COLUMN own_tokens INTEGER NOT NULL DEFAULT 0;"),
    "ALTER TABLE message ADD COLUMN drawn BLOB;", // its tokens with their figures; NULL: not known
    "ALTER TABLE message ADD COLUMN edit TEXT;", // its new text as far as it is written; NULL: it is not being edited
    "ALTER TABLE message ADD COLUMN sampling TEXT;", // that it was drawn under, as of a conversation; NULL: not known
    "ALTER TABLE conversation ADD COLUMN waiting TEXT;", // messages that are not sent yet, a line each; NULL: none
    ("ALTER TABLE conversation ADD COLUMN used INTEGER;" // time of its latest message
     "ALTER TABLE conversation ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE conversation ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE conversation ADD COLUMN tags TEXT NOT NULL DEFAULT '';" // words
     "UPDATE conversation SET used = (SELECT max(created) FROM message WHERE conversation = conversation.id);"
     // The words of all messages, which triggers keep up to date.
     "CREATE VIRTUAL TABLE message_search USING fts5 (text, content = 'message', content_rowid = 'id', prefix = '3', "
     "tokenize = 'unicode61 remove_diacritics 2');"
     "CREATE TRIGGER message_search_added AFTER INSERT ON message "
     "BEGIN INSERT INTO message_search (rowid, text) VALUES (new.id, new.text); END;"
     "CREATE TRIGGER message_search_deleted AFTER DELETE ON message "
     "BEGIN INSERT INTO message_search (message_search, rowid, text) VALUES ('delete', old.id, old.text); END;"
     "CREATE TRIGGER message_search_changed AFTER UPDATE OF text ON message WHEN old.text <> new.text "
     "BEGIN INSERT INTO message_search (message_search, rowid, text) VALUES ('delete', old.id, old.text);"
     "INSERT INTO message_search (rowid, text) VALUES (new.id, new.text); END;"
     "INSERT INTO message_search (message_search) VALUES ('rebuild');"),
    ("DROP TABLE message_search;"
     "CREATE VIRTUAL TABLE message_search USING fts5 (text, content = 'message', content_rowid = 'id', prefix = '3', "
     "tokenize = 'words remove_diacritics 2');"
     "INSERT INTO message_search (message_search) VALUES ('rebuild');"),
};
#define STORE_VERSION ((int)(sizeof store_steps / sizeof *store_steps))

bool store_fail(struct store *s, struct status *st) {
    return status_fail(st, STATUS_IO, "%s: %s", s->path, s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

// ---- opening ----

static int user_version(sqlite3 *db) {
    sqlite3_stmt *query = NULL;
    int version = -1;
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &query, NULL) == SQLITE_OK &&
        sqlite3_step(query) == SQLITE_ROW)
        version = sqlite3_column_int(query, 0);
    sqlite3_finalize(query);
    return version;
}

static bool store_renew(struct store *s, int version, struct status *st) {
    char *mark = xasprintf("PRAGMA user_version = %d", STORE_VERSION);
    bool done = true;
    for (; done && version < STORE_VERSION; version++)
        done = sqlite3_exec(s->db, store_steps[version], NULL, NULL, NULL) == SQLITE_OK;
    done = done && sqlite3_exec(s->db, mark, NULL, NULL, NULL) == SQLITE_OK;
    free(mark);
    return done || store_fail(s, st);
}

// Inside one transaction, so that two confabs that start together make it once.
static bool store_prepare_schema(struct store *s, struct status *st) {
    if (sqlite3_exec(
            s->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; BEGIN IMMEDIATE",
            NULL, NULL, NULL) != SQLITE_OK)
        return store_fail(s, st);
    int version = user_version(s->db);
    if (version < 0) return store_fail(s, st);
    if (version > STORE_VERSION)
        return status_fail(st, STATUS_UNSUPPORTED,
                           "%s: version %d was written by a newer confab; this one reads up to %d", s->path, version,
                           STORE_VERSION);
    if (version < STORE_VERSION && !store_renew(s, version, st)) return false;
    return sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK || store_fail(s, st);
}

static bool store_prepare_statements(struct store *s, struct status *st) {
    static const char *const texts[] = {
#define X(id, sql) [id] = sql,
        STORE_STATEMENTS(X)
#undef X
    };
    for (int i = 0; i < SQL_COUNT; i++)
        if (sqlite3_prepare_v3(s->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[i], NULL) != SQLITE_OK)
            return store_fail(s, st);
    return true;
}

// A new file is for this user alone; SQLite gives its companions the same mode.
static void make_private(const char *path) {
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
}

struct store *store_open(const char *path, struct status *st) {
    if (!path_make_parents(path, st)) return NULL;
    make_private(path); // when it fails, opening says why
    struct store *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    bool open = sqlite3_open_v2(path, &s->db, flags, NULL) == SQLITE_OK || store_fail(s, st);
    if (open) sqlite3_busy_timeout(s->db, OPEN_PATIENCE);
    if (!open || !store_prepare_search(s, st) || !store_prepare_schema(s, st) ||
        !store_prepare_statements(s, st)) {
        store_close(s);
        return NULL;
    }
    sqlite3_busy_timeout(s->db, SAVE_PATIENCE);
    return s;
}

void store_close(struct store *s) {
    for (int i = 0; i < SQL_COUNT; i++) sqlite3_finalize(s->statements[i]);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}

// ---- statements ----

sqlite3_stmt *store_statement(struct store *s, enum store_statement id) {
    sqlite3_stmt *query = s->statements[id];
    sqlite3_reset(query);
    sqlite3_clear_bindings(query);
    return query;
}

bool store_perform(struct store *s, sqlite3_stmt *query, struct status *st) {
    bool done = sqlite3_step(query) == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done;
}

void store_bind_text(sqlite3_stmt *query, int at, const char *text) {
    sqlite3_bind_text(query, at, text, -1, SQLITE_STATIC); // NULL binds NULL
}

void store_bind_time(sqlite3_stmt *query, int at, int64_t time) {
    if (time) sqlite3_bind_int64(query, at, time); // NULL: not known
}

const char *store_column_text(sqlite3_stmt *query, int column) {
    const char *text = (const char *)sqlite3_column_text(query, column);
    return text ? text : "";
}
