// Searching the texts of all messages, by SQLite's FTS5.
#include <stdlib.h>
#include <string.h>

#include "app/session/store_state.h"
#include "engine/base/match.h"
#include "engine/base/panic.h"
#include "engine/base/utf8.h"

enum {
    CANDIDATES = 2500,  // the newest messages that match, of which the best are taken: so many,
    ENOUGH = 1000,      // or so many
    ENOUGH_CHATS = 200, // if they are of so many chats
    PREFIX_LETTERS = 3, // as of the index
    SNIPPET_BEFORE = 40,
    SNIPPET_BYTES = 240,
};

// ---- relevance ----

// BM25 of one message, without the rarity of words: each message has all of them, and to count how rare a common word
// is takes longer than the search.
static void relevance(const Fts5ExtensionApi *fts, Fts5Context *found, sqlite3_context *result, int n,
                      sqlite3_value **v) {
    (void)n, (void)v;
    const double k1 = 1.2, b = 0.75;
    sqlite3_int64 rows = 0, all_tokens = 0;
    int instances = 0, tokens = 0, counts[16] = {0};
    fts->xRowCount(found, &rows);
    fts->xColumnTotalSize(found, 0, &all_tokens);
    fts->xColumnSize(found, 0, &tokens);
    fts->xInstCount(found, &instances);
    for (int i = 0; i < instances; i++) {
        int phrase, column, offset;
        if (fts->xInst(found, i, &phrase, &column, &offset) == SQLITE_OK && phrase < 16) counts[phrase]++;
    }
    const double mean = rows && all_tokens ? (double)all_tokens / (double)rows : 1;
    const double length = k1 * (1 - b + b * tokens / mean);
    double sum = 0;
    for (int i = 0; i < 16; i++) sum += counts[i] * (k1 + 1) / (counts[i] + length);
    sqlite3_result_double(result, sum);
}

bool store_prepare_search(struct store *s, struct status *st) {
    fts5_api *fts = NULL;
    sqlite3_stmt *query = NULL;
    bool done = sqlite3_prepare_v2(s->db, "SELECT fts5(?1)", -1, &query, NULL) == SQLITE_OK;
    if (done) {
        sqlite3_bind_pointer(query, 1, &fts, "fts5_api_ptr", NULL);
        sqlite3_step(query);
    }
    done = done && fts && fts->xCreateFunction(fts, "relevance", NULL, relevance, NULL) == SQLITE_OK &&
           store_add_words(fts);
    sqlite3_finalize(query);
    return done || store_fail(s, st);
}

// ---- what is searched for ----

static size_t letters(const char *word, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) n += ((unsigned char)word[i] & 0xc0) != 0x80;
    return n;
}

// As FTS5 wants it: every word a string of its own. begun: the last word may be a beginning, if it is long enough.
// The caller frees.
static char *query_of(const char *words, bool begun) {
    char *query = xstrdup("");
    for (const char *at = words; *(at += strspn(at, " "));) {
        const bool quoted = *at == '"';
        at += quoted;
        const size_t size = strcspn(at, quoted ? "\"" : " \"");
        const bool last = !quoted && !at[size + strspn(at + size, " ")];
        const bool prefix = begun && last && letters(at, size) >= PREFIX_LETTERS;
        char *longer = xasprintf("%s\"%.*s\"%s ", query, (int)size, at, prefix ? " *" : "");
        free(query);
        query = longer;
        at += size + (quoted && at[size] == '"');
    }
    return query;
}

// ---- the best matches ----

static int by_conversation(const void *one, const void *other) {
    const struct store_match *a = one, *b = other;
    if (a->conversation != b->conversation) return a->conversation < b->conversation ? -1 : 1;
    if (a->relevance != b->relevance) return a->relevance > b->relevance ? -1 : 1;
    return a->message > b->message ? -1 : a->message < b->message;
}

static int by_relevance(const void *one, const void *other) {
    const struct store_match *a = one, *b = other;
    if (a->relevance != b->relevance) return a->relevance > b->relevance ? -1 : 1;
    return a->message > b->message ? -1 : a->message < b->message;
}

static int best_matches(struct store_match *matches, int count) {
    int kept = 0;
    qsort(matches, (size_t)count, sizeof *matches, by_conversation);
    for (int i = 0; i < count; i++)
        if (!kept || matches[kept - 1].conversation != matches[i].conversation) matches[kept++] = matches[i];
    qsort(matches, (size_t)kept, sizeof *matches, by_relevance);
    return kept < STORE_MATCHES ? kept : STORE_MATCHES;
}

// One line around the first of the words.
static char *snippet_of(const char *text, size_t size, const char *words) {
    size_t at = match_first(text, size, words), from = at > SNIPPET_BEFORE ? at - SNIPPET_BEFORE : 0, n = 0;
    while (from > 0 && from < at && text[from - 1] != ' ' && text[from - 1] != '\n') from++; // a word is whole
    while (from < at && ((unsigned char)text[from] & 0xc0) == 0x80) from++;
    size_t room = size - from < SNIPPET_BYTES ? size - from : SNIPPET_BYTES;
    if (room < size - from) room -= utf8_incomplete(text + from, room);
    char *line = xasprintf("%s%.*s", from ? "…" : "", (int)room, text + from);
    for (char *c = line; *c; c++) { // blanks become one space
        const bool blank = *c == ' ' || *c == '\n' || *c == '\t' || *c == '\r';
        if (!blank || (n && line[n - 1] != ' ')) line[n++] = blank ? ' ' : *c;
    }
    line[n] = 0;
    return line;
}

static bool read_snippet(struct store *s, struct store_match *match, const char *words, struct status *st) {
    sqlite3_stmt *query = store_statement(s, SQL_MESSAGE_TEXT);
    sqlite3_bind_int64(query, 1, match->message);
    const int step = sqlite3_step(query);
    const char *text = step == SQLITE_ROW ? store_column_text(query, 0) : "";
    match->snippet = snippet_of(text, strlen(text), words);
    sqlite3_reset(query);
    return step == SQLITE_ROW || step == SQLITE_DONE || store_fail(s, st);
}

// The newest messages of a query; −1: failed.
static int candidates(struct store *s, const char *text, struct store_match *matches, struct status *st) {
    int count = 0, chats = 0, step = SQLITE_DONE;
    sqlite3_stmt *query = store_statement(s, SQL_SEARCH);
    store_bind_text(query, 1, text);
    sqlite3_bind_int(query, 2, CANDIDATES);
    while (*text && count < CANDIDATES && (count < ENOUGH || chats < ENOUGH_CHATS) &&
           (step = sqlite3_step(query)) == SQLITE_ROW) {
        struct store_match *m = &matches[count++];
        *m = (struct store_match){.conversation = sqlite3_column_int64(query, 0),
                                  .message = sqlite3_column_int64(query, 1),
                                  .relevance = sqlite3_column_double(query, 2)};
        chats += m == matches || m->conversation != m[-1].conversation; // about
    }
    const bool done = step == SQLITE_ROW || step == SQLITE_DONE || store_fail(s, st);
    sqlite3_reset(query);
    return done ? count : -1;
}

// Where the words as they are lead to few messages, the last one is taken for a beginning: all words that begin with it
// may be many.
int store_search(struct store *s, const char *words, struct store_match **out, struct status *st) {
    struct store_match *matches = xcalloc(CANDIDATES, sizeof *matches);
    char *whole = query_of(words, false), *begun = query_of(words, true);
    int count = candidates(s, whole, matches, st);
    if (count >= 0 && count < ENOUGH && strcmp(whole, begun)) count = candidates(s, begun, matches, st);
    free(whole), free(begun);
    count = count < 0 ? count : best_matches(matches, count);
    for (int i = 0; i < count; i++)
        if (!read_snippet(s, &matches[i], words, st)) return store_free_matches(matches, i + 1), -1;
    if (count < 0) free(matches);
    else *out = matches;
    return count;
}

void store_free_matches(struct store_match *matches, int count) {
    for (int i = 0; i < count; i++) free(matches[i].snippet);
    free(matches);
}
