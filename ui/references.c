#include "ui/references.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/panic.h"
#include "ui/markdown.h"
#include "ui/source_line.h"

enum {
    MOST = 512,       // definitions of a message; what follows is text
    MOST_LABEL = 200, // bytes
    MOST_SIZE = 4096,
    MARK = 2, // begins the address that stands for a definition
};

void references_free(struct references *r) {
    free(r->at);
    *r = (struct references){0};
}

// ---- one definition ----

// Of "[label]" at `at`; 0: there is none.
static size_t label_size(const char *text, size_t at, size_t end) {
    bool blank = true;
    for (size_t i = at + 1; i < end && i - at <= MOST_LABEL; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == ']') return blank ? 0 : i - at - 1;
        if (c == '[' || c == '\\' || c < ' ') return 0;
        blank &= c == ' ';
    }
    return 0;
}

// "[name]: 42" is something said, no address.
static bool is_address(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == '<' || text[i] == '>') return false;
    for (size_t i = 0; i + 1 < size; i++)
        if (strchr("./:#@?", text[i]) && text[i]) return true;
    return false;
}

// Behind an address may stand a title, which is not shown.
static bool is_title(const char *text, size_t at, size_t end) {
    while (end > at && (text[end - 1] == ' ' || text[end - 1] == '\t')) end--;
    if (at == end) return true;
    const char *pair = strchr("\"\"''()", text[at]);
    return pair && text[at] && end - at > 1 && text[end - 1] == pair[1] &&
           !memchr(text + at + 1, pair[1], end - at - 2);
}

static bool take_address(const char *text, struct source_line l, size_t at, struct reference *out) {
    const bool bracketed = at < l.end && text[at] == '<';
    size_t end = at + bracketed;
    while (end < l.end && !(bracketed ? text[end] == '>' : text[end] == ' ' || text[end] == '\t')) end++;
    out->content = at + bracketed, out->content_size = end - out->content;
    const size_t behind = end + (bracketed && end < l.end);
    const size_t title = source_skip_blanks(text, behind, l.end);
    return is_address(text + out->content, out->content_size) && (title == l.end || title > behind) &&
           is_title(text, title, l.end);
}

static bool opens_fence(const char *text, struct source_line l) {
    struct markdown_fence fence = {0};
    markdown_fence_line(&fence, text + l.start, l.end - l.start);
    return fence.length;
}

// A line at the margin that is more than text, and so ends a note.
static bool begins_block(const char *text, struct source_line l) {
    size_t at = l.start;
    if (strchr("#>-*+|=[`~", text[at]) && text[at]) return true;
    while (at < l.end && isdigit((unsigned char)text[at])) at++;
    return at > l.start && at < l.end && strchr(".)", text[at]) && text[at];
}

// Where a note ends: with lines that are indented, and with those that follow without a blank line between.
static size_t note_end(const char *text, size_t size, struct source_line l) {
    const size_t start = l.start;
    size_t end = l.next;
    for (bool gap = false; l.next < size;) {
        l = source_line_at(text, size, l.next);
        if (source_line_blank(text, l)) {
            gap = true;
            continue;
        }
        const bool indented = source_skip_blanks(text, l.start, l.end) >= l.start + 2;
        if (opens_fence(text, l) || l.next - start > MOST_SIZE) break;
        if (!indented && (gap || begins_block(text, l))) break;
        end = l.next, gap = false;
    }
    return end;
}

static uint32_t hash_of(const char *text, size_t size, uint32_t hash) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

// The definition that begins with the line; false: none does.
static bool definition(const char *text, size_t size, struct source_line l, struct reference *out) {
    size_t at = l.start;
    while (at < l.end && at < l.start + 3 && text[at] == ' ') at++;
    const size_t label = at < l.end && text[at] == '[' ? label_size(text, at, l.end) : 0, colon = at + label + 2;
    if (!label || colon >= l.end || text[colon] != ':' || l.next - l.start > MOST_SIZE) return false;
    *out = (struct reference){.start = l.start, .end = l.next, .label = at + 1, .label_size = label};
    out->user = REFERENCES_NONE;
    out->note = text[at + 1] == '^';
    const size_t content = source_skip_blanks(text, colon + 1, l.end);
    if (out->note) {
        if (label < 2 || memchr(text + at, ' ', label)) return false;
        out->end = note_end(text, size, l);
        out->content = content, out->content_size = out->end > content ? out->end - content : 0;
    } else if (!take_address(text, l, content, out)) {
        return false;
    }
    out->hash = hash_of(text + out->label, label, 2166136261u);
    if (!out->note) out->hash = hash_of(text + out->content, out->content_size, out->hash);
    return true;
}

bool references_begins(const char *line, size_t size) {
    size_t at = 0;
    while (at < size && at < 3 && line[at] == ' ') at++;
    if (at == size || line[at] != '[') return false;
    const size_t label = label_size(line, at, size), colon = at + label + 2;
    if (!label) return !memchr(line + at, ']', size - at) && size - at <= MOST_LABEL;
    if (colon >= size) return true;
    if (line[colon] != ':') return false;
    if (line[at + 1] == '^') return false; // its text is read as it comes
    struct reference r;
    const size_t address = source_skip_blanks(line, colon + 1, size);
    return !memchr(line + address, ' ', size - address) ||
           take_address(line, (struct source_line){0, size, size}, address, &r);
}

// ---- finding them ----

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Whether "[" at text[at] begins a mention of the label. Of letters beyond ASCII md4c knows more: they may be alike.
static bool mentions(const char *label, size_t label_size, const char *text, size_t at, size_t end) {
    size_t i = 0;
    for (at++; at < end && blank(text[at]);) at++;
    while (i < label_size && blank(label[i])) i++;
    while (i < label_size && at < end) {
        if ((label[i] | text[at]) & 0x80) return true;
        if (blank(label[i]) && (blank(text[at]) || text[at] == ']')) {
            while (i < label_size && blank(label[i])) i++;
            while (at < end && blank(text[at])) at++;
        } else if (tolower((unsigned char)label[i]) == tolower((unsigned char)text[at])) {
            i++, at++;
        } else {
            return false;
        }
    }
    while (at < end && blank(text[at])) at++;
    return i == label_size && at < end && text[at] == ']';
}

// Where text before `end` first mentions it.
static size_t first_mention(const struct references *r, const struct reference *d, size_t end) {
    for (size_t at = 0; at < end; at++) {
        const char *bracket = memchr(r->text + at, '[', end - at);
        if (!bracket) break;
        at = (size_t)(bracket - r->text);
        if (mentions(r->text + d->label, d->label_size, r->text, at, end)) return at;
    }
    return REFERENCES_NONE;
}

static bool is_known(const struct references *r, const struct reference *d) {
    for (int i = 0; i < r->n; i++) {
        const struct reference *other = &r->at[i];
        if (other->label_size == d->label_size &&
            !strncasecmp(r->text + other->label, r->text + d->label, d->label_size))
            return true;
    }
    return false;
}

static void add(struct references *r, const struct reference *d) {
    if (r->n == MOST || is_known(r, d)) return; // the first one counts
    if (r->n == r->capacity) {
        r->capacity = 2 * r->capacity + 8;
        r->at = xrealloc(r->at, (size_t)r->capacity * sizeof *r->at);
    }
    r->at[r->n++] = *d;
}

static void find(struct references *r, size_t size, size_t from, struct markdown_fence fence) {
    struct source_line l = {.next = from};
    if (from && r->text[from - 1] != '\n') l = source_line_at(r->text, size, from); // within a line
    while (l.next < size) {
        struct reference d;
        l = source_line_at(r->text, size, l.next);
        markdown_fence_line(&fence, r->text + l.start, l.end - l.start);
        if (fence.length || !definition(r->text, size, l, &d)) continue;
        add(r, &d);
        l.next = d.end;
    }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t references_scan(struct references *r, const char *text, size_t size, size_t from, struct markdown_fence fence) {
    int known = r->n, kept = 0;
    size_t stale = REFERENCES_NONE;
    r->text = text;
    while (known > 0 && r->at[known - 1].start >= from) known--;
    const int n_before = r->n - known;
    struct reference *before = n_before ? xmalloc((size_t)n_before * sizeof *before) : NULL;
    if (n_before) memcpy(before, r->at + known, (size_t)n_before * sizeof *before);
    r->n = known;
    find(r, size, from, fence);
    for (int i = known; i < r->n; i++) {
        struct reference *d = &r->at[i];
        while (kept < n_before && before[kept].start < d->start) stale = least(stale, before[kept++].user);
        if (kept < n_before && before[kept].start == d->start && before[kept].hash == d->hash) {
            d->hidden = before[kept].hidden, d->user = before[kept].user, d->number = before[kept].number;
            kept++;
        } else {
            stale = least(stale, first_mention(r, d, from));
        }
    }
    while (kept < n_before) stale = least(stale, before[kept++].user);
    free(before);
    return stale;
}

// ---- what refers to them ----

void references_add(const struct references *r, struct flow *out, const char *text, size_t size) {
    if (!r->n || !memchr(text, '[', size)) return;
    for (int i = 0; i < r->n; i++) {
        char address[16];
        const int n = snprintf(address, sizeof address, "]: <%c%d>\n", MARK, i);
        flow_add(out, (struct style){0}, "[", 1);
        flow_add(out, (struct style){0}, r->text + r->at[i].label, r->at[i].label_size);
        flow_add(out, (struct style){0}, address, (size_t)n);
    }
    flow_add(out, (struct style){0}, "\n", 1);
}

struct reference *references_find(const struct references *r, const char *address, size_t size) {
    int i = 0;
    if (size < 2 || size > 5 || address[0] != MARK) return NULL;
    for (size_t at = 1; at < size; at++) {
        if (!isdigit((unsigned char)address[at])) return NULL;
        i = 10 * i + address[at] - '0';
    }
    return i < r->n ? &r->at[i] : NULL;
}

void references_use(struct references *r, struct reference *d, size_t chunk) {
    if (d->user != REFERENCES_NONE) return;
    d->user = chunk;
    d->number = d->note ? ++r->numbered : 0;
}

void references_forget_users(struct references *r, size_t from) {
    r->numbered = 0;
    for (int i = 0; i < r->n; i++) {
        struct reference *d = &r->at[i];
        if (d->user >= from) d->user = REFERENCES_NONE, d->number = 0;
        r->numbered = d->number > r->numbered ? d->number : r->numbered;
    }
}

const struct reference *references_note(const struct references *r, int number) {
    for (int i = 0; i < r->n; i++)
        if (number && r->at[i].number == number) return &r->at[i];
    return NULL;
}

// ---- their lines ----

// The last one that begins at or before `at`; NULL: none does.
static struct reference *last_before(const struct references *r, size_t at) {
    int low = 0, high = r->n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (r->at[middle].start <= at) low = middle + 1;
        else high = middle;
    }
    return low ? &r->at[low - 1] : NULL;
}

const struct reference *references_at(const struct references *r, size_t at) {
    const struct reference *d = last_before(r, at);
    return d && d->start == at ? d : NULL;
}

bool references_inside(const struct references *r, size_t at) {
    const struct reference *d = last_before(r, at);
    return d && at > d->start && at < d->end;
}

size_t references_settle(struct references *r) {
    size_t first = REFERENCES_NONE;
    for (int i = r->n - 1; i >= 0; i--) {
        struct reference *d = &r->at[i];
        const bool hides = d->user != REFERENCES_NONE;
        if (hides != d->hidden) first = d->start;
        d->hidden = hides;
    }
    return first;
}

void references_hide(struct references *r) {
    for (int i = 0; i < r->n; i++) r->at[i].hidden = true;
}
