#version 450
// A matrix times many rows of the batch by cooperative matrices. Both are halves already (widen.comp, halve.comp), sums
// are floats.
//
//            TILE_COLUMNS rows of the batch        A work group computes a tile, each of its subgroups a block of it:
//            ┌─────────┬─────────┐                 DOWN × ACROSS blocks. A block consists of fragments, M × N, which
//  TILE_ROWS │ block 0 │ block 1 │                 stay in registers.
//   of the   ├─────────┼─────────┤
//   matrix   │ block 2 │ block 3 │                 It goes along the columns in steps: while it multiplies one in
//            └─────────┴─────────┘                 shared memory, the next is on its way to its threads' registers.
//
// Halves move 16 bytes at a time. Those of a step in a row belong to neighbouring threads. The sums have names:
// glslc leaves loops over such matrices to drivers, and NVIDIA's took three times as long with them.
#include "common.glsl"
#include "cooperative.glsl"

layout(constant_id = 0) const uint TILE_ROWS = 64;
layout(constant_id = 1) const uint TILE_COLUMNS = 64;
layout(constant_id = 2) const bool EXPERTS = false; // tiles are those of the list, each with the matrix of its expert
layout(constant_id = 3) const uint DOWN = 2;
layout(constant_id = 4) const uint SUBGROUP_SIZE = 32; // which pipelines require
layout(constant_id = 5) const uint M = 16;
layout(constant_id = 6) const uint N = 16;
layout(constant_id = 7) const uint K = 16;
layout(local_size_x_id = 8) in;
layout(constant_id = 8) const uint THREADS = 128;
layout(constant_id = 9) const uint STEP = 64;

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Halves { uvec4 v[]; };

layout(push_constant, scalar) uniform Push {
    Halves matrix; // [rows, from_stride]; those of experts from `expert` on one behind the other
    Halves from;   // [n, from_stride], zero behind the columns
    Floats scales; // [n] that they are to be multiplied by
    Floats to;     // [n, to_stride]
    Floats bias;   // [rows], or for each expert
    Ints order;    // [n] rows of the batch in the order of their experts,
    Tiles tiles;   // divided into tiles
    uint rows, n, from_stride, to_stride, from_share; // from_share: rows of `to` for each row of `from`
    uint expert, end_expert;                          // other tiles have their turn later
    float scale, softcap;
    uint biased, adds;
};

#include "finish.glsl"

const uint SUBGROUPS = THREADS / SUBGROUP_SIZE, ACROSS = SUBGROUPS / DOWN;
const uint BLOCK_ROWS = TILE_ROWS / DOWN, BLOCK_COLUMNS = TILE_COLUMNS / ACROSS;
const uint FRAGMENTS_DOWN = BLOCK_ROWS / M, FRAGMENTS_ACROSS = BLOCK_COLUMNS / N; // at most 2 and 4

// Shared memory is counted in vectors of 8 halves: weights, then inputs, with a vector between rows, for different
// banks. In the end it has a fragment of each subgroup.
const uint STEP_VECTORS = STEP / 8, STRIDE = STEP_VECTORS + 1;
const uint WEIGHTS = TILE_ROWS * STEP_VECTORS, INPUTS = TILE_COLUMNS * STEP_VECTORS; // of a step
const uint WEIGHT_LOADS = (WEIGHTS + THREADS - 1) / THREADS, INPUT_LOADS = (INPUTS + THREADS - 1) / THREADS;
const uint STAGED = (TILE_ROWS + TILE_COLUMNS) * STRIDE, SUMS = SUBGROUPS * M * N / 4;
shared uvec4 staged[STAGED > SUMS ? STAGED : SUMS];
shared uint targets[TILE_COLUMNS]; // rows of the batch
shared float target_scales[TILE_COLUMNS];

const uint NONE = 0xffffffffu;

// Where load i of a thread goes.
uint place(uint i) {
    const uint at = gl_LocalInvocationIndex + i * THREADS;
    return at / STEP_VECTORS * STRIDE + at % STEP_VECTORS;
}

// Whether a thread has load i of `all`. Known beforehand where they are evenly divided.
bool has_load(uint i, uint all) { return all % THREADS == 0 || gl_LocalInvocationIndex + i * THREADS < all; }

// A fragment of the results, which lies in shared memory column after column. Neighbouring threads have neighbouring
// rows of the matrix.
void finish_fragment(uint expert, uint at, uint first_row, uint first_column) {
    for (uint i = gl_SubgroupInvocationID; i < M * N; i += SUBGROUP_SIZE) {
        const uint row = first_row + i % M, column = first_column + i / M, target = targets[column];
        if (row < rows && target != NONE)
            finish(row, target, expert, uintBitsToFloat(staged[(at + i) / 4][(at + i) % 4]) * target_scales[column]);
    }
}

void main() {
    const uint t = gl_LocalInvocationIndex;
    const uint first_row = gl_WorkGroupID.y * TILE_ROWS;
    Tile tile = Tile(0, gl_WorkGroupID.x * TILE_COLUMNS, n);
    if (EXPERTS) tile = tiles.v[gl_WorkGroupID.x];
    if (tile.first >= tile.end) return;
    if (EXPERTS && (tile.expert < expert || tile.expert >= end_expert)) return;
    for (uint i = t; i < TILE_COLUMNS; i += THREADS) {
        const uint at = tile.first + i;
        const uint target = at >= tile.end ? NONE : EXPERTS ? uint(order.v[at]) : at;
        targets[i] = target;
        target_scales[i] = target == NONE ? 0 : scales.v[target / from_share];
    }
    barrier();

    // Rows behind the last are the last, or the first of the tile.
    const uint stride = from_stride / 8, matrix_row = (tile.expert - expert) * rows;
    uint weights_at[WEIGHT_LOADS], inputs_at[INPUT_LOADS];
    [[unroll]] for (uint i = 0; i < WEIGHT_LOADS; i++) {
        const uint at = t + i * THREADS;
        weights_at[i] = (matrix_row + min(first_row + at / STEP_VECTORS, rows - 1)) * stride + at % STEP_VECTORS;
    }
    [[unroll]] for (uint i = 0; i < INPUT_LOADS; i++) {
        const uint at = t + i * THREADS, target = targets[min(at / STEP_VECTORS, TILE_COLUMNS - 1)];
        inputs_at[i] = (target == NONE ? targets[0] : target) / from_share * stride + at % STEP_VECTORS;
    }

    uvec4 weights[WEIGHT_LOADS], inputs[INPUT_LOADS];
    [[unroll]] for (uint i = 0; i < WEIGHT_LOADS; i++) weights[i] = matrix.v[weights_at[i]];
    [[unroll]] for (uint i = 0; i < INPUT_LOADS; i++) inputs[i] = from.v[inputs_at[i]];
    SUM_MATRIX(M, N) sum00 = SUM_MATRIX(M, N)(0.0), sum01 = sum00, sum02 = sum00, sum03 = sum00, sum10 = sum00,
                     sum11 = sum00, sum12 = sum00, sum13 = sum00;
    const uint block_row = gl_SubgroupID / ACROSS * BLOCK_ROWS, block_column = gl_SubgroupID % ACROSS * BLOCK_COLUMNS;
    const uint weights_begin = block_row * STRIDE, inputs_begin = (TILE_ROWS + block_column) * STRIDE;
    const uint steps = from_stride / STEP;
    for (uint step = 0; step < steps; step++) {
        barrier();
        [[unroll]] for (uint i = 0; i < WEIGHT_LOADS; i++)
            if (has_load(i, WEIGHTS)) staged[place(i)] = weights[i];
        [[unroll]] for (uint i = 0; i < INPUT_LOADS; i++)
            if (has_load(i, INPUTS)) staged[TILE_ROWS * STRIDE + place(i)] = inputs[i];
        barrier();
        const uint following = min(step + 1, steps - 1) * STEP_VECTORS;
        [[unroll]] for (uint i = 0; i < WEIGHT_LOADS; i++) weights[i] = matrix.v[weights_at[i] + following];
        [[unroll]] for (uint i = 0; i < INPUT_LOADS; i++) inputs[i] = from.v[inputs_at[i] + following];
        [[unroll]] for (uint k = 0; k < STEP; k += K) {
            LEFT_MATRIX(M, K) left0, left1;
            LOAD_ROWS(left0, staged, weights_begin + k / 8, STRIDE);
            if (FRAGMENTS_DOWN > 1) LOAD_ROWS(left1, staged, weights_begin + M * STRIDE + k / 8, STRIDE);
#define MULTIPLY(c)                                                                                                    \
    if (c < FRAGMENTS_ACROSS) {                                                                                        \
        RIGHT_MATRIX(K, N) right;                                                                                      \
        LOAD_COLUMNS(right, staged, inputs_begin + c * N * STRIDE + k / 8, STRIDE);                                    \
        sum0##c = MULTIPLY_ADD(left0, right, sum0##c);                                                                 \
        if (FRAGMENTS_DOWN > 1) sum1##c = MULTIPLY_ADD(left1, right, sum1##c);                                         \
    }
            MULTIPLY(0) MULTIPLY(1) MULTIPLY(2) MULTIPLY(3)
        }
    }

    // Each subgroup has its part of shared memory.
    const uint mine = gl_SubgroupID * (M * N);
    barrier();
#define STORE(r, c)                                                                                                    \
    if (r < FRAGMENTS_DOWN && c < FRAGMENTS_ACROSS) {                                                                  \
        STORE_COLUMNS(sum##r##c, staged, mine / 4, M / 4);                                                             \
        subgroupBarrier();                                                                                             \
        finish_fragment(tile.expert, mine, first_row + block_row + r * M, block_column + c * N);                       \
        subgroupBarrier();                                                                                             \
    }
    STORE(0, 0) STORE(0, 1) STORE(0, 2) STORE(0, 3) STORE(1, 0) STORE(1, 1) STORE(1, 2) STORE(1, 3)
}
