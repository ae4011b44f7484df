#version 450
// Groups the rows of a batch by their experts, for matmul.comp and cooperative.comp: orders them, and divides those of
// each expert into tiles. One work group. The order of an expert's rows is any, which their results do not depend on.
#include "common.glsl"

const uint THREADS = 128;
layout(local_size_x = 128) in;

layout(constant_id = 0) const uint COUNT = 8; // of experts
layout(constant_id = 1) const uint TILE_COLUMNS = 16;

layout(push_constant, scalar) uniform Push {
    Ints choices; // [n] pairs of an expert and a weight
    Ints order;   // [n]
    Tiles tiles;  // [n_tiles], as many as there may be; those that are not needed are empty
    uint n, n_tiles;
};

shared uint counts[COUNT], next[COUNT];

void main() {
    const uint t = gl_LocalInvocationIndex;
    for (uint e = t; e < COUNT; e += THREADS) counts[e] = 0;
    barrier();
    for (uint i = t; i < n; i += THREADS) atomicAdd(counts[choices.v[2 * i]], 1);
    barrier();
    for (uint e = t; e < COUNT; e += THREADS) {
        uint first = 0, tile = 0;
        for (uint i = 0; i < e; i++) {
            first += counts[i];
            tile += (counts[i] + TILE_COLUMNS - 1) / TILE_COLUMNS;
        }
        next[e] = first;
        const uint end = first + counts[e];
        for (uint at = first; at < end; at += TILE_COLUMNS) tiles.v[tile++] = Tile(e, at, end);
        if (e == COUNT - 1)
            while (tile < n_tiles) tiles.v[tile++] = Tile(0, 0, 0);
    }
    barrier();
    for (uint i = t; i < n; i += THREADS) order.v[atomicAdd(next[choices.v[2 * i]], 1)] = int(i);
}
