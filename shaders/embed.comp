// Looks up rows of the token embedding: result[row] = matrix[tokens[row]] × scale.
//
// Workgroups: x covers pieces of 32 columns, one per thread; y is the row. Rows whose token is negative are left alone.
#version 460
#extension GL_GOOGLE_include_directive : require

#include "blocks.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
    Weights matrix;
    Grids grids;
    Ints tokens;   // [rows]
    Floats result; // [rows, out_stride]
    uint columns, out_stride;
    float scale;
};

void main() {
    uint row = gl_WorkGroupID.y, piece = gl_GlobalInvocationID.x, from = 32 * piece;
    int token = tokens.v[row];
    if (token < 0 || from >= columns) return;
    float w[32];
    decode(matrix, grids, uint(token) * (columns / BLOCK_ELEMENTS), piece, columns, w);
    [[unroll]] for (uint i = 0; i < 32; i++)
        if (from + i < columns) result.v[row * out_stride + from + i] = w[i] * scale;
}
