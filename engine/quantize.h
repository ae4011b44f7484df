// Quantizing: a model in another weight format.
#ifndef CONFAB_ENGINE_QUANTIZE_H
#define CONFAB_ENGINE_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

// X(name, format of most matrices, value of general.file_type, mix, what it is)
#define QUANTIZE_TYPES(X)                                                                                              \
    X("Q8_0", BLOCK_Q8_0, 7, MIX_NONE, "8.5 bits a weight, next to no loss")                                           \
    X("Q6_K", BLOCK_Q6_K, 18, MIX_NONE, "6.6 bits")                                                                    \
    X("Q5_K_M", BLOCK_Q5_K, 17, MIX_Q5_K_M, "Q5_K, what matters most in Q6_K")                                         \
    X("Q5_K", BLOCK_Q5_K, 16, MIX_NONE, "5.5 bits")                                                                    \
    X("Q4_K_M", BLOCK_Q4_K, 15, MIX_Q4_K_M, "Q4_K, what matters most in Q6_K: the usual choice")                       \
    X("Q4_K_S", BLOCK_Q4_K, 14, MIX_Q4_K_S, "Q4_K, a little in Q5_K and Q6_K")                                         \
    X("Q4_K", BLOCK_Q4_K, 14, MIX_NONE, "4.5 bits")                                                                    \
    X("Q3_K", BLOCK_Q3_K, 11, MIX_NONE, "3.4 bits")                                                                    \
    X("Q2_K", BLOCK_Q2_K, 10, MIX_NONE, "2.6 bits")                                                                    \
    X("IQ4_NL", BLOCK_IQ4_NL, 25, MIX_NONE, "4.5 bits, finer steps near zero")                                         \
    X("IQ4_XS", BLOCK_IQ4_XS, 30, MIX_NONE, "4.25 bits, finer steps near zero")                                        \
    X("MXFP4", BLOCK_MXFP4, 38, MIX_NONE, "4.25 bits, 4-bit floats")                                                   \
    X("Q5_1", BLOCK_Q5_1, 9, MIX_NONE, "6 bits")                                                                       \
    X("Q5_0", BLOCK_Q5_0, 8, MIX_NONE, "5.5 bits")                                                                     \
    X("Q4_1", BLOCK_Q4_1, 3, MIX_NONE, "5 bits")                                                                       \
    X("Q4_0", BLOCK_Q4_0, 2, MIX_NONE, "4.5 bits, simplest")                                                           \
    X("BF16", BLOCK_BF16, 32, MIX_NONE, "floats of 16 bits, as most models are trained in")                            \
    X("F16", BLOCK_F16, 1, MIX_NONE, "floats of 16 bits, up to 65504")                                                 \
    X("F32", BLOCK_F32, 0, MIX_NONE, "floats of 32 bits")

struct quantize_tensor {
    const char *name;
    const char *from, *to;  // names of formats
    const char *note;       // why it is not in the type's own format, "" when it is
    int n_dims;
    uint64_t dims[4];       // innermost first
    uint64_t n_weights, bytes; // bytes: as written
    double squared_error, squares; // sums over the weights: (written − read)² and read²
};

struct quantize_report {
    const struct quantize_tensor *tensors; // in the order they are written
    uint64_t n_tensors, n_done;            // done: also written
    uint64_t bytes_read, bytes_written;    // of all weights
    uint64_t file_bytes;
    double seconds;
};

struct quantize_params {
    const char *in, *out, *type; // type: a name of QUANTIZE_TYPES, in either case
    int n_threads;               // 0: one a physical core
    bool requantize;             // take weights that are quantised already, too
    bool replace;                // of a file `out` that is there
    // Told how things stand, 0 to 1, whenever a tensor is done and in between, on the thread that called; false: stop
    // and fail with STATUS_CANCELLED. NULL: nobody cares.
    bool (*progress)(void *context, const struct quantize_report *report, double done);
    void *progress_context;
};

// Reads a model, writes a GGUF file. Vectors and what is small but matters stay in 32-bit floats; rows that are no whole
// number of the type's blocks go to a format of smaller blocks. `out` appears when all of it is written; on failure it
// does not, and NULL is returned. The bytes written depend on nothing but the model and the type.
struct quantize_report *quantize_model(const struct quantize_params *p, struct status *st);
void quantize_report_free(struct quantize_report *r);

#endif
