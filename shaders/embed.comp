#version 450
// What the first layer reads: of a row with a token that row of the embedding, scaled; of others what was put in. A
// thread takes 32 columns of a row.
#include "common.glsl"
#include "blocks.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
    Weights matrix;
    Grids grids;
    Ints tokens;   // [rows], or negative
    Floats inputs; // [rows, stride]
    Floats to;     // the same
    uint columns, stride;
    float scale;
};

void main() {
    const uint row = gl_WorkGroupID.y, piece = gl_GlobalInvocationID.x, first = 32 * piece;
    const int token = tokens.v[row];
    if (first >= columns) return;
    const uint at = row * stride + first, n = min(32, columns - first);
    if (token < 0) {
        for (uint i = 0; i < n; i++) to.v[at + i] = inputs.v[at + i];
        return;
    }
    float w[32];
    decode(matrix, grids, uint(token) * (columns / BLOCK_ELEMENTS), piece, columns, w);
    [[unroll]] for (uint i = 0; i < 32; i++)
        if (i < n) to.v[at + i] = w[i] * scale;
}
