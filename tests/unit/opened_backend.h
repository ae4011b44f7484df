// A CPU backend opened over a model for a test, with all that it stands on.
#ifndef CONFAB_TESTS_OPENED_BACKEND_H
#define CONFAB_TESTS_OPENED_BACKEND_H

#include "engine/cpu/cpu.h"

struct opened {
    void *bytes; // of the file, from malloc; NULL where it is on the disk
    struct gguf gguf;
    struct model model;
    struct thread_pool *pool;
    struct backend *backend;
    int n_vocab;
};

// Pool and backend of an opened whose model is open; the model and the pool of params are set here. Failures fail the test.
void opened_start(struct opened *o, int threads, struct backend_params params);
// Over the bytes of a file, which are taken. The caller closes.
struct opened *opened_bytes(const char *name, void *bytes, size_t size, int threads, struct backend_params params);
void opened_close(struct opened *o);

// How far logits are from others: the mean squared error over the mean square of `want`.
double nmse(const float *got, const float *want, size_t n);

#endif
