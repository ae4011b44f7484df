#version 450
// Makes queries and keys ready for attention: norms of heads, rotation, scale; and stores keys and values in their
// pages. A work group a row and head: first those of the queries, then of keys, then of values.
#include "common.glsl"
#include "kv.glsl"

const uint THREADS = 64;
layout(local_size_x = 64) in;
#include "reduce.glsl"

const uint NORM_LAYER = 1;
const uint HEAD_NORM_SHARED = 1, HEAD_NORM_OWN = 2; // enum head_norm
const uint ROPE_NORM = 0;                           // enum rope_kind
layout(constant_id = 2) const uint N_ROT = 64;      // 0: no rotation
layout(constant_id = 3) const uint ROPE_KIND = 0;
layout(constant_id = 4) const uint NORM_KIND = 0;
layout(constant_id = 5) const uint QUERY_NORM = 0;
layout(constant_id = 6) const uint KEY_NORM = 0;

layout(push_constant, scalar) uniform Push {
    Floats qkv, query_norm, key_norm;
    Floats rotation; // [rows, N_ROT / 2, 2] cosine and sine
    RowInfos rows;
    PageList pages;
    uint qkv_stride, n_head, n_head_kv;
    float epsilon;
    uint layer; // where it begins in a page
};

const uint TURNS = N_ROT > 2 * THREADS ? (N_ROT / 2 + THREADS - 1) / THREADS : 1; // of a thread
shared float head[HEAD_SIZE];

void norm(Floats weight, uint first) {
    float mean = 0, sum = 0;
    if (NORM_KIND == NORM_LAYER) {
        for (uint d = gl_LocalInvocationIndex; d < HEAD_SIZE; d += THREADS) sum += head[d];
        mean = group_sum(sum) / float(HEAD_SIZE);
    }
    float squares = 0;
    for (uint d = gl_LocalInvocationIndex; d < HEAD_SIZE; d += THREADS) squares += (head[d] - mean) * (head[d] - mean);
    const float factor = 1 / sqrt(group_sum(squares) / float(HEAD_SIZE) + epsilon);
    for (uint d = gl_LocalInvocationIndex; d < HEAD_SIZE; d += THREADS)
        head[d] = (head[d] - mean) * factor * weight.v[first + d];
    barrier();
}

void rotate(vec2 turns[TURNS]) { // cosine and sine
    const uint step = ROPE_KIND == ROPE_NORM ? 2 : 1, apart = ROPE_KIND == ROPE_NORM ? 1 : N_ROT / 2;
    [[unroll]] for (uint k = 0; k < TURNS; k++) {
        const uint i = gl_LocalInvocationIndex + k * THREADS;
        if (i >= N_ROT / 2) break;
        const float a = head[i * step], b = head[i * step + apart];
        head[i * step] = a * turns[k].x - b * turns[k].y;
        head[i * step + apart] = a * turns[k].y + b * turns[k].x;
    }
    barrier();
}

uint bfloat(float x) {
    const uint bits = floatBitsToUint(x);
    return isnan(x) ? bits >> 16 | 64 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

float block_maximum(uint block) {
    float most = 0;
    for (uint i = 32 * block; i < min(32 * block + 32, HEAD_SIZE); i++) most = max(most, abs(head[i]));
    return most;
}

// The code of element d in 8 bits; 0 in the padding.
int code(uint d, float most) { return d < HEAD_SIZE && most > 0 ? int(roundEven(head[d] * (127 / most))) : 0; }

// The same in 4 bits.
int short_code(uint d, float most) { return min(int(roundEven(float(code(d, most)) * (7.5 / 127))), 7) + 8; }

void store(uint offset, uint slot, bool values) {
    if (KV_TYPE < KV_Q8_0) {
        for (uint d = gl_LocalInvocationIndex; d < HEAD_SIZE; d += THREADS) {
            const uint at = offset / 2 + (values ? slot * HEAD_SIZE + d : d * PAGE + slot);
            if (KV_TYPE == KV_F16) Halves(kv).v[at] = float16_t(head[d]);
            else Words(kv).v[at] = uint16_t(bfloat(head[d]));
        }
        return;
    }
    for (uint i = gl_LocalInvocationIndex; i < BLOCKS * CODES; i += THREADS) {
        const uint block = i / CODES, element = i % CODES, start = offset + block * BLOCK_BYTES;
        const float most = block_maximum(block);
        const uint at = start + 2 * PAGE + (values ? slot * CODES + element : element * PAGE + slot);
        const uint d = 32 * block + element;
        if (KV_TYPE == KV_Q8_0) Codes(kv).v[at] = int8_t(code(d, most));
        else kv.v[at] = uint8_t(short_code(d, most) | short_code(d + 16, most) << 4);
        if (element == 0) Halves(kv).v[start / 2 + slot] = float16_t(most / (KV_TYPE == KV_Q8_0 ? 127 : 7.5));
    }
}

// All memory is read at once, before anything waits for it.
void main() {
    const uint h = gl_WorkGroupID.x, row = gl_WorkGroupID.y, start = row * qkv_stride + h * HEAD_SIZE;
    const bool query = h < n_head, values = h >= n_head + n_head_kv;
    const RowInfo info = rows.v[row];
    const uint position = uint(info.position);
    vec2 turns[TURNS];
    if (N_ROT > 0)
        [[unroll]] for (uint k = 0; k < TURNS; k++) {
            const uint i = min(gl_LocalInvocationIndex + k * THREADS, N_ROT / 2 - 1);
            turns[k] = vec2(rotation.v[row * N_ROT + 2 * i], rotation.v[row * N_ROT + 2 * i + 1]);
        }
    for (uint d = gl_LocalInvocationIndex; d < HEAD_SIZE; d += THREADS) head[d] = qkv.v[start + d];
    uint offset = 0;
    if (!query) {
        const uvec2 page = pages.v[uint(info.first_page) + position / PAGE];
        offset = open_page(page, layer, values ? h - n_head - n_head_kv : h - n_head);
    }
    barrier();
    if (query && QUERY_NORM != 0) norm(query_norm, QUERY_NORM == HEAD_NORM_OWN ? h * HEAD_SIZE : 0);
    if (!query && !values && KEY_NORM != 0) norm(key_norm, KEY_NORM == HEAD_NORM_OWN ? (h - n_head) * HEAD_SIZE : 0);
    if (!values && N_ROT > 0) rotate(turns);
    if (!query) store(offset + (values ? SIDE_BYTES : 0), position % PAGE, values);
    else
        for (uint d = gl_LocalInvocationIndex; d < HEAD_SIZE; d += THREADS)
            qkv.v[start + d] = head[d] * info.query_scale;
}
