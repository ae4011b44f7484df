#version 450
// Attention over pages, an online softmax: work groups a query head of a row, THREADS keys at a time. Several (in z) take
// turns at the keys and leave their parts for attention_join.
#include "common.glsl"
#include "kv.glsl"

const uint THREADS = 128;
layout(local_size_x = 128) in;
#include "reduce.glsl"

layout(constant_id = 2) const bool SINKS = false;

layout(push_constant, scalar) uniform Push {
    Floats qkv, to, sinks;
    RowInfos rows;
    Ints list; // row of qkv for each row of `to`
    Ints pages;
    Bytes kv; // of the layer
    uint qkv_stride, to_stride, n_head, n_head_kv, window;
    float softcap; // 0: none
    Floats parts;  // [row of `to`][head][part]: maximum, sum, unnormalised result
};

const float LOWEST = -3.4e38; // of scores; with infinity the difference of two would be no number
const uint DIMENSIONS = (HEAD_SIZE + THREADS - 1) / THREADS; // a thread's
shared float query[HEAD_SIZE];
shared float weights[THREADS];
shared uint offsets[THREADS / PAGE]; // of the pages of these keys

float half_at(uint at) {
    return KV_TYPE == KV_F16 ? float(Halves(kv).v[at]) : uintBitsToFloat(uint(Words(kv).v[at]) << 16);
}

int nibble(uint at, bool high) { return int(uint(kv.v[at]) >> (high ? 4 : 0) & 15u) - 8; }

float score(uint offset, uint slot) {
    float sum = 0;
    if (KV_TYPE < KV_Q8_0) {
        for (uint d = 0; d < HEAD_SIZE; d++) sum += query[d] * half_at(offset / 2 + d * PAGE + slot);
        return sum;
    }
    for (uint block = 0; block < BLOCKS; block++) {
        const uint start = offset + block * BLOCK_BYTES, codes = start + 2 * PAGE + slot;
        const uint n = min(32, HEAD_SIZE - 32 * block);
        float part = 0;
        for (uint i = 0; i < n; i++)
            part += query[32 * block + i] * float(KV_TYPE == KV_Q8_0 ? int(Codes(kv).v[codes + i * PAGE])
                                                                     : nibble(codes + i % 16 * PAGE, i >= 16));
        sum += part * float(Halves(kv).v[start / 2 + slot]);
    }
    return sum;
}

float value(uint offset, uint slot, uint d) {
    if (KV_TYPE < KV_Q8_0) return half_at(offset / 2 + slot * HEAD_SIZE + d);
    const uint start = offset + d / 32 * BLOCK_BYTES, codes = start + 2 * PAGE + slot * CODES;
    const int code = KV_TYPE == KV_Q8_0 ? int(Codes(kv).v[codes + d % 32]) : nibble(codes + d % 16, d % 32 >= 16);
    return float(code) * float(Halves(kv).v[start / 2 + slot]);
}

void main() {
    const uint t = gl_LocalInvocationIndex, head = gl_WorkGroupID.x, i = gl_WorkGroupID.y;
    const uint row = uint(list.v[i]), kv_head = head / (n_head / n_head_kv);
    const RowInfo info = rows.v[row];
    const uint position = uint(info.position), first = window > 0 && position >= window ? position - window + 1 : 0;
    for (uint d = t; d < HEAD_SIZE; d += THREADS) query[d] = qkv.v[row * qkv_stride + head * HEAD_SIZE + d];
    float found[DIMENSIONS], top = LOWEST, total = 0;
    for (uint k = 0; k < DIMENSIONS; k++) found[k] = 0;

    const uint n_parts = gl_NumWorkGroups.z, part = gl_WorkGroupID.z;
    for (uint start = first / PAGE * PAGE + part * THREADS; start <= position; start += n_parts * THREADS) {
        const uint key = start + t, low = max(start, first), end = min(start + THREADS, position + 1);
        barrier();
        if (t < THREADS / PAGE && start + t * PAGE <= position)
            offsets[t] = key_offset(uint(pages.v[uint(info.first_page) + start / PAGE + t]), n_head_kv, kv_head);
        barrier();
        float x = LOWEST;
        if (key >= low && key < end) {
            x = score(offsets[t / PAGE], t % PAGE);
            if (softcap != 0) x = softcap * tanh(x / softcap);
        }
        const float before = top;
        top = max(top, group_max(x));
        weights[t] = key >= low && key < end ? exp(x - top) : 0;
        const float correction = exp(before - top);
        total = total * correction + group_sum(weights[t]);
        for (uint k = 0; k < DIMENSIONS; k++) {
            const uint d = t + k * THREADS;
            if (d >= HEAD_SIZE) break;
            float sum = found[k] * correction;
            for (uint slot = low - start; slot < end - start; slot++)
                sum += weights[slot] * value(offsets[slot / PAGE] + SIDE_BYTES, slot % PAGE, d);
            found[k] = sum;
        }
    }
    if (n_parts > 1) {
        const uint at = ((i * n_head + head) * n_parts + part) * (HEAD_SIZE + 2);
        if (t == 0) parts.v[at] = top, parts.v[at + 1] = total;
        for (uint k = 0; k < DIMENSIONS; k++)
            if (t + k * THREADS < HEAD_SIZE) parts.v[at + 2 + t + k * THREADS] = found[k];
        return;
    }
    float scale = 1;
    if (SINKS) {
        const float sink = sinks.v[head], highest = max(top, sink);
        scale = exp(top - highest);
        total = total * scale + exp(sink - highest);
    }
    for (uint k = 0; k < DIMENSIONS; k++)
        if (t + k * THREADS < HEAD_SIZE)
            to.v[i * to_stride + head * HEAD_SIZE + t + k * THREADS] = found[k] * scale / total;
}
