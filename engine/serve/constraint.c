#include "engine/serve/constraint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/answer/splitter.h"
#include "engine/base/panic.h"
#include "engine/grammar/grammar.h"

enum { FORCED_BYTES = 128 };

struct constraint_vocabulary {
    struct lexicon *lexicon;
    uint32_t *ends; // mask of the tokens that end an answer
    const struct channel_scheme *channels;
    int32_t open;    // opens a thinking, whether its mark counts as a token or as text; −1: none
    int32_t *beyond; // tokens that may close a thinking and go on with text of the answer
    int n_beyond;
};

struct constraint {
    struct constraint_params p;
    struct machine *machine;
    struct position at;
    bool is_answer, needs_header; // of the next token
    struct span held;             // before it, in a thinking
    bool begun;                   // some of the answer's text is there
    bool over, failed;
    struct status status;
    uint32_t *mask;
};

// ---- vocabularies ----

static void set_bit(uint32_t *mask, int32_t id) { mask[id / 32] |= 1u << id % 32; }
static void clear_bit(uint32_t *mask, int32_t id) { mask[id / 32] &= ~(1u << id % 32); }

static int32_t find_open(const struct tokenizer *t, const struct channel_scheme *c) {
    if (c->kind != CHANNELS_BRACKETS) return -1;
    return c->open >= 0 ? c->open : tokenizer_find(t, c->brackets->open, strlen(c->brackets->open));
}

// Where in a token the mark in the text that closes a thinking ends, of which held text is the beginning; 0: nowhere.
// held is NULL: any is.
static size_t find_close(const struct channel_scheme *c, const struct span *held, struct span token) {
    const char *mark = c->brackets->close;
    const size_t size = strlen(mark);
    for (size_t end = 1; end <= token.size; end++) {
        const size_t inside = end < size ? end : size, before = size - inside;
        if (memcmp(token.data + end - inside, mark + before, inside)) continue;
        if (!held || !before) return end;
        if (before <= held->size && !memcmp(held->data + held->size - before, mark, before)) return end;
    }
    return 0;
}

static bool goes_beyond(const struct channel_scheme *c, const struct span *held, struct span token) {
    const size_t end = find_close(c, held, token);
    return end && end + splitter_blanks(token.data + end, token.size - end) < token.size;
}

static void find_beyond(struct constraint_vocabulary *v) {
    const struct lexicon *l = v->lexicon;
    if (v->channels->kind != CHANNELS_BRACKETS || v->channels->close >= 0) return;
    for (int32_t i = 0; i < l->n_tokens; i++) {
        if (!goes_beyond(v->channels, NULL, l->texts[i])) continue;
        v->beyond = xrealloc(v->beyond, (size_t)(v->n_beyond + 1) * sizeof *v->beyond);
        v->beyond[v->n_beyond++] = i;
    }
}

struct constraint_vocabulary *constraint_vocabulary_open(const struct tokenizer *t, const struct channel_scheme *c) {
    const int n = tokenizer_count(t);
    struct span *texts = xcalloc((size_t)n, sizeof *texts);
    struct constraint_vocabulary *v = xcalloc(1, sizeof *v);
    for (int i = 0; i < n; i++)
        if (!tokenizer_ends_generation(t, i)) texts[i] = tokenizer_piece(t, i, false);
    v->channels = c;
    v->open = find_open(t, c);
    v->lexicon = lexicon_open(texts, n);
    v->ends = xcalloc((size_t)v->lexicon->n_words, sizeof *v->ends);
    for (int i = 0; i < n; i++)
        if (tokenizer_ends_generation(t, i)) set_bit(v->ends, i);
    free(texts);
    find_beyond(v);
    return v;
}

void constraint_vocabulary_close(struct constraint_vocabulary *v) {
    if (!v) return;
    lexicon_drop(v->lexicon);
    grammar_drop_unused();
    free(v->ends), free(v->beyond);
    free(v);
}

void constraint_prepare(const struct constraint_vocabulary *v, struct grammar *g, bool (*go_on)(const void *context),
                        const void *context) {
    struct machine *m = grammar_machine(g, v->lexicon);
    machine_prepare(m, go_on, context);
    machine_drop(m);
}

// ---- life ----

static void note(struct constraint *c, bool ok) { c->failed |= !ok; }

static void look(struct constraint *c) {
    bool may_end, goes_on;
    note(c, machine_look(c->machine, c->at, &may_end, &goes_on, &c->status));
    c->over = may_end && !goes_on;
}

struct constraint *constraint_open(const struct constraint_params *p) {
    struct lexicon *l = p->vocabulary->lexicon;
    struct constraint *c = xcalloc(1, sizeof *c);
    *c = (struct constraint){.p = *p,
                             .machine = grammar_machine(p->grammar, l),
                             .is_answer = true,
                             .mask = xcalloc((size_t)l->n_words, sizeof *c->mask)};
    grammar_share(p->grammar);
    note(c, machine_start(c->machine, false, &c->at, &c->status));
    return c;
}

void constraint_close(struct constraint *c) {
    if (!c) return;
    machine_drop(c->machine);
    grammar_drop(c->p.grammar);
    free(c->mask);
    free(c);
}

void constraint_follow(struct constraint *c, bool is_answer, bool needs_header, struct span held) {
    if (is_answer && !c->is_answer) {
        c->begun = false;
        note(c, machine_start(c->machine, true, &c->at, &c->status));
    }
    c->is_answer = is_answer;
    c->needs_header = needs_header;
    c->held = held;
}

// ---- masks ----

// A thinking may still be opened by a token.
static bool may_open(const struct constraint *c) { return c->p.chat && !c->begun && c->p.vocabulary->open >= 0; }

// What the grammar allows, and the end where it may be over.
static bool mask_answer(struct constraint *c) {
    const struct lexicon *l = c->p.vocabulary->lexicon;
    bool may_end, goes_on, any = false;
    if (!machine_mask(c->machine, c->at, c->mask, &c->status) ||
        !machine_look(c->machine, c->at, &may_end, &goes_on, &c->status))
        return false;
    const bool ends = may_end && !c->p.ignore_end;
    for (int i = 0; ends && i < l->n_words; i++) c->mask[i] |= c->p.vocabulary->ends[i];
    if (ends && c->p.end_token >= 0) set_bit(c->mask, c->p.end_token);
    if (may_open(c)) set_bit(c->mask, c->p.vocabulary->open);
    for (int i = 0; i < l->n_words && !any; i++) any = c->mask[i];
    return any ||
           status_fail(&c->status, STATUS_UNSUPPORTED, "the vocabulary has no token that the grammar allows here");
}

// Anything but the end and text that no grammar would see, or what a header begins with.
static void mask_before(struct constraint *c) {
    const struct constraint_vocabulary *v = c->p.vocabulary;
    const struct channel_scheme *s = v->channels;
    const int n = v->lexicon->n_words;
    for (int i = 0; i < n; i++) c->mask[i] = c->needs_header ? 0 : ~v->ends[i];
    if (c->p.end_token >= 0) clear_bit(c->mask, c->p.end_token);
    for (int i = 0; i < v->n_beyond; i++)
        if (goes_beyond(s, &c->held, v->lexicon->texts[v->beyond[i]])) clear_bit(c->mask, v->beyond[i]);
    if (!c->needs_header) return;
    set_bit(c->mask, s->harmony[HARMONY_START]);
    set_bit(c->mask, s->harmony[HARMONY_CHANNEL]);
}

static void apply(const uint32_t *mask, float *logits, int n) {
    for (int at = 0; at < n; at += 32) {
        uint32_t refused = ~mask[at / 32];
        const int size = n - at < 32 ? n - at : 32;
        if (refused == UINT32_MAX) {
            for (int i = 0; i < size; i++) logits[at + i] = -INFINITY;
            continue;
        }
        if (size < 32) refused &= (1u << size) - 1;
        for (; refused; refused &= refused - 1) logits[at + __builtin_ctz(refused)] = -INFINITY;
    }
}

bool constraint_mask(struct constraint *c, float *logits, int n) {
    const int n_tokens = c->p.vocabulary->lexicon->n_tokens, n_masked = n < n_tokens ? n : n_tokens;
    if (c->failed) return false;
    if (!c->is_answer) mask_before(c);
    else note(c, mask_answer(c));
    if (c->failed) return false;
    apply(c->mask, logits, n_masked);
    for (int i = n_masked; i < n; i++) logits[i] = -INFINITY;
    return true;
}

// ---- tokens ----

static bool is_mark(const struct constraint *c, int32_t token) {
    const struct channel_scheme *s = c->p.vocabulary->channels;
    if (!c->p.chat) return false;
    if (c->is_answer && may_open(c) && token == c->p.vocabulary->open) return true; // as text later on
    if (s->kind == CHANNELS_BRACKETS) return token == s->open || token == s->close;
    for (int i = 0; s->kind == CHANNELS_HARMONY && i < HARMONY_MARK_COUNT; i++)
        if (token == s->harmony[i]) return true;
    return false;
}

// Whether marks are tokens, so that text leaves the channel as it is.
static bool marks_are_tokens(const struct constraint *c) {
    const struct channel_scheme *s = c->p.vocabulary->channels;
    return !c->p.chat || s->kind == CHANNELS_NONE || s->kind == CHANNELS_HARMONY || s->close >= 0;
}

// Whether a token may begin, continue or end the mark in the text that closes a thinking.
static bool may_close(const struct constraint *c, int32_t token) {
    const struct lexicon *l = c->p.vocabulary->lexicon;
    if (marks_are_tokens(c)) return false;
    if (c->held.size || token < 0 || token >= l->n_tokens) return true;
    const char *close = c->p.vocabulary->channels->brackets->close;
    const struct span text = l->texts[token];
    return text.size &&
           (memchr(text.data, *close, text.size) || memchr(text.data, close[strlen(close) - 1], text.size));
}

// Whether what follows a token before the answer is before it, too.
static bool stays_before(const struct constraint *c, int32_t token) {
    return !c->needs_header && !is_mark(c, token) && !may_close(c, token);
}

static bool ends_answer(const struct constraint *c, int32_t token) {
    return token == c->p.end_token || (c->p.vocabulary->ends[token / 32] >> token % 32 & 1);
}

bool constraint_take(struct constraint *c, int32_t token) {
    const struct lexicon *l = c->p.vocabulary->lexicon;
    if (!c->is_answer || c->failed) return stays_before(c, token);
    if (is_mark(c, token) || token < 0 || token >= l->n_tokens || ends_answer(c, token)) return false;
    bool fits;
    note(c, machine_advance(c->machine, &c->at, l->texts[token], &fits, &c->status));
    if (!c->failed && !fits)
        note(c, status_fail(&c->status, STATUS_USAGE, "what the answer begins with does not fit the grammar"));
    c->begun = true;
    if (!c->failed) look(c);
    return true;
}

int constraint_fits(const struct constraint *c, const int32_t *tokens, int n) {
    const struct lexicon *l = c->p.vocabulary->lexicon;
    struct position at = c->at;
    bool fits = true;
    int i = 0;
    while (!c->is_answer && i < n && stays_before(c, tokens[i])) i++;
    if (!c->is_answer) return i;
    while (i < n && tokens[i] < l->n_tokens && l->texts[tokens[i]].size) {
        if (!machine_advance(c->machine, &at, l->texts[tokens[i]], &fits, NULL) || !fits) break;
        i++;
    }
    return i;
}

int constraint_forced(const struct constraint *c, int32_t *tokens, int most) {
    char bytes[FORCED_BYTES];
    size_t n_bytes, length;
    int n = 0;
    if (!c->is_answer || !machine_forced(c->machine, c->at, bytes, sizeof bytes, &n_bytes, NULL)) return 0;
    for (size_t at = 0; at < n_bytes && n < most; at += length) {
        tokens[n] = lexicon_longest(c->p.vocabulary->lexicon, (struct span){bytes + at, n_bytes - at}, &length);
        if (tokens[n++] < 0) return n - 1;
    }
    return n;
}

bool constraint_is_over(const struct constraint *c) { return c->is_answer && c->begun && c->over; }
const char *constraint_problem(const struct constraint *c) { return c->failed ? c->status.text : NULL; }
