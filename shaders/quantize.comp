#version 450
// Quantises rows of activations.
#define THREADS 256
#include "codes.glsl"

layout(local_size_x = THREADS) in;

layout(push_constant, scalar) uniform Push {
    Vectors from; // [rows, stride]
    Pieces to;
    uint n, stride; // vectors
};

void main() {
    const uint at = gl_GlobalInvocationID.x;
    write_codes(to, at / stride, stride / 8, at % stride, at < n ? from.v[at] : vec4(0), at < n);
}
