#version 450
// Loops that do nothing but read memory, or multiply and add floats or bytes: what the device can do at most.
#include "common.glsl"
#include "dot.glsl"

layout(local_size_x = 256) in;
const uint READ = 0, FLOATS = 1, BYTES = 2;
layout(constant_id = 0) const uint LOOP = READ;

// As in engine/vulkan/limits.c.
const uint LOADS = 16, TURNS = 256, VECTORS = 2; // of a thread

layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Words { uvec4 v[]; };
layout(push_constant, scalar) uniform Push {
    Words data; // all zero
    float factor;
};

// What is never so, or next to never, which the compiler does not know, keeps it from dropping the loops.
void read() {
    const uint at = gl_WorkGroupID.x * LOADS * 256 + gl_LocalInvocationIndex;
    uvec4 sum = uvec4(0);
    [[unroll]] for (uint i = 0; i < LOADS; i++) sum ^= data.v[at + i * 256];
    if (sum.x + sum.y + sum.z + sum.w != 0) data.v[at] = sum;
}

void multiply_bytes() {
    ivec4 x[VECTORS];
    [[unroll]] for (uint k = 0; k < VECTORS; k++) x[k] = ivec4(gl_GlobalInvocationID.x + k);
    const uint bytes = floatBitsToUint(factor);
    for (uint i = 0; i < TURNS; i++)
        [[unroll]] for (uint k = 0; k < VECTORS; k++)
            [[unroll]] for (uint j = 0; j < 4; j++) x[k][j] += four_products(uint(x[k][j]), bytes, 0);
    ivec4 sum = ivec4(0);
    [[unroll]] for (uint k = 0; k < VECTORS; k++) sum ^= x[k];
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x7fffffff) data.v[0] = uvec4(sum);
}

void multiply_floats() {
    vec4 x[VECTORS];
    [[unroll]] for (uint k = 0; k < VECTORS; k++) x[k] = vec4(gl_GlobalInvocationID.x + k);
    for (uint i = 0; i < TURNS; i++)
        [[unroll]] for (uint k = 0; k < VECTORS; k++) x[k] = x[k] * factor + vec4(1);
    vec4 sum = vec4(0);
    [[unroll]] for (uint k = 0; k < VECTORS; k++) sum += x[k];
    if (sum.x + sum.y + sum.z + sum.w < 0) data.v[0] = uvec4(sum);
}

void main() {
    if (LOOP == READ) read();
    else if (LOOP == FLOATS) multiply_floats();
    else multiply_bytes();
}
