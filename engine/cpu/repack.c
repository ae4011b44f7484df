#include "engine/cpu/repack.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 2 << 20,      // a huge page, so that each is cleared by one worker only
    AHEAD_BYTES = 128 << 20,    // of weights that are being read from the file meanwhile
    SMALLEST_MAPPING = 1 << 20, // that is worth dropping
};

// --- the file's pages ------------------------------------------------------------------------------------------------

// Read-only mappings of files: their pages can be dropped and come back on demand. Anywhere else dropping them would
// destroy what they hold.
struct mappings {
    struct mapped {
        uintptr_t begin, end;
    } list[256];
    int n;
};

static void find_mappings(struct mappings *m) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char access[5], line[512];
    unsigned long inode;
    struct mapped at;
    while (maps && m->n < (int)(sizeof m->list / sizeof *m->list) && fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*s %lu", &at.begin, &at.end, access, &inode) == 4 &&
            access[1] == '-' && inode != 0 && at.end - at.begin >= SMALLEST_MAPPING)
            m->list[m->n++] = at;
    if (maps) fclose(maps);
}

// Of all pages but the last, which others may still want.
static void advise(const struct mappings *m, const void *data, size_t size, int advice) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data;
    const uintptr_t begin = first & ~(page - 1), end = (first + size) & ~(page - 1);
    for (int i = 0; i < m->n; i++)
        if (begin < end && begin >= m->list[i].begin && end <= m->list[i].end)
            madvise((void *)begin, end - begin, advice);
}

bool repack_is_resident(const struct repack *p) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char there;
    for (int i = 0; i < p->all.n; i++) { // the first page of every weight
        const uintptr_t at = (uintptr_t)p->all.list[i].weight->data;
        if (mincore((void *)(at & ~(page - 1)), 1, &there) || !(there & 1)) return false;
    }
    return true;
}

// --- strips by their place -------------------------------------------------------------------------------------------

// How many strips begin before a place among the packed blocks.
static int strips_before(const struct binding *b, uint64_t place) {
    const struct matrix *m = b->matrix;
    if (!m->packed || place <= b->place) return 0;
    const uint64_t n = (place - b->place + m->stride - 1) / m->stride, all = (uint64_t)matrix_strips(m);
    return (int)(n < all ? n : all);
}

// Whether this binding, and so each in front of it, begins before a place.
static bool lies_before(const struct repack *p, int binding, uint64_t place) {
    return binding < p->all.n && p->all.list[binding].place < place;
}

static void advise_span(const struct repack *p, uint64_t begin, uint64_t end, int advice) {
    for (int i = p->first; lies_before(p, i, end); i++) {
        const struct weight *w = p->all.list[i].weight;
        const int64_t first = (int64_t)strips_before(&p->all.list[i], begin) * STRIP_ROWS;
        const int64_t last = (int64_t)strips_before(&p->all.list[i], end) * STRIP_ROWS;
        const int64_t rows = (last < w->rows ? last : w->rows) - first;
        if (rows > 0)
            advise(p->mappings, (const uint8_t *)w->data + (size_t)first * w->row_bytes, (size_t)rows * w->row_bytes,
                   advice);
    }
}

// --- a step ----------------------------------------------------------------------------------------------------------

struct step {
    const struct repack *p;
    uint64_t begin, end;
};

static void fill_piece(const struct repack *p, uint64_t begin, uint64_t end) {
    for (int i = p->first; lies_before(p, i, end); i++) {
        const struct binding *at = &p->all.list[i];
        const int n = strips_before(at, end);
        for (int strip = strips_before(at, begin); strip < n; strip++)
            matrix_repack_strip(at->matrix, at->weight, strip);
    }
}

static void fill_pieces(struct worker *w, void *argument) {
    const struct step *s = argument;
    const uint64_t piece = s->p->piece;
    const int n = (int)((s->end - s->begin + piece - 1) / piece);
    for (int i; (i = worker_next(w, n)) >= 0;) {
        const uint64_t begin = s->begin + (uint64_t)i * piece, left = s->end - begin;
        fill_piece(s->p, begin, begin + (left < piece ? left : piece));
    }
}

// From now on the packed blocks up to this place are read.
static void finish_until(struct repack *p, uint64_t place) {
    p->done = place;
    for (int i = p->first; lies_before(p, i, place); i++) {
        const struct binding *at = &p->all.list[i];
        at->matrix->n_filled = strips_before(at, place);
        if (at->matrix->n_filled == matrix_strips(at->matrix)) at->matrix->source = NULL;
    }
    while (p->first < p->all.n && !p->all.list[p->first].matrix->source) p->first++;
}

static uint64_t place_after(const struct repack *p, uint64_t place, uint64_t bytes) {
    return p->all.packed_bytes - place < bytes ? p->all.packed_bytes : place + bytes;
}

bool repack_step(struct repack *p, struct thread_pool *pool) {
    const uint64_t bytes = p->piece * (uint64_t)thread_pool_size(pool);
    const uint64_t ahead = place_after(p, p->done, bytes + AHEAD_BYTES);
    struct step step = {p, p->done, place_after(p, p->done, bytes)};
    advise_span(p, p->asked, ahead, MADV_WILLNEED);
    p->asked = ahead;
    thread_pool_run(pool, fill_pieces, &step);
    advise_span(p, step.begin, step.end, MADV_DONTNEED);
    finish_until(p, step.end);
    return p->done < p->all.packed_bytes;
}

struct repack *repack_new(struct arena *arena, const struct bindings *all) {
    struct repack *p = arena_alloc(arena, sizeof *p);
    *p = (struct repack){.all = *all, .piece = PIECE_BYTES, .mappings = arena_alloc(arena, sizeof *p->mappings)};
    find_mappings(p->mappings);
    for (int i = 0; i < all->n; i++)
        if (all->list[i].matrix->packed) all->list[i].matrix->source = all->list[i].weight;
    return p;
}
