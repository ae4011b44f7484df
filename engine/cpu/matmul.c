#include "engine/cpu/matmul.h"

#include <string.h>

static int strip_rows(const struct matrix *m, int strip) {
    const int left = m->rows - strip * STRIP_ROWS;
    return left < STRIP_ROWS ? left : STRIP_ROWS;
}

static void add_bias(float *results, const float *bias, int strip, int n_rows, int width) {
    if (!bias) return;
    bias += (size_t)strip * STRIP_ROWS;
    for (int c = 0; c < width; c++)
        for (int r = 0; r < n_rows; r++) results[c * STRIP_ROWS + r] += bias[r];
}

// --- sharing out -----------------------------------------------------------------------------------------------------

enum { ITEMS_A_WORKER = 4 }; // at least, where there is so much

// An item of work is a strip times some panels of the batch: of all, unless strips are too few for the workers.
struct item {
    int strip, first, end; // rows of the batch
};

struct part {
    int n_strips;
    const struct input *in;
};

// The items of several matrices that all workers share.
struct series {
    const void *list; // of matmuls, or of gated ones
    int n;
    const struct cpu_kernels *kernels;
    enum activation activation;
    struct part (*part)(const struct series *s, int i);
    void (*run)(const struct series *s, int i, const struct item *item);
};

static int row_panels(const struct input *in) { return (in->rows + in->width - 1) / in->width; }

static struct item item_at(int index, int a_strip, const struct input *in) {
    const int64_t panels = row_panels(in), place = index % a_strip;
    const int end = (int)(panels * (place + 1) / a_strip) * in->width;
    return (struct item){.strip = index / a_strip,
                         .first = (int)(panels * place / a_strip) * in->width,
                         .end = end < in->rows ? end : in->rows};
}

// How many items a strip makes when `wanted` would be enough.
static int items_a_strip(const struct part *part, int wanted) {
    const int panels = row_panels(part->in);
    return panels < wanted ? panels : wanted;
}

static void series_run(const struct series *s, struct worker *w) {
    int n_strips = 0, n_items = 0;
    for (int i = 0; i < s->n; i++) n_strips += s->part(s, i).n_strips;
    if (!n_strips) return;
    const int wanted = (ITEMS_A_WORKER * w->count + n_strips - 1) / n_strips;
    for (int i = 0; i < s->n; i++) {
        const struct part part = s->part(s, i);
        n_items += part.n_strips * items_a_strip(&part, wanted);
    }
    int current = 0, began = 0;
    for (int i, end; worker_take(w, n_items, &i, &end);) {
        if (i < began) current = began = 0; // left by another
        while (i < end) {
            const struct part part = s->part(s, current);
            const int a_strip = items_a_strip(&part, wanted), after = began + part.n_strips * a_strip;
            for (; i < end && i < after; i++) {
                const struct item item = item_at(i - began, a_strip, part.in);
                s->run(s, current, &item);
            }
            if (i >= after) current++, began = after;
        }
    }
}

// --- matmuls ---------------------------------------------------------------------------------------------------------

static float *place(const struct matmul *to, int strip, int row) {
    return to->out + (size_t)row * (size_t)to->stride + (size_t)strip * STRIP_ROWS;
}

// Results lie far apart in memory: what will be added to is fetched some rows ahead.
enum { ROWS_AHEAD = 16 };
static void fetch_place(const struct matmul *to, int strip, int row) {
    const float *out = place(to, strip, row);
    __builtin_prefetch(out, 1);
    __builtin_prefetch(out + STRIP_ROWS / 2, 1);
}

static void put_results(const struct matmul *to, const struct cpu_kernels *k, float *results, int strip, int first,
                        int width) {
    const int n = strip_rows(to->matrix, strip);
    add_bias(results, to->bias, strip, n, width);
    if (to->scale != 1)
        for (int i = 0; i < width * STRIP_ROWS; i++) results[i] *= to->scale;
    if (to->softcap != 0) k->softcap(results, width * STRIP_ROWS, to->softcap);
    for (int c = 0; c < width; c++, results += STRIP_ROWS) {
        float *out = place(to, strip, first + c);
        if (c + ROWS_AHEAD < width) fetch_place(to, strip, first + c + ROWS_AHEAD);
        if (to->add)
            for (int r = 0; r < n; r++) out[r] += results[r];
        else memcpy(out, results, (size_t)n * sizeof *out);
    }
}

// A last strip lacks rows, whose results are not computed.
static void clear_results(float *results, int inputs, const struct item *item) {
    const int n = item->end - item->first < inputs ? item->end - item->first : inputs;
    memset(results, 0, (size_t)n * STRIP_ROWS * sizeof *results);
}

static struct part matmul_part(const struct series *s, int i) {
    const struct matmul *p = (const struct matmul *)s->list + i;
    return (struct part){matrix_strips(p->matrix), p->in};
}

static void matmul_item(const struct series *s, int i, const struct item *item) {
    const struct matmul *to = (const struct matmul *)s->list + i;
    const struct cpu_kernels *k = s->kernels;
    const struct input *in = to->in;
    const int strip = item->strip;
    const int inputs = input_rows_at_once(in, item->end - item->first);
    float results[GROUP_INPUTS * STRIP_ROWS];
    if (strip_rows(to->matrix, strip) < STRIP_ROWS) clear_results(results, inputs, item);
    for (int first = item->first; first < item->end; first += inputs) {
        const int width = item->end - first < inputs ? item->end - first : inputs;
        for (int c = 0; c < width && c < ROWS_AHEAD; c++) fetch_place(to, strip, first + c);
        matrix_strip(to->matrix, k, strip, in, first, width, results);
        put_results(to, k, results, strip, first, width);
    }
}

void matmul_run(struct worker *w, const struct cpu_kernels *k, const struct matmul *matmuls, int n) {
    series_run(&(struct series){matmuls, n, k, 0, matmul_part, matmul_item}, w);
}

// --- gated matmuls ---------------------------------------------------------------------------------------------------

static struct part gated_part(const struct series *s, int i) {
    const struct gated *g = (const struct gated *)s->list + i;
    return (struct part){matrix_strips(g->up), g->in};
}

static void gated_item(const struct series *s, int i, const struct item *item) {
    const struct gated *g = (const struct gated *)s->list + i;
    const struct cpu_kernels *k = s->kernels;
    const int strip = item->strip;
    float gate[GROUP_INPUTS * STRIP_ROWS], up[GROUP_INPUTS * STRIP_ROWS];
    const struct input *in = g->in;
    const int n = strip_rows(g->up, strip);
    const struct matrix *first_matrix = g->gate->format ? g->gate : g->up;
    const int inputs = input_rows_at_once(in, item->end - item->first);
    const float *first_bias = g->gate->format ? g->gate_bias : g->up_bias;
    if (n < STRIP_ROWS) {
        clear_results(gate, inputs, item);
        clear_results(up, inputs, item);
    }
    for (int first = item->first; first < item->end; first += inputs) {
        const int width = item->end - first < inputs ? item->end - first : inputs;
        matrix_strip(first_matrix, k, strip, in, first, width, gate);
        add_bias(gate, first_bias, strip, n, width);
        if (g->gate->format) {
            matrix_strip(g->up, k, strip, in, first, width, up);
            add_bias(up, g->up_bias, strip, n, width);
        } else {
            for (int j = 0; j < width * STRIP_ROWS; j++) up[j] = 1;
        }
        k->activate[s->activation](gate, up, width * STRIP_ROWS);
        input_store_strip(g->out, k, first, width, strip * STRIP_ROWS, n, gate);
    }
}

void gated_run(struct worker *w, const struct cpu_kernels *k, enum activation activation, const struct gated *gated,
               int n) {
    series_run(&(struct series){gated, n, k, activation, gated_part, gated_item}, w);
}
