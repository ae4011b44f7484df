#version 450
// Rows of the batch as halves, for cooperative.comp. Each is multiplied by a power of two which brings its largest
// element near the largest half, so that large ones do not overflow and small ones are not lost.
#include "common.glsl"

const uint THREADS = 128;
layout(local_size_x = 128) in;
#include "reduce.glsl"

layout(push_constant, scalar) uniform Push {
    Vectors from;  // [n, from_stride], zero behind the columns
    Uints to;      // [n, to_stride] halves, zero behind the columns
    Floats scales; // [n] that the results are to be multiplied by
    uint columns, from_stride, to_stride;
};

void main() {
    const uint row = gl_WorkGroupID.x, vectors = (columns + 3) / 4, source = row * (from_stride / 4);
    float most = 0;
    for (uint i = gl_LocalInvocationIndex; i < vectors; i += THREADS) {
        const vec4 x = abs(from.v[source + i]);
        most = max(most, max(max(x.x, x.y), max(x.z, x.w)));
    }
    // 2ᵉ ≤ most < 2ᵉ⁺¹ becomes 2¹⁴ and more. Infinities stay what they are.
    const uint exponent = max(floatBitsToUint(group_max(most)) >> 23, 16);
    const bool finite = exponent < 255;
    const float scale = uintBitsToFloat((finite ? 127 + 127 + 14 - exponent : 127) << 23);
    if (gl_LocalInvocationIndex == 0) scales.v[row] = uintBitsToFloat((finite ? exponent - 14 : 127) << 23);
    for (uint i = gl_LocalInvocationIndex; i < to_stride / 4; i += THREADS) {
        const vec4 x = i < vectors ? scale * from.v[source + i] : vec4(0);
        to.v[row * (to_stride / 2) + 2 * i] = packHalf2x16(x.xy);
        to.v[row * (to_stride / 2) + 2 * i + 1] = packHalf2x16(x.zw);
    }
}
