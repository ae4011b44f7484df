#version 450
// The activation of rows, into `gate`, which is quantised as well.
#define THREADS 256
#include "codes.glsl"
#include "activation.glsl"

layout(local_size_x = THREADS) in;

layout(push_constant, scalar) uniform Push {
    Vectors gate, up;
    WritableVectors to;
    Pieces codes;
    uint n, stride; // vectors
};

void main() {
    const uint at = gl_GlobalInvocationID.x;
    vec4 x = vec4(0);
    if (at < n) {
        const vec4 u = up.v[at], g = GATED ? gate.v[at] : u;
        x = vec4(activate(g.x, u.x), activate(g.y, u.y), activate(g.z, u.z), activate(g.w, u.w));
        to.v[at] = x;
    }
    write_codes(codes, at / stride, stride / 8, at % stride, x, at < n);
}
