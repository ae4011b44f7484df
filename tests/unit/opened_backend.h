// A CPU backend opened over a model for a test, with all that it stands on.
#ifndef CONFAB_TESTS_OPENED_BACKEND_H
#define CONFAB_TESTS_OPENED_BACKEND_H

#include "engine/cpu/cpu.h"

struct opened {
    void *bytes; // of the file, from malloc; NULL where it is on the disk
    struct gguf gguf;
    struct model model;
    struct backend *backend;
    int n_vocab;
};

// The kernels of backends opened from now on, as CONFAB_CPU names them; NULL: those of before the first call.
void opened_kernels(const char *name);
// The backend of an opened whose model is open; model and threads of params are set here. Failures fail the test.
void opened_start(struct opened *o, int threads, struct backend_params params);
// Over the bytes of a file, which are taken. The caller closes.
struct opened *opened_bytes(const char *name, void *bytes, size_t size, int threads, struct backend_params params);
void opened_close(struct opened *o);
// Computes a batch of n_rows tokens in n_segments: logits [n_rows][n_vocab] of all rows, the backend's.
const float *opened_run(struct opened *o, int n_rows, const int32_t *tokens, int n_segments,
                        const struct batch_segment *segments);
void opened_copy_page(struct opened *o, int to, int from); // by a batch without rows
// Fills a page of the KV cache, in all layers, with bits that no token leaves there.
void opened_spoil_page(struct opened *o, int page);

// How far logits are from others: the mean squared error over the mean square of `want`.
double nmse(const float *got, const float *want, size_t n);

#endif
