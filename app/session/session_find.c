// What a session finds, writes and reads for a person on the worker's thread: words in all chats, exports, imports.
#include <stdlib.h>
#include <string.h>

#include "app/session/export.h"
#include "app/session/import.h"
#include "app/session/session_state.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"

// ---- search: one at a time, and behind it the latest that was asked for ----

struct search {
    struct session *session;
    char *words;
    struct store_match *matches;
    int count;
    struct status status;
};

void session_forget_matches(struct session *s, const struct session_chat *chat) {
    int kept = 0;
    for (int i = 0; i < s->n_matches; i++) {
        if (chat && s->matches[i].chat != chat) s->matches[kept++] = s->matches[i];
        else free(s->matches[i].snippet);
    }
    s->n_matches = kept;
    if (chat) return;
    free(s->matches);
    s->matches = NULL;
}

static void search_work(void *job) {
    struct search *j = job;
    if (session_store_ready(j->session, &j->status))
        j->count = store_search(j->session->store, j->words, &j->matches, &j->status);
}

struct place {
    int64_t row;
    int match;
};

static int by_row(const void *a, const void *b) {
    const struct place *one = a, *other = b;
    return one->row < other->row ? -1 : one->row > other->row;
}

// Each match with its chat, in one pass over the chats; those of chats that are not here are dropped.
static void take_matches(struct session *s, struct search *j) {
    struct place *places = xcalloc((size_t)j->count + 1, sizeof *places);
    session_forget_matches(s, NULL);
    s->matches = xcalloc((size_t)j->count + 1, sizeof *s->matches);
    for (int i = 0; i < j->count; i++) places[i] = (struct place){j->matches[i].conversation, i};
    qsort(places, (size_t)j->count, sizeof *places, by_row);
    for (int i = 0; i < s->count; i++) {
        const struct place *p = bsearch(&(struct place){s->chats[i]->conversation.row, 0}, places, (size_t)j->count,
                                        sizeof *places, by_row);
        if (p) s->matches[p->match].chat = s->chats[i];
    }
    for (int i = 0; i < j->count; i++) {
        struct session_match *m = &s->matches[s->n_matches];
        struct session_chat *chat = s->matches[i].chat;
        if (!chat) continue;
        *m = (struct session_match){chat, j->matches[i].message, j->matches[i].snippet};
        j->matches[i].snippet = NULL;
        s->n_matches++;
    }
    free(places);
}

static void search_start(struct session *s);

static void search_done(void *job) {
    struct search *j = job;
    struct session *s = j->session;
    const bool latest = !s->to_search;
    free(s->searched);
    s->searched = NULL;
    if (!latest) {
        search_start(s);
    } else if (j->count >= 0 && !j->status.code) {
        take_matches(s, j);
        session_tell(s, &(struct session_event){.kind = SESSION_FOUND});
    } else {
        session_say(s, SESSION_FOUND, NULL, "the chats cannot be searched", &j->status);
    }
    if (j->count > 0) store_free_matches(j->matches, j->count);
    else free(j->matches);
    free(j->words);
    free(j);
}

static void search_start(struct session *s) {
    struct search *j = xcalloc(1, sizeof *j);
    s->searched = s->to_search;
    s->to_search = NULL;
    *j = (struct search){.session = s, .words = xstrdup(s->searched)};
    worker_do(s->worker, search_work, search_done, j);
}

void session_search(struct session *s, const char *words) {
    if (!s->p.store_path) return;
    free(s->to_search);
    s->to_search = xstrdup(words);
    if (!s->searched) search_start(s);
}

const struct session_match *session_matches(const struct session *s, int *count) {
    *count = s->n_matches;
    return s->matches;
}

int session_message_at(const struct session_chat *chat, int64_t row) {
    const struct conversation *talk = &chat->conversation;
    for (int i = 0; row && i < talk->count; i++)
        if (talk->messages[i].row == row && !talk->messages[i].pruned) return i;
    return -1;
}

// ---- export ----

struct exporting {
    struct session *session;
    char *path, *text;
    size_t size;
    struct output_file file;
    struct status status;
};

static void export_work(void *job) {
    struct exporting *e = job;
    bool open = output_file_open(&e->file, e->path, false, &e->status);
    if (open && output_file_write(&e->file, e->text, e->size, &e->status)) output_file_keep(&e->file, &e->status);
    else if (open) output_file_discard(&e->file);
}

static void export_done(void *job) {
    struct exporting *e = job;
    char *text =
        xasprintf(e->status.code ? "not exported: %s" : "exported to %s", e->status.code ? e->status.text : e->path);
    session_tell(e->session, &(struct session_event){.kind = SESSION_WRITTEN, .text = text, .failed = e->status.code});
    free(text), free(e->path), free(e->text);
    free(e);
}

void session_export(struct session *s, struct session_chat *chat, const char *path) {
    struct exporting *e = xcalloc(1, sizeof *e);
    const enum export_format format = export_format_of(path);
    *e = (struct exporting){.session = s, .path = xstrdup(path)};
    e->text = export_document(&chat->conversation, format < EXPORT_FORMAT_COUNT ? format : EXPORT_MARKDOWN, &e->size);
    worker_do(s->worker, export_work, export_done, e);
}

// ---- import ----

struct importing {
    struct session *session;
    char *path;
    struct settings initial;
    struct conversation *found;
    int count, capacity;
    struct import_counts counts;
    struct status status;
};

static void keep_found(void *context, struct conversation *found) {
    struct importing *i = context;
    if (i->count == i->capacity) {
        i->capacity = i->capacity ? 2 * i->capacity : 16;
        i->found = xrealloc(i->found, (size_t)i->capacity * sizeof *i->found);
    }
    i->found[i->count++] = *found;
}

static void import_work(void *job) {
    struct importing *i = job;
    import_file(i->path, true, &i->initial, keep_found, i, &i->counts, &i->status);
}

// The first one in the file comes first.
static void import_done(void *job) {
    struct importing *i = job;
    struct session *s = i->session;
    for (int k = i->count - 1; k >= 0; k--) {
        const struct conversation *talk = &i->found[k];
        struct session_chat *chat = session_add(s, &i->found[k],
                                                talk->archived ? s->count
                                                : talk->pinned ? 0
                                                               : session_first_unpinned(s));
        chat->draft_known = true;
        session_save_later(chat, 0);
    }
    char *text =
        xasprintf("imported %d chat%s with %d message%s%s%s", i->counts.chats, i->counts.chats == 1 ? "" : "s",
                  i->counts.messages, i->counts.messages == 1 ? "" : "s", i->status.code ? "; " : "", i->status.text);
    const bool failed = i->status.code;
    session_tell(s, &(struct session_event){.kind = SESSION_IMPORTED,
                                            .text = failed && !i->count ? i->status.text : text,
                                            .failed = failed});
    settings_free(&i->initial);
    free(text), free(i->path), free(i->found);
    free(i);
}

void session_import(struct session *s, const char *path) {
    struct importing *i = xcalloc(1, sizeof *i);
    *i = (struct importing){.session = s, .path = xstrdup(path), .initial = settings_of_conversation(s->p.settings)};
    worker_do(s->worker, import_work, import_done, i);
}
