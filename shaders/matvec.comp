#version 450
// A matrix times a few rows of the batch: a work group computes ROWS rows of the matrix for COLUMNS rows of the batch,
// its threads taking turns along the columns of the matrix.
#include "common.glsl"
#include "blocks.glsl"
#include "matmul.glsl"
#extension GL_KHR_shader_subgroup_arithmetic : require

const uint THREADS = 64;
layout(local_size_x = 64) in;

layout(constant_id = 0) const uint ROWS = 2;
layout(constant_id = 1) const uint COLUMNS = 1;
layout(constant_id = 2) const bool EXPERTS = false; // the matrix is that of an expert, which each row has its own of

shared float parts[ROWS * COLUMNS][THREADS]; // of subgroups, which are THREADS at most

uint row_block(uint row, uint expert) {
    return (expert * rows + min(row, rows - 1)) * (columns / BLOCK_ELEMENTS);
}

uint input_row(uint column) { return min(column, n - 1) / from_share; }

void main() {
    const uint t = gl_LocalInvocationIndex;
    const uint first_row = (gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y) * ROWS;
    const uint first_column = gl_WorkGroupID.x * COLUMNS; // those of the same rows run at once: memory is read once
    const uint expert = EXPERTS ? uint(choices.v[2 * first_column]) : 0;
    float sum[ROWS][COLUMNS];
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) sum[r][c] = 0;
    for (uint piece = t; piece < (columns + 31) / 32; piece += THREADS) {
#ifdef HAS_CODES
        const uint pieces = BLOCK_ELEMENTS / 32;
        codes w[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            w[r] = unpack(matrix, grids, row_block(first_row + r, expert) + piece / pieces, piece % pieces);
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            const Piece x = from_codes.v[input_row(first_column + c) * (from_stride / 32) + piece];
            [[unroll]] for (uint r = 0; r < ROWS; r++) sum[r][c] += multiply(w[r], x);
        }
#else
        float w[ROWS][32];
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            decode(matrix, grids, row_block(first_row + r, expert), piece, columns, w[r]);
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            const uint at = input_row(first_column + c) * (from_stride / 4) + 8 * piece;
            [[unroll]] for (uint i = 0; i < 8; i++) {
                const vec4 x = from.v[at + i];
                [[unroll]] for (uint r = 0; r < ROWS; r++)
                    sum[r][c] += dot(vec4(w[r][4 * i], w[r][4 * i + 1], w[r][4 * i + 2], w[r][4 * i + 3]), x);
            }
        }
#endif
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            const float part = subgroupAdd(sum[r][c]);
            if (subgroupElect()) parts[r * COLUMNS + c][gl_SubgroupID] = part;
        }
    barrier();
    if (t >= ROWS * COLUMNS || first_row + t / COLUMNS >= rows || first_column + t % COLUMNS >= n) return;
    float x = 0;
    for (uint i = 0; i < gl_NumSubgroups; i++) x += parts[t][i];
    finish(first_row + t / COLUMNS, first_column + t % COLUMNS, expert, x);
}
