#include "engine/text/pretokenize.h"

#include <string.h>
#include <strings.h>

// Matching is limited to text[0..size), the piece that a stage splits.
struct scan {
    const char *text;
    size_t size;
    struct pretokenize_stage *memory; // caches runs shared by consecutive matches
};

static bool set_has(const struct character_set *set, struct character c) {
    if (!c.size) return false;
    bool has = (c.class & set->classes) || (set->ranges && character_in_ranges(set->ranges, c.code));
    return has != set->negated;
}

static struct character at(const struct scan *s, size_t where) { return character_at(s->text, s->size, where); }

// The end of a run of at most `most` (0: unlimited) characters of a set, and their number.
static size_t run_end(const struct scan *s, size_t from, const struct character_set *set, int most, int *count) {
    struct character c;
    int n = 0;
    for (; (!most || n < most) && set_has(set, c = at(s, from)); from += c.size)
        if (n < INT32_MAX) n++;
    if (count) *count = n;
    return from;
}

// Each matcher returns the end of its match at `from`, or `from` if it does not match.

static size_t match_contraction(const struct scan *s, size_t from, bool any_case) {
    static const char *const suffixes[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (from >= s->size || s->text[from] != '\'') return from;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i]);
        if (s->size - from < 1 + n) continue;
        if (!(any_case ? strncasecmp : strncmp)(s->text + from + 1, suffixes[i], n)) return from + 1 + n;
    }
    return from;
}

static size_t match_body(const struct scan *s, const struct rule *r, size_t from) {
    int count;
    size_t end = run_end(s, from, &r->body, r->most, &count);
    if (count < (r->least ? r->least : 1)) return from;
    return r->tail.classes || r->tail.ranges ? run_end(s, end, &r->tail, r->tail_most, NULL) : end;
}

static size_t match_run(const struct scan *s, const struct rule *r, struct character first, size_t from) {
    if (set_has(&r->lead, first)) {
        size_t start = from + first.size, end = match_body(s, r, start);
        if (end > start) return end;
    }
    return r->needs_lead ? from : match_body(s, r, from);
}

// upper* lower+ at `from`. Letters in both sets: upper* takes as many as it can and backtracks one for lower+.
static size_t match_capitalised(const struct scan *s, const struct rule *r, size_t from) {
    struct character c;
    size_t after_both = from; // the end of the last letter in both sets
    for (; !set_has(&r->forbids, c = at(s, from)) && set_has(&r->body, c); from += c.size)
        if (set_has(&r->tail, c)) after_both = from + c.size;
    size_t end = from;
    for (; !set_has(&r->forbids, c = at(s, end)) && set_has(&r->tail, c); end += c.size) {
    }
    return end > from ? end : after_both;
}

// upper+ lower*
static size_t match_capitals(const struct scan *s, const struct rule *r, size_t from) {
    struct character c;
    size_t end = from;
    for (; !set_has(&r->forbids, c = at(s, end)) && set_has(&r->body, c); end += c.size) {
    }
    if (end == from) return from;
    for (; !set_has(&r->forbids, c = at(s, end)) && set_has(&r->tail, c); end += c.size) {
    }
    return end;
}

static size_t match_cased(const struct scan *s, const struct rule *r, struct character first, size_t from) {
    size_t start = from + (set_has(&r->lead, first) ? first.size : 0), end = start;
    if (start > from) end = match_capitalised(s, r, start);
    if (end == start) end = match_capitalised(s, r, start = from);
    if (end == start && set_has(&r->lead, first)) end = match_capitals(s, r, start = from + first.size);
    if (end == start) end = match_capitals(s, r, start = from);
    if (end == start) return from;
    return r->any_case ? match_contraction(s, end, true) : end;
}

static size_t match_spaced(const struct scan *s, const struct rule *r, struct character first, size_t from) {
    size_t end = from + (set_has(&r->lead, first) ? first.size : 0);
    struct character c = at(s, end);
    if (!(c.class & CLASSES_LETTER)) return from;
    for (; c.size; c = at(s, end)) {
        bool goes_on = c.class == CLASS_BLANK && at(s, end + c.size).class & CLASSES_LETTER;
        if (!goes_on && !(c.class & (CLASSES_LETTER | CLASS_MARK))) break;
        end += c.size;
    }
    return end;
}

static const struct character_set spaces = {.classes = CLASSES_SPACE};

// The end of the white space at `from`, cached.
static size_t space_end(const struct scan *s, size_t from) {
    struct pretokenize_stage *m = s->memory;
    if (from < m->run_end) return m->run_end;
    struct character c;
    m->line_end = 0;
    for (m->run_end = from; set_has(&spaces, c = at(s, m->run_end));) {
        m->run_end += c.size;
        if (c.class & CLASSES_LINE_END) m->line_end = m->run_end;
    }
    return m->run_end;
}

static size_t match_line_end(const struct scan *s, size_t from) {
    return space_end(s, from) > from && s->memory->line_end > from ? s->memory->line_end : from;
}

static size_t match_space_at_end(const struct scan *s, size_t from) {
    return space_end(s, from) == s->size ? s->size : from;
}

static size_t match_space_in_front(const struct scan *s, const struct rule *r, size_t from) {
    size_t end = from, last = from;
    size_t whole = space_end(s, from);
    if (whole == from) return from;
    int count = 0;
    if (!r->most && whole == s->size) return whole;
    for (; end < whole && (!r->most || count < r->most); count++) {
        last = end;
        end += at(s, end).size;
    }
    if (end == whole && whole < s->size) end = last, count--;
    return count < (r->least ? r->least : 1) ? from : end;
}

// The first group has the length that leaves groups of three after it.
static size_t match_threes(const struct scan *s, const struct rule *r, size_t from) {
    struct pretokenize_stage *m = s->memory;
    int first = 3;
    if (from >= m->threes_end) {
        int count;
        m->threes_end = run_end(s, from, &r->body, 0, &count);
        m->threes_match = !set_has(&r->forbids, at(s, m->threes_end));
        if (count) first = (count - 1) % 3 + 1;
    }
    return m->threes_match ? run_end(s, from, &r->body, first, NULL) : from;
}

static size_t match_rule(const struct scan *s, const struct rule *r, struct character first, size_t from) {
    switch (r->kind) {
    case RULE_RUN: return match_run(s, r, first, from);
    case RULE_CONTRACTION: return match_contraction(s, from, r->any_case);
    case RULE_CASED: return match_cased(s, r, first, from);
    case RULE_SPACED: return match_spaced(s, r, first, from);
    case RULE_LINE_END: return match_line_end(s, from);
    case RULE_SPACE_IN_FRONT: return match_space_in_front(s, r, from);
    case RULE_THREES: return match_threes(s, r, from);
    case RULE_SPACE_AT_END: return match_space_at_end(s, from);
    case RULE_END: break;
    }
    return from;
}

// The length of the first matching rule at `from`; 0 if none matches. *first is the character there.
static size_t match(const struct scan *s, const struct rule *rules, size_t from, struct character *first) {
    *first = at(s, from);
    for (const struct rule *r = rules; r->kind != RULE_END; r++) {
        size_t end = match_rule(s, r, *first, from);
        if (end > from) return end - from;
    }
    return 0;
}

// The length of the stage's next piece: a match, or the text before the next match.
static size_t cut(const char *text, struct pretokenize_stage *stage, const struct rule *rules) {
    struct scan s = {text, stage->end, stage};
    struct character first;
    size_t from = stage->at, n = stage->match;
    stage->match = 0;
    if (n || (n = match(&s, rules, from, &first))) return n;
    while ((from += first.size) < stage->end && !(stage->match = match(&s, rules, from, &first))) {
    }
    return from - stage->at;
}

struct pretokenize_walk pretokenize_begin(const struct pretokenizer *p, const char *text, size_t size) {
    return (struct pretokenize_walk){.pretokenizer = p, .text = text, .stages[0].end = size};
}

bool pretokenize_next(struct pretokenize_walk *w, struct span *piece) {
    while (w->stages[w->depth].at == w->stages[w->depth].end)
        if (w->depth-- == 0) return w->depth = 0, false;
    for (;; w->depth++) {
        struct pretokenize_stage *stage = &w->stages[w->depth];
        size_t from = stage->at, n = cut(w->text, stage, w->pretokenizer->stages[w->depth]);
        stage->at += n;
        if (!w->pretokenizer->stages[w->depth + 1]) {
            *piece = (struct span){w->text + from, n};
            return true;
        }
        w->stages[w->depth + 1] = (struct pretokenize_stage){.at = from, .end = from + n};
    }
}
