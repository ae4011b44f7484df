// Writes conversations and their messages to the store.
#include <stdlib.h>

#include "app/base/config.h"
#include "app/session/sampling_text.h"
#include "app/session/store_state.h"
#include "engine/base/panic.h"
#include "engine/base/text_line.h"

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
    sqlite3_stmt *query = store_statement(s, c->row ? SQL_SET_CONVERSATION : SQL_ADD_CONVERSATION);
    char *sampling = sampling_text_write(&c->settings.sampling), *settings = config_write_conversation(&c->settings),
         *waiting = line_write(&c->waiting);
    store_bind_text(query, 1, c->title);
    sqlite3_bind_int(query, 2, c->named);
    store_bind_text(query, 3, sampling);
    store_bind_text(query, 4, settings);
    store_bind_time(query, 5, c->used);
    sqlite3_bind_int(query, 6, c->pinned);
    sqlite3_bind_int(query, 7, c->archived);
    store_bind_text(query, 8, c->tags);
    if (c->row) sqlite3_bind_int64(query, 9, c->row);
    else store_bind_time(query, 9, c->created);
    store_bind_text(query, 10, waiting);
    bool done = store_perform(s, query, st);
    free(sampling), free(settings), free(waiting);
    if (done && !c->row) c->row = sqlite3_last_insert_rowid(s->db);
    return done;
}

static bool delete_message(struct store *s, const struct message *m, struct status *st) {
    sqlite3_stmt *query = store_statement(s, SQL_DELETE_MESSAGE);
    sqlite3_bind_int64(query, 1, m->row);
    return !m->row || store_perform(s, query, st);
}

// One that was there before goes back to its place, also when it was deleted meanwhile.
static bool save_message(struct store *s, struct conversation *c, struct message *m, struct status *st) {
    sqlite3_stmt *query = store_statement(s, SQL_SET_MESSAGE);
    store_bind_text(query, 1, message_role_name(m->role));
    store_bind_text(query, 2, message_state_name(m->state));
    store_bind_text(query, 3, m->text);
    store_bind_text(query, 4, m->note);
    sqlite3_bind_int(query, 5, m->tokens);
    store_bind_text(query, 6, m->model);
    store_bind_text(query, 7, m->thinking);
    sqlite3_bind_int(query, 8, m->thinking_tokens);
    sqlite3_bind_double(query, 9, m->thinking_seconds);
    store_bind_text(query, 10, m->notice);
    store_bind_time(query, 11, m->created);
    store_bind_time(query, 12, m->begun);
    store_bind_time(query, 13, m->ended);
    store_bind_text(query, 14, m->name);
    store_bind_text(query, 15, m->use ? message_use_name(m->use) : NULL);
    sqlite3_bind_int(query, 16, m->own_tokens);
    sqlite3_bind_int64(query, 17, c->row);
    if (m->parent >= 0) sqlite3_bind_int64(query, 18, c->messages[m->parent].row);
    if (m->row) sqlite3_bind_int64(query, 19, m->row);
    size_t size;
    uint8_t *blob = m->drawn.count ? message_tokens_write(&m->drawn, &size) : NULL;
    if (blob) sqlite3_bind_blob64(query, 20, blob, size, free); // NULL otherwise
    store_bind_text(query, 21, m->edit);
    if (m->sampling) sqlite3_bind_text(query, 22, sampling_text_write(m->sampling), -1, free);
    if (!store_perform(s, query, st)) return false;
    if (!m->row) m->row = sqlite3_last_insert_rowid(s->db);
    return true;
}

static bool save_last(struct store *s, const struct conversation *c, struct status *st) {
    int last = conversation_last(c);
    sqlite3_stmt *query = store_statement(s, SQL_SET_LAST);
    if (last >= 0) sqlite3_bind_int64(query, 1, c->messages[last].row);
    sqlite3_bind_int64(query, 2, c->row);
    return store_perform(s, query, st);
}

static bool all_here(const struct conversation *c) {
    bool here = true;
    for (int i = 0; i < c->count; i++) here &= c->messages[i].text != NULL;
    return here;
}

// Pruned ones go last first: with a message go those below it, and SQLite follows no more than 1,000 from one to the
// next.
static bool save_messages(struct store *s, struct conversation *c, struct status *st) {
    for (int i = c->count - 1; i >= 0; i--)
        if (c->messages[i].dirty && c->messages[i].pruned && !delete_message(s, &c->messages[i], st)) return false;
    for (int i = 0; i < c->count; i++)
        if (c->messages[i].dirty && !c->messages[i].pruned && !save_message(s, c, &c->messages[i], st)) return false;
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
    if (!store_perform(s, store_statement(s, SQL_BEGIN), st)) return false;
    int64_t old_row = c->row, *old_rows = xcalloc((size_t)c->count, sizeof *old_rows);
    for (int i = 0; i < c->count; i++) old_rows[i] = c->messages[i].row;
    bool saved = save_all(s, c, st) && store_perform(s, store_statement(s, SQL_COMMIT), st);
    if (!saved) { // rows that the undone transaction gave are not there
        store_perform(s, store_statement(s, SQL_ROLLBACK), NULL);
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

static bool perform_for(struct store *s, enum store_statement id, int64_t row, struct status *st) {
    sqlite3_stmt *query = store_statement(s, id);
    sqlite3_bind_int64(query, 1, row);
    return store_perform(s, query, st);
}

bool store_delete(struct store *s, struct conversation *c, struct status *st) {
    if (!c->row) return true;
    if (!store_perform(s, store_statement(s, SQL_BEGIN), st)) return false;
    const bool deleted = perform_for(s, SQL_UNCHAIN, c->row, st) && perform_for(s, SQL_DELETE, c->row, st) &&
                         store_perform(s, store_statement(s, SQL_COMMIT), st);
    if (!deleted) store_perform(s, store_statement(s, SQL_ROLLBACK), NULL);
    return deleted;
}
