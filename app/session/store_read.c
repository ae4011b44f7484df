// Reads conversations and their messages from the store.
#include <stdlib.h>
#include <string.h>

#include "app/base/config.h"
#include "app/session/sampling_text.h"
#include "app/session/store_state.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/base/text_line.h"

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

// The settings that were read last: most conversations have the same ones, and there may be thousands.
struct settings_seen {
    char *sampling, *others; // as they are written; NULL: none were read
    struct settings settings;
};

static void settings_seen_free(struct settings_seen *seen) {
    if (seen->sampling) settings_free(&seen->settings);
    free(seen->sampling), free(seen->others);
}

// What an older confab wrote keeps the settings of `initial`.
static struct settings settings_read(struct settings_seen *seen, const char *sampling, const char *others,
                                     const struct settings *initial) {
    if (seen->sampling && !strcmp(seen->sampling, sampling) && !strcmp(seen->others, others))
        return settings_copy(&seen->settings);
    settings_seen_free(seen);
    seen->settings = settings_of_conversation(initial);
    seen->settings.sampling = sampling_text_read(sampling, &initial->sampling);
    config_read_conversation(&seen->settings, others);
    seen->sampling = xstrdup(sampling), seen->others = xstrdup(others);
    return settings_copy(&seen->settings);
}

bool store_list(struct store *s, const struct settings *initial, store_visitor *each, void *context,
                struct status *st) {
    sqlite3_stmt *query = store_statement(s, SQL_LIST);
    struct settings_seen seen = {0};
    int step;
    while ((step = sqlite3_step(query)) == SQLITE_ROW) {
        struct conversation found = {
            .row = sqlite3_column_int64(query, 0),
            .title = xstrdup(store_column_text(query, 1)),
            .named = sqlite3_column_int(query, 2),
            .settings = settings_read(&seen, store_column_text(query, 3), store_column_text(query, 4), initial),
            .created = sqlite3_column_int64(query, 5),
            .used = sqlite3_column_int64(query, 6),
            .pinned = sqlite3_column_int(query, 7),
            .archived = sqlite3_column_int(query, 8),
            .tags = xstrdup(store_column_text(query, 9)),
            .waiting = line_read(store_column_text(query, 10)),
            .unread_rows = true,
            .first = -1,
        };
        each(context, &found);
    }
    bool done = step == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    settings_seen_free(&seen);
    return done;
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
    enum message_role role = message_role_named(store_column_text(query, 2));
    const char *text = store_column_text(query, 4);
    int parent = find_row(c, sqlite3_column_int64(query, 1));
    int added = conversation_add(c, parent, role, text, (size_t)sqlite3_column_bytes(query, 4));
    struct message *m = &c->messages[added];
    m->row = sqlite3_column_int64(query, 0);
    m->state = message_state_named(store_column_text(query, 3));
    m->tokens = sqlite3_column_int(query, 6);
    if (sqlite3_column_type(query, 5) != SQLITE_NULL) conversation_note(c, added, store_column_text(query, 5));
    if (sqlite3_column_type(query, 7) != SQLITE_NULL) conversation_set_model(c, added, store_column_text(query, 7));
    text = store_column_text(query, 8);
    if (*text)
        conversation_think(c, added, text, (size_t)sqlite3_column_bytes(query, 8), sqlite3_column_double(query, 10));
    m->thinking_tokens = sqlite3_column_int(query, 9);
    if (sqlite3_column_type(query, 11) != SQLITE_NULL) conversation_notice(c, added, store_column_text(query, 11));
    m->created = sqlite3_column_int64(query, 12);
    m->begun = sqlite3_column_int64(query, 13);
    m->ended = sqlite3_column_int64(query, 14);
    if (sqlite3_column_type(query, 15) != SQLITE_NULL) conversation_name(c, added, store_column_text(query, 15));
    m->use = message_use_named(store_column_text(query, 16));
    m->own_tokens = sqlite3_column_int(query, 17);
    if (sqlite3_column_type(query, 20) != SQLITE_NULL) {
        struct sampling initial = sampling_default(),
                        drawn_under = sampling_text_read(store_column_text(query, 20), &initial);
        conversation_set_sampling(c, added, &drawn_under);
    }
    read_tokens(m, query, 18);
    if (sqlite3_column_type(query, 19) != SQLITE_NULL) conversation_set_edit(c, added, store_column_text(query, 19));
    m->dirty = false;
}

static bool read_messages(struct store *s, struct conversation *c, struct status *st) {
    sqlite3_stmt *query = store_statement(s, SQL_READ);
    sqlite3_bind_int64(query, 1, c->row);
    int step;
    while ((step = sqlite3_step(query)) == SQLITE_ROW) read_message(c, query);
    bool done = step == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done;
}

static bool read_last(struct store *s, struct conversation *c, struct status *st) {
    sqlite3_stmt *query = store_statement(s, SQL_LAST);
    sqlite3_bind_int64(query, 1, c->row);
    int step = sqlite3_step(query);
    if (step == SQLITE_ROW) conversation_choose(c, find_row(c, sqlite3_column_int64(query, 0)));
    bool done = step == SQLITE_ROW || step == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done;
}

bool store_read(struct store *s, struct conversation *c, struct status *st) {
    const int64_t used = c->used;
    bool read = read_messages(s, c, st) && read_last(s, c, st);
    if (!read) conversation_forget_messages(c); // they come again when it is tried again
    c->unread_rows = !read;
    c->used = used; // no message was added now
    c->dirty = false;
    return read;
}
