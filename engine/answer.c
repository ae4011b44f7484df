#include "engine/answer.h"

#include <string.h>

#include "engine/base/clock.h"

enum { SLICE = 128 }; // bytes of a token handled at once; as clean text with what was held it fits an event

_Static_assert(3 * (SLICE + 4) + ANSWER_STOP_SIZE < sizeof((struct engine_event *)0)->text, "a slice fits an event");

void answer_start(struct answer *a, bool chat) {
    const struct model_file *m = a->file;
    bool unknown =
        m->template_text.data && m->template_status.code == STATUS_OK && m->chat_template == CHAT_TEMPLATE_NONE;
    a->stop = chat && !a->ignore_end && !unknown ? chat_template_stop(m->chat_template) : NULL;
    if (a->stop && strlen(a->stop) >= ANSWER_STOP_SIZE) a->stop = NULL;
    a->stop_token = a->stop ? tokenizer_find(a->file->tokenizer, a->stop, strlen(a->stop)) : -1;
}

static void send(struct answer *a, struct engine_event *e, size_t size) {
    e->at = clock_ns();
    e->size = size;
    e->text[size] = 0;
    queue_push(a->events, e);
    e->token = -1;
    e->n_alternatives = 0;
}

// Whether text holds the whole stop text at `at`, or ends in the middle of it there.
enum match { MATCH_NONE, MATCH_BEGUN, MATCH_WHOLE };
static enum match stop_match(const struct answer *a, const char *text, size_t size) {
    size_t length = strlen(a->stop), n = size < length ? size : length;
    if (memcmp(text, a->stop, n) != 0) return MATCH_NONE;
    return n == length ? MATCH_WHOLE : MATCH_BEGUN;
}

// Cuts e->text [size] where the stop text begins, and holds back a beginning of it. True when it was there whole.
static bool filter_stop(struct answer *a, struct engine_event *e, size_t *size) {
    for (size_t at = 0; a->stop && at < *size; at++) {
        enum match match = stop_match(a, e->text + at, *size - at);
        if (match == MATCH_NONE) continue;
        if (match == MATCH_BEGUN) memcpy(a->held, e->text + at, a->n_held = *size - at);
        *size = at;
        return match == MATCH_WHOLE;
    }
    return false;
}

static size_t take_held(struct answer *a, char *out) {
    size_t n = a->n_held;
    memcpy(out, a->held, n);
    a->n_held = 0;
    return n;
}

static void set_alternative(const struct answer *a, struct token_alternative *out, int32_t id, float probability) {
    *out = (struct token_alternative){.id = id, .probability = probability};
    struct span piece = tokenizer_piece(a->file->tokenizer, id, true);
    size_t n = 0;
    for (size_t at = 0; at < piece.size;) {
        uint32_t code;
        char character[4];
        at += utf8_decode(piece.data + at, piece.size - at, &code);
        size_t length = utf8_encode(code, character);
        if (n + length >= sizeof out->text) break;
        memcpy(out->text + n, character, length);
        n += length;
    }
}

static struct engine_event event_of(const struct answer *a, const struct sample *s) {
    struct engine_event e = {.kind = EVENT_TEXT,
                             .request = a->request,
                             .conversation = a->conversation,
                             .state = REQUEST_DECODING,
                             .token = s->token,
                             .probability = s->probability,
                             .entropy = s->entropy,
                             .n_alternatives = s->n_alternatives};
    for (int i = 0; i < s->n_alternatives; i++)
        set_alternative(a, &e.alternatives[i], s->alternatives[i].id, s->alternatives[i].probability);
    return e;
}

bool answer_token(struct answer *a, const struct sample *s) {
    if (s->token == a->stop_token || (!a->ignore_end && tokenizer_ends_generation(a->file->tokenizer, s->token)))
        return true;
    struct engine_event e = event_of(a, s);
    struct span piece = tokenizer_piece(a->file->tokenizer, s->token, false);
    size_t at = 0;
    do {
        size_t n = piece.size - at < SLICE ? piece.size - at : SLICE, size = take_held(a, e.text);
        if (n) size += utf8_stream_push(&a->utf8, piece.data + at, n, e.text + size);
        at += n;
        bool stopped = filter_stop(a, &e, &size);
        if (size || e.token >= 0) send(a, &e, size);
        if (stopped) {
            a->utf8.n_held = 0;
            return true;
        }
    } while (at < piece.size);
    return false;
}

void answer_finish(struct answer *a) {
    struct engine_event e = {.kind = EVENT_TEXT,
                             .request = a->request,
                             .conversation = a->conversation,
                             .state = REQUEST_DECODING,
                             .token = -1};
    size_t size = take_held(a, e.text);
    size += utf8_stream_finish(&a->utf8, e.text + size);
    if (size) send(a, &e, size);
}
