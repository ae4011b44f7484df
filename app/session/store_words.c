// The words that FTS5 finds: those of its own unicode61, but in a script that writes words without spaces between them
// (Chinese, Japanese, Thai …) every letter is one. So what stands amid a sentence is found, as letters in a row.
// The interface: https://www.sqlite.org/fts5.html#custom_tokenizers
#include <stdlib.h>
#include <string.h>

#include "app/session/store_state.h"
#include "engine/base/panic.h"
#include "engine/base/utf8.h"

// unicode61, and what made it.
struct base {
    fts5_tokenizer calls;
    void *context;
};

struct Fts5Tokenizer {
    const struct base *base;
    Fts5Tokenizer *inner;
};

static bool stands_alone(uint32_t code) {
    static const uint32_t ranges[][2] = {
        {0x0e00, 0x0eff},                                                         // Thai, Lao
        {0x1000, 0x109f},                                                         // Burmese
        {0x1780, 0x17ff},                                                         // Khmer
        {0x3005, 0x3007}, {0x3040, 0x30ff}, {0x31f0, 0x31ff}, {0xff66, 0xff9f},   // Japanese
        {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x323af}, // Chinese characters
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

// What take_pieces passes on.
struct words {
    int (*take)(void *context, int flags, const char *word, int size, int start, int end);
    void *context;
};

// Nothing asks FTS5 where in a text a word stands, so all pieces of a word keep its place.
static int take_pieces(void *context, int flags, const char *word, int size, int start, int end) {
    const struct words *w = context;
    int from = 0, result = SQLITE_OK;
    for (int at = 0; at < size && result == SQLITE_OK;) {
        uint32_t code;
        const int here = at;
        at += (int)utf8_decode(word + at, (size_t)(size - at), &code);
        if (!stands_alone(code)) continue;
        if (from < here) result = w->take(w->context, flags, word + from, here - from, start, end);
        if (result == SQLITE_OK) result = w->take(w->context, flags, word + here, at - here, start, end);
        from = at;
    }
    if (from == size || result != SQLITE_OK) return result;
    return w->take(w->context, flags, word + from, size - from, start, end);
}

static int create(void *context, const char **options, int count, Fts5Tokenizer **out) {
    const struct base *base = context;
    Fts5Tokenizer *tokenizer = xcalloc(1, sizeof *tokenizer);
    tokenizer->base = base;
    const int result = base->calls.xCreate(base->context, options, count, &tokenizer->inner);
    if (result == SQLITE_OK) *out = tokenizer;
    else free(tokenizer);
    return result;
}

static void delete (Fts5Tokenizer *tokenizer) {
    tokenizer->base->calls.xDelete(tokenizer->inner);
    free(tokenizer);
}

static int split(Fts5Tokenizer *tokenizer, void *context, int flags, const char *text, int size,
                 int (*take)(void *, int, const char *, int, int, int)) {
    struct words words = {take, context};
    return tokenizer->base->calls.xTokenize(tokenizer->inner, &words, flags, text, size, take_pieces);
}

bool store_add_words(fts5_api *fts) {
    struct base *base = xcalloc(1, sizeof *base);
    if (fts->xFindTokenizer(fts, "unicode61", &base->context, &base->calls) != SQLITE_OK) return free(base), false;
    fts5_tokenizer words = {create, delete, split};
    return fts->xCreateTokenizer(fts, "words", base, &words, free) == SQLITE_OK;
}
