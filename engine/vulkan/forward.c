// What a pass computes: embed; every layer, attention and feed-forward; logits.
#include <stdio.h>

#include "engine/vulkan/matmuls.h"

static void quantize(struct pass *p, const struct rows *x) {
    enum { THREADS = 256 };
    const struct {
        VkDeviceAddress from, to;
        uint32_t n, stride;
    } push = {x->address, x->codes, x->n * x->stride / 4, x->stride / 4};
    if (!p->b->weights.quantised) return;
    RUN(p, "quantize", push, groups(push.n, THREADS), 1, 1, 0);
    pass_barrier(p);
}

enum { NORM_NONE = NORM_LAYER + 1 };

// Shaders get the address of a list in any case.
static VkDeviceAddress list_or_any(const struct pass *p, VkDeviceAddress list) {
    return list ? list : p->b->work.kept.address;
}

// Rows of `from`, those of the list if there is one, normed, to `to`, and quantised to its codes; with a factor they
// are added to it.
static void norm_rows(struct pass *p, const struct device_norm *norm, const struct rows *from, VkDeviceAddress list,
                      const struct rows *to, int n, float factor) {
    enum { THREADS = 256 };
    const struct model_spec *s = p->b->spec;
    const struct {
        VkDeviceAddress from, to, codes, weight, bias, rows;
        uint32_t n, from_stride, to_stride, has_list;
        float epsilon, scale;
    } push = {from->address, to->address,  to->codes,  norm->weight, norm->bias,      list_or_any(p, list),
              (uint32_t)n,   from->stride, to->stride, list != 0,    s->norm_epsilon, factor};
    RUN(p, "norm", push, to->n, 1, 1, norm->weight ? (uint32_t)s->norm : NORM_NONE, norm->bias != 0, factor != 0,
        to->codes && p->b->weights.quantised, groups(stride_of(n) / 4, THREADS));
}

static void matmul(struct pass *p, const struct matmul *m) { matmuls_run(p, m, 1); }

static struct rows embd_rows(const struct backend *b, VkDeviceAddress address, int n) {
    return (struct rows){address, b->work.embd_stride, (uint32_t)n, 0};
}

static struct rows rows_of(VkDeviceAddress address, uint32_t stride, int n) {
    return (struct rows){address, stride, (uint32_t)n, 0};
}

static struct rows coded(struct rows x, VkDeviceAddress codes) {
    x.codes = codes;
    return x;
}

static void embed(struct pass *p) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct device_matrix *m = &b->weights.embedding;
    const uint32_t columns = (uint32_t)b->spec->n_embd;
    char shader[32];
    snprintf(shader, sizeof shader, "embed_%s", m->format ? m->format->name : "F32");
    const struct {
        VkDeviceAddress matrix, grids, tokens, inputs, to;
        uint32_t columns, stride;
        float scale;
    } push = {m->address, b->weights.grids, w->tokens.address, w->embeddings.address,
              w->x,       columns,          w->embd_stride,    b->spec->embedding_scale};
    RUN(p, shader, push, groups(groups(columns, 32), 64), (uint32_t)p->shape.n_rows, 1, 0);
    if (m->format) p->work.bytes += (double)p->shape.n_rows * columns / m->format->elements * (double)m->format->bytes;
    pass_barrier(p);
    pass_end_stage(p, STAGE_EMBED);
}

struct attention_cut {    // of attention into work groups
    uint32_t heads, rows; // queries for which a work group reads keys and values once
    uint32_t x, y;        // work groups for all queries
    uint32_t parts;       // work groups that share the keys of each
};

// A work group has as many queries as its threads have registers for: several heads of a kv head, and in prompts
// several rows. Work groups share keys where a large device would not be busy otherwise, while each has as many keys as
// it reads at once and the parts fit into their buffer. Few keys are not shared: to join the parts would take longer.
static struct attention_cut cut_attention(const struct pass *p, const struct device_layer *l, uint32_t n) {
    enum { MOST_QUERIES = 8, MOST_ELEMENTS = 2048, BUSY_GROUPS = 512, KEYS = 128, FEW_KEYS = 4 * KEYS };
    const uint32_t n_head = (uint32_t)l->spec->n_head, n_head_kv = (uint32_t)l->spec->n_head_kv;
    const uint32_t size = (uint32_t)p->b->spec->head_size, window = (uint32_t)l->spec->window;
    const uint32_t room = MOST_ELEMENTS / size, most = room < MOST_QUERIES ? room : MOST_QUERIES;
    const uint32_t slices = groups(n_head / n_head_kv, most);
    struct attention_cut c = {.heads = groups(n_head / n_head_kv, slices), .rows = 1, .parts = 1};
    if (p->shape.long_segments && n == (uint32_t)p->shape.n_rows) c.rows = most / c.heads;
    c.x = n_head_kv * slices;
    c.y = groups(n, c.rows);
    const uint32_t n_keys = window && window < (uint32_t)p->shape.reach ? window : (uint32_t)p->shape.reach;
    while (n_keys >= FEW_KEYS && 2 * c.parts * KEYS <= n_keys && c.x * c.y * c.parts < BUSY_GROUPS &&
           2ull * c.parts * n * n_head * (size + 2) <= WORKSPACE_PARTS)
        c.parts *= 2;
    return c;
}

// The queries' rows that attention is wanted for: all, or behind the last layer's keys those of the kept rows.
// Quantised as well, where heads are whole pieces.
static void attend(struct pass *p, int layer, const struct rows *out, VkDeviceAddress list) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const struct device_layer *l = &b->weights.layers[layer];
    const struct attention_cut cut = cut_attention(p, l, out->n);
    const uint32_t n_head = (uint32_t)l->spec->n_head, size = (uint32_t)s->head_size;
    const struct {
        VkDeviceAddress qkv, to, codes, sinks, rows, list, pages;
        uint32_t qkv_stride, to_stride, n_head, n_head_kv, window;
        float softcap;
        VkDeviceAddress parts;
        uint32_t n, layer, has_list;
    } push = {w->qkv,
              out->address,
              out->codes,
              l->sinks,
              w->rows.address,
              list_or_any(p, list),
              w->pages.address,
              w->qkv_stride,
              out->stride,
              n_head,
              (uint32_t)l->spec->n_head_kv,
              (uint32_t)l->spec->window,
              s->attention_softcap,
              w->parts,
              out->n,
              l->kv_start,
              list != 0};
    const bool quantizes = b->weights.quantised && size % 32 == 0;
    RUN(p, "attention", push, cut.x, cut.y, cut.parts, size, b->kv_type, l->sinks != 0, cut.heads, cut.rows, quantizes);
    if (cut.parts == 1) return;
    pass_barrier(p);
    const struct {
        VkDeviceAddress parts, to, codes, sinks;
        uint32_t to_stride, n_parts;
    } join = {w->parts, out->address, out->codes, l->sinks, out->stride, cut.parts};
    RUN(p, "attention_join", join, n_head, out->n, 1, size, l->sinks != 0, quantizes);
}

static void prepare_heads(struct pass *p, int layer) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const struct device_layer *l = &b->weights.layers[layer];
    const uint32_t n_head = (uint32_t)l->spec->n_head, n_head_kv = (uint32_t)l->spec->n_head_kv;
    const bool rotates = l->spec->rope != ROPE_TABLE_NONE;
    const uint32_t head_norm = s->head_norm == HEAD_NORM_WHOLE ? 0 : (uint32_t)s->head_norm;
    const struct {
        VkDeviceAddress qkv, query_norm, key_norm, rotation, rows, pages;
        uint32_t qkv_stride, n_head, n_head_kv;
        float epsilon;
        uint32_t layer;
    } push = {
        w->qkv,          l->query_norm.weight, l->key_norm.weight, rotates ? w->rotations[l->spec->rope].address : 0,
        w->rows.address, w->pages.address,     w->qkv_stride,      n_head,
        n_head_kv,       s->norm_epsilon,      l->kv_start};
    RUN(p, "heads", push, n_head + 2 * n_head_kv, (uint32_t)p->shape.n_rows, 1, (uint32_t)s->head_size, b->kv_type,
        rotates ? (uint32_t)s->rope.n_rot : 0, (uint32_t)s->rope.kind, (uint32_t)s->norm,
        l->query_norm.weight ? head_norm : 0, l->key_norm.weight ? head_norm : 0);
}

// What a branch left in `added`, normed, onto the residuals; without a post norm it is there already.
static void add_later(struct pass *p, const struct device_norm *post_norm, const struct rows *x) {
    const struct backend *b = p->b;
    const struct rows added = embd_rows(b, b->work.added, (int)x->n);
    if (!post_norm->weight) return;
    norm_rows(p, post_norm, &added, 0, x, b->spec->n_embd, b->spec->residual_scale);
    pass_barrier(p);
}

// The last matmul of a branch: onto the residuals at once, or first to where its post norm finds it.
static void end_branch(struct pass *p, const struct device_matrix *m, const struct rows *in, VkDeviceAddress bias,
                       const struct device_norm *post_norm, const struct rows *x) {
    struct backend *b = p->b;
    const bool later = post_norm->weight != 0;
    const struct rows added = embd_rows(b, b->work.added, (int)x->n);
    matmul(p, &(struct matmul){.matrix = m,
                               .from = in,
                               .to = later ? &added : x,
                               .bias = bias,
                               .scale = later ? 1 : b->spec->residual_scale,
                               .add = !later});
    pass_barrier(p);
    add_later(p, post_norm, x);
}

static void attention(struct pass *p, int layer, const struct rows *normed, const struct rows *x,
                      VkDeviceAddress list) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct device_layer *l = &b->weights.layers[layer];
    const int n = p->shape.n_rows, size = b->spec->head_size;
    const int queries = l->spec->n_head * size, keys = l->spec->n_head_kv * size;
    const struct rows to[] = {rows_of(w->qkv, w->qkv_stride, n),
                              rows_of(w->qkv + 4 * (uint64_t)queries, w->qkv_stride, n),
                              rows_of(w->qkv + 4 * (uint64_t)(queries + keys), w->qkv_stride, n)};
    const struct matmul qkv[] = {
        {.matrix = &l->query, .from = normed, .to = &to[0], .bias = l->query_bias, .scale = 1},
        {.matrix = &l->key, .from = normed, .to = &to[1], .bias = l->key_bias, .scale = 1},
        {.matrix = &l->value, .from = normed, .to = &to[2], .bias = l->value_bias, .scale = 1}};
    matmuls_run(p, qkv, 3);
    pass_barrier(p);
    if (b->spec->head_norm == HEAD_NORM_WHOLE) {
        if (l->query_norm.weight) norm_rows(p, &l->query_norm, &to[0], 0, &to[0], queries, 0);
        if (l->key_norm.weight) norm_rows(p, &l->key_norm, &to[1], 0, &to[1], keys, 0);
        pass_barrier(p);
    }
    pass_end_stage(p, STAGE_PROJECT);
    prepare_heads(p, layer);
    pass_barrier(p);
    const struct rows attended = coded(rows_of(w->attended, w->attended_stride, (int)x->n), w->attended_codes);
    attend(p, layer, &attended, list);
    pass_barrier(p);
    if (b->spec->head_size % 32) quantize(p, &attended);
    pass_end_stage(p, STAGE_ATTEND);
    end_branch(p, &l->output, &attended, l->output_bias, &l->attention_post_norm, x);
}

static void ffn_dense(struct pass *p, const struct device_layer *l, const struct rows *in, const struct rows *x) {
    const struct device_workspace *w = &p->b->work;
    const struct rows middle = coded(rows_of(w->gate, w->ffn_stride, (int)in->n), w->gate_codes);
    matmuls_gated(p, &(struct gated){.gate = &l->gate,
                                     .up = &l->up,
                                     .gate_bias = l->gate_bias,
                                     .up_bias = l->up_bias,
                                     .in = in,
                                     .middle = &middle,
                                     .scratch = w->up});
    end_branch(p, &l->down, &middle, l->down_bias, &l->ffn_post_norm, x);
}

static void choose_experts(struct pass *p, const struct device_experts *e, const struct rows *in) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct expert_spec *s = &b->spec->experts;
    const struct rows scores = rows_of(w->scores, w->score_stride, (int)in->n);
    const struct rows shared_score = rows_of(w->shared_score, 1, (int)in->n);
    matmul(p, &(struct matmul){.matrix = &e->router, .from = in, .to = &scores, .bias = e->router_bias, .scale = 1});
    matmul(p, &(struct matmul){.matrix = &e->shared_router, .from = in, .to = &shared_score, .scale = 1});
    pass_barrier(p);
    const struct {
        VkDeviceAddress logits, bias, choices;
        uint32_t stride;
        float scale;
    } push = {w->scores, e->choice_bias, w->choices, w->score_stride, s->scale};
    RUN(p, "choose", push, in->n, 1, 1, (uint32_t)s->count, (uint32_t)s->used, (uint32_t)s->gating, s->normalise,
        e->choice_bias != 0);
    pass_barrier(p);
}

static void ffn_shared(struct pass *p, const struct device_experts *e, const struct rows *in) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct rows middle = coded(rows_of(w->gate, w->ffn_stride, (int)in->n), w->gate_codes);
    const struct rows added = embd_rows(b, w->added, (int)in->n);
    matmuls_gated(p, &(struct gated){
                         .gate = &e->shared_gate, .up = &e->shared_up, .in = in, .middle = &middle, .scratch = w->up});
    matmul(p, &(struct matmul){.matrix = &e->shared_down, .from = &middle, .to = &added, .scale = 1});
}

static void add_experts(struct pass *p, const struct device_layer *l, const struct rows *x) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const bool later = l->ffn_post_norm.weight != 0, shared = l->experts.shared_up.format != NULL;
    const struct {
        VkDeviceAddress results, choices, shared_results, shared_logits, to;
        uint32_t n, stride, logits_stride;
        float scale;
    } push = {w->expert_out,       w->choices,     w->added, w->shared_score,  later ? w->added : x->address,
              (uint32_t)s->n_embd, w->embd_stride, 1,        s->residual_scale};
    RUN(p, "experts_add", push, groups((uint32_t)s->n_embd, 64), x->n, 1, (uint32_t)s->experts.used, shared,
        l->experts.shared_router.format != NULL, !later);
    pass_barrier(p);
    add_later(p, &l->ffn_post_norm, x);
}

static void ffn_experts(struct pass *p, const struct device_layer *l, const struct rows *in, const struct rows *x) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct device_experts *e = &l->experts;
    const int used = b->spec->experts.used, slots = (int)in->n * used;
    choose_experts(p, e, in);
    matmuls_group(p, (uint32_t)slots);
    const struct rows middle = coded(rows_of(w->expert_gate, w->expert_stride, slots), w->expert_gate_codes);
    const struct rows out = embd_rows(b, w->expert_out, slots);
    matmuls_gated(p, &(struct gated){.gate = &e->gate,
                                     .up = &e->up,
                                     .gate_bias = e->gate_bias,
                                     .up_bias = e->up_bias,
                                     .in = in,
                                     .middle = &middle,
                                     .scratch = w->expert_up,
                                     .choices = w->choices,
                                     .share = used});
    matmul(
        p,
        &(struct matmul){
            .matrix = &e->down, .from = &middle, .to = &out, .bias = e->down_bias, .scale = 1, .choices = w->choices});
    if (e->shared_up.format) ffn_shared(p, e, in);
    pass_barrier(p);
    add_experts(p, l, x);
}

// Behind the keys and values of the last layer only the kept rows matter: they go on in a buffer of their own.
static void layer(struct pass *p, int i) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const struct device_layer *l = &b->weights.layers[i];
    const bool last = i == s->n_layer - 1;
    const struct rows all = embd_rows(b, w->x, p->shape.n_rows);
    const struct rows normed = coded(embd_rows(b, w->normed, p->shape.n_rows), w->normed_codes);
    const struct rows x = last ? embd_rows(b, w->kept_x, p->shape.n_kept) : all;
    const VkDeviceAddress list = last ? w->kept.address : 0;
    const struct rows in = coded(embd_rows(b, w->ffn_in, (int)x.n), w->ffn_in_codes);
    const struct device_norm *ffn_norm = s->parallel && !l->ffn_norm.weight ? &l->attention_norm : &l->ffn_norm;
    norm_rows(p, &l->attention_norm, &all, 0, &normed, s->n_embd, 0);
    if (last) norm_rows(p, &(struct device_norm){0}, &all, list, &x, s->n_embd, 0);
    if (s->parallel) norm_rows(p, ffn_norm, &all, list, &in, s->n_embd, 0);
    pass_barrier(p);
    attention(p, i, &normed, &x, list);
    pass_end_stage(p, STAGE_PROJECT);
    if (!s->parallel) {
        norm_rows(p, ffn_norm, &x, 0, &in, s->n_embd, 0);
        pass_barrier(p);
    }
    if (l->spec->experts) ffn_experts(p, l, &in, &x);
    else ffn_dense(p, l, &in, &x);
    pass_end_stage(p, STAGE_FEED);
}

static void logits(struct pass *p) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const struct rows x = embd_rows(b, w->kept_x, p->shape.n_kept);
    const struct rows in = coded(embd_rows(b, w->logits_in, p->shape.n_logits), w->logits_in_codes);
    const struct rows out = rows_of(w->logits_out, (uint32_t)s->n_vocab, p->shape.n_logits);
    const struct rows hidden = rows_of(w->hidden_out, (uint32_t)s->n_embd, p->shape.n_hidden);
    norm_rows(p, &b->weights.output_norm, &x, w->logits_rows.address, &in, s->n_embd, 0);
    norm_rows(p, &b->weights.output_norm, &x, w->hidden_rows.address, &hidden, s->n_embd, 0);
    pass_barrier(p);
    matmul(p, &(struct matmul){.matrix = &b->weights.output,
                               .from = &in,
                               .to = &out,
                               .bias = b->weights.output_bias,
                               .scale = s->logit_scale,
                               .softcap = s->logit_softcap});
    pass_barrier(p);
}

void pass_stages(struct pass *p) {
    struct backend *b = p->b;
    embed(p);
    for (int i = b->first_layer; i < b->end_layer; i++) layer(p, i);
    if (has_last_layer(b)) logits(p);
}
