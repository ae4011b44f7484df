#include "engine/cpu/matrix.h"

#include <string.h>

#include "engine/base/reader.h"
#include "engine/cpu/packed.h"

// --- repack ----------------------------------------------------------------------------------------------------------

static const struct {
    void (*fill)(void *packed, int first, const uint8_t *const rows[PACKED_ROWS], size_t n);
    size_t bytes; // of a packed block
} packed_formats[BLOCK_FORMAT_COUNT] = {
#define X(id, name) [id] = {packed_fill_##id, sizeof(struct packed_##name)},
    PACKED_FORMATS(X)
#undef X
};

bool matrix_can_be_packed(const struct block_format *format) { return packed_formats[format->id].fill != NULL; }

static size_t blocks_in_strip(const struct weight *w) { return (size_t)w->columns / w->format->elements; }

bool matrix_packed_bytes(const struct weight *w, uint64_t *bytes) {
    uint64_t rows;
    return checked_align((uint64_t)w->rows, STRIP_ROWS, &rows) &&
           checked_mul(rows / STRIP_ROWS, blocks_in_strip(w), bytes) &&
           checked_mul(*bytes, packed_formats[w->format->id].bytes, bytes);
}

struct matrix matrix_in_place(const struct weight *w) {
    return (struct matrix){.format = w->format,
                           .data = w->data,
                           .rows = (int)w->rows,
                           .columns = (int)w->columns,
                           .row_bytes = w->row_bytes,
                           .strip_bytes = w->row_bytes * STRIP_ROWS,
                           .stride = w->row_bytes * STRIP_ROWS};
}

struct matrix matrix_packed(const struct weight *w, void *packed) {
    const size_t strip_bytes = blocks_in_strip(w) * packed_formats[w->format->id].bytes;
    return (struct matrix){.format = w->format,
                           .data = packed,
                           .rows = (int)w->rows,
                           .columns = (int)w->columns,
                           .strip_bytes = strip_bytes,
                           .stride = strip_bytes,
                           .packed = true};
}

// Rows past the last repeat it.
static void fill_strip(uint8_t *packed, const struct matrix *m, const struct weight *w, int strip) {
    const uint8_t *rows[STRIP_ROWS];
    for (int r = 0; r < STRIP_ROWS; r++) {
        const int row = strip * STRIP_ROWS + r, last = m->rows - 1;
        rows[r] = (const uint8_t *)w->data + (size_t)(row < last ? row : last) * w->row_bytes;
    }
    for (int r = 0; r < STRIP_ROWS; r += PACKED_ROWS)
        packed_formats[w->format->id].fill(packed, r, rows + r, blocks_in_strip(w));
}

static uint8_t *strip_at(const struct matrix *m, int strip) { return (uint8_t *)m->data + (size_t)strip * m->stride; }

void matrix_repack_strip(const struct matrix *m, const struct weight *w, int strip) {
    fill_strip(strip_at(m, strip), m, w, strip);
}

// --- before strips are repacked --------------------------------------------------------------------------------------

static _Thread_local struct strip_cache *thread_cache;

void matrix_use_cache(struct strip_cache *cache) { thread_cache = cache; }

static const uint8_t *cached_strip(const struct matrix *m, int strip) {
    struct strip_cache *c = thread_cache;
    for (int i = 0; i < 2; i++)
        if (c->strips[i].matrix == m && c->strips[i].strip == strip) return c->strips[i].packed;
    struct cached_strip *oldest = &c->strips[c->oldest];
    c->oldest = !c->oldest;
    fill_strip(oldest->packed, m, m->source, strip);
    oldest->matrix = m;
    oldest->strip = strip;
    return oldest->packed;
}

// --- matmuls ---------------------------------------------------------------------------------------------------------

static struct activation_block *panel(const struct input *in, int first) {
    return in->blocks + (size_t)first * (size_t)(in->columns / BLOCK_COLUMNS);
}

struct input input_sized(const struct input *in, int rows) {
    struct input out = *in;
    out.rows = rows;
    out.width = panel_width(rows);
    return out;
}

// Where a row's first block lies; the next are *stride apart.
static struct activation_block *row_blocks(const struct input *in, int row, int *stride) {
    const int lane = row % in->width, first = row - lane;
    *stride = in->rows - first < in->width ? in->rows - first : in->width;
    return panel(in, first) + lane;
}

void input_store(const struct input *in, const struct cpu_kernels *k, int row, int column, int n, const float *x) {
    if (in->values) memcpy(in->values + (size_t)row * in->columns + column, x, (size_t)n * sizeof *x);
    if (in->blocks) {
        int stride;
        struct activation_block *blocks = row_blocks(in, row, &stride);
        k->quantize(x, n / BLOCK_COLUMNS, blocks + (size_t)(column / BLOCK_COLUMNS) * stride, stride);
    }
}

// A block of every row of a panel: they lie together.
void input_store_strip(const struct input *in, const struct cpu_kernels *k, int first, int rows, int column, int n,
                       const float *results) {
    for (int r = 0; in->values && r < rows; r++)
        memcpy(in->values + (size_t)(first + r) * in->columns + column, results + r * STRIP_ROWS,
               (size_t)n * sizeof *results);
    for (int r = 0; in->blocks && r < rows; r += in->width) {
        int stride;
        struct activation_block *blocks = row_blocks(in, first + r, &stride);
        k->quantize(results + r * STRIP_ROWS, stride, blocks + (size_t)(column / BLOCK_COLUMNS) * stride, 1);
    }
}

void input_copy(const struct input *to, int row, const struct input *from, int from_row) {
    const size_t columns = (size_t)to->columns;
    if (to->values)
        memcpy(to->values + (size_t)row * columns, from->values + (size_t)from_row * columns, columns * sizeof(float));
    if (!to->blocks) return;
    int stride, from_stride;
    struct activation_block *out = row_blocks(to, row, &stride);
    const struct activation_block *in = row_blocks(from, from_row, &from_stride);
    for (int i = 0; i < to->columns / BLOCK_COLUMNS; i++) out[(size_t)i * stride] = in[(size_t)i * from_stride];
}

// Whether weights are bytes in their packed blocks already.
static bool is_bytes(const struct matrix *m) { return m->strip_bytes > (size_t)m->columns * STRIP_ROWS; }

// What a strip times so many panels fetches meanwhile: with several panels the next strip, a share during each; with
// one the weights some way ahead, unless so few inputs keep the memory busy anyway.
static void plan_fetches(struct strip *s, const struct matrix *m, int width, bool last) {
    enum { AHEAD_BYTES = 16384, BUSY_INPUTS = 2, BUSY_INPUTS_OF_BYTES = 4 };
    s->turns = (width + s->panel - 1) / s->panel;
    s->ahead = s->turns > 1 ? m->strip_bytes : AHEAD_BYTES;
    const bool busy = width <= (is_bytes(m) ? BUSY_INPUTS_OF_BYTES : BUSY_INPUTS);
    s->fetches = !last && !busy && !m->source; // made strips lie elsewhere
}

void matrix_strip(const struct matrix *m, const struct cpu_kernels *k, int i, const struct input *in, int first,
                  int width, float *out) {
    const int left = m->rows - i * STRIP_ROWS;
    struct strip s = {
        .format = m->format,
        .weights = m->source && i >= m->n_filled ? cached_strip(m, i) : strip_at(m, i),
        .row_bytes = m->row_bytes,
        .rows = left < STRIP_ROWS ? left : STRIP_ROWS,
        .columns = m->columns,
        .panel = m->packed ? in->width : PANEL_INPUTS,
    };
    plan_fetches(&s, m, width, left <= STRIP_ROWS);
    const bool many = width >= k->many_inputs && k->many[m->format->id];
    const int at_once = many ? width : s.panel;
    for (int c = 0; c < width; c += at_once) {
        s.turn = s.fetches ? c / s.panel : s.columns; // a turn that does not come
        s.width = width - c < at_once ? width - c : at_once;
        s.blocks = m->packed ? panel(in, first + c) : NULL;
        s.values = m->packed ? NULL : in->values + (size_t)(first + c) * (size_t)in->columns;
        s.out = out + c * STRIP_ROWS;
        (many ? k->many : k->strip)[m->format->id](&s);
    }
}
