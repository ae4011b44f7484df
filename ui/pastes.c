#include "ui/pastes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

#define PASTE_FIRST 0x10f000u // code points that stand for pastes, in the private use area of plane 16
#define PASTE_MOST  0xff0
#define LONG_LINES  8 // longer pastes are folded
#define LONG_BYTES  1500

void pastes_free(struct pastes *p) {
    for (int i = 0; i < p->count; i++) free(p->list[i].text);
    free(p->list);
    *p = (struct pastes){0};
}

const struct paste *pastes_find(const struct pastes *p, uint32_t code) {
    return code >= PASTE_FIRST && code < PASTE_FIRST + (uint32_t)p->count ? &p->list[code - PASTE_FIRST] : NULL;
}

char *pastes_clean(const char *text, size_t size) {
    char *out = xmalloc(size * 3 + 1);
    size_t n = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += utf8_decode(text + at, size - at, &code);
        if (code == 0 || (code == '\r' && at < size && text[at] == '\n')) continue;
        if (code == '\r') code = '\n';
        if (code >= PASTE_FIRST && code < PASTE_FIRST + PASTE_MOST) code = UTF8_REPLACEMENT;
        n += utf8_encode(code, out + n);
    }
    out[n] = 0;
    return out;
}

// ---- folding ----

static int count_lines(const char *text) {
    int n = 1;
    for (; *text; text++) n += *text == '\n' && text[1];
    return n;
}

bool pastes_is_long(const char *text) { return count_lines(text) > LONG_LINES || strlen(text) > LONG_BYTES; }

// A line "NAME:" over a block of code heads what is attached; that and the fences are not counted.
static void read_name(struct paste *p) {
    const size_t head = strcspn(p->text, "\n");
    if (head < 2 || head > PASTE_NAME || p->text[head - 1] != ':' || strncmp(p->text + head, "\n```", 4)) return;
    snprintf(p->name, sizeof p->name, "%.*s", (int)head - 1, p->text);
    p->lines -= 3;
}

size_t pastes_fold(struct pastes *p, const char *text, size_t size, char mark[PASTE_MARK]) {
    int i = 0;
    while (i < p->count && (strncmp(p->list[i].text, text, size) || p->list[i].text[size])) i++;
    if (i == PASTE_MOST) return 0;
    if (i == p->count) {
        char *copy = xstrndup(text, size);
        p->list = xrealloc(p->list, (size_t)++p->count * sizeof *p->list);
        p->list[i] = (struct paste){.text = copy, .size = size, .lines = count_lines(copy)};
        read_name(&p->list[i]);
    }
    return utf8_encode(PASTE_FIRST + (uint32_t)i, mark);
}

void pastes_label(const struct paste *p, char out[PASTE_LABEL]) {
    if (*p->name) snprintf(out, PASTE_LABEL, "[%s: %d lines]", p->name, p->lines);
    else if (p->lines > 1) snprintf(out, PASTE_LABEL, "[pasted %d lines]", p->lines);
    else snprintf(out, PASTE_LABEL, "[pasted %zu bytes]", p->size);
}

// ---- unfolding ----

size_t pastes_unfolded_size(const struct pastes *p, const char *line) {
    size_t size = strlen(line), all = size;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        size_t step = utf8_decode(line + at, size - at, &code);
        const struct paste *paste = pastes_find(p, code);
        if (paste) all += paste->size - step;
        at += step;
    }
    return all;
}

char *pastes_unfold(const struct pastes *p, const char *line) {
    size_t size = strlen(line), n = 0;
    char *out = xmalloc(pastes_unfolded_size(p, line) + 1);
    for (size_t at = 0; at < size;) {
        uint32_t code;
        size_t step = utf8_decode(line + at, size - at, &code);
        const struct paste *paste = pastes_find(p, code);
        const char *from = paste ? paste->text : line + at;
        size_t length = paste ? paste->size : step;
        memcpy(out + n, from, length);
        n += length, at += step;
    }
    out[n] = 0;
    return out;
}

// ---- drafts ----

static void add_fold(char **folds, size_t at, size_t size) {
    char *before = *folds;
    *folds = xasprintf("%s%s%zu+%zu", before ? before : "", before ? " " : "", at, size);
    free(before);
}

void pastes_draft(const struct pastes *p, const char *line, size_t point, struct draft *out) {
    const size_t size = strlen(line);
    *out = (struct draft){.text = pastes_unfold(p, line)};
    for (size_t at = 0, n = 0; at < size;) {
        uint32_t code;
        size_t step = utf8_decode(line + at, size - at, &code);
        const struct paste *paste = pastes_find(p, code);
        if (paste) add_fold(&out->folds, n, paste->size);
        n += paste ? paste->size : step, at += step;
        if (at <= point) out->point = n;
    }
}

struct fold {
    size_t at, size;
};

// The next one at this offset or behind it; one of size 0 behind the last. The text may come from anywhere.
static struct fold next_fold(const char **folds, size_t at, size_t end) {
    struct fold f;
    int used = 0;
    for (; *folds && sscanf(*folds, "%zu+%zu%n", &f.at, &f.size, &used) == 2; *folds += used)
        if (f.at >= at && f.at < end && f.size && f.size <= end - f.at) return f;
    return (struct fold){.at = end};
}

char *pastes_line(struct pastes *p, const struct draft *d, size_t *point) {
    size_t size = strlen(d->text), n = 0;
    char *out = xmalloc(size + 1 + PASTE_MARK); // a mark is no longer than the paste, but for the shortest ones
    const char *folds = d->folds;
    struct fold f = next_fold(&folds, 0, size);
    *point = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        size_t step = utf8_decode(d->text + at, size - at, &code), mark = 0;
        if (at == f.at && f.size >= PASTE_MARK) mark = pastes_fold(p, d->text + at, f.size, out + n);
        if (mark) step = f.size;
        else if (code - PASTE_FIRST < PASTE_MOST) mark = utf8_encode(UTF8_REPLACEMENT, out + n);
        else memcpy(out + n, d->text + at, mark = step);
        n += mark, at += step;
        if (at > f.at) f = next_fold(&folds, at, size);
        if (at <= d->point) *point = n;
    }
    out[n] = 0;
    return out;
}

void pastes_find_folds(const struct pastes *p, const char *line, struct draft *d) {
    const size_t size = strlen(line);
    size_t behind = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += utf8_decode(line + at, size - at, &code);
        const struct paste *paste = pastes_find(p, code);
        const char *found = paste ? strstr(d->text + behind, paste->text) : NULL;
        if (!found) continue;
        const size_t offset = (size_t)(found - d->text);
        add_fold(&d->folds, offset, paste->size);
        behind = offset + paste->size;
    }
}
