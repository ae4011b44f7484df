#include "tests/unit/opened_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"

void opened_kernels(const char *name) {
    static char before[16];
    static bool known;
    const char *now = getenv("CONFAB_CPU");
    if (!known) snprintf(before, sizeof before, "%s", now ? now : "");
    known = true;
    setenv("CONFAB_CPU", name ? name : before, 1);
}

void opened_start(struct opened *o, int threads, struct backend_params params) {
    struct status st = {0};
    o->n_vocab = o->model.spec.n_vocab;
    params.model = &o->model;
    params.n_threads = threads;
    o->backend = cpu_backend.open(&params, &st);
    if (!o->backend) fail_msg("%s", st.text);
}

// On the heap, because the backend keeps pointing to the model.
struct opened *opened_bytes(const char *name, void *bytes, size_t size, int threads, struct backend_params params) {
    struct opened *o = xcalloc(1, sizeof *o);
    struct status st = {0};
    o->bytes = bytes;
    if (!gguf_open_memory(&o->gguf, name, o->bytes, size, &st) || !model_open(&o->model, &o->gguf, 0, &st))
        fail_msg("%s", st.text);
    opened_start(o, threads, params);
    return o;
}

void opened_close(struct opened *o) {
    cpu_backend.close(o->backend);
    model_close(&o->model);
    gguf_close(&o->gguf);
    free(o->bytes);
    free(o);
}

const float *opened_run(struct opened *o, int n_rows, const int32_t *tokens, int n_segments,
                        const struct batch_segment *segments) {
    struct batch_row *rows = xmalloc((size_t)n_rows * sizeof *rows);
    for (int i = 0; i < n_rows; i++) rows[i] = (struct batch_row){.token = tokens[i], .output = ROW_LOGITS};
    const struct batch batch = {.n_rows = n_rows, .n_segments = n_segments, .rows = rows, .segments = segments};
    struct backend_result result;
    struct status st = {0};
    if (!cpu_backend.run(o->backend, &batch, &result, &st)) fail_msg("%s", st.text);
    free(rows);
    return result.logits;
}

void opened_copy_page(struct opened *o, int to, int from) {
    const struct page_copy copy = {to, from};
    struct backend_result result;
    assert_true(cpu_backend.run(o->backend, &(struct batch){.n_copies = 1, .copies = &copy}, &result, NULL));
}

void opened_spoil_page(struct opened *o, int page) {
    const struct backend *b = o->backend;
    for (int i = 0; i < o->model.spec.n_layer; i++)
        for (int head = 0; head < b->spec->layers[i].n_head_kv; head++)
            memset(kv_at(b, i, page, head), 0xFF, kv_head_bytes(&b->kv.layout));
}

double nmse(const float *got, const float *want, size_t n) {
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        power += (double)want[i] * want[i];
    }
    return error / power;
}
