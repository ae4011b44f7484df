#include "app/session/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/base/config.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/text_line.h"

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
};
#define STORE_VERSION ((int)(sizeof store_steps / sizeof *store_steps))

// X(enumerator, statement): prepared once
#define STORE_STATEMENTS(X)                                                                                            \
    X(SQL_BEGIN, "BEGIN IMMEDIATE")                                                                                    \
    X(SQL_COMMIT, "COMMIT")                                                                                            \
    X(SQL_ROLLBACK, "ROLLBACK")                                                                                        \
    X(SQL_LIST, "SELECT id, title, named, sampling, settings, created, waiting FROM conversation ORDER BY id")         \
    X(SQL_LAST, "SELECT last FROM conversation WHERE id = ?1")                                                         \
    X(SQL_READ, "SELECT id, parent, role, state, text, note, tokens, model, thinking, thinking_tokens, "               \
                "thinking_seconds, notice, created, begun, ended, name, use, own_tokens, drawn, edit, sampling "       \
                "FROM message WHERE conversation = ?1 ORDER BY id")                                                    \
    X(SQL_ADD_CONVERSATION, "INSERT INTO conversation (title, named, sampling, settings, created, waiting) "           \
                            "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                                         \
    X(SQL_SET_CONVERSATION, "UPDATE conversation SET title = ?1, named = ?2, sampling = ?3, settings = ?4, "           \
                            "waiting = ?6 WHERE id = ?5")                                                              \
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
    X(SQL_DELETE, "DELETE FROM conversation WHERE id = ?1")                                                            \
    X(SQL_READ_DRAFT, "SELECT text, folds, point FROM draft WHERE conversation = ?1")                                  \
    X(SQL_SET_DRAFT, "INSERT OR REPLACE INTO draft (conversation, text, folds, point) SELECT ?1, ?2, ?3, ?4 "          \
                     "WHERE ?1 = 0 OR EXISTS (SELECT 1 FROM conversation WHERE id = ?1)")                              \
    X(SQL_DELETE_DRAFT, "DELETE FROM draft WHERE conversation = ?1")
enum store_statement {
#define X(id, sql) id,
    STORE_STATEMENTS(X)
#undef X
        SQL_COUNT
};

static const char *const state_names[] = {
#define X(id, name) [id] = name,
    MESSAGE_STATES(X)
#undef X
};
static const char *const use_names[] = {
#define X(id, name) [id] = name,
    MESSAGE_USES(X)
#undef X
};

struct store {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[SQL_COUNT];
};

static bool store_fail(struct store *s, struct status *st) {
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
    if (!open || !store_prepare_schema(s, st) || !store_prepare_statements(s, st)) {
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

static sqlite3_stmt *statement(struct store *s, enum store_statement id) {
    sqlite3_stmt *query = s->statements[id];
    sqlite3_reset(query);
    sqlite3_clear_bindings(query);
    return query;
}

// Runs one that gives no rows.
static bool perform(struct store *s, sqlite3_stmt *query, struct status *st) {
    bool done = sqlite3_step(query) == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done;
}

static void bind_text(sqlite3_stmt *query, int at, const char *text) {
    sqlite3_bind_text(query, at, text, -1, SQLITE_STATIC); // NULL binds NULL
}

static void bind_time(sqlite3_stmt *query, int at, int64_t time) {
    if (time) sqlite3_bind_int64(query, at, time); // NULL: not known
}

static const char *column_text(sqlite3_stmt *query, int column) {
    const char *text = (const char *)sqlite3_column_text(query, column);
    return text ? text : "";
}

static int column_name(sqlite3_stmt *query, int column, const char *const *names, int count) {
    const char *text = column_text(query, column);
    for (int i = 0; i < count; i++)
        if (!strcmp(text, names[i])) return i;
    return 0;
}

// ---- reading ----

static char *sampling_write(const struct sampling *sampling) {
    struct settings s = {.sampling = *sampling, .knobs_set = ~0u};
    char *all = xstrdup("");
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        char *value = setting_format(&s, SETTING_FIRST_KNOB + knob);
        char *longer = xasprintf("%s%s%s=%s", all, knob ? " " : "", sampling_knobs[knob].key, value);
        free(value);
        free(all);
        all = longer;
    }
    return all;
}

// What it does not understand (knobs of other versions) it leaves at the values of `initial`.
static struct sampling sampling_read(const char *text, const struct sampling *initial) {
    struct settings s = {.sampling = *initial};
    char *copy = xstrdup(text), *rest = NULL;
    for (char *pair = strtok_r(copy, " ", &rest); pair; pair = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(pair, '=');
        if (!equals) continue;
        *equals = 0;
        int id = setting_find(pair);
        if (id >= SETTING_FIRST_KNOB) setting_parse(&s, id, equals + 1, NULL);
    }
    free(copy);
    return s.sampling;
}

static struct text_list line_read(const char *lines) {
    struct text_list waiting = {0};
    for (size_t size; *lines; lines += size + (lines[size] == '\n')) {
        size = strcspn(lines, "\n");
        char *text = text_line_unescape((struct span){lines, size});
        text_list_insert(&waiting, waiting.count, text);
        free(text);
    }
    return waiting;
}

// What an older confab wrote keeps the settings of `initial`.
static struct settings settings_read(sqlite3_stmt *query, const struct settings *initial) {
    struct settings own = settings_of_conversation(initial);
    own.sampling = sampling_read(column_text(query, 3), &initial->sampling);
    config_read_conversation(&own, column_text(query, 4));
    return own;
}

bool store_list(struct store *s, const struct settings *initial, store_visitor *each, void *context,
                struct status *st) {
    sqlite3_stmt *query = statement(s, SQL_LIST);
    int step;
    while ((step = sqlite3_step(query)) == SQLITE_ROW) {
        struct conversation found = {
            .row = sqlite3_column_int64(query, 0),
            .title = xstrdup(column_text(query, 1)),
            .named = sqlite3_column_int(query, 2),
            .settings = settings_read(query, initial),
            .created = sqlite3_column_int64(query, 5),
            .waiting = line_read(column_text(query, 6)),
            .unread_rows = true,
            .first = -1,
        };
        each(context, &found);
    }
    sqlite3_reset(query);
    return step == SQLITE_DONE || store_fail(s, st);
}

static int find_row(const struct conversation *c, int64_t row) {
    int low = 0, high = c->count; // rows grow
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (c->messages[middle].row < row) low = middle + 1;
        else high = middle;
    }
    return row && low < c->count && c->messages[low].row == row ? low : -1;
}

// They are no loss that would keep anybody from a chat.
static void read_tokens(struct message *m, sqlite3_stmt *query, int column) {
    const void *blob = sqlite3_column_blob(query, column);
    const size_t text[2] = {[CHANNEL_ANSWER] = m->size, [CHANNEL_THINKING] = m->thinking_size};
    struct status st;
    if (blob && !message_tokens_read(&m->drawn, blob, (size_t)sqlite3_column_bytes(query, column), text, &st))
        log_warning("store", "the tokens of message %lld are ignored: %s", (long long)m->row, st.text);
}

static void read_message(struct conversation *c, sqlite3_stmt *query) {
    static const char *const roles[] = {
#define X(id, name) [id] = name,
        MESSAGE_ROLES(X)
#undef X
    };
    enum message_role role = (enum message_role)column_name(query, 2, roles, sizeof roles / sizeof *roles);
    const char *text = column_text(query, 4);
    int parent = find_row(c, sqlite3_column_int64(query, 1));
    int added = conversation_add(c, parent, role, text, (size_t)sqlite3_column_bytes(query, 4));
    struct message *m = &c->messages[added];
    m->row = sqlite3_column_int64(query, 0);
    m->state = (enum message_state)column_name(query, 3, state_names, sizeof state_names / sizeof *state_names);
    m->tokens = sqlite3_column_int(query, 6);
    if (sqlite3_column_type(query, 5) != SQLITE_NULL) conversation_note(c, added, column_text(query, 5));
    if (sqlite3_column_type(query, 7) != SQLITE_NULL) conversation_set_model(c, added, column_text(query, 7));
    text = column_text(query, 8);
    if (*text)
        conversation_think(c, added, text, (size_t)sqlite3_column_bytes(query, 8), sqlite3_column_double(query, 10));
    m->thinking_tokens = sqlite3_column_int(query, 9);
    if (sqlite3_column_type(query, 11) != SQLITE_NULL) conversation_notice(c, added, column_text(query, 11));
    m->created = sqlite3_column_int64(query, 12);
    m->begun = sqlite3_column_int64(query, 13);
    m->ended = sqlite3_column_int64(query, 14);
    if (sqlite3_column_type(query, 15) != SQLITE_NULL) conversation_name(c, added, column_text(query, 15));
    m->use = (enum message_use)column_name(query, 16, use_names, sizeof use_names / sizeof *use_names);
    m->own_tokens = sqlite3_column_int(query, 17);
    if (sqlite3_column_type(query, 20) != SQLITE_NULL) {
        struct sampling initial = sampling_default(), drawn_under = sampling_read(column_text(query, 20), &initial);
        conversation_set_sampling(c, added, &drawn_under);
    }
    read_tokens(m, query, 18);
    if (sqlite3_column_type(query, 19) != SQLITE_NULL) conversation_set_edit(c, added, column_text(query, 19));
    m->dirty = false;
}

static bool read_messages(struct store *s, struct conversation *c, struct status *st) {
    sqlite3_stmt *query = statement(s, SQL_READ);
    sqlite3_bind_int64(query, 1, c->row);
    int step;
    while ((step = sqlite3_step(query)) == SQLITE_ROW) read_message(c, query);
    bool done = step == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done;
}

static bool read_last(struct store *s, struct conversation *c, struct status *st) {
    sqlite3_stmt *query = statement(s, SQL_LAST);
    sqlite3_bind_int64(query, 1, c->row);
    int step = sqlite3_step(query);
    if (step == SQLITE_ROW) conversation_choose(c, find_row(c, sqlite3_column_int64(query, 0)));
    bool done = step == SQLITE_ROW || step == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done;
}

bool store_read(struct store *s, struct conversation *c, struct status *st) {
    bool read = read_messages(s, c, st) && read_last(s, c, st);
    if (!read) conversation_forget_messages(c); // they come again when it is tried again
    c->unread_rows = !read;
    c->dirty = false;
    return read;
}

// ---- writing ----

// NULL: nothing waits. The caller frees.
static char *line_write(const struct text_list *waiting) {
    char *lines = NULL;
    for (int i = 0; i < waiting->count; i++) {
        char *line = text_line_escape(waiting->texts[i]), *longer = xasprintf("%s%s\n", lines ? lines : "", line);
        free(line), free(lines);
        lines = longer;
    }
    return lines;
}

static bool save_head(struct store *s, struct conversation *c, struct status *st) {
    sqlite3_stmt *query = statement(s, c->row ? SQL_SET_CONVERSATION : SQL_ADD_CONVERSATION);
    char *sampling = sampling_write(&c->settings.sampling), *settings = config_write_conversation(&c->settings),
         *waiting = line_write(&c->waiting);
    bind_text(query, 1, c->title);
    sqlite3_bind_int(query, 2, c->named);
    bind_text(query, 3, sampling);
    bind_text(query, 4, settings);
    if (c->row) sqlite3_bind_int64(query, 5, c->row);
    else bind_time(query, 5, c->created);
    bind_text(query, 6, waiting);
    bool done = perform(s, query, st);
    free(sampling), free(settings), free(waiting);
    if (done && !c->row) c->row = sqlite3_last_insert_rowid(s->db);
    return done;
}

static bool delete_message(struct store *s, const struct message *m, struct status *st) {
    sqlite3_stmt *query = statement(s, SQL_DELETE_MESSAGE);
    sqlite3_bind_int64(query, 1, m->row);
    return !m->row || perform(s, query, st);
}

// One that was there before goes back to its place, also when it was deleted meanwhile.
static bool save_message(struct store *s, struct conversation *c, struct message *m, struct status *st) {
    if (m->pruned) return delete_message(s, m, st);
    sqlite3_stmt *query = statement(s, SQL_SET_MESSAGE);
    bind_text(query, 1, message_role_name(m->role));
    bind_text(query, 2, state_names[m->state]);
    bind_text(query, 3, m->text);
    bind_text(query, 4, m->note);
    sqlite3_bind_int(query, 5, m->tokens);
    bind_text(query, 6, m->model);
    bind_text(query, 7, m->thinking);
    sqlite3_bind_int(query, 8, m->thinking_tokens);
    sqlite3_bind_double(query, 9, m->thinking_seconds);
    bind_text(query, 10, m->notice);
    bind_time(query, 11, m->created);
    bind_time(query, 12, m->begun);
    bind_time(query, 13, m->ended);
    bind_text(query, 14, m->name);
    bind_text(query, 15, m->use ? use_names[m->use] : NULL);
    sqlite3_bind_int(query, 16, m->own_tokens);
    sqlite3_bind_int64(query, 17, c->row);
    if (m->parent >= 0) sqlite3_bind_int64(query, 18, c->messages[m->parent].row);
    if (m->row) sqlite3_bind_int64(query, 19, m->row);
    size_t size;
    uint8_t *blob = m->drawn.count ? message_tokens_write(&m->drawn, &size) : NULL;
    if (blob) sqlite3_bind_blob64(query, 20, blob, size, free); // NULL otherwise
    bind_text(query, 21, m->edit);
    if (m->sampling) sqlite3_bind_text(query, 22, sampling_write(m->sampling), -1, free);
    if (!perform(s, query, st)) return false;
    if (!m->row) m->row = sqlite3_last_insert_rowid(s->db);
    return true;
}

static bool save_last(struct store *s, const struct conversation *c, struct status *st) {
    int last = conversation_last(c);
    sqlite3_stmt *query = statement(s, SQL_SET_LAST);
    if (last >= 0) sqlite3_bind_int64(query, 1, c->messages[last].row);
    sqlite3_bind_int64(query, 2, c->row);
    return perform(s, query, st);
}

static bool all_here(const struct conversation *c) {
    bool here = true;
    for (int i = 0; i < c->count; i++) here &= c->messages[i].text != NULL;
    return here;
}

static bool save_messages(struct store *s, struct conversation *c, struct status *st) {
    for (int i = 0; i < c->count; i++)
        if (c->messages[i].dirty && !save_message(s, c, &c->messages[i], st)) return false;
    return true;
}

// Another confab pruned messages that this one went on from: all of them are written again, if they are here.
static bool mend_messages(struct store *s, struct conversation *c, struct status *st) {
    if ((sqlite3_errcode(s->db) & 0xff) != SQLITE_CONSTRAINT) return false;
    c->torn = !all_here(c);
    if (c->torn) return status_fail(st, STATUS_IO, "%s: another confab pruned the chat", s->path);
    for (int i = 0; i < c->count; i++) c->messages[i].dirty = true;
    return save_messages(s, c, st);
}

// Another confab deleted the conversation while this one went on with it: it is written again as a whole, if all of it
// is here.
static bool forget_rows(struct store *s, struct conversation *c, struct status *st) {
    c->gone = !all_here(c);
    if (c->gone) return status_fail(st, STATUS_IO, "%s: another confab deleted the chat", s->path);
    c->row = 0;
    for (int i = 0; i < c->count; i++) c->messages[i].row = 0, c->messages[i].dirty = true;
    return save_head(s, c, st);
}

static bool save_all(struct store *s, struct conversation *c, struct status *st) {
    if (!save_head(s, c, st)) return false;
    if (!sqlite3_changes(s->db) && !forget_rows(s, c, st)) return false;
    if (!save_messages(s, c, st) && !mend_messages(s, c, st)) return false;
    return c->unread_rows || save_last(s, c, st);
}

bool store_save(struct store *s, struct conversation *c, struct status *st) {
    if (!perform(s, statement(s, SQL_BEGIN), st)) return false;
    int64_t old_row = c->row, *old_rows = xcalloc((size_t)c->count, sizeof *old_rows);
    for (int i = 0; i < c->count; i++) old_rows[i] = c->messages[i].row;
    bool saved = save_all(s, c, st) && perform(s, statement(s, SQL_COMMIT), st);
    if (!saved) { // rows that the undone transaction gave are not there
        perform(s, statement(s, SQL_ROLLBACK), NULL);
        c->row = old_row;
    }
    for (int i = 0; i < c->count; i++) {
        if (saved) c->messages[i].dirty = false;
        else c->messages[i].row = old_rows[i];
    }
    if (saved) c->dirty = false;
    free(old_rows);
    return saved;
}

bool store_delete(struct store *s, struct conversation *c, struct status *st) {
    if (!c->row) return true;
    sqlite3_stmt *query = statement(s, SQL_DELETE);
    sqlite3_bind_int64(query, 1, c->row);
    return perform(s, query, st);
}

// ---- drafts ----

bool store_read_draft(struct store *s, int64_t row, struct draft *out, struct status *st) {
    sqlite3_stmt *query = statement(s, SQL_READ_DRAFT);
    *out = (struct draft){0};
    sqlite3_bind_int64(query, 1, row);
    int step = sqlite3_step(query);
    const char *text = step == SQLITE_ROW ? column_text(query, 0) : "";
    if (*text) {
        out->text = xstrdup(text);
        if (sqlite3_column_type(query, 1) != SQLITE_NULL) out->folds = xstrdup(column_text(query, 1));
        int64_t point = sqlite3_column_int64(query, 2);
        out->point = point < 0 ? 0 : (size_t)point;
    }
    bool done = step == SQLITE_ROW || step == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done;
}

bool store_save_draft(struct store *s, int64_t row, const struct draft *d, struct status *st) {
    sqlite3_stmt *query = statement(s, d->text ? SQL_SET_DRAFT : SQL_DELETE_DRAFT);
    sqlite3_bind_int64(query, 1, row);
    if (d->text) {
        bind_text(query, 2, d->text);
        bind_text(query, 3, d->folds);
        sqlite3_bind_int64(query, 4, (int64_t)d->point);
    }
    return perform(s, query, st);
}
