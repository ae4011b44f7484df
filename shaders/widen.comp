#version 450
// Rows of a matrix as halves, for cooperative.comp: `stride` in each row, zero behind the columns.
//
// Neighbouring threads decode neighbouring pieces, which they exchange in shared memory: they write neighbouring
// vectors too.
#include "common.glsl"
#include "blocks.glsl"

const uint THREADS = 256;
layout(local_size_x = 256) in;

layout(buffer_reference, scalar, buffer_reference_align = 16) writeonly buffer Halves { uvec4 v[]; };

layout(push_constant, scalar) uniform Push {
    Weights matrix;
    Grids grids;
    Halves to; // [rows, stride]
    uint first, rows, columns, stride; // `rows` rows from `first` on
};

const uint PIECE_VECTORS = 4;
shared uvec4 vectors[THREADS * PIECE_VECTORS];

// Vectors of a piece lie rotated, those that neighbouring threads write in different banks.
uint place(uint piece, uint i) { return piece * PIECE_VECTORS + (i + piece / 2) % PIECE_VECTORS; }

void main() {
    const uint t = gl_LocalInvocationIndex, first_piece = gl_WorkGroupID.x * THREADS, at = first_piece + t;
    const uint row_pieces = stride / 32, row = at / row_pieces, piece = at % row_pieces;
    float w[32];
    [[unroll]] for (uint i = 0; i < 32; i++) w[i] = 0;
    if (row < rows && 32 * piece < columns)
        decode(matrix, grids, (first + row) * (columns / BLOCK_ELEMENTS), piece, columns, w);
    [[unroll]] for (uint i = 0; i < PIECE_VECTORS; i++) {
        uvec4 halves;
        [[unroll]] for (uint k = 0; k < 4; k++)
            halves[k] = packHalf2x16(vec2(w[8 * i + 2 * k], w[8 * i + 2 * k + 1]));
        vectors[place(t, i)] = halves;
    }
    barrier();
    const uint end = rows * row_pieces * PIECE_VECTORS;
    [[unroll]] for (uint i = 0; i < PIECE_VECTORS; i++) {
        const uint from = i * THREADS + t, to_vector = first_piece * PIECE_VECTORS + from;
        if (to_vector < end) to.v[to_vector] = vectors[place(from / PIECE_VECTORS, from % PIECE_VECTORS)];
    }
}
