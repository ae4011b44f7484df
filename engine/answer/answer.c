#include "engine/answer/answer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"

enum { SLICE = 128 }; // bytes of a token processed at a time

_Static_assert(3 * (SLICE + 4) <= SPLITTER_SLICE, "a slice as clean text fits the splitter");

struct answer {
    struct answer_params p;
    int32_t stop_token; // the token of template_stop; −1: none
    struct utf8_stream utf8;
    struct splitter *splitter;
    struct engine_event event; // of the current token; token = −1 once sent
};

static void send(struct answer *a, enum channel channel, const char *text, size_t size) {
    struct engine_event *e = &a->event;
    e->at = clock_ns();
    e->channel = channel;
    e->size = size;
    memcpy(e->text, text, size);
    e->text[size] = 0;
    queue_push(a->p.events, e);
    e->token = -1;
    e->n_alternatives = 0;
}

static void send_text(void *context, enum channel channel, const char *text, size_t size) {
    struct answer *a = context;
    while (size) {
        size_t n = size, room = sizeof a->event.text - 1;
        if (n > room) n = room - utf8_incomplete(text, room);
        send(a, channel, text, n);
        text += n;
        size -= n;
    }
}

struct answer *answer_open(const struct answer_params *p) {
    static const struct channel_scheme plain = {.kind = CHANNELS_NONE};
    struct answer *a = xcalloc(1, sizeof *a);
    a->p = *p;
    a->p.stops = NULL;
    const struct tokenizer *t = p->tokenizer;
    bool ends = p->template_stop && !p->ignore_end;
    a->stop_token = ends ? tokenizer_find(t, p->template_stop, strlen(p->template_stop)) : -1;
    // If a token ends the turn, the same characters as text do not.
    bool spelled = ends && (a->stop_token < 0 || !tokenizer_ends_generation(t, a->stop_token));
    a->splitter = splitter_open(&(struct splitter_params){.scheme = p->chat ? p->channels : &plain,
                                                          .inside = p->inside,
                                                          .end = spelled ? p->template_stop : NULL,
                                                          .stops = p->stops,
                                                          .n_stops = p->n_stops,
                                                          .context = a,
                                                          .text = send_text});
    a->event = (struct engine_event){.kind = EVENT_TEXT,
                                     .request = p->request,
                                     .conversation = p->conversation,
                                     .answer = p->answer,
                                     .state = REQUEST_DECODING,
                                     .token = -1};
    return a;
}

void answer_close(struct answer *a) {
    if (!a) return;
    splitter_close(a->splitter);
    free(a);
}

// Characters that tokens share are put together. Returns whether all fitted.
static bool append_clean(char *out, size_t size, size_t *n, const char *text, size_t length) {
    const size_t room = size - 1 - *n, taken = length <= room ? length : room - utf8_incomplete(text, room);
    memcpy(out + *n, text, taken);
    *n += taken;
    return taken == length;
}

void answer_tokens_text(const struct tokenizer *t, const int32_t *ids, int n_ids, char *out, size_t size) {
    struct utf8_stream stream = {0};
    char clean[3 * (SLICE + 4)];
    size_t n = 0;
    bool fits = true;
    for (int i = 0; i < n_ids; i++) {
        struct span piece = tokenizer_piece(t, ids[i], true);
        for (size_t at = 0; at < piece.size && fits; at += SLICE) {
            size_t length = piece.size - at < SLICE ? piece.size - at : SLICE;
            fits = append_clean(out, size, &n, clean, utf8_stream_push(&stream, piece.data + at, length, clean));
        }
    }
    if (fits) append_clean(out, size, &n, clean, utf8_stream_finish(&stream, clean));
    out[n] = 0;
}

void answer_token_text(const struct tokenizer *t, int32_t id, char *out, size_t size) {
    struct span piece = tokenizer_piece(t, id, true);
    size_t n = 0;
    for (size_t at = 0; at < piece.size;) {
        uint32_t code;
        char character[4];
        at += utf8_decode(piece.data + at, piece.size - at, &code);
        size_t length = utf8_encode(code, character);
        if (n + length >= size) break;
        memcpy(out + n, character, length);
        n += length;
    }
    out[n] = 0;
}

static void set_alternative(const struct answer *a, struct token_alternative *out, int32_t id, float probability) {
    *out = (struct token_alternative){.id = id, .probability = probability};
    answer_token_text(a->p.tokenizer, id, out->text, sizeof out->text);
}

static void set_event(struct answer *a, const struct sample *s) {
    struct engine_event *e = &a->event;
    e->token = s->token;
    e->probability = s->probability;
    e->entropy = s->entropy;
    e->accepted = s->accepted;
    e->n_alternatives = s->n_alternatives;
    for (int i = 0; i < s->n_alternatives; i++)
        set_alternative(a, &e->alternatives[i], s->alternatives[i].id, s->alternatives[i].probability);
}

// True if a stop text was found.
static bool push_text(struct answer *a, struct span piece) {
    char clean[SPLITTER_SLICE];
    bool stopped = false;
    for (size_t at = 0; at < piece.size && !stopped;) {
        size_t n = piece.size - at < SLICE ? piece.size - at : SLICE;
        size_t size = utf8_stream_push(&a->utf8, piece.data + at, n, clean);
        stopped = splitter_text(a->splitter, clean, size);
        at += n;
    }
    if (stopped) a->utf8.n_held = 0;
    return stopped;
}

// Ends an incomplete character. True if a stop text was found.
static bool end_character(struct answer *a) {
    char clean[16];
    return splitter_text(a->splitter, clean, utf8_stream_finish(&a->utf8, clean));
}

bool answer_token(struct answer *a, const struct sample *s) {
    const struct tokenizer *t = a->p.tokenizer;
    if (s->token == a->stop_token || (!a->p.ignore_end && tokenizer_ends_generation(t, s->token))) return true;
    set_event(a, s);
    bool mark = splitter_is_mark(a->splitter, s->token),
         stopped = mark ? end_character(a) : push_text(a, tokenizer_piece(t, s->token, false));
    if (mark && !stopped) stopped = splitter_mark(a->splitter, s->token);
    if (a->event.token >= 0) send(a, splitter_channel(a->splitter), "", 0);
    return stopped;
}

void answer_prompt(struct answer *a, const struct sample *s) {
    set_event(a, s);
    a->event.kind = EVENT_PROMPT;
    send(a, CHANNEL_ANSWER, "", 0);
    a->event.kind = EVENT_TEXT;
}

int answer_stop(const struct answer *a) { return splitter_stop(a->splitter); }
bool answer_is_answer(const struct answer *a) { return splitter_is_answer(a->splitter); }
bool answer_needs_header(const struct answer *a) { return splitter_needs_header(a->splitter); }
struct span answer_held(const struct answer *a) {
    return splitter_held(a->splitter);
}

void answer_finish(struct answer *a) {
    if (!end_character(a)) splitter_finish(a->splitter);
}
