#version 450
// A matrix times many rows of the batch: a work group computes a tile of the results. It stages 32 columns after the
// other in shared memory, so that weights are decoded once for all rows of the batch in the tile: half of the threads
// decode, the others load the batch. Then each multiplies its ROWS by COLUMNS.
#include "common.glsl"
#include "blocks.glsl"
#include "matmul.glsl"

const uint THREADS = 128, DOWN = 16, ACROSS = THREADS / DOWN; // threads along the rows of the matrix and of the batch
layout(local_size_x = 128) in;

layout(constant_id = 0) const uint ROWS = 4;
layout(constant_id = 1) const uint COLUMNS = 8;
layout(constant_id = 2) const bool EXPERTS = false; // tiles are those of the list, each with the matrix of its expert

const uint TILE_ROWS = DOWN * ROWS, TILE_COLUMNS = ACROSS * COLUMNS;
const uint STRIDE = 9; // one vector more than 32 columns: those of neighbouring rows lie in different banks
shared vec4 weights[TILE_ROWS * STRIDE], inputs[TILE_COLUMNS * STRIDE];
shared uint sources[TILE_COLUMNS]; // where the rows of the batch begin

uint batch_row(Tile tile, uint column) {
    const uint at = min(tile.first + column, tile.end - 1);
    return EXPERTS ? uint(order.v[at]) : at;
}

void stage_weights(Tile tile, uint first_row, uint piece) {
    for (uint r = gl_LocalInvocationIndex; r < TILE_ROWS; r += THREADS / 2) {
        float w[32];
        const uint row = tile.expert * rows + min(first_row + r, rows - 1);
        decode(matrix, grids, row * (columns / BLOCK_ELEMENTS), piece, columns, w);
        [[unroll]] for (uint i = 0; i < 8; i++)
            weights[r * STRIDE + i] = vec4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
    }
}

void stage_inputs(uint piece) {
    for (uint i = gl_LocalInvocationIndex - THREADS / 2; i < TILE_COLUMNS * 8; i += THREADS / 2)
        inputs[i / 8 * STRIDE + i % 8] = from.v[sources[i / 8] + 8 * piece + i % 8];
}

void main() {
    const uint t = gl_LocalInvocationIndex, down = t % DOWN, across = t / DOWN;
    const uint first_row = gl_WorkGroupID.y * TILE_ROWS;
    Tile tile = Tile(0, gl_WorkGroupID.x * TILE_COLUMNS, n);
    if (EXPERTS) tile = tiles.v[gl_WorkGroupID.x];
    if (tile.first >= tile.end) return;
    for (uint i = t; i < TILE_COLUMNS; i += THREADS)
        sources[i] = batch_row(tile, i) / from_share * (from_stride / 4);

    float sum[ROWS][COLUMNS];
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) sum[r][c] = 0;
    for (uint piece = 0; piece < (columns + 31) / 32; piece++) {
        barrier();
        if (t < THREADS / 2) stage_weights(tile, first_row, piece);
        else stage_inputs(piece);
        barrier();
        for (uint k = 0; k < 8; k++) {
            vec4 w[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; r++) w[r] = weights[(down + r * DOWN) * STRIDE + k];
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                const vec4 x = inputs[(across + c * ACROSS) * STRIDE + k];
                [[unroll]] for (uint r = 0; r < ROWS; r++)
                    [[unroll]] for (uint i = 0; i < 4; i++) sum[r][c] += w[r][i] * x[i];
            }
        }
    }
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        const uint column = across + c * ACROSS, to_row = batch_row(tile, column);
        if (tile.first + column >= tile.end) continue;
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            const uint row = first_row + down + r * DOWN;
            if (row < rows) finish(row, to_row, tile.expert, sum[r][c]);
        }
    }
}
