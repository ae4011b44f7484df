#include "engine/cpu/kernels_blas.h"

#ifdef CONFAB_BLAS

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>

static struct {
    struct cpu_kernels kernels;
    __typeof__(cblas_sgemm) *sgemm;
    bool opened;
} blas;

enum { DECODED = 512 }; // columns at once: a multiple of every format's block, and few enough to stay in the L2 cache

static void strip(const struct strip *s) {
    float weights[STRIP_ROWS][DECODED];
    for (int first = 0; first < s->columns; first += DECODED) {
        const int n = s->columns - first < DECODED ? s->columns - first : DECODED;
        const size_t offset = (size_t)first / s->format->elements * s->format->bytes;
        for (int r = 0; r < s->rows; r++)
            s->format->decode((const uint8_t *)s->weights + (size_t)r * s->row_bytes + offset, weights[r], (size_t)n);
        blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, s->width, s->rows, n, 1, s->values + first, s->columns,
                   weights[0], DECODED, first ? 1 : 0, s->out, STRIP_ROWS);
    }
}

// Opened only where it is used, because it starts threads as soon as it is loaded. We share out the work ourselves.
static void open_library(void) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    __typeof__(openblas_set_num_threads) *set_threads;
    *(void **)&blas.sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (!blas.sgemm || !set_threads) return;
    set_threads(1);
    blas.kernels = kernels_scalar;
    blas.kernels.name = "OpenBLAS";
    blas.kernels.in_place = blas.kernels.rows_differ = true;
    blas.kernels.many_inputs = 1;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++)
        blas.kernels.strip[format] = blas.kernels.many[format] = strip;
    blas.opened = true;
}

const struct cpu_kernels *kernels_blas(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return blas.opened ? &blas.kernels : NULL;
}

#else

const struct cpu_kernels *kernels_blas(void) { return NULL; }

#endif
