// Attention over several splits: that a row's result does not depend on chunks, threads, neighbours or the instruction
// set where its keys are more than one split, in every type of KV cache, and how near each type is to the exact path.
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
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"

enum {
    N_TOKENS = 2 * SPLIT_TOKENS + 77,
    CHECKED = 24, // the last rows, whose logits are compared
    PAGES = (N_TOKENS + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS,
    SEQUENCES = 3,
};

static const char *const type_names[KV_TYPES] = {"f16", "bf16", "q8_0", "q4_0"};

struct how {
    int type, threads;
    bool exact;
};

// Heads of many sizes, groups of 1 to 16, windows of more than a split, sinks and soft caps.
struct subject {
    const char *name;
    struct tiny_model_options options;
    const char *family; // of tiny_families, instead
    int window;
};
static const struct subject subjects[] = {
    {"heads of 64, 4 of 16", {.n_embd = 64, .n_head = 4, .n_head_kv = 1, .head_size = 64}, NULL, 0},
    {"heads of 80, alone", {.n_embd = 64, .n_head = 2, .n_head_kv = 2, .head_size = 80}, NULL, 0},
    {"heads of 96, 16 together", {.n_embd = 64, .n_head = 16, .n_head_kv = 1, .head_size = 96}, NULL, 0},
    {"heads of 128, 3 together", {.n_embd = 64, .n_head = 3, .n_head_kv = 1, .head_size = 128}, NULL, 0},
    {"heads of 256", {.n_embd = 64, .n_head = 2, .n_head_kv = 1, .head_size = 256}, NULL, 0},
    {"heads of 24, no whole blocks",
     {.format = BLOCK_Q8_0, .n_embd = 96, .n_head = 4, .n_head_kv = 4, .head_size = 24},
     NULL,
     0},
    {"windows and sinks", {0}, "gpt-oss", SPLIT_TOKENS + 45},
    {"windows and caps", {0}, "gemma2", SPLIT_TOKENS / 2 + 9},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static void *family_bytes(const struct subject *s, size_t *size) {
    for (int i = 0; i < tiny_family_count; i++) {
        struct tiny_shape shape = tiny_families[i];
        if (strcmp(shape.architecture, s->family)) continue;
        for (struct tiny_key *k = shape.keys; k->name; k++)
            if (!strcmp(k->name, "attention.sliding_window")) k->number = s->window;
        shape.n_context = 2 * N_TOKENS;
        return tiny_shape_bytes(&shape, size);
    }
    fail_msg("no family %s", s->family);
    return NULL;
}

static struct opened *open_how(const struct subject *s, struct how how) {
    struct tiny_model_options options = s->options;
    size_t size;
    options.n_context = 2 * N_TOKENS;
    options.family = TINY_QWEN3;
    void *bytes = s->family ? family_bytes(s, &size) : tiny_model_bytes(options, &size);
    struct opened *o = opened_bytes(s->name, bytes, size, how.threads,
                                    (struct backend_params){.n_pages = SEQUENCES * PAGES + 1,
                                                            .max_rows = N_TOKENS,
                                                            .max_logits = SEQUENCES * CHECKED,
                                                            .options.exact = how.exact,
                                                            .options.kv_type = (enum kv_type)how.type});
    memset(o->backend->kv.pages, 0xFF, o->backend->kv.bytes); // NaN everywhere
    return o;
}

static int token(const struct opened *o, int sequence, int position) {
    return (position * 7 + sequence * 31 + position * position) % o->n_vocab;
}
_Static_assert(PAGES % 2 == 1, "every fourth is another");
static void choose_pages(int sequence, int32_t pages[PAGES]) {
    for (int i = 0; i < PAGES; i++) pages[i] = sequence + SEQUENCES * (i * 4 % PAGES);
}

// Rows [first, end) of a sequence; logits of those that are checked to `out` [CHECKED, n_vocab].
static void run_rows(struct opened *o, int sequence, int first, int end, float *out) {
    struct batch_row rows[N_TOKENS];
    int32_t pages[PAGES];
    choose_pages(sequence, pages);
    for (int i = first; i < end; i++)
        rows[i - first] =
            (struct batch_row){.token = token(o, sequence, i), .output = i >= N_TOKENS - CHECKED ? ROW_LOGITS : 0};
    const struct batch_segment segment = {0, end - first, first, pages};
    const struct batch batch = {.n_rows = end - first, .n_segments = 1, .rows = rows, .segments = &segment};
    struct backend_result result;
    struct status st = {0};
    if (!cpu_backend.run(o->backend, &batch, &result, &st)) fail_msg("%s", st.text);
    const int from = first < N_TOKENS - CHECKED ? N_TOKENS - CHECKED : first;
    if (from < end)
        memcpy(out + (size_t)(from - N_TOKENS + CHECKED) * (size_t)o->n_vocab, result.logits,
               (size_t)(end - from) * (size_t)o->n_vocab * sizeof *out);
}

// The caller frees.
static float *run_chunks(struct opened *o, int sequence, int chunk) {
    float *out = xcalloc((size_t)CHECKED * (size_t)o->n_vocab, sizeof *out);
    for (int first = 0; first < N_TOKENS; first += chunk)
        run_rows(o, sequence, first, first + chunk < N_TOKENS ? first + chunk : N_TOKENS, out);
    return out;
}

static void assert_same(const struct opened *o, const float *got, const float *want, const char *subject, int type) {
    for (int i = 0; i < CHECKED; i++)
        if (memcmp(got + i * o->n_vocab, want + i * o->n_vocab, (size_t)o->n_vocab * sizeof *got))
            fail_msg("%s, %s: the last row but %d differs", subject, type_names[type], CHECKED - 1 - i);
}

static void check_pieces(const struct subject *s, int type, const float *want) {
    const int chunks[] = {N_TOKENS, 200};
    struct opened *o = open_how(s, (struct how){type, 3, false});
    for (int c = 0; c < 2; c++) {
        float *got = run_chunks(o, 0, chunks[c]);
        assert_same(o, got, want, s->name, type);
        free(got);
    }
    float *got = xcalloc((size_t)CHECKED * (size_t)o->n_vocab, sizeof *got);
    run_rows(o, 0, 0, N_TOKENS - CHECKED, got);
    for (int i = N_TOKENS - CHECKED; i < N_TOKENS; i++) {
        run_rows(o, 0, i, i + 1, got);
        assert_true(o->backend->work.query_ranges[0].n_items > 1); // a decoding row is everybody's work
    }
    assert_same(o, got, want, s->name, type);
    free(got);
    opened_close(o);
}

static void test_pieces_do_not_matter(void **state) {
    (void)state;
    for (int i = 0; i < SUBJECTS; i += CASE_STEP)
        for (int type = 0; type < KV_TYPES; type++) {
            struct opened *one = open_how(&subjects[i], (struct how){type, 1, false});
            float *want = run_chunks(one, 0, 500);
            check_pieces(&subjects[i], type, want);
            free(want);
            opened_close(one);
        }
}

// Three sequences of different lengths decode together; the first begins when the others are long.
static void test_neighbours_do_not_matter(void **state) {
    (void)state;
    for (int i = 0; i < SUBJECTS; i += 3 * CASE_STEP)
        for (int type = 0; type < KV_TYPES; type++) {
            struct opened *o = open_how(&subjects[i], (struct how){type, 2, false});
            float *alone[SEQUENCES];
            int32_t pages[SEQUENCES][PAGES];
            for (int s = 0; s < SEQUENCES; s++) {
                alone[s] = run_chunks(o, s, 500);
                choose_pages(s, pages[s]);
            }
            for (int step = 0; step < CHECKED; step++) {
                int32_t tokens[SEQUENCES];
                struct batch_segment segments[SEQUENCES];
                for (int s = 0; s < SEQUENCES; s++) {
                    const int position = s ? N_TOKENS - CHECKED + (step + s) % CHECKED : step;
                    tokens[s] = token(o, s, position);
                    segments[s] = (struct batch_segment){s, 1, position, pages[s]};
                }
                const float *logits = opened_run(o, SEQUENCES, tokens, SEQUENCES, segments);
                for (int s = 1; s < SEQUENCES; s++)
                    assert_memory_equal(logits + s * o->n_vocab,
                                        alone[s] + (segments[s].position - N_TOKENS + CHECKED) * o->n_vocab,
                                        (size_t)o->n_vocab * sizeof *logits);
            }
            for (int s = 0; s < SEQUENCES; s++) free(alone[s]);
            opened_close(o);
        }
}

static void test_instruction_sets_agree(void **state) {
    (void)state;
    const char *const names[] = {"avx2", "scalar"};
    for (int i = 1; i < SUBJECTS; i += 4 * CASE_STEP)
        for (int type = 0; type < KV_TYPES; type++) {
            struct opened *best = open_how(&subjects[i], (struct how){type, 2, false});
            float *want = run_chunks(best, 0, N_TOKENS);
            for (int k = 0; k < 2; k++) {
                if (!kernels_find(names[k])) continue;
                opened_kernels(names[k]);
                struct opened *o = open_how(&subjects[i], (struct how){type, 2, false});
                opened_kernels(NULL);
                float *got = run_chunks(o, 0, N_TOKENS);
                assert_same(o, got, want, subjects[i].name, type);
                free(got);
                opened_close(o);
            }
            free(want);
            opened_close(best);
        }
}

static void test_types_are_near_exact(void **state) {
    (void)state;
    const double limits[KV_TYPES] = {1e-5, 1e-4, 1e-3, 3e-2};
    for (int i = 0; i < SUBJECTS - 3; i += CASE_STEP) {
        struct opened *exact = open_how(&subjects[i], (struct how){0, 2, true});
        float *want = run_chunks(exact, 0, N_TOKENS);
        for (int type = 0; type < KV_TYPES; type++) {
            struct opened *o = open_how(&subjects[i], (struct how){type, 2, false});
            float *got = run_chunks(o, 0, N_TOKENS);
            const double error = nmse(got, want, (size_t)CHECKED * (size_t)o->n_vocab);
            printf("%-28s %-5s NMSE %.2g\n", subjects[i].name, type_names[type], error);
            if (!(error <= limits[type])) fail_msg("%s, %s: NMSE %g", subjects[i].name, type_names[type], error);
            free(got);
            opened_close(o);
        }
        free(want);
        opened_close(exact);
    }
}

// A row whose keys and values are NaN makes NaN of the rows that see it, and of no others, not even in its own page.
static void test_nan_stays_where_it_is_seen(void **state) {
    (void)state;
    enum { BAD = N_TOKENS - CHECKED / 2 };
    for (int type = 0; type < KV_TYPES; type++) {
        struct opened *o = open_how(&subjects[1], (struct how){type, 2, false});
        float *want = run_chunks(o, 0, N_TOKENS);
        const struct weight *w = &o->model.token_embd;
        float *row = (float *)((uint8_t *)w->data + (size_t)token(o, 0, BAD) * w->row_bytes);
        int first = 0; // the token may come earlier, too
        while (token(o, 0, first) != token(o, 0, BAD)) first++;
        row[0] = NAN;
        float *got = run_chunks(o, 0, N_TOKENS);
        for (int i = 0; i < CHECKED; i++) {
            const bool sees = N_TOKENS - CHECKED + i >= first;
            if (sees) assert_true(isnan(got[i * o->n_vocab]));
            else assert_memory_equal(got + i * o->n_vocab, want + i * o->n_vocab, (size_t)o->n_vocab * sizeof *got);
        }
        free(want), free(got);
        opened_close(o);
    }
}

// The last token again, on a copy of the page it lies in.
static void test_copied_page(void **state) {
    (void)state;
    for (int type = 0; type < KV_TYPES; type++) {
        struct opened *o = open_how(&subjects[1], (struct how){type, 2, false});
        float *want = run_chunks(o, 0, N_TOKENS);
        int32_t pages[PAGES], tokens[] = {token(o, 0, N_TOKENS - 1)};
        choose_pages(0, pages);
        opened_copy_page(o, SEQUENCES * PAGES, pages[PAGES - 1]);
        opened_spoil_page(o, pages[PAGES - 1]);
        pages[PAGES - 1] = SEQUENCES * PAGES;
        const struct batch_segment segment = {0, 1, N_TOKENS - 1, pages};
        const float *logits = opened_run(o, 1, tokens, 1, &segment);
        assert_memory_equal(logits, want + (size_t)(CHECKED - 1) * (size_t)o->n_vocab,
                            (size_t)o->n_vocab * sizeof *logits);
        free(want);
        opened_close(o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_do_not_matter),       cmocka_unit_test(test_neighbours_do_not_matter),
        cmocka_unit_test(test_instruction_sets_agree),     cmocka_unit_test(test_types_are_near_exact),
        cmocka_unit_test(test_nan_stays_where_it_is_seen), cmocka_unit_test(test_copied_page),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
