// Activations as quantised matrices read them: 32 of a row, a piece, share a scale. Rows have a piece for every 32
// floats and PIECE_BYTES for each, so that neighbouring threads read neighbouring vectors:
//
//   first halves of codes   16 bytes a piece
//   second halves           16
//   sums                     8  of the activations that either half stands for: scale × Σ code
//   scales                   4
//   unused                   4
#ifndef CODES_GLSL
#define CODES_GLSL

#include "common.glsl"

struct Piece {
    uvec4 code[2]; // signed bytes in [−127, 127]: an activation is about scale × code
    vec2 sum;
    float scale;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Pieces { uvec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer CodeSums { vec2 v[]; };

// Rows of so many pieces.
Piece read_piece(Pieces from, uint row, uint pieces, uint piece) {
    const uint first = row * 3 * pieces;
    return Piece(uvec4[2](from.v[first + piece], from.v[first + pieces + piece]),
                 CodeSums(uvec2(from)).v[2 * first + 4 * pieces + piece],
                 Floats(uvec2(from)).v[4 * first + 10 * pieces + piece]);
}

#ifdef THREADS
shared vec2 piece_tops[THREADS];
shared int piece_sums[THREADS];

// Four activations of a row, number `at`, by each thread of the work group: eight threads in a row have a piece. Where
// one is infinite or no number all 32 are no numbers. Those that are not to be written only take part.
void write_codes(Pieces codes, uint row, uint pieces, uint at, vec4 x, bool written) {
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
    const uint piece = at / 8, start = row * 12 * pieces; // words
    Uints to = Uints(uvec2(codes));
    to.v[start + k / 4 * 4 * pieces + 4 * piece + k % 4] =
        uint(byte.x | byte.y << 8 | byte.z << 16 | byte.w << 24);
    if (k % 4 != 0) return;
    const float scale = total <= 3e38 ? top / 127 : uintBitsToFloat(0x7fc00000);
    const int sum = piece_sums[t] + piece_sums[t + 1] + piece_sums[t + 2] + piece_sums[t + 3];
    to.v[start + 8 * pieces + 2 * piece + k / 4] = floatBitsToUint(scale * float(sum));
    if (k == 0) to.v[start + 10 * pieces + piece] = floatBitsToUint(scale);
}
#endif

#endif
