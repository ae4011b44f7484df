#include "tests/unit/opened_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/panic.h"

void opened_start(struct opened *o, int threads, struct backend_params params) {
    struct status st = {0};
    o->n_vocab = o->model.spec.n_vocab;
    o->pool = thread_pool_open(threads);
    params.model = &o->model;
    params.pool = o->pool;
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
    thread_pool_close(o->pool);
    model_close(&o->model);
    gguf_close(&o->gguf);
    free(o->bytes);
    free(o);
}

double nmse(const float *got, const float *want, size_t n) {
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        power += (double)want[i] * want[i];
    }
    return error / power;
}
