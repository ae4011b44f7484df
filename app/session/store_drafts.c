// Drafts in the store.
#include "app/session/store_state.h"
#include "engine/base/panic.h"

bool store_read_draft(struct store *s, int64_t row, struct draft *out, struct status *st) {
    sqlite3_stmt *query = store_statement(s, SQL_READ_DRAFT);
    *out = (struct draft){0};
    sqlite3_bind_int64(query, 1, row);
    int step = sqlite3_step(query);
    const char *text = step == SQLITE_ROW ? store_column_text(query, 0) : "";
    if (*text) {
        out->text = xstrdup(text);
        if (sqlite3_column_type(query, 1) != SQLITE_NULL) out->folds = xstrdup(store_column_text(query, 1));
        int64_t point = sqlite3_column_int64(query, 2);
        out->point = point < 0 ? 0 : (size_t)point;
    }
    bool done = step == SQLITE_ROW || step == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done;
}

bool store_save_draft(struct store *s, int64_t row, const struct draft *d, struct status *st) {
    sqlite3_stmt *query = store_statement(s, d->text ? SQL_SET_DRAFT : SQL_DELETE_DRAFT);
    sqlite3_bind_int64(query, 1, row);
    if (d->text) {
        store_bind_text(query, 2, d->text);
        store_bind_text(query, 3, d->folds);
        sqlite3_bind_int64(query, 4, (int64_t)d->point);
    }
    return store_perform(s, query, st);
}
