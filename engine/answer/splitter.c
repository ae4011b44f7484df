#include "engine/answer/splitter.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

enum { HEADER_SIZE = 128, MAX_BLANK = 32 };

// State of a harmony answer. An invalid header is text.
//
//   ROLE_GIVEN ─ channel ─► CHANNEL ─ message ─► BODY ─ end ─► ROLE_GIVEN
//        ▲ start                ▲                  │
//      ROLE ────── channel ─────┘◄──── channel ────┘        (a mark that comes early still starts its part)
enum harmony_place {
    PLACE_ROLE_GIVEN, // the prompt gave the role: expects a recipient, or text without a header
    PLACE_ROLE,
    PLACE_CHANNEL,
    PLACE_BODY
};

enum pattern_kind { PATTERN_END, PATTERN_STOP, PATTERN_OPEN, PATTERN_CLOSE, PATTERN_WRAP_OPEN, PATTERN_WRAP_CLOSE };

struct pattern {
    enum pattern_kind kind;
    char *text;
    size_t size;
    int stop; // of a stop: its number, from 1
};

struct splitter {
    struct splitter_params p;
    struct pattern *patterns;
    size_t n_patterns;
    enum channel channel;
    bool head;    // only white space so far in this channel; a bracket may open here
    bool skips;   // drop white space after a mark
    bool thought; // a bracket was closed; the answer may be wrapped
    bool wrapped; // the answer is wrapped
    bool begins;  // a new part, separated from earlier ones in the channel
    bool any[2];  // text so far, per channel
    bool stopped; // a stop text or the end was found
    int stop;     // which stop text, from 1; 0: none
    char *held;   // [longest pattern + MAX_BLANK + SPLITTER_SLICE]
    size_t n_held;
    enum harmony_place place;
    char header[HEADER_SIZE], recipient[HEADER_SIZE + 1];
    size_t n_header;
};

// ---- opening ----

static void add_stop(struct splitter *s, enum pattern_kind kind, const char *text, int stop) {
    if (!text || !*text) return;
    s->patterns[s->n_patterns++] = (struct pattern){kind, xstrdup(text), strlen(text), stop};
}

static void add_pattern(struct splitter *s, enum pattern_kind kind, const char *text) { add_stop(s, kind, text, 0); }

static void add_patterns(struct splitter *s) {
    const struct channel_scheme *c = s->p.scheme;
    add_pattern(s, PATTERN_END, s->p.end);
    for (int i = 0; i < s->p.n_stops; i++) add_stop(s, PATTERN_STOP, s->p.stops[i], i + 1);
    if (c->kind != CHANNELS_BRACKETS) return;
    if (c->open < 0) add_pattern(s, PATTERN_OPEN, c->brackets->open);
    if (c->close < 0) add_pattern(s, PATTERN_CLOSE, c->brackets->close);
    if (c->wrap) add_pattern(s, PATTERN_WRAP_OPEN, c->wrap->open);
    if (c->wrap) add_pattern(s, PATTERN_WRAP_CLOSE, c->wrap->close);
}

struct splitter *splitter_open(const struct splitter_params *p) {
    struct splitter *s = xcalloc(1, sizeof *s);
    size_t longest = 0;
    s->p = *p;
    s->patterns = xcalloc((size_t)p->n_stops + 5, sizeof *s->patterns);
    add_patterns(s);
    s->p.stops = NULL;
    for (size_t i = 0; i < s->n_patterns; i++)
        if (s->patterns[i].size > longest) longest = s->patterns[i].size;
    s->held = xmalloc(longest + MAX_BLANK + SPLITTER_SLICE);
    s->head = true;
    if (p->inside) s->channel = CHANNEL_THINKING, s->skips = true;
    return s;
}

void splitter_close(struct splitter *s) {
    if (!s) return;
    for (size_t i = 0; i < s->n_patterns; i++) free(s->patterns[i].text);
    free(s->patterns);
    free(s->held);
    free(s);
}

enum channel splitter_channel(const struct splitter *s) { return s->channel; }

bool splitter_is_answer(const struct splitter *s) {
    const bool header = s->p.scheme->kind == CHANNELS_HARMONY && s->place != PLACE_BODY;
    return s->channel == CHANNEL_ANSWER && !header;
}

bool splitter_needs_header(const struct splitter *s) {
    return s->p.scheme->kind == CHANNELS_HARMONY && s->place == PLACE_ROLE_GIVEN && !s->n_header;
}

struct span splitter_held(const struct splitter *s) {
    return (struct span){s->held, s->n_held};
}

// ---- output ----

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

size_t splitter_blanks(const char *text, size_t size) {
    size_t n = 0;
    while (n < size && is_blank(text[n])) n++;
    return n;
}

static void emit(struct splitter *s, const char *text, size_t size) {
    if (!size) return;
    if (splitter_blanks(text, size) < size) s->head = false;
    if (s->begins && s->any[s->channel]) s->p.text(s->p.context, s->channel, "\n\n", 2);
    s->begins = false;
    s->any[s->channel] = true;
    s->p.text(s->p.context, s->channel, text, size);
}

static void take_held(struct splitter *s, size_t size) { memmove(s->held, s->held + size, s->n_held -= size); }

static void enter(struct splitter *s, enum channel channel) {
    s->channel = channel;
    s->head = s->begins = true;
}

// ---- marks and stops in the text ----

static bool pattern_counts(const struct splitter *s, enum pattern_kind kind) {
    bool answers = s->channel == CHANNEL_ANSWER;
    switch (kind) {
    case PATTERN_END: return true;
    case PATTERN_STOP: return answers;
    case PATTERN_OPEN: return answers && s->head;
    case PATTERN_CLOSE: return !answers;
    case PATTERN_WRAP_OPEN: return answers && s->head && s->thought;
    case PATTERN_WRAP_CLOSE: return answers && s->wrapped;
    }
    return false;
}

// White space before a possible bracket is not part of the answer and does not end it.
static bool waits_for_answer(const struct splitter *s, const struct pattern *p) {
    bool brackets = s->p.scheme->kind == CHANNELS_BRACKETS;
    return p->kind == PATTERN_STOP && brackets && s->head && splitter_blanks(p->text, p->size) == p->size;
}

static bool only_at_head(enum pattern_kind kind) { return kind == PATTERN_OPEN || kind == PATTERN_WRAP_OPEN; }

struct match {
    const struct pattern *pattern; // NULL: no complete match
    size_t at;                     // of the match; otherwise of a possible match, or the end
};

static struct match find_match(const struct splitter *s) {
    struct match m = {NULL, s->n_held};
    size_t head = splitter_blanks(s->held, s->n_held);
    for (size_t at = 0; at < s->n_held && !m.pattern; at++) {
        if ((s->held[at] & 0xc0) == 0x80) continue; // inside a character
        for (size_t i = 0; i < s->n_patterns && !m.pattern; i++) {
            const struct pattern *p = &s->patterns[i];
            size_t rest = s->n_held - at, n = rest < p->size ? rest : p->size;
            if (!pattern_counts(s, p->kind) || (only_at_head(p->kind) && at > head)) continue;
            if (waits_for_answer(s, p) && at < head) continue;
            if (memcmp(s->held + at, p->text, n) != 0) continue;
            if (n == p->size) m = (struct match){p, at};
            else if (at < m.at) m.at = at;
        }
    }
    return m;
}

// White space before a possible bracket is held back, to be dropped with it.
static bool awaits_open(const struct splitter *s, size_t size) {
    bool brackets = s->p.scheme->kind == CHANNELS_BRACKETS && s->channel == CHANNEL_ANSWER;
    return brackets && s->head && size <= MAX_BLANK && splitter_blanks(s->held, size) == size;
}

// True if it ends the answer.
static bool apply(struct splitter *s, enum pattern_kind kind) {
    switch (kind) {
    case PATTERN_END:
    case PATTERN_STOP: return true;
    case PATTERN_OPEN: enter(s, CHANNEL_THINKING); break;
    case PATTERN_CLOSE:
        enter(s, CHANNEL_ANSWER);
        s->thought = true;
        break;
    case PATTERN_WRAP_OPEN: s->wrapped = true; break;
    case PATTERN_WRAP_CLOSE: break;
    }
    s->skips = true;
    return false;
}

// Emits all held text that can no longer become a mark.
static void scan(struct splitter *s) {
    for (;;) {
        if (s->skips) take_held(s, splitter_blanks(s->held, s->n_held));
        if (!s->n_held) return;
        s->skips = false;
        struct match m = find_match(s);
        if (!m.pattern && awaits_open(s, m.at)) return;
        if (!m.pattern || !only_at_head(m.pattern->kind)) emit(s, s->held, m.at);
        take_held(s, m.at);
        if (!m.pattern) return;
        take_held(s, m.pattern->size);
        if (!apply(s, m.pattern->kind)) continue;
        s->n_held = 0;
        s->stopped = true;
        s->stop = m.pattern->stop;
        return;
    }
}

static void take(struct splitter *s, const char *text, size_t size) {
    memcpy(s->held + s->n_held, text, size);
    s->n_held += size;
    scan(s);
}

static void flush(struct splitter *s) {
    emit(s, s->held, s->n_held);
    s->n_held = 0;
}

// ---- harmony ----

static const char *const header_words[] = {"assistant", "analysis", "commentary", "final"};

// The offset in an unfinished header after a leading header word.
static size_t header_rest(const struct splitter *s) {
    size_t at = splitter_blanks(s->header, s->n_header), size = s->n_header - at;
    for (size_t i = 0; i < sizeof header_words / sizeof *header_words; i++) {
        size_t length = strlen(header_words[i]), n = size < length ? size : length;
        if (!memcmp(s->header + at, header_words[i], n)) return at + n;
    }
    return at;
}

static bool has_recipient(const struct splitter *s) { return memmem(s->header, s->n_header, "to=", 3); }

static void keep_recipient(struct splitter *s) {
    const char *to = memmem(s->header, s->n_header, "to=", 3);
    if (!to) return;
    size_t size = 0, most = s->n_header - (size_t)(to - s->header);
    while (size < most && !is_blank(to[size])) size++;
    memcpy(s->recipient, to, size);
    s->recipient[size] = 0;
}

// Emits an invalid header as text, from this byte on.
static void abandon_header(struct splitter *s, size_t from) {
    if (splitter_blanks(s->header + from, s->n_header - from) < s->n_header - from) {
        enter(s, CHANNEL_ANSWER);
        take(s, s->header + from, s->n_header - from);
    }
    s->n_header = 0;
}

// Ends the current part at a mark or at the end; a header may be unfinished or missing.
static void leave_part(struct splitter *s) {
    bool announced = s->place != PLACE_ROLE_GIVEN;
    if (s->place != PLACE_BODY) abandon_header(s, !announced ? 0 : has_recipient(s) ? s->n_header : header_rest(s));
    flush(s);
}

static bool header_says(const struct splitter *s, const char *word) {
    size_t at = splitter_blanks(s->header, s->n_header), size = strlen(word);
    return s->n_header - at >= size && !memcmp(s->header + at, word, size);
}

// Tool calls and other messages with a recipient are not addressed to the user.
static void begin_body(struct splitter *s) {
    keep_recipient(s);
    bool thinks = *s->recipient || (s->place == PLACE_CHANNEL && header_says(s, "analysis"));
    s->n_header = 0;
    s->place = PLACE_BODY;
    enter(s, thinks ? CHANNEL_THINKING : CHANNEL_ANSWER);
    if (!*s->recipient) return;
    emit(s, s->recipient, strlen(s->recipient));
    emit(s, ": ", 2);
}

static void harmony_mark(struct splitter *s, enum harmony_mark mark) {
    bool header = s->place != PLACE_BODY;
    switch (mark) {
    case HARMONY_START:
    case HARMONY_END:
    case HARMONY_RETURN:
    case HARMONY_CALL:
        leave_part(s);
        s->place = mark == HARMONY_START ? PLACE_ROLE : PLACE_ROLE_GIVEN;
        *s->recipient = 0;
        break;
    case HARMONY_CHANNEL:
        if (header && has_recipient(s)) keep_recipient(s);
        else leave_part(s);
        s->n_header = 0;
        s->place = PLACE_CHANNEL;
        break;
    case HARMONY_CONSTRAIN:
        if (header && s->n_header < HEADER_SIZE) s->header[s->n_header++] = ' ';
        break;
    case HARMONY_MESSAGE:
        if (!header) break;
        if (s->place == PLACE_ROLE_GIVEN && !has_recipient(s)) leave_part(s);
        begin_body(s);
        break;
    case HARMONY_MARK_COUNT: break;
    }
}

// A header is short and has no line breaks; other text is an answer without a header.
static void header_text(struct splitter *s, const char *text, size_t size) {
    size_t n = 0, room = HEADER_SIZE - s->n_header;
    while (n < size && n < room && text[n] != '\n') n++;
    n -= utf8_incomplete(text, n);
    memcpy(s->header + s->n_header, text, n);
    s->n_header += n;
    if (n == size) return;
    abandon_header(s, s->place == PLACE_ROLE_GIVEN ? 0 : header_rest(s));
    s->place = PLACE_BODY;
    if (s->channel != CHANNEL_ANSWER) enter(s, CHANNEL_ANSWER);
    if (!s->stopped) take(s, text + n, size - n);
}

// ---- interface ----

static enum harmony_mark harmony_mark_of(const struct channel_scheme *c, int32_t token) {
    int i = 0;
    while (i < HARMONY_MARK_COUNT && token != c->harmony[i]) i++;
    return (enum harmony_mark)i;
}

bool splitter_is_mark(const struct splitter *s, int32_t token) {
    const struct channel_scheme *c = s->p.scheme;
    if (c->kind == CHANNELS_HARMONY) return harmony_mark_of(c, token) < HARMONY_MARK_COUNT;
    return c->kind == CHANNELS_BRACKETS && (token == c->open || token == c->close);
}

bool splitter_mark(struct splitter *s, int32_t token) {
    const struct channel_scheme *c = s->p.scheme;
    if (c->kind == CHANNELS_HARMONY) {
        harmony_mark(s, harmony_mark_of(c, token));
        return s->stopped;
    }
    if (!s->head || splitter_blanks(s->held, s->n_held) < s->n_held) flush(s);
    s->n_held = 0;
    apply(s, token == c->open ? PATTERN_OPEN : PATTERN_CLOSE);
    return false;
}

bool splitter_text(struct splitter *s, const char *text, size_t size) {
    if (s->p.scheme->kind == CHANNELS_HARMONY && s->place != PLACE_BODY) header_text(s, text, size);
    else take(s, text, size);
    return s->stopped;
}

int splitter_stop(const struct splitter *s) { return s->stop; }

void splitter_finish(struct splitter *s) {
    if (s->p.scheme->kind == CHANNELS_HARMONY) leave_part(s);
    else flush(s);
}
