#version 450
// The first half of a feed-forward network for a few rows of the batch: activation(gate · x) · (up · x), or without a
// gate activation(up · x), and the same quantised. A work group computes 32 rows of the matrices, a team of its threads
// two at a time.
#define THREADS 256
#include "blocks.glsl"
#include "activation.glsl"
#extension GL_KHR_shader_subgroup_arithmetic : require

layout(local_size_x = THREADS) in;

layout(constant_id = 2) const uint COLUMNS = 1;
layout(constant_id = 3) const bool EXPERTS = false; // the matrices are those of an expert, of which each row has one

layout(push_constant, scalar) uniform Push {
    Weights gate, up; // [rows, columns]; those of experts one behind the other
    Grids grids;
    Vectors from;      // [n / from_share, from_stride], zero behind the columns,
    Pieces from_codes; // or quantised
    Floats to;         // [n, to_stride], zero behind the rows,
    Pieces to_codes;   // and quantised
    Floats gate_bias, up_bias; // [rows], or for each expert, with their bits of `biased`
    Ints choices;              // [n] pairs of an expert and a weight
    uint rows, columns, n, from_stride, to_stride, from_share, biased;
};

const uint TILE_ROWS = 32;
#include "matvec.glsl"

shared float parts[TILE_ROWS * COLUMNS][8]; // of the subgroups of a team
shared float products[2][TILE_ROWS * COLUMNS];

// Leaves the products with a matrix in `products`.
void multiply_tile(uint which, Weights matrix, uint first_row, uint first_column, uint expert) {
    const uint team_size = max(32, gl_SubgroupSize), subgroups = team_size / gl_SubgroupSize;
    const uint team = gl_SubgroupID / subgroups, subgroup = gl_SubgroupID % subgroups;
    const uint lane = subgroup * gl_SubgroupSize + gl_SubgroupInvocationID;
    for (uint row = team * ROWS; row < TILE_ROWS; row += THREADS / team_size * ROWS) {
        clear_sums();
        add_products(matrix, expert * rows + first_row + row, (expert + 1) * rows, first_column, lane, team_size);
        EACH(c, MOST_COLUMNS, COLUMNS) {
            const vec2 part = subgroupAdd(sums[c]);
            const uint at = c * TILE_ROWS + row;
            if (subgroupElect()) parts[at][subgroup] = part.x, parts[at + 1][subgroup] = part.y;
        }
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < TILE_ROWS * COLUMNS; i += THREADS) {
        float x = 0;
        for (uint k = 0; k < subgroups; k++) x += parts[i][k];
        products[which][i] = x;
    }
    barrier();
}

float result(uint row, uint in_tile, uint expert) {
    if (row >= rows) return 0;
    float gate = products[0][in_tile], up = products[1][in_tile];
    if ((biased & 1) != 0) gate += gate_bias.v[expert * rows + row];
    if ((biased & 2) != 0) up += up_bias.v[expert * rows + row];
    return activate(gate, up);
}

void main() {
    const uint first_row = gl_WorkGroupID.y * TILE_ROWS, first_column = gl_WorkGroupID.x * COLUMNS;
    const uint expert = EXPERTS ? uint(choices.v[2 * first_column]) : 0;
    if (GATED) multiply_tile(0, gate, first_row, first_column, expert);
    multiply_tile(1, up, first_row, first_column, expert);
    const uint t = gl_LocalInvocationIndex, row = t % 8 * 4, column = first_column + t / 8;
    const bool written = t / 8 < COLUMNS && column < n;
    vec4 x = vec4(0);
    if (written)
        [[unroll]] for (uint i = 0; i < 4; i++) {
            x[i] = result(first_row + row + i, t / 8 * TILE_ROWS + row + i, expert);
            to.v[column * to_stride + first_row + row + i] = x[i];
        }
    write_codes(to_codes, column, to_stride / 32, (first_row + row) / 4, x, written);
}
