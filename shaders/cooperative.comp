#version 450
// A matrix times many rows of the batch, as matmul.comp, by cooperative matrices: weights become halves, the rows of
// the batch are halves already (halve.comp), sums are floats.
//
//            TILE_COLUMNS rows of the batch        A work group computes a tile, each of its subgroups a block of it:
//            ┌─────────┬─────────┐                 DOWN × ACROSS blocks. A block consists of fragments, M × N, which
//  TILE_ROWS │ block 0 │ block 1 │                 stay in registers.
//   of the   ├─────────┼─────────┤
//   matrix   │ block 2 │ block 3 │                 Of 64 columns after the other, weights and inputs are staged in
//            └─────────┴─────────┘                 shared memory, while those of the next are on their way.
//
// Every thread decodes one piece: there are twice as many as rows of the matrix in the tile.
#include "common.glsl"
#include "blocks.glsl"
#include "cooperative.glsl"
#include "matmul.glsl"

layout(constant_id = 0) const uint TILE_ROWS = 64;
layout(constant_id = 1) const uint TILE_COLUMNS = 64;
layout(constant_id = 2) const bool EXPERTS = false; // tiles are those of the list, each with the matrix of its expert
layout(constant_id = 3) const uint DOWN = 2;
layout(constant_id = 4) const uint SUBGROUP_SIZE = 32; // which pipelines require
layout(constant_id = 5) const uint M = 16;
layout(constant_id = 6) const uint N = 16;
layout(constant_id = 7) const uint K = 16;
layout(local_size_x_id = 8) in; // THREADS

const uint THREADS = 2 * TILE_ROWS;
const uint SUBGROUPS = THREADS / SUBGROUP_SIZE, ACROSS = SUBGROUPS / DOWN;
const uint BLOCK_ROWS = TILE_ROWS / DOWN, BLOCK_COLUMNS = TILE_COLUMNS / ACROSS;
const uint FRAGMENTS_DOWN = BLOCK_ROWS / M, FRAGMENTS_ACROSS = BLOCK_COLUMNS / N;

// Shared memory is counted in vectors of 8 halves. Rows are one longer than what they hold: those of neighbouring rows
// lie in different banks.
const uint STEP = 64, STEP_PIECES = STEP / 32, STEP_VECTORS = STEP / 8, PIECE_VECTORS = 4;
const uint STRIDE = STEP_VECTORS + 1;
const uint LOADS = TILE_COLUMNS * STEP_VECTORS / THREADS; // of inputs, by each thread
shared uvec4 weights[TILE_ROWS * STRIDE]; // in the end: a fragment of each subgroup
shared uvec4 inputs[TILE_COLUMNS * STRIDE];
shared uint sources[TILE_COLUMNS]; // where the rows of the batch begin

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Halves { uvec4 v[]; };

uint batch_row(Tile tile, uint column) {
    const uint at = min(tile.first + column, tile.end - 1);
    return EXPERTS ? uint(order.v[at]) : at;
}

// A piece of weights as it is loaded, and as halves.
#ifdef FORMAT_F16
struct fetched { uvec4 halves[PIECE_VECTORS]; };

fetched fetch(uint first_block, uint piece) {
    float w[32];
    fetched f;
    decode(matrix, grids, first_block, piece, columns, w);
    [[unroll]] for (uint i = 0; i < PIECE_VECTORS; i++)
        [[unroll]] for (uint k = 0; k < 4; k++)
            f.halves[i][k] = packHalf2x16(vec2(w[8 * i + 2 * k], w[8 * i + 2 * k + 1]));
    return f;
}

uvec4 halves_of(fetched f, uint i) { return f.halves[i]; }
#else
#define fetched codes

codes fetch(uint first_block, uint piece) {
    const uint pieces = BLOCK_ELEMENTS / 32;
    return unpack(matrix, grids, first_block + piece / pieces, piece % pieces);
}

uvec2 halves_of_word(codes c, uint i) {
    vec4 value = c.scale[i / 4] * signed_bytes(c.code[i / 4][i % 4]);
#ifdef HAS_MINIMUM
    value -= c.minimum[i / 4];
#endif
    return uvec2(packHalf2x16(value.xy), packHalf2x16(value.zw));
}

uvec4 halves_of(codes c, uint i) { return uvec4(halves_of_word(c, 2 * i), halves_of_word(c, 2 * i + 1)); }
#endif

uvec4 input_of(uint load, uint step) {
    const uint i = gl_LocalInvocationIndex + load * THREADS;
    return Halves(uvec2(from)).v[sources[i / STEP_VECTORS] + step * STEP_VECTORS + i % STEP_VECTORS];
}

void main() {
    const uint t = gl_LocalInvocationIndex;
    const uint first_row = gl_WorkGroupID.y * TILE_ROWS;
    Tile tile = Tile(0, gl_WorkGroupID.x * TILE_COLUMNS, n);
    if (EXPERTS) tile = tiles.v[gl_WorkGroupID.x];
    if (tile.first >= tile.end) return;
    for (uint i = t; i < TILE_COLUMNS; i += THREADS)
        sources[i] = batch_row(tile, i) / from_share * (from_stride / 8);
    barrier();

    // Pieces behind the last are the last: their inputs are 0.
    const uint pieces = (columns + 31) / 32, steps = (pieces + STEP_PIECES - 1) / STEP_PIECES;
    const uint my_row = t / STEP_PIECES, my_piece = t % STEP_PIECES;
    const uint first_block =
        (tile.expert * rows + min(first_row + my_row, rows - 1)) * (columns / BLOCK_ELEMENTS);
    const uint block_row = gl_SubgroupID / ACROSS * BLOCK_ROWS, block_column = gl_SubgroupID % ACROSS * BLOCK_COLUMNS;

    fetched next = fetch(first_block, min(my_piece, pieces - 1));
    uvec4 next_inputs[LOADS];
    [[unroll]] for (uint i = 0; i < LOADS; i++) next_inputs[i] = input_of(i, 0);
    SUM_MATRIX(M, N) sums[FRAGMENTS_DOWN * FRAGMENTS_ACROSS];
    [[unroll]] for (uint i = 0; i < FRAGMENTS_DOWN * FRAGMENTS_ACROSS; i++) sums[i] = SUM_MATRIX(M, N)(0.0);
    for (uint step = 0; step < steps; step++) {
        barrier();
        [[unroll]] for (uint i = 0; i < PIECE_VECTORS; i++)
            weights[my_row * STRIDE + my_piece * PIECE_VECTORS + i] = halves_of(next, i);
        [[unroll]] for (uint i = 0; i < LOADS; i++) {
            const uint at = t + i * THREADS;
            inputs[at / STEP_VECTORS * STRIDE + at % STEP_VECTORS] = next_inputs[i];
        }
        barrier();
        const uint following = min(step + 1, steps - 1);
        next = fetch(first_block, min(following * STEP_PIECES + my_piece, pieces - 1));
        [[unroll]] for (uint i = 0; i < LOADS; i++) next_inputs[i] = input_of(i, following);
        [[unroll]] for (uint k = 0; k < STEP; k += K) {
            LEFT_MATRIX(M, K) left[FRAGMENTS_DOWN];
            [[unroll]] for (uint r = 0; r < FRAGMENTS_DOWN; r++)
                LOAD_ROWS(left[r], weights, (block_row + r * M) * STRIDE + k / 8, STRIDE);
            [[unroll]] for (uint c = 0; c < FRAGMENTS_ACROSS; c++) {
                RIGHT_MATRIX(K, N) right;
                LOAD_COLUMNS(right, inputs, (block_column + c * N) * STRIDE + k / 8, STRIDE);
                [[unroll]] for (uint r = 0; r < FRAGMENTS_DOWN; r++)
                    sums[c * FRAGMENTS_DOWN + r] = MULTIPLY_ADD(left[r], right, sums[c * FRAGMENTS_DOWN + r]);
            }
        }
    }

    // Neighbouring threads have neighbouring rows of the matrix.
    const uint mine = gl_SubgroupID * (M * N);
    [[unroll]] for (uint c = 0; c < FRAGMENTS_ACROSS; c++)
        [[unroll]] for (uint r = 0; r < FRAGMENTS_DOWN; r++) {
            barrier();
            STORE_COLUMNS(sums[c * FRAGMENTS_DOWN + r], weights, mine / 4, M / 4);
            barrier();
            for (uint i = gl_SubgroupInvocationID; i < M * N; i += SUBGROUP_SIZE) {
                const uint row = first_row + block_row + r * M + i % M, column = block_column + c * N + i / M;
                if (row >= rows || tile.first + column >= tile.end) continue;
                const uint to_row = batch_row(tile, column), at = mine + i;
                finish(row, to_row, tile.expert,
                       uintBitsToFloat(weights[at / 4][at % 4]) * scales.v[to_row / from_share]);
            }
        }
}
