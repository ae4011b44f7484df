#include "engine/cpu/product.h"

#include <string.h>

// Strips that a worker takes at once: few enough that all finish together.
static int chunk_size(int n_strips, const struct worker *w) {
    int size = n_strips / (8 * w->count);
    return size < 1 ? 1 : size > 8 ? 8 : size;
}

static int strip_rows(const struct matrix *m, int strip) {
    const int left = m->rows - strip * STRIP_ROWS;
    return left < STRIP_ROWS ? left : STRIP_ROWS;
}

static void add_bias(float *tile, const float *bias, int strip, int n_rows, int width) {
    if (!bias) return;
    bias += (size_t)strip * STRIP_ROWS;
    for (int c = 0; c < width; c++)
        for (int r = 0; r < n_rows; r++) tile[c * STRIP_ROWS + r] += bias[r];
}

// --- products --------------------------------------------------------------------------------------------------------

static float *place(const struct product *to, int strip, int row) {
    return to->out + (size_t)row * (size_t)to->stride + (size_t)strip * STRIP_ROWS;
}

static void put_tile(const struct product *to, const struct cpu_kernels *k, float *tile, int strip, int first,
                     int width) {
    const int n = strip_rows(to->matrix, strip);
    add_bias(tile, to->bias, strip, n, width);
    if (to->scale != 1)
        for (int i = 0; i < width * STRIP_ROWS; i++) tile[i] *= to->scale;
    if (to->softcap != 0) k->softcap(tile, width * STRIP_ROWS, to->softcap);
    for (int c = 0; c < width; c++, tile += STRIP_ROWS) {
        float *out = place(to, strip, first + c);
        if (to->add)
            for (int r = 0; r < n; r++) out[r] += tile[r];
        else memcpy(out, tile, (size_t)n * sizeof *out);
    }
}

// Results lie far apart in memory: fetches them while a panel is computed.
static void prefetch_tile(const struct product *to, int strip, int first, int width) {
    for (int c = 0; c < width; c++) {
        const float *out = place(to, strip, first + c);
        __builtin_prefetch(out, 1);
        __builtin_prefetch(out + STRIP_ROWS / 2, 1);
    }
}

static void product_strip(const struct product *to, const struct cpu_kernels *k, int strip) {
    const struct input *in = to->in;
    const int inputs = input_rows_at_once(in);
    float tile[GROUP_INPUTS * STRIP_ROWS];
    if (strip_rows(to->matrix, strip) < STRIP_ROWS) memset(tile, 0, sizeof tile); // rows that a last strip lacks
    for (int first = 0; first < in->rows; first += inputs) {
        const int width = in->rows - first < inputs ? in->rows - first : inputs;
        prefetch_tile(to, strip, first, width);
        matrix_strip(to->matrix, k, strip, in, first, width, tile);
        put_tile(to, k, tile, strip, first, width);
    }
}

void products_run(struct worker *w, const struct cpu_kernels *k, const struct product *products, int n) {
    int n_strips = 0;
    for (int i = 0; i < n; i++) n_strips += matrix_strips(products[i].matrix);
    const int chunk = chunk_size(n_strips, w), n_items = (n_strips + chunk - 1) / chunk;
    for (int item; (item = worker_next(w, n_items)) >= 0;) {
        const int end = (item + 1) * chunk < n_strips ? (item + 1) * chunk : n_strips;
        for (int i = item * chunk; i < end; i++) {
            const struct product *to = products;
            int strip = i;
            for (; strip >= matrix_strips(to->matrix); to++) strip -= matrix_strips(to->matrix);
            product_strip(to, k, strip);
        }
    }
    worker_barrier(w);
}

// --- gated products --------------------------------------------------------------------------------------------------

static void gated_strip(const struct gated *g, const struct cpu_kernels *k, enum activation activation, int strip) {
    float gate[GROUP_INPUTS * STRIP_ROWS], up[GROUP_INPUTS * STRIP_ROWS];
    const struct input *in = g->in;
    const int n = strip_rows(g->up, strip);
    const struct matrix *first_matrix = g->gate->format ? g->gate : g->up;
    const int inputs = input_rows_at_once(in);
    const float *first_bias = g->gate->format ? g->gate_bias : g->up_bias;
    if (n < STRIP_ROWS) memset(gate, 0, sizeof gate), memset(up, 0, sizeof up); // rows that a last strip lacks
    for (int first = 0; first < in->rows; first += inputs) {
        const int width = in->rows - first < inputs ? in->rows - first : inputs;
        matrix_strip(first_matrix, k, strip, in, first, width, gate);
        add_bias(gate, first_bias, strip, n, width);
        if (g->gate->format) {
            matrix_strip(g->up, k, strip, in, first, width, up);
            add_bias(up, g->up_bias, strip, n, width);
        } else {
            for (int i = 0; i < width * STRIP_ROWS; i++) up[i] = 1;
        }
        k->activate[activation](gate, up, width * STRIP_ROWS);
        for (int c = 0; c < width; c++) input_store(g->out, k, first + c, strip * STRIP_ROWS, n, gate + c * STRIP_ROWS);
    }
}

void gated_run(struct worker *w, const struct cpu_kernels *k, enum activation activation, const struct gated *gated,
               int n) {
    int n_strips = 0;
    for (int i = 0; i < n; i++) n_strips += matrix_strips(gated[i].up);
    for (int item; (item = worker_next(w, n_strips)) >= 0;) {
        const struct gated *g = gated;
        int strip = item;
        for (; strip >= matrix_strips(g->up); g++) strip -= matrix_strips(g->up);
        gated_strip(g, k, activation, strip);
    }
    worker_barrier(w);
}
