#version 450
// A matrix times many rows of the batch: a work group computes a tile of the results. It stages 32 columns after the
// other in shared memory, so that weights are decoded once for all rows of the batch in the tile: half of the threads
// decode, the others load the batch. Then each multiplies its four rows of the matrix by COLUMNS of the batch.
#include "common.glsl"
#include "blocks.glsl"
#include "each.glsl"
#include "matmul.glsl"

const uint ROWS = 4, MOST_COLUMNS = 8, THREADS = 128;
const uint DOWN = 16, ACROSS = THREADS / DOWN; // threads along the rows of the matrix and of the batch
layout(local_size_x = 128) in;

layout(constant_id = 0) const uint COLUMNS = 8;
layout(constant_id = 1) const bool EXPERTS = false; // tiles are those of the list, each with the matrix of its expert

const uint TILE_ROWS = DOWN * ROWS, TILE_COLUMNS = ACROSS * COLUMNS;
shared uint sources[TILE_COLUMNS]; // rows of the batch

vec4 sums[MOST_COLUMNS]; // of its rows of the matrix, for each of the batch

uint batch_row(Tile tile, uint column) {
    const uint at = min(tile.first + column, tile.end - 1);
    return EXPERTS ? uint(order.v[at]) : at;
}

uint matrix_block(Tile tile, uint row) {
    return (tile.expert * rows + min(row, rows - 1)) * (columns / BLOCK_ELEMENTS);
}

// stage_weights, stage_inputs, multiply_staged: of a piece. Neighbouring rows lie in different banks.
#ifdef HAS_CODES
shared uvec4 weights[2][TILE_ROWS + 1], inputs[2][TILE_COLUMNS + 1]; // halves
shared vec4 weight_scales[TILE_ROWS];                                // scales and minimums of the halves
shared vec3 input_scales[TILE_COLUMNS];                              // and sums

void stage_weights(Tile tile, uint first_row, uint piece) {
    const uint pieces = BLOCK_ELEMENTS / 32;
    for (uint r = gl_LocalInvocationIndex; r < TILE_ROWS; r += THREADS / 2) {
        const codes w = unpack(matrix, grids, matrix_block(tile, first_row + r) + piece / pieces, piece % pieces);
        weights[0][r] = w.code[0], weights[1][r] = w.code[1];
        weight_scales[r] = vec4(w.scale[0], w.scale[1], w.minimum[0], w.minimum[1]);
    }
}

void stage_inputs(uint piece) {
    for (uint c = gl_LocalInvocationIndex - THREADS / 2; c < TILE_COLUMNS; c += THREADS / 2) {
        const Piece x = read_piece(from_codes, sources[c], from_stride / 32, piece);
        inputs[0][c] = x.code[0], inputs[1][c] = x.code[1];
        input_scales[c] = vec3(x.scale, x.sum);
    }
}

void multiply_staged(uint down, uint across) {
    [[unroll]] for (uint h = 0; h < 2; h++) {
        uvec4 w[ROWS];
        vec4 scale, minimum;
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            w[r] = weights[h][down + r * DOWN];
            scale[r] = weight_scales[down + r * DOWN][h], minimum[r] = weight_scales[down + r * DOWN][2 + h];
        }
        EACH(c, MOST_COLUMNS, COLUMNS) {
            const uvec4 x = inputs[h][across + c * ACROSS];
            const vec3 of = input_scales[across + c * ACROSS];
            sums[c] += of.x * scale *
                       vec4(float_of(sixteen_products(w[0], x)), float_of(sixteen_products(w[1], x)),
                            float_of(sixteen_products(w[2], x)), float_of(sixteen_products(w[3], x)));
#ifdef HAS_MINIMUM
            sums[c] -= of[1 + h] * minimum;
#endif
        }
    }
}
#else
const uint STRIDE = 9; // one vector more than 32 columns
shared vec4 weights[TILE_ROWS * STRIDE], inputs[TILE_COLUMNS * STRIDE];

void stage_weights(Tile tile, uint first_row, uint piece) {
    for (uint r = gl_LocalInvocationIndex; r < TILE_ROWS; r += THREADS / 2) {
        float w[32];
        decode(matrix, grids, matrix_block(tile, first_row + r), piece, columns, w);
        [[unroll]] for (uint i = 0; i < 8; i++)
            weights[r * STRIDE + i] = vec4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
    }
}

void stage_inputs(uint piece) {
    for (uint i = gl_LocalInvocationIndex - THREADS / 2; i < TILE_COLUMNS * 8; i += THREADS / 2)
        inputs[i / 8 * STRIDE + i % 8] = from.v[sources[i / 8] * (from_stride / 4) + 8 * piece + i % 8];
}

void multiply_staged(uint down, uint across) {
    for (uint k = 0; k < 8; k++) {
        vec4 w[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) w[r] = weights[(down + r * DOWN) * STRIDE + k];
        EACH(c, MOST_COLUMNS, COLUMNS) {
            const vec4 x = inputs[(across + c * ACROSS) * STRIDE + k];
            sums[c] += vec4(dot(w[0], x), dot(w[1], x), dot(w[2], x), dot(w[3], x));
        }
    }
}
#endif

void finish_column(Tile tile, uint column, uint first_row, vec4 sums) {
    if (tile.first + column >= tile.end) return;
    const uint to_row = batch_row(tile, column);
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        if (first_row + r * DOWN < rows) finish(first_row + r * DOWN, to_row, tile.expert, sums[r]);
}

void main() {
    const uint t = gl_LocalInvocationIndex, down = t % DOWN, across = t / DOWN;
    const uint first_row = gl_WorkGroupID.y * TILE_ROWS;
    Tile tile = Tile(0, gl_WorkGroupID.x * TILE_COLUMNS, n);
    if (EXPERTS) tile = tiles.v[gl_WorkGroupID.x];
    if (tile.first >= tile.end) return;
    for (uint i = t; i < TILE_COLUMNS; i += THREADS) sources[i] = batch_row(tile, i) / from_share;
    EACH(c, MOST_COLUMNS, COLUMNS) sums[c] = vec4(0);
    for (uint piece = 0; piece < (columns + 31) / 32; piece++) {
        barrier();
        if (t < THREADS / 2) stage_weights(tile, first_row, piece);
        else stage_inputs(piece);
        barrier();
        multiply_staged(down, across);
    }
    EACH(c, MOST_COLUMNS, COLUMNS) finish_column(tile, across + c * ACROSS, first_row + down, sums[c]);
}
