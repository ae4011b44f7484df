// Mixture of experts: every row chooses some experts, and rows are sorted by expert, so that each expert's weights are
// read once a batch and its strips are shared out like those of any matrix. The shared expert, which takes every row,
// is one part more.
//
// Choosing is done in f32 from the normed row, in plain C, so that it does not depend on the instruction set; a row's
// results are summed in the order of its choices. The router's rows are shared out in small pieces: they are few, and
// in f32.
#include <math.h>
#include <string.h>

#include "engine/cpu/cpu.h"

#define SUM_FLOOR 6.103515625e-5 // of weights that are divided by their sum: the smallest normal half float

enum { PIECE_ROWS = 8 }; // of a router

size_t experts_scratch(const struct model_spec *s) { return (size_t)s->experts.count; }

static struct choice *choices_of(const struct backend *b, int layer, int row) {
    return b->work.choices +
           ((size_t)(layer - b->first_layer) * (size_t)b->max_rows + (size_t)row) * (size_t)b->spec->experts.used;
}

// --- routing ---------------------------------------------------------------------------------------------------------

// Rows [first, first + PIECE_ROWS) of a router times `width` rows of the batch, to results [width][STRIP_ROWS].
static int route_piece(const struct backend *b, const struct matrix *router, const struct input *in, int first,
                       int from, int width, float *results) {
    struct matrix piece = *router;
    piece.data = (const uint8_t *)router->data + (size_t)first * router->row_bytes;
    piece.rows = router->rows - first < PIECE_ROWS ? router->rows - first : PIECE_ROWS;
    matrix_strip(&piece, b->kernels, 0, in, from, width, results);
    return piece.rows;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void weigh_shared(const struct backend *b, const struct cpu_experts *x, const struct input *in, int from,
                         int width) {
    float results[PANEL_INPUTS * STRIP_ROWS];
    const bool weighed = x->shared_router.format != NULL;
    if (weighed) route_piece(b, &x->shared_router, in, 0, from, width, results);
    for (int c = 0; c < width; c++)
        b->work.shared_weight[from + c] = weighed ? (float)sigmoid(results[c * STRIP_ROWS]) : 1;
}

void experts_route(const struct pass *p, struct worker *w, int layer, int n_rows) {
    const struct backend *b = p->b;
    const struct cpu_experts *x = &b->weights.layers[layer].experts;
    const struct input in = input_sized(&b->work.inputs[layer][INPUT_FFN], n_rows);
    const int count = x->router.rows, pieces = (count + PIECE_ROWS - 1) / PIECE_ROWS;
    const int panels = (n_rows + in.width - 1) / in.width;
    float results[PANEL_INPUTS * STRIP_ROWS];
    for (int item; (item = worker_next(w, panels * pieces)) >= 0;) {
        const int first = item % pieces * PIECE_ROWS, from = item / pieces * in.width;
        const int width = n_rows - from < in.width ? n_rows - from : in.width;
        const int n = route_piece(b, &x->router, &in, first, from, width, results);
        for (int c = 0; c < width; c++) {
            float *logits = b->work.expert_logits + (size_t)(from + c) * (size_t)count + first;
            for (int r = 0; r < n; r++)
                logits[r] = results[c * STRIP_ROWS + r] + (x->router_bias ? x->router_bias[first + r] : 0);
        }
        if (first == 0) weigh_shared(b, x, &in, from, width);
    }
}

// --- choosing --------------------------------------------------------------------------------------------------------

// In place: x becomes e^x, divided by the sum of all.
static void softmax(float *x, int n) {
    float maximum = x[0];
    double sum = 0;
    for (int i = 1; i < n; i++) maximum = x[i] > maximum ? x[i] : maximum;
    for (int i = 0; i < n; i++) sum += x[i] = (float)exp((double)x[i] - maximum);
    for (int i = 0; i < n; i++) x[i] = (float)(x[i] / sum);
}

// Logits become what the weights of the chosen are taken from.
static void score(const struct expert_spec *e, float *logits) {
    switch (e->gating) {
    case EXPERT_GATING_SOFTMAX: softmax(logits, e->count); break;
    case EXPERT_GATING_SIGMOID:
        for (int i = 0; i < e->count; i++) logits[i] = (float)sigmoid(logits[i]);
        break;
    case EXPERT_GATING_SOFTMAX_CHOSEN: break;
    }
}

// The best by score + bias, of equal ones those with the lower index first. A NaN beats nothing, and as nobody can tell
// what it should have beaten, the weights are NaN then: so the logits are, and the answer fails. `ranks` is scratch.
static void take_best(const struct expert_spec *e, const float *scores, const float *bias, float *ranks,
                      struct choice *out) {
    bool sound = true;
    for (int i = 0; i < e->count; i++) {
        ranks[i] = bias ? scores[i] + bias[i] : scores[i];
        sound &= !isnan(ranks[i]);
    }
    for (int k = 0; k < e->used; k++) {
        int best = -1;
        for (int i = 0; i < e->count; i++) {
            bool taken = false;
            for (int j = 0; j < k; j++) taken |= out[j].expert == i;
            if (!taken && (best < 0 || ranks[i] > ranks[best])) best = i;
        }
        out[k] = (struct choice){.expert = best, .weight = sound ? scores[best] : NAN};
    }
}

static void weigh(const struct expert_spec *e, struct choice *choices) {
    double sum = 0;
    if (e->gating == EXPERT_GATING_SOFTMAX_CHOSEN) {
        double maximum = choices[0].weight;
        for (int k = 1; k < e->used; k++) maximum = choices[k].weight > maximum ? choices[k].weight : maximum;
        for (int k = 0; k < e->used; k++) sum += exp(choices[k].weight - maximum);
        for (int k = 0; k < e->used; k++) choices[k].weight = (float)(exp(choices[k].weight - maximum) / sum);
    }
    if (e->normalise) {
        sum = 0;
        for (int k = 0; k < e->used; k++) sum += choices[k].weight;
        if (!(sum >= SUM_FLOOR)) sum = SUM_FLOOR;
        for (int k = 0; k < e->used; k++) choices[k].weight = (float)(choices[k].weight / sum);
    }
    for (int k = 0; k < e->used; k++) choices[k].weight *= e->scale;
}

void experts_choose(const struct pass *p, int layer, struct share rows, float *ranks) {
    const struct backend *b = p->b;
    const struct expert_spec *e = &b->spec->experts;
    for (int row = rows.first; row < rows.end; row++) {
        float *logits = b->work.expert_logits + (size_t)row * (size_t)e->count;
        struct choice *choices = choices_of(b, layer, row);
        score(e, logits);
        take_best(e, logits, b->weights.layers[layer].experts.choice_bias, ranks, choices);
        weigh(e, choices);
    }
}

// --- sorting ---------------------------------------------------------------------------------------------------------

// Gives every choice its slot: in order of experts, then of rows.
static void give_slots(struct backend *b, struct choice *choices, int n_choices) {
    const struct expert_spec *e = &b->spec->experts;
    int *next = b->work.first_slot + 1; // next[e] is where expert e goes on, and at the end where e + 1 begins
    memset(b->work.first_slot, 0, ((size_t)e->count + 1) * sizeof *b->work.first_slot);
    for (int i = 0; i < n_choices; i++)
        if (choices[i].expert + 1 < e->count) next[choices[i].expert + 1]++;
    for (int i = 1; i < e->count; i++) next[i] += next[i - 1];
    for (int i = 0; i < n_choices; i++) {
        choices[i].slot = next[choices[i].expert]++;
        b->work.slots[choices[i].slot].row = i / e->used;
    }
}

static struct input part_of(const struct input *all, int first, int n) {
    struct input in = input_sized(all, n);
    if (in.values) in.values += (size_t)first * (size_t)in.columns;
    if (in.blocks) in.blocks += (size_t)first * (size_t)(in.columns / BLOCK_COLUMNS);
    return in;
}

static const float *row_of(const float *matrix, int row, int columns) {
    return matrix ? matrix + (size_t)row * (size_t)columns : NULL;
}

static void add_part(struct backend *b, int layer, int expert) {
    const struct model_spec *s = b->spec;
    const struct cpu_experts *x = &b->weights.layers[layer].experts;
    const int first = b->work.first_slot[expert], n = b->work.first_slot[expert + 1] - first, i = b->work.ffn.n++;
    for (int k = 0; k < n; k++) b->work.slots[first + k].part = i, b->work.slots[first + k].index = k;
    b->work.part_in[i] = part_of(&b->work.inputs[layer][INPUT_EXPERTS], first, n);
    b->work.part_middle[i] = part_of(&b->work.inputs[layer][INPUT_EXPERTS_MIDDLE], first, n);
    b->work.ffn.gated[i] = (struct gated){.gate = &x->gate[expert],
                                          .up = &x->up[expert],
                                          .gate_bias = row_of(x->gate_bias, expert, s->experts.n_ff),
                                          .up_bias = row_of(x->up_bias, expert, s->experts.n_ff),
                                          .in = &b->work.part_in[i],
                                          .out = &b->work.part_middle[i]};
    b->work.ffn.down[i] = (struct matmul){.matrix = &x->down[expert],
                                          .in = &b->work.part_middle[i],
                                          .out = embd_row(b, b->work.expert_out, first),
                                          .stride = b->work.embd_stride,
                                          .bias = row_of(x->down_bias, expert, s->n_embd),
                                          .scale = 1};
}

static void add_shared_part(struct backend *b, int layer, int n_rows) {
    const struct cpu_experts *x = &b->weights.layers[layer].experts;
    const int i = b->work.ffn.n++;
    b->work.part_in[i] = input_sized(&b->work.inputs[layer][INPUT_FFN], n_rows);
    b->work.part_middle[i] = input_sized(&b->work.inputs[layer][INPUT_FFN_MIDDLE], n_rows);
    b->work.ffn.gated[i] = (struct gated){
        .gate = &x->shared_gate, .up = &x->shared_up, .in = &b->work.part_in[i], .out = &b->work.part_middle[i]};
    b->work.ffn.down[i] = (struct matmul){.matrix = &x->shared_down,
                                          .in = &b->work.part_middle[i],
                                          .out = b->work.added,
                                          .stride = b->work.embd_stride,
                                          .scale = 1};
}

static void count_part(struct stage_work *work, const struct gated *gated, const struct matmul *down) {
    const struct matrix *all[] = {gated->gate, gated->up, down->matrix};
    for (int i = 0; i < 3; i++) {
        work->bytes += matrix_bytes(all[i]);
        work->operations += 2.0 * all[i]->rows * all[i]->columns * down->in->rows;
    }
}

void experts_sort(struct pass *p, int layer, int n_rows) {
    struct backend *b = p->b;
    const struct cpu_layer *l = &b->weights.layers[layer];
    const struct expert_spec *e = &b->spec->experts;
    give_slots(b, choices_of(b, layer, 0), n_rows * e->used);
    b->work.ffn.n = 0;
    for (int i = 0; i < e->count; i++)
        if (b->work.first_slot[i + 1] > b->work.first_slot[i]) add_part(b, layer, i);
    if (l->experts.shared_up.format && n_rows > 0) add_shared_part(b, layer, n_rows);
    for (int i = 0; i < b->work.ffn.n; i++)
        count_part(&p->work->stages[STAGE_FEED], &b->work.ffn.gated[i], &b->work.ffn.down[i]);
}

void experts_gather(const struct pass *p, int layer, int n_rows, struct share slots) {
    const struct backend *b = p->b;
    const struct input from = input_sized(&b->work.inputs[layer][INPUT_FFN], n_rows);
    for (const struct slot *s = b->work.slots + slots.first; s < b->work.slots + slots.end; s++)
        input_copy(&b->work.part_in[s->part], s->index, &from, s->row);
}

// --- adding up -------------------------------------------------------------------------------------------------------

void experts_add(const struct pass *p, int layer, struct share rows, float *sum) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->weights.layers[layer];
    const int n_embd = b->spec->n_embd;
    for (int row = rows.first; row < rows.end; row++) {
        const struct choice *choices = choices_of(b, layer, row);
        memset(sum, 0, (size_t)n_embd * sizeof *sum);
        for (int k = 0; k < b->spec->experts.used; k++)
            b->kernels->accumulate(sum, embd_row(b, b->work.expert_out, choices[k].slot), n_embd, choices[k].weight);
        if (l->experts.shared_up.format)
            b->kernels->accumulate(sum, embd_row(b, b->work.added, row), n_embd, b->work.shared_weight[row]);
        forward_add(b, row, sum, &l->ffn_post_norm);
    }
}
