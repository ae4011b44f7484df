// Activations as quantised matrices read them: 32 of a row share a scale. Rows have a piece for every 32 floats.
#ifndef CODES_GLSL
#define CODES_GLSL

#include "common.glsl"

struct Piece {
    uvec4 code[2]; // signed bytes in [−127, 127]: an activation is about scale × code
    float scale;
    float sum[2]; // scale × Σ code of either half
    float unused;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Pieces { Piece v[]; };

#ifdef THREADS
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer PieceWords { uint v[]; };

shared vec2 piece_tops[THREADS];
shared int piece_sums[THREADS];

// Four activations, number `at` of the rows, by each thread of the work group: eight threads in a row have a piece.
// Where one is infinite or no number all 32 are no numbers. Those that are not to be written only take part.
void write_codes(PieceWords to, uint at, vec4 x, bool written) {
    const uint t = gl_LocalInvocationIndex, first = t & ~7, k = t & 7;
    const vec4 size = abs(x);
    piece_tops[t] = vec2(max(max(size.x, size.y), max(size.z, size.w)), size.x + size.y + size.z + size.w);
    barrier();
    float top = 0, total = 0;
    [[unroll]] for (uint i = 0; i < 8; i++) top = max(top, piece_tops[first + i].x), total += piece_tops[first + i].y;
    const ivec4 code = ivec4(roundEven(x * (top > 0 ? 127 / top : 0))), byte = code & 255;
    piece_sums[t] = code.x + code.y + code.z + code.w;
    barrier();
    if (!written) return;
    const uint start = at / 8 * 12; // words of a piece
    to.v[start + k] = uint(byte.x | byte.y << 8 | byte.z << 16 | byte.w << 24);
    if (k % 4 != 0) return;
    const float scale = total <= 3e38 ? top / 127 : uintBitsToFloat(0x7fc00000);
    if (k == 0) to.v[start + 8] = floatBitsToUint(scale);
    const int sum = piece_sums[t] + piece_sums[t + 1] + piece_sums[t + 2] + piece_sums[t + 3];
    to.v[start + 9 + k / 4] = floatBitsToUint(scale * float(sum));
}
#endif

#endif
