// Quantizing: a model in another weight format.
#ifndef CONFAB_ENGINE_QUANTIZE_H
#define CONFAB_ENGINE_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

// X(name, format of most matrices, value of general.file_type, mix, what it is)
#define QUANTIZE_TYPES(X)                                                                                              \
    X("Q8_0", BLOCK_Q8_0, 7, MIX_NONE, "8.5 bits per weight, almost lossless")                                         \
    X("Q6_K", BLOCK_Q6_K, 18, MIX_NONE, "6.6 bits")                                                                    \
    X("Q5_K_M", BLOCK_Q5_K, 17, MIX_Q5_K_M, "Q5_K, the most sensitive tensors in Q6_K")                                \
    X("Q5_K", BLOCK_Q5_K, 16, MIX_NONE, "5.5 bits")                                                                    \
    X("Q4_K_M", BLOCK_Q4_K, 15, MIX_Q4_K_M, "Q4_K, the most sensitive tensors in Q6_K; the usual choice")              \
    X("Q4_K_S", BLOCK_Q4_K, 14, MIX_Q4_K_S, "Q4_K, a few tensors in Q5_K and Q6_K")                                    \
    X("Q4_K", BLOCK_Q4_K, 14, MIX_NONE, "4.5 bits")                                                                    \
    X("Q3_K", BLOCK_Q3_K, 11, MIX_NONE, "3.4 bits")                                                                    \
    X("Q2_K", BLOCK_Q2_K, 10, MIX_NONE, "2.6 bits")                                                                    \
    X("IQ4_NL", BLOCK_IQ4_NL, 25, MIX_NONE, "4.5 bits, finer steps near zero")                                         \
    X("IQ4_XS", BLOCK_IQ4_XS, 30, MIX_NONE, "4.25 bits, finer steps near zero")                                        \
    X("MXFP4", BLOCK_MXFP4, 38, MIX_NONE, "4.25 bits, 4-bit floats")                                                   \
    X("Q5_1", BLOCK_Q5_1, 9, MIX_NONE, "6 bits")                                                                       \
    X("Q5_0", BLOCK_Q5_0, 8, MIX_NONE, "5.5 bits")                                                                     \
    X("Q4_1", BLOCK_Q4_1, 3, MIX_NONE, "5 bits")                                                                       \
    X("Q4_0", BLOCK_Q4_0, 2, MIX_NONE, "4.5 bits, the simplest")                                                       \
    X("BF16", BLOCK_BF16, 32, MIX_NONE, "16-bit floats with the range of 32-bit floats")                               \
    X("F16", BLOCK_F16, 1, MIX_NONE, "16-bit floats, up to 65504")                                                     \
    X("F32", BLOCK_F32, 0, MIX_NONE, "32-bit floats")

struct quantize_tensor {
    const char *name;
    const char *from, *to; // names of formats
    const char *note;      // why it is not in the type's own format; "": it is
    int n_dims;
    uint64_t dims[4];              // innermost first
    uint64_t n_weights, bytes;     // bytes: as written
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
    int n_threads;               // 0: one per physical core
    bool requantize;             // accept weights that are quantised already
    bool replace;                // overwrite `out` if it exists
    // Called after each tensor and in between, on the calling thread, with the progress, 0 to 1; returning false fails
    // with STATUS_CANCELLED. May be NULL.
    bool (*progress)(void *context, const struct quantize_report *report, double done);
    void *progress_context;
};

// Reads a model and writes a GGUF file. Vectors and small but sensitive tensors stay in 32-bit floats; rows that are
// not a multiple of the type's blocks get a format with smaller blocks. `out` appears only once it is complete; on
// failure NULL is returned. The bytes written depend on nothing but the model and the type.
struct quantize_report *quantize_model(const struct quantize_params *p, struct status *st);
void quantize_report_free(struct quantize_report *r);

#endif
