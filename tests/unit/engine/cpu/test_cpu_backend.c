// The CPU backend: exact mode against reference logits, the fast path against exact mode, and that a row's result does
// not depend on what else is computed, in which pieces, by how many threads or with which instructions.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "tests/unit/cases.h"
#include "tests/unit/opened_backend.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"

enum { N_TOKENS = 75, N_PAGES = 64, MOST_ROWS = 128 };

static bool quick_start; // of backends opened from now on

static struct backend_params backend_params(bool exact) {
    return (struct backend_params){.n_pages = N_PAGES,
                                   .max_rows = MOST_ROWS,
                                   .max_logits = MOST_ROWS,
                                   .max_hidden = MOST_ROWS,
                                   .options.quick_start = quick_start,
                                   .options.exact = exact};
}

static struct opened *open_bytes(void *bytes, size_t size, int threads, bool exact) {
    return opened_bytes("tiny", bytes, size, threads, backend_params(exact));
}

static struct opened *open_tiny(struct tiny_model_options options, int threads, bool exact) {
    size_t size;
    void *bytes = tiny_model_bytes(options, &size);
    return open_bytes(bytes, size, threads, exact);
}

// Plain models in many formats and shapes.
static const struct tiny_model_options models[] = {
    {.format = BLOCK_F32},
    {.format = BLOCK_F16, .family = TINY_LLAMA_ROPE_FREQS, .tied = true},
    {.format = BLOCK_BF16, .family = TINY_QWEN2},
    {.format = BLOCK_Q8_0, .family = TINY_QWEN3},
    {.format = BLOCK_Q4_0},
    {.format = BLOCK_Q4_0, .n_head = 4, .n_head_kv = 4},                               // heads of 16: no whole blocks
    {.format = BLOCK_Q4_0, .n_embd = 96, .n_ff = 160, .n_head = 2, .n_head_kv = 1},    // heads of 48, odd strips
    {.format = BLOCK_Q8_0, .n_embd = 256, .n_head = 32, .n_head_kv = 1, .tied = true}, // more queries than a range
    {.format = BLOCK_Q4_K, .family = TINY_QWEN2, .tied = true},
    {.format = BLOCK_Q6_K, .family = TINY_LLAMA_ROPE_FREQS},
    {.format = BLOCK_Q2_K},
    {.format = BLOCK_MXFP4, .n_embd = 96, .n_ff = 160, .n_head = 2, .n_head_kv = 1},
    {.format = BLOCK_NVFP4, .family = TINY_QWEN3}, // packed blocks of 64 columns
    {.format = BLOCK_IQ2_XXS, .tied = true},
};
enum { N_MODELS = sizeof models / sizeof *models };

// What the tests run: these, and every family, in its odd shape, which only floats fit, or so wide that blocks fit, in
// a format of 32 columns. Deep ones bring nothing new, only time and rounding.
static const struct tiny_shape *families[64];
static int n_families;
static int n_subjects(void) { return N_MODELS + n_families; }
static bool is_wide(int i) { return families[i - N_MODELS]->experts || i % 2; }

static int list_families(void **state) {
    (void)state;
    enum { DEEP = 8 };
    for (int i = 0; i < tiny_family_count; i++)
        if (tiny_families[i].n_layer < DEEP) families[n_families++] = &tiny_families[i];
    return 0;
}

static int whole_blocks(int n) { return (n + 31) / 32 * 32; }

static struct opened *open_family(const struct tiny_shape *family, bool wide, int threads, bool exact) {
    struct tiny_shape s = *family;
    size_t size;
    if (wide) {
        const int shared = s.n_ff_expert && s.n_ff_shared % s.n_ff_expert == 0 ? s.n_ff_shared / s.n_ff_expert : 0;
        s.n_embd = whole_blocks(s.n_embd), s.n_ff = whole_blocks(s.n_ff), s.n_ff_expert = whole_blocks(s.n_ff_expert);
        s.n_ff_shared = shared ? shared * s.n_ff_expert : whole_blocks(s.n_ff_shared);
        for (int i = 0; i < 4; i++) s.ffs[i] = whole_blocks(s.ffs[i]);
        for (struct tiny_key *k = s.keys; k->name; k++)
            if (!strcmp(k->name, "expert_shared_feed_forward_length")) k->number = s.n_ff_shared;
        s.storage &= ~(unsigned)TINY_NO_LENGTHS;
        s.format = s.experts ? BLOCK_MXFP4 : BLOCK_Q8_0;
    }
    void *bytes = tiny_shape_bytes(&s, &size);
    return open_bytes(bytes, size, threads, exact);
}

static struct opened *open_subject(int i, int threads, bool exact) {
    if (i < N_MODELS) return open_tiny(models[i], threads, exact);
    return open_family(families[i - N_MODELS], is_wide(i), threads, exact);
}

static const char *subject_name(int i) {
    static char name[32];
    snprintf(name, sizeof name, "model %d", i);
    return i < N_MODELS ? name : families[i - N_MODELS]->name;
}

static int token(const struct opened *o, int sequence, int position) {
    return (position * 7 + sequence * 31 + position * position) % o->n_vocab;
}

// Pages of a sequence, in no orderly way: pages[i] = where its i-th page lies.
static void choose_pages(int sequence, int32_t pages[4]) {
    for (int i = 0; i < 4; i++) pages[i] = (sequence * 4 + (i * 3 + 1) % 4) % N_PAGES;
}

// Logits of every token [N_TOKENS, n_vocab] of a sequence, computed in chunks; the caller frees.
static float *run_chunks(struct opened *o, int sequence, int chunk) {
    float *all = xmalloc((size_t)N_TOKENS * (size_t)o->n_vocab * sizeof *all);
    int32_t tokens[N_TOKENS], pages[4];
    choose_pages(sequence, pages);
    for (int first = 0; first < N_TOKENS; first += chunk) {
        const int n = N_TOKENS - first < chunk ? N_TOKENS - first : chunk;
        for (int i = 0; i < n; i++) tokens[i] = token(o, sequence, first + i);
        const struct batch_segment segment = {0, n, first, pages};
        const float *logits = opened_run(o, n, tokens, 1, &segment);
        memcpy(all + (size_t)first * (size_t)o->n_vocab, logits, (size_t)n * (size_t)o->n_vocab * sizeof *all);
    }
    return all;
}

static void assert_same(const struct opened *o, const float *got, const float *want, int subject) {
    for (int i = 0; i < N_TOKENS; i++)
        if (memcmp(got + i * o->n_vocab, want + i * o->n_vocab, (size_t)o->n_vocab * sizeof *got))
            fail_msg("%s: position %d differs", subject_name(subject), i);
}

static bool choices_equal(const struct backend *a, const struct backend *b, int layer, int row) {
    const int used = a->spec->experts.used;
    const size_t at = ((size_t)layer * MOST_ROWS + (size_t)row) * (size_t)used;
    for (int i = 0; i < used; i++) {
        int j = 0;
        while (j < used && b->work.choices[at + (size_t)j].expert != a->work.choices[at + (size_t)i].expert) j++;
        if (j == used) return false;
    }
    return true;
}

// How many rows of a pass over a whole sequence, from the first on, chose the same experts everywhere on both paths.
// Two experts may be so near each other that rounding decides; from then on the two paths compute different things.
static int rows_of_equal_choices(const struct backend *a, const struct backend *b, int n_rows) {
    for (int row = 0; row < n_rows; row++)
        for (int layer = 0; layer < a->spec->n_layer; layer++)
            if (!choices_equal(a, b, layer, row)) return row;
    return n_rows;
}

static void test_fast_path_is_near_exact(void **state) {
    (void)state;
    int rows = 0, compared = 0;
    for (int i = 0; i < n_subjects(); i += CASE_STEP) {
        struct opened *exact = open_subject(i, 2, true), *fast = open_subject(i, 2, false);
        float *want = run_chunks(exact, 0, N_TOKENS), *got = run_chunks(fast, 0, N_TOKENS);
        const int n = rows_of_equal_choices(exact->backend, fast->backend, N_TOKENS);
        const double error = nmse(got, want, (size_t)n * (size_t)fast->n_vocab);
        const bool floats = i < N_MODELS ? block_formats[models[i].format].elements == 1 : !is_wide(i);
        if (n > 0 && !(error <= (floats ? 1e-5 : 1e-3))) fail_msg("%s: NMSE %g", subject_name(i), error);
        rows += N_TOKENS, compared += n;
        free(want), free(got);
        opened_close(exact), opened_close(fast);
    }
    assert_true(compared > rows * 3 / 4);
}

// OpenBLAS multiplies values, not bytes: with it models in any format are as near as those in floats, prompts and a few
// rows.
static void test_blas_is_near_exact(void **state) {
    (void)state;
    const struct cpu_kernels *blas = kernels_find("blas");
    if (!blas) {
        print_message("built or run without OpenBLAS: skipped\n");
        skip();
    }
    for (int i = 0; i < n_subjects(); i += CASE_STEP) {
        opened_kernels("blas");
        struct opened *exact = open_subject(i, 2, true), *o = open_subject(i, 2, false);
        opened_kernels(NULL);
        assert_ptr_equal(o->backend->kernels, blas);
        assert_false(cpu_backend.info(o->backend)->rows_equal);
        assert_int_equal(o->backend->weights.in_place, exact->backend->weights.in_place); // nothing is repacked
        float *want = run_chunks(exact, 0, N_TOKENS);
        for (int few = 0; few < (exact->model.spec.experts.count ? 1 : 2); few++) {
            float *got = run_chunks(o, 0, few ? 5 : N_TOKENS);
            const int n = few ? N_TOKENS : rows_of_equal_choices(exact->backend, o->backend, N_TOKENS);
            const double error = nmse(got, want, (size_t)n * (size_t)o->n_vocab);
            if (n > 0 && !(error <= 1e-5)) fail_msg("%s: NMSE %g", subject_name(i), error);
            free(got);
        }
        free(want);
        opened_close(exact), opened_close(o);
    }
}

static void test_chunks_and_threads_do_not_matter(void **state) {
    (void)state;
    const struct { int threads, chunk; } cases[] = {{2, 1}, {3, 7}, {8, N_TOKENS}};
    for (int i = 0; i < n_subjects(); i += CASE_STEP)
        for (int exact = 0; exact < 2; exact++) {
            struct opened *one = open_subject(i, 1, exact);
            float *want = run_chunks(one, 0, N_TOKENS);
            for (int c = 0; c < 3; c++) {
                struct opened *other = open_subject(i, cases[c].threads, exact);
                float *got = run_chunks(other, 0, cases[c].chunk);
                assert_same(other, got, want, i);
                free(got);
                opened_close(other);
            }
            free(want);
            opened_close(one);
        }
}

// Passes before the weights are repacked, between all steps of that, and after them; some steps end within a matrix.
static void test_quick_start(void **state) {
    (void)state;
    enum { STEPS = 3 };
    int n_put_off = 0;
    for (int i = 0; i < n_subjects(); i += CASE_STEP) {
        struct opened *ready = open_subject(i, 1, false);
        quick_start = true;
        struct opened *quick = open_subject(i, 3, false);
        quick_start = false;
        struct repack *p = quick->backend->weights.repack;
        if (p) p->piece = p->all.packed_bytes / (3 * STEPS) + 1;
        float *want = run_chunks(ready, 0, N_TOKENS);
        int n_steps = 0;
        for (bool more = true; more; n_steps++) {
            float *got = run_chunks(quick, 0, n_steps ? 25 : N_TOKENS);
            assert_same(quick, got, want, i);
            free(got);
            more = quick->backend->weights.repack;
            assert_true(cpu_backend.repack(quick->backend) == (quick->backend->weights.repack != NULL));
        }
        assert_int_equal(n_steps, p ? STEPS + 1 : 1);
        n_put_off += p != NULL;
        free(want);
        opened_close(ready), opened_close(quick);
    }
    assert_true(n_put_off * CASE_STEP > 10);
}

// Seven sequences decode in every step while an eighth is prefilled in pieces between them.
static void test_neighbours_do_not_matter(void **state) {
    (void)state;
    enum { SEQUENCES = 8, PIECE = 5 };
    for (int m = 0; m < n_subjects(); m += CASE_STEP) {
        struct opened *o = open_subject(m, 2, false);
        float *alone[SEQUENCES];
        int32_t pages[SEQUENCES][4], tokens[MOST_ROWS];
        for (int s = 0; s < SEQUENCES; s++) {
            alone[s] = run_chunks(o, s, s == 1 ? 1 : 25);
            choose_pages(s, pages[s]);
        }
        memset(o->backend->kv.pages, 0xFF, o->backend->kv.bytes); // NaN everywhere
        for (int step = 0; step < N_TOKENS / PIECE; step++) {
            struct batch_segment segments[SEQUENCES];
            int n = 0;
            for (int s = 0; s < SEQUENCES; s++) {
                const int rows = s == SEQUENCES / 2 ? PIECE : 1, position = s == SEQUENCES / 2 ? step * PIECE : step;
                segments[s] = (struct batch_segment){n, rows, position, pages[s]};
                for (int i = 0; i < rows; i++, n++) tokens[n] = token(o, s, position + i);
            }
            const float *logits = opened_run(o, n, tokens, SEQUENCES, segments);
            for (int s = 0; s < SEQUENCES; s++)
                assert_memory_equal(logits + (size_t)segments[s].first_row * (size_t)o->n_vocab,
                                    alone[s] + (size_t)segments[s].position * (size_t)o->n_vocab,
                                    (size_t)segments[s].n_rows * (size_t)o->n_vocab * sizeof(float));
        }
        for (int s = 0; s < SEQUENCES; s++) free(alone[s]);
        opened_close(o);
    }
}

static void test_instruction_sets_agree(void **state) {
    (void)state;
    const char *const names[] = {"avx2", "avxvnni", "avx512"};
    for (int i = 0; i < n_subjects(); i += CASE_STEP) {
        opened_kernels("scalar");
        struct opened *scalar = open_subject(i, 2, false);
        assert_non_null(strstr(cpu_backend.info(scalar->backend)->description, "scalar"));
        float *want = run_chunks(scalar, 0, 40);
        for (int k = 0; k < 3; k++) {
            if (!kernels_find(names[k])) continue;
            opened_kernels(names[k]);
            struct opened *o = open_subject(i, 2, false);
            float *got = run_chunks(o, 0, 40);
            assert_same(o, got, want, i);
            free(got);
            opened_close(o);
        }
        opened_kernels(NULL);
        free(want);
        opened_close(scalar);
    }
}

// What lies in slots past a row's position, even NaN, and in other pages, has no influence.
static void test_stale_slots_do_not_matter(void **state) {
    (void)state;
    for (int i = 0; i < n_subjects(); i += CASE_STEP)
        for (int exact = 0; exact < 2; exact++) {
            struct opened *o = open_subject(i, 2, exact);
            float *want = run_chunks(o, 0, 11);
            memset(o->backend->kv.pages, 0xFF, o->backend->kv.bytes);
            float *got = run_chunks(o, 0, 11);
            assert_same(o, got, want, i);
            free(want), free(got);
            opened_close(o);
        }
}

// The last token again, on a copy of the page it lies in.
static void test_copied_page(void **state) {
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        struct opened *o = open_tiny(models[4], 2, exact);
        float *want = run_chunks(o, 0, 20);
        const int last = N_TOKENS - 1, index = last / KV_PAGE_TOKENS;
        int32_t pages[4], tokens[] = {token(o, 0, last)};
        choose_pages(0, pages);
        opened_copy_page(o, 40, pages[index]);
        opened_spoil_page(o, pages[index]);
        pages[index] = 40;
        const struct batch_segment segment = {0, 1, last, pages};
        const float *logits = opened_run(o, 1, tokens, 1, &segment);
        assert_memory_equal(logits, want + (size_t)last * (size_t)o->n_vocab, (size_t)o->n_vocab * sizeof(float));
        free(want);
        opened_close(o);
    }
}

// Only the rows asked for, from two segments; and none at all.
static void test_chosen_outputs(void **state) {
    (void)state;
    const int outputs[] = {3, 4, 5, 49, 50, 99};
    for (int i = 0; i < n_subjects(); i += CASE_STEP) {
        struct opened *o = open_subject(i, 2, false);
        float *first = run_chunks(o, 0, 30), *second = run_chunks(o, 1, 30);
        int32_t pages[2][4];
        struct batch_row rows[100];
        choose_pages(0, pages[0]), choose_pages(1, pages[1]);
        for (int k = 0; k < 100; k++) rows[k] = (struct batch_row){.token = token(o, k / 50, k % 50)};
        const struct batch_segment segments[] = {{0, 50, 0, pages[0]}, {50, 50, 0, pages[1]}};
        const struct batch batch = {.n_rows = 100, .n_segments = 2, .rows = rows, .segments = segments};
        struct backend_result none, result;
        struct status st = {0};
        assert_true(cpu_backend.run(o->backend, &batch, &none, &st));
        for (int k = 0; k < 6; k++) rows[outputs[k]].output = ROW_LOGITS;
        assert_true(cpu_backend.run(o->backend, &batch, &result, &st));
        for (int k = 0; k < 6; k++)
            assert_memory_equal(result.logits + (size_t)k * (size_t)o->n_vocab,
                                (outputs[k] < 50 ? first : second) + (size_t)(outputs[k] % 50) * (size_t)o->n_vocab,
                                (size_t)o->n_vocab * sizeof(float));
        const struct backend_work without = none.work, work = result.work;
        for (int stage = STAGE_EMBED; stage < STAGE_SAMPLE; stage++) {
            const struct stage_work *a = &without.stages[stage], *b = &work.stages[stage];
            assert_true(b->seconds > 0 && b->bytes > 0 && (b->operations > 0) == (stage != STAGE_EMBED));
            assert_true(b->operations >= a->operations && b->bytes >= a->bytes);
        }
        assert_true(work.stages[STAGE_SAMPLE].seconds == 0);
        assert_true(without.stages[STAGE_LOGITS].bytes == 0 && without.stages[STAGE_LOGITS].operations == 0);
        free(first), free(second);
        opened_close(o);
    }
}

// The hidden state of a row is its last layer's, normed: so the output matrix makes the row's logits of it. Rows may
// want it alone, or with their logits, or only the latter.
static void test_hidden_states(void **state) {
    (void)state;
    enum { ROWS = 40 };
    const unsigned wanted[] = {0, ROW_LOGITS, ROW_HIDDEN, ROW_LOGITS | ROW_HIDDEN, ROW_HIDDEN};
    int compared = 0;
    for (int i = 0; i < n_subjects(); i += CASE_STEP) {
        struct opened *o = open_subject(i, 2, true);
        const struct model_spec *s = &o->model.spec;
        const size_t n_embd = (size_t)s->n_embd, n_vocab = (size_t)s->n_vocab;
        float *logits = run_chunks(o, 0, 30), *w = xmalloc(n_embd * sizeof *w);
        int32_t pages[4];
        struct batch_row rows[ROWS];
        choose_pages(0, pages);
        for (int k = 0; k < ROWS; k++) rows[k] = (struct batch_row){.token = token(o, 0, k), .output = wanted[k % 5]};
        const struct batch_segment segment = {0, ROWS, 0, pages};
        const struct batch batch = {.n_rows = ROWS, .n_segments = 1, .rows = rows, .segments = &segment};
        struct backend_result result;
        struct status st = {0};
        assert_true(cpu_backend.run(o->backend, &batch, &result, &st));
        const float *got = result.logits, *hidden = result.hidden;
        for (int k = 0; k < ROWS; k++) {
            const float *want = logits + (size_t)k * n_vocab;
            if (rows[k].output & ROW_LOGITS) {
                assert_memory_equal(got, want, n_vocab * sizeof *got);
                got += n_vocab;
            }
            if (!(rows[k].output & ROW_HIDDEN)) continue;
            for (int v = 0; v < s->n_vocab && s->logit_softcap == 0 && !o->model.output_bias.format; v += 7) {
                const struct weight *m = &o->model.output;
                m->format->decode((const uint8_t *)m->data + (size_t)v * m->row_bytes, w, n_embd);
                double sum = 0;
                for (size_t d = 0; d < n_embd; d++) sum += (double)w[d] * hidden[d];
                sum *= s->logit_scale;
                if (!(fabs(sum - want[v]) <= 1e-4 * (1 + fabs(sum))))
                    fail_msg("%s: row %d, logit %d is %g, not %g", subject_name(i), k, v, (double)want[v], sum);
                compared++;
            }
            hidden += n_embd;
        }
        free(logits), free(w);
        opened_close(o);
    }
    assert_true(compared > 10000);
}

// A row that brings the embedding of a token, scaled as the model wants, is that token.
static void test_embeddings_in_the_place_of_tokens(void **state) {
    (void)state;
    enum { ROWS = 40 };
    for (int i = 0; i < n_subjects(); i += CASE_STEP) {
        struct opened *o = open_subject(i, 2, false);
        const struct weight *m = &o->model.token_embd;
        const size_t n_embd = (size_t)o->model.spec.n_embd;
        float *want = run_chunks(o, 0, 30), *embeddings = xmalloc(ROWS * n_embd * sizeof *embeddings);
        int32_t pages[4];
        struct batch_row rows[ROWS];
        choose_pages(1, pages);
        for (int k = 0; k < ROWS; k++) {
            float *x = embeddings + (size_t)k * n_embd;
            m->format->decode((const uint8_t *)m->data + (size_t)token(o, 0, k) * m->row_bytes, x, n_embd);
            for (size_t d = 0; d < n_embd; d++) x[d] *= o->model.spec.embedding_scale;
            rows[k] = (struct batch_row){.token = -1, .embedding = x, .output = ROW_LOGITS};
            if (k % 3 == 0) rows[k] = (struct batch_row){.token = token(o, 0, k), .output = ROW_LOGITS};
        }
        const struct batch_segment segment = {0, ROWS, 0, pages};
        const struct batch batch = {.n_rows = ROWS, .n_segments = 1, .rows = rows, .segments = &segment};
        struct backend_result result;
        struct status st = {0};
        assert_true(cpu_backend.run(o->backend, &batch, &result, &st));
        assert_memory_equal(result.logits, want, ROWS * (size_t)o->n_vocab * sizeof *want);
        free(want), free(embeddings);
        opened_close(o);
    }
}

// Pages are read out before others are written in and copied: a sequence goes on after its pages were taken away for
// another's and brought back elsewhere, all by the batch that needs them.
static void test_pages_out_and_in(void **state) {
    (void)state;
    for (int i = 0; i < n_subjects(); i += CASE_STEP)
        for (int exact = 0; exact < 2; exact++) {
            struct opened *o = open_subject(i, 2, exact);
            const size_t page = cpu_backend.info(o->backend)->page_bytes;
            assert_int_equal(page * N_PAGES, o->backend->kv.bytes);
            struct status st = {0};
            float *want = run_chunks(o, 0, 25);
            int32_t pages[4], elsewhere[] = {50, 49, 48};
            choose_pages(0, pages);
            struct page_transfer out[3], in[2];
            for (int k = 0; k < 3; k++) out[k] = (struct page_transfer){pages[k], xmalloc(page)};
            struct backend_result result;
            assert_true(cpu_backend.run(o->backend, &(struct batch){.n_reads = 3, .reads = out}, &result, &st));
            for (int k = 0; k < 3; k++) opened_spoil_page(o, pages[k]);
            in[0] = (struct page_transfer){50, out[0].data}, in[1] = (struct page_transfer){49, out[1].data};
            const struct page_transfer last_in[] = {in[0], in[1], {47, out[2].data}};
            const struct page_copy copy = {48, 47};
            void *spoilt = xmalloc(page);
            const struct page_transfer read = {47, spoilt};
            opened_spoil_page(o, 47);
            const struct batch_segment segment = {0, 1, N_TOKENS - 1, elsewhere};
            const struct batch batch = {
                .n_reads = 1,
                .n_writes = 3,
                .n_copies = 1,
                .reads = &read,
                .writes = last_in,
                .copies = &copy,
                .n_rows = 1,
                .n_segments = 1,
                .segments = &segment,
                .rows = &(struct batch_row){.token = token(o, 0, N_TOKENS - 1), .output = ROW_LOGITS}};
            assert_true(cpu_backend.run(o->backend, &batch, &result, &st));
            assert_memory_equal(result.logits, want + (size_t)(N_TOKENS - 1) * (size_t)o->n_vocab,
                                (size_t)o->n_vocab * sizeof *want);
            for (size_t k = 0; k < page; k++) assert_int_equal(((uint8_t *)spoilt)[k], 0xFF);
            for (int k = 0; k < 3; k++) free(out[k].data);
            free(spoilt), free(want);
            opened_close(o);
        }
}

static bool stop_at_last(void *context) { return --*(int *)context == 0; }

// A pass that is given up, wherever it is, leaves nothing behind.
static void test_passes_given_up(void **state) {
    (void)state;
    for (int i = 0; i < n_subjects(); i += CASE_STEP) {
        struct opened *o = open_subject(i, 2, false);
        float *want = run_chunks(o, 0, 11);
        struct batch_row rows[N_TOKENS];
        int32_t pages[4];
        choose_pages(0, pages);
        for (int k = 0; k < N_TOKENS; k++)
            rows[k] = (struct batch_row){.token = token(o, 1, k), .output = k == N_TOKENS - 1 ? ROW_LOGITS : 0};
        const struct batch_segment segment = {0, N_TOKENS, 0, pages};
        bool stopped = true;
        for (int last = 1; stopped; last++) {
            int left = last;
            const struct batch batch = {.n_rows = N_TOKENS,
                                        .n_segments = 1,
                                        .rows = rows,
                                        .segments = &segment,
                                        .stop = stop_at_last,
                                        .stop_context = &left};
            struct backend_result result;
            struct status st = {0};
            stopped = !cpu_backend.run(o->backend, &batch, &result, &st);
            assert_int_equal(st.code, stopped ? STATUS_CANCELLED : STATUS_OK);
            assert_true(left <= 0 || !stopped);
            float *got = run_chunks(o, 0, 11);
            assert_same(o, got, want, i);
            free(got);
        }
        free(want);
        opened_close(o);
    }
}

// Threads cost more than they bring where a model is small, unless they are asked for.
static void test_small_models_run_on_one_thread(void **state) {
    (void)state;
    struct opened *o = open_tiny(models[0], 3, false);
    assert_int_equal(cpu_backend.info(o->backend)->n_threads, 3);
    struct backend_params params = backend_params(false);
    params.model = &o->model;
    for (int large = 0; large < 2; large++) {
        struct backend *b = cpu_backend.open(&params, NULL);
        assert_int_equal(cpu_backend.info(b)->n_threads, large ? thread_pool_default_size() : 1);
        cpu_backend.close(b);
        o->model.weight_bytes = 64 << 20;
    }
    opened_close(o);
}

struct told {
    int n, stop_at; // stops when told so often; 0: never
    double last;
};

static bool told(void *context, double done) {
    struct told *t = context;
    assert_true(done > t->last && done <= 1);
    t->last = done;
    return ++t->n != t->stop_at;
}

static void test_progress_and_cancelling(void **state) {
    (void)state;
    const struct tiny_model_options options = {.format = BLOCK_Q8_0, .n_embd = 512, .n_ff = 1024};
    struct opened *o = open_tiny(options, 1, true);
    struct told t = {0};
    struct status st = {0};
    struct backend_params params = {.model = &o->model,
                                    .n_threads = 1,
                                    .n_pages = 4,
                                    .max_rows = 1,
                                    .max_logits = 1,
                                    .options.progress = told,
                                    .options.progress_context = &t};
    struct backend *b = cpu_backend.open(&params, &st);
    assert_non_null(b);
    assert_true(t.n > 1 && t.last == 1);
    cpu_backend.close(b);
    t = (struct told){.stop_at = 2};
    assert_null(cpu_backend.open(&params, &st));
    assert_int_equal(st.code, STATUS_CANCELLED);
    assert_int_equal(t.n, 2);
    opened_close(o);
}

static void test_memory_exhausted(void **state) {
    (void)state;
    struct opened *o = open_tiny((struct tiny_model_options){.n_layer = 8, .n_embd = 256}, 1, true);
    struct status st = {0};
    struct backend_params one = {
        .model = &o->model, .n_threads = 2, .n_pages = 3, .max_rows = 5, .max_logits = 2, .options.exact = true};
    struct backend_memory memory;
    assert_true(cpu_backend.measure(&one, &memory, &st));
    assert_int_equal(memory.kv, 3 * 2 * 8 * KV_PAGE_TOKENS * o->model.spec.layers[0].n_head_kv *
                                    o->model.spec.head_size * sizeof(float));
    assert_true(memory.weights < memory.in_place / 8); // matrices are read where they lie
    assert_true(memory.buffers > 5 * 256 * sizeof(float) + 2 * o->model.spec.n_vocab * sizeof(float));
    struct backend_params params = {.model = &o->model,
                                    .n_threads = 1,
                                    .n_pages = INT32_MAX,
                                    .max_rows = 1,
                                    .max_logits = 1,
                                    .options.exact = true};
    assert_null(cpu_backend.open(&params, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    assert_non_null(strstr(st.text, "KV cache"));
    opened_close(o);
}

// --- memory ----------------------------------------------------------------------------------------------------------

// What is reckoned of a model beforehand, and what an open backend took.
static void check_measured(struct opened *o, struct backend_params params) {
    struct backend_memory memory;
    struct status st = {0};
    params.n_threads = 2, params.model = &o->model;
    assert_true(cpu_backend.measure(&params, &memory, &st));
    const struct backend *b = o->backend;
    uint64_t packed = 0, in_regions = 0;
    for (int i = 0; i < b->spec->n_layer; i++) {
        const struct cpu_layer *l = &b->weights.layers[i];
        const struct matrix *all[] = {&l->query, &l->key, &l->value, &l->output, &l->gate, &l->up, &l->down};
        for (int k = 0; k < 7; k++) packed += all[k]->packed ? all[k]->strip_bytes * matrix_strips(all[k]) : 0;
    }
    if (b->weights.output.packed) packed += b->weights.output.strip_bytes * matrix_strips(&b->weights.output);
    for (int i = 0; i < b->memory.n_regions; i++) in_regions += b->memory.regions[i].size;
    assert_int_equal(memory.weights, b->weights.taken);
    assert_int_equal(memory.weights + memory.buffers + memory.kv, b->memory.taken);
    assert_true(in_regions <= b->memory.taken && b->memory.taken <= in_regions + b->memory.arena.used);
    assert_true(memory.weights > packed);                              // norms beside them
    const uint64_t matrices = o->model.weight_bytes - memory.in_place; // and vectors, and the embedding's rows
    assert_true(packed ? memory.in_place == 0 : matrices < o->model.weight_bytes / 2);
}

static void test_what_is_measured_is_what_is_taken(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++)
        for (int exact = 0; exact < 2; exact++) {
            const struct tiny_model_options options = {
                .format = format, .n_embd = 512, .n_ff = 1024, .n_layer = 3, .family = TINY_QWEN2};
            struct opened *o = open_tiny(options, 2, exact);
            check_measured(o, backend_params(exact));
            opened_close(o);
        }
}

static void test_what_experts_take_is_measured(void **state) {
    (void)state;
    for (int i = 0; i < n_families; i++) {
        if (!families[i]->experts) continue;
        size_t size;
        struct tiny_shape shape = *families[i];
        void *bytes = tiny_shape_bytes(&shape, &size);
        struct opened *o = open_bytes(bytes, size, 2, false);
        struct backend_memory memory;
        struct status st = {0};
        struct backend_params params = backend_params(false);
        params.n_threads = 2, params.model = &o->model;
        assert_true(cpu_backend.measure(&params, &memory, &st));
        assert_int_equal(memory.weights, o->backend->weights.taken);
        assert_int_equal(memory.weights + memory.buffers + memory.kv, o->backend->memory.taken);
        uint64_t routers = 0;
        for (int k = 0; k < o->model.spec.n_layer; k++)
            routers += (uint64_t)o->model.layers[k].experts.router.rows *
                       (uint64_t)o->model.layers[k].experts.router.columns * sizeof(float);
        assert_true(memory.weights > routers);
        opened_close(o);
    }
}

// --- reference logits ------------------------------------------------------------------------------------------------

static float *read_reference(const char *name, size_t n) {
    char path[96];
    snprintf(path, sizeof path, "models/%s.logits", name);
    FILE *f = fopen(shared_file(path), "rb");
    float *logits = xmalloc(n * sizeof *logits);
    assert_true(f && fread(logits, sizeof *logits, n, f) == n);
    fclose(f);
    return logits;
}

static int read_ids(int32_t *ids, int most) {
    FILE *f = fopen(shared_file("models/tokens.ids"), "r");
    int n = 0;
    assert_non_null(f);
    while (n < most && fscanf(f, "%d", &ids[n]) == 1) n++;
    fclose(f);
    return n;
}

// Opens a shared model and runs the reference's tokens through it; *logits belong to the backend.
static struct opened *run_reference(const char *name, bool exact, int *n, const float **logits) {
    struct opened *o = xcalloc(1, sizeof *o);
    struct status st = {0};
    char path[96];
    int32_t ids[MOST_ROWS], pages[4] = {9, 3, 4, 8};
    snprintf(path, sizeof path, "models/%s.gguf", name);
    if (!gguf_open(&o->gguf, shared_file(path), &st) || !model_open(&o->model, &o->gguf, 0, &st))
        fail_msg("%s", st.text);
    opened_start(o, 2, backend_params(exact));
    *n = read_ids(ids, MOST_ROWS);
    const struct batch_segment segment = {0, *n, 0, pages};
    *logits = opened_run(o, *n, ids, 1, &segment);
    return o;
}

static void check_reference(const char *name, bool exact, double limit) {
    int n;
    const float *logits;
    struct opened *o = run_reference(name, exact, &n, &logits);
    float *want = read_reference(name, (size_t)n * (size_t)o->n_vocab);
    const double error = nmse(logits, want, (size_t)n * (size_t)o->n_vocab);
    if (!(error <= limit)) fail_msg("%s: NMSE %g", name, error);
    free(want);
    opened_close(o);
}

static void test_reference_logits(void **state) {
    (void)state;
    const char *const names[] = {"tiny-llama-f32",  "tiny-llama-f16",  "tiny-llama-bf16", "tiny-llama-q8_0",
                                 "tiny-llama-q4_0", "tiny-llama-q4_k", "tiny-llama-q6_k", "tiny-llama3-f32",
                                 "tiny-qwen2-f32",  "tiny-qwen3-f32"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_reference(names[i], true, 1e-9);
        check_reference(names[i], false, 1e-3);
    }
}

// With experts only rows are comparable whose choices, and those of all rows before, are those of the exact path.
static void test_reference_logits_with_experts(void **state) {
    (void)state;
    const char *name = "tiny-gpt-oss-mxfp4";
    int n;
    const float *exact_logits, *fast_logits;
    check_reference(name, true, 1e-9);
    struct opened *exact = run_reference(name, true, &n, &exact_logits);
    struct opened *fast = run_reference(name, false, &n, &fast_logits);
    float *want = read_reference(name, (size_t)n * (size_t)exact->n_vocab);
    const int equal = rows_of_equal_choices(exact->backend, fast->backend, n);
    const double error = nmse(fast_logits, want, (size_t)equal * (size_t)exact->n_vocab);
    int near_ties = 0;
    for (int layer = 0; layer < fast->model.spec.n_layer; layer++)
        for (int row = 0; row < n; row++) near_ties += !choices_equal(exact->backend, fast->backend, layer, row);
    printf("%s: %d near-ties among %d choices; %d rows before the first, NMSE %.3g\n", name, near_ties,
           n * fast->model.spec.n_layer, equal, error);
    assert_true(equal > 0 && near_ties < n * fast->model.spec.n_layer / 20);
    if (!(error <= 1e-3)) fail_msg("NMSE %g", error);
    free(want);
    opened_close(exact), opened_close(fast);
}

// ---- experts whose scores are NaN ----

static void assert_distinct_choices(const struct backend *b, int n_rows) {
    const struct expert_spec *e = &b->spec->experts;
    for (int i = 0; i < b->spec->n_layer * n_rows; i++) {
        const size_t row = (size_t)(i / n_rows) * MOST_ROWS + (size_t)(i % n_rows);
        const struct choice *choices = b->work.choices + row * (size_t)e->used;
        bool chosen[16] = {0};
        for (int k = 0; k < e->used; k++) {
            const int expert = choices[k].expert;
            assert_true(expert >= 0 && expert < e->count && !chosen[expert]);
            chosen[expert] = true;
        }
    }
}

// Whatever the gating: the experts of a row are valid ones, each chosen once, and no logit passes for a sound one.
static void check_spoilt_score(struct opened *o, int spoilt, bool choice_only) {
    float bias[16] = {0};
    int32_t tokens[9], pages[4];
    const struct expert_spec *e = &o->model.spec.experts;
    bias[spoilt] = NAN;
    for (int i = 0; i < o->model.spec.n_layer; i++)
        *(choice_only ? &o->backend->weights.layers[i].experts.choice_bias
                      : &o->backend->weights.layers[i].experts.router_bias) = bias;
    choose_pages(0, pages);
    for (int i = 0; i < 9; i++) tokens[i] = token(o, 0, i);
    const float *logits = opened_run(o, 9, tokens, 1, &(struct batch_segment){0, 9, 0, pages});
    assert_distinct_choices(o->backend, 9);
    for (int i = 0; i < 9 * o->n_vocab; i++)
        if (!isnan(logits[i]))
            fail_msg("gating %d, expert %d of %s: logit %d is %g", (int)e->gating, spoilt,
                     choice_only ? "the choice" : "the router", i, (double)logits[i]);
}

static void test_a_spoilt_router_spoils_the_logits(void **state) {
    (void)state;
    int checked = 0;
    for (int i = N_MODELS; i < n_subjects(); i++) {
        if (strcmp(subject_name(i), "granitemoe")) continue;
        for (int k = 0; k < 12; k++) {
            struct opened *o = open_subject(i, 2, k % 2);
            struct expert_spec *e = &o->model.spec.experts;
            e->gating = (enum expert_gating)(EXPERT_GATING_SOFTMAX + k / 2 % 3);
            e->normalise = k >= 6;
            assert_true(e->count > e->used && e->count <= 16);
            for (int spoilt = 0; spoilt < e->count; spoilt++) {
                check_spoilt_score(o, spoilt, false);
                for (int l = 0; l < o->model.spec.n_layer; l++)
                    o->backend->weights.layers[l].experts.router_bias = NULL;
                check_spoilt_score(o, spoilt, true);
                for (int l = 0; l < o->model.spec.n_layer; l++)
                    o->backend->weights.layers[l].experts.choice_bias = NULL;
                checked++;
            }
            opened_close(o);
        }
    }
    assert_int_equal(checked, 12 * 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_logits),
        cmocka_unit_test(test_reference_logits_with_experts),
        cmocka_unit_test(test_fast_path_is_near_exact),
        cmocka_unit_test(test_blas_is_near_exact),
        cmocka_unit_test(test_chunks_and_threads_do_not_matter),
        cmocka_unit_test(test_quick_start),
        cmocka_unit_test(test_neighbours_do_not_matter),
        cmocka_unit_test(test_instruction_sets_agree),
        cmocka_unit_test(test_stale_slots_do_not_matter),
        cmocka_unit_test(test_copied_page),
        cmocka_unit_test(test_chosen_outputs),
        cmocka_unit_test(test_hidden_states),
        cmocka_unit_test(test_embeddings_in_the_place_of_tokens),
        cmocka_unit_test(test_pages_out_and_in),
        cmocka_unit_test(test_passes_given_up),
        cmocka_unit_test(test_small_models_run_on_one_thread),
        cmocka_unit_test(test_progress_and_cancelling),
        cmocka_unit_test(test_memory_exhausted),
        cmocka_unit_test(test_a_spoilt_router_spoils_the_logits),
        cmocka_unit_test(test_what_is_measured_is_what_is_taken),
        cmocka_unit_test(test_what_experts_take_is_measured),
    };
    return cmocka_run_group_tests_name("cpu backend", tests, list_families, NULL);
}
