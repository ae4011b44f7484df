// Harness for tests of single shaders: memory that the host and the device see, dispatches, quantised activations, and
// in plain C what several shaders compute. The tests of a program run on the first Vulkan device there is, once with
// every size of subgroups that it has; without a device they are skipped.
#ifndef CONFAB_TESTS_SHADER_HARNESS_H
#define CONFAB_TESTS_SHADER_HARNESS_H

#ifndef CONFAB_VULKAN

int shader_tests_skip(void); // in the place of them all

#else

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/model/model.h"
#include "engine/vulkan/device.h"

struct CMUnitTest;
int shader_tests_run(const struct CMUnitTest *tests, size_t n);
#define SHADER_TESTS_RUN(tests) shader_tests_run(tests, sizeof(tests) / sizeof *(tests))

struct vulkan_device *shader_device(void);

// ---- memory that the host and the device see ----

struct array {
    union {
        void *host;
        float *f;
        int32_t *i;
        uint8_t *u8;
    };
    VkDeviceAddress address;
    size_t n; // of what it was made for
};

extern uint64_t array_seed;    // of random values
int array_begin(void **state); // drops all arrays, and begins with the same seed; before every test

struct array array_reserve(size_t n, size_t size);
struct array array_copy(const void *data, size_t n, size_t size);
struct array array_of_ints(int n, const int32_t *values);
struct array array_random(size_t n); // floats
// Rows of activations: [n, stride], zero behind the columns.
struct array array_random_rows(int n, int columns, int stride);

// What an array is to hold afterwards: first, what it holds. The caller frees.
double *array_expect(const struct array *a);
// All of it, also what nobody was to write. Devices may take denormals for zero. Frees `want`.
void array_check(const char *what, const struct array *got, double *want, double tolerance);

// ---- dispatches ----

static inline int groups(int n, int each) { return (n + each - 1) / each; }

void shader_dispatch(const char *shader, const uint32_t *constants, int n_constants, const void *push, size_t size,
                     int x, int y, int z);
#define DISPATCH(shader, push, x, y, z, ...)                                                                           \
    shader_dispatch(shader, (const uint32_t[]){__VA_ARGS__}, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t),       \
                    &(push), sizeof(push), x, y, z)

// ---- quantised activations ----

// Rows of activations quantised, as shaders/codes.glsl has them.
struct piece {
    const int8_t *code[2]; // halves
    const float *sum, *scale;
};

// Piece i of rows of so many activations.
struct piece codes_piece(const struct array *codes, int stride, size_t i);
struct array codes_for(const struct array *x); // room for them
struct array codes_quantized(const struct array *from, int stride);
void codes_check_piece(struct piece got, const float *x);
void codes_check(const struct array *codes, const struct array *x, int stride);
// What the codes stand for, into `to`.
void codes_decode(const struct array *codes, const struct array *to, int stride);

// ---- what shaders compute ----

enum { NORM_NONE = NORM_LAYER + 1 };
// x [n] normed by the mean of itself or of its squares.
void plain_norm(double *x, int n, int kind, double epsilon);
double plain_sigmoid(double x);
double plain_activation(int kind, bool gated, double gate, double up);

#endif
#endif
