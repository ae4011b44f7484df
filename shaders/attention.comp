#version 450
// Attention over pages, an online softmax. A work group has QUERIES of one kv head: HEADS heads of up to ROWS rows that
// follow each other. Rows of one conversation are attended to together, so that their keys and values are read once.
// Several work groups (in z) take turns at the keys and leave their parts for attention_join.
//
// A thread computes a part of the scores of two keys with all queries, over every SPLIT-th dimension; takes a share of
// a query's scores to weights; and adds the weighed values up in two dimensions, of every SLICES-th key. Its loops over
// memory are unrolled, so that it waits once for many reads: a single row's work groups are too few to hide a wait.
#define THREADS 256
#include "codes.glsl"
#include "each.glsl"
#include "kv.glsl"

const uint KEYS = 128, SPLIT = 2 * THREADS / KEYS;
layout(local_size_x = THREADS) in;

layout(constant_id = 2) const bool SINKS = false;
layout(constant_id = 3) const uint HEADS = 1;
layout(constant_id = 4) const uint ROWS = 1;
layout(constant_id = 5) const bool QUANTIZES = false; // results as well; of whole pieces

layout(push_constant, scalar) uniform Push {
    Floats qkv, to;
    Pieces codes;
    Floats sinks;
    RowInfos rows;
    Ints list; // row of qkv for each row of `to`, with has_list
    PageList pages;
    uint qkv_stride, to_stride, n_head, n_head_kv, window;
    float softcap; // 0: none
    Floats parts;  // [row of `to`][head][part]: maximum, sum, unnormalised result
    uint n;        // rows of `to`
    uint layer;    // where it begins in a page
    uint has_list;
};

const uint QUERIES = HEADS * ROWS, MOST_QUERIES = 8;
const uint PAIRS = HEAD_SIZE / 2; // of dimensions, at most THREADS
const uint SLICES = THREADS / PAIRS; // of keys
const uint SHARE = QUERIES < THREADS / 32 ? 32 : THREADS / QUERIES; // threads that turn a query's scores into weights
const uint AT_ONCE = ROWS == 1 ? KEYS / PAGE : 1; // pages whose values are waited for together
const float LOWEST = -3.4e38;                     // of scores; with infinity the difference of two would be no number

shared float queries[HEAD_SIZE * QUERIES]; // [dimension][query]
// [split][key][query] parts of scores, [key][query] weights; at the end results [slice][query][dimension]
shared float weights[(HEAD_SIZE > SPLIT * KEYS ? HEAD_SIZE : SPLIT * KEYS) * QUERIES];
shared int tops[QUERIES];      // the highest scores so far, ordered
shared float factors[QUERIES]; // of what was found
shared float totals[THREADS];

uint two(uint at) { return Uints(kv).v[at / 4]; } // numbers of 16 bits

vec2 two_floats(uint at) {
    const uint x = two(at);
    return KV_TYPE == KV_F16 ? unpackHalf2x16(x) : vec2(uintBitsToFloat(x << 16), uintBitsToFloat(x & 0xffff0000u));
}

vec2 two_codes(uint at, bool high) {
    const int x = int(Words(kv).v[at / 2]);
    if (KV_TYPE == KV_Q8_0) return vec2(bitfieldExtract(x, 0, 8), bitfieldExtract(x, 8, 8));
    return vec2(x >> (high ? 4 : 0) & 15, x >> (high ? 12 : 8) & 15) - 8;
}

// Element i of a block of the keys of this slot and the next, without their scales.
vec2 key_pair(uint offset, uint block, uint i, uint slot) {
    if (KV_TYPE < KV_Q8_0) return two_floats(offset + 2 * ((32 * block + i) * PAGE + slot));
    const uint row = KV_TYPE == KV_Q8_0 ? i : i % 16;
    return two_codes(offset + block * BLOCK_BYTES + 2 * PAGE + row * PAGE + slot, i >= 16);
}

vec2 key_scales(uint offset, uint block, uint slot) {
    if (KV_TYPE < KV_Q8_0) return vec2(1);
    return unpackHalf2x16(two(offset + block * BLOCK_BYTES + 2 * slot));
}

// Elements d and d + 1 of a value.
vec2 value_pair(uint offset, uint slot, uint d) {
    if (KV_TYPE < KV_Q8_0) return two_floats(offset + 2 * (slot * HEAD_SIZE + d));
    const uint block = offset + d / 32 * BLOCK_BYTES;
    return two_codes(block + 2 * PAGE + slot * CODES + d % CODES, d % 32 >= 16) * float(Halves(kv).v[block / 2 + slot]);
}

// ---- a run: rows of one conversation that follow each other in the tile ----

uint kv_head, first_head, n_heads;  // of this work group
uint first_row, n_rows, first_page; // of the run; rows of `to`
uint lowest, highest;               // keys of its rows
uint own_lowest, own_highest;       // those of the query whose weights this thread computes,
float own_top, own_total;           // and of this thread's share
vec2 found[MOST_QUERIES];

uint open_page_of(uint key) { return open_page(pages.v[first_page + key / PAGE], layer, kv_head); }

void find_run(uint tile_end) {
    lowest = own_lowest = 0xffffffffu;
    highest = own_highest = 0;
    for (n_rows = 0; first_row + n_rows < tile_end; n_rows++) {
        const RowInfo info = rows.v[listed(has_list, list, min(first_row + n_rows, n - 1))];
        const uint last = uint(info.position), first = window > 0 && last >= window ? last - window + 1 : 0;
        if (n_rows == 0) first_page = uint(info.first_page);
        if (uint(info.first_page) != first_page) break;
        lowest = min(lowest, first), highest = max(highest, last);
        if (gl_LocalInvocationIndex % QUERIES / HEADS == n_rows) own_lowest = first, own_highest = last;
    }
}

void score(uint start) {
    const uint k = gl_LocalInvocationIndex % (KEYS / 2) * 2, part = gl_LocalInvocationIndex / (KEYS / 2);
    const uint key = start + k, slot = key % PAGE, at = (part * KEYS + k) * QUERIES;
    if (key > highest) return;
    vec2 scores[MOST_QUERIES];
    EACH(q, MOST_QUERIES, QUERIES) scores[q] = vec2(0);
    const uint offset = open_page_of(key);
    for (uint first = 0; first < BLOCKS; first += SPLIT)
        [[unroll]] for (uint block = first; block < first + SPLIT; block++) {
            if (block >= BLOCKS) break;
            const vec2 scales = key_scales(offset, block, slot);
            [[unroll]] for (uint i = 0; i < 32; i += SPLIT) {
                const uint d = 32 * block + i + part;
                if (HEAD_SIZE % SPLIT == 0 ? 32 * block + i >= HEAD_SIZE : d >= HEAD_SIZE) break;
                const vec2 pair = key_pair(offset, block, i + part, slot) * scales;
                EACH(q, MOST_QUERIES, QUERIES) scores[q] += queries[d * QUERIES + q] * pair;
            }
        }
    EACH(q, MOST_QUERIES, QUERIES) weights[at + q] = scores[q].x;
    EACH(q, MOST_QUERIES, QUERIES) weights[at + QUERIES + q] = scores[q].y;
}

// Integers in the order of floats, for atomicMax.
int ordered(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); } // its own inverse

// What is no key of its query gets the weight 0, whatever its score.
void weigh(uint start) {
    const uint q = gl_LocalInvocationIndex % QUERIES, first = gl_LocalInvocationIndex / QUERIES;
    float top = LOWEST;
    if (first < SHARE) {
        for (uint k = first; k < KEYS; k += SHARE) {
            float x = LOWEST;
            if (start + k >= own_lowest && start + k <= own_highest) {
                x = 0;
                [[unroll]] for (uint part = 0; part < SPLIT; part++) x += weights[(part * KEYS + k) * QUERIES + q];
                if (softcap != 0) x = softcap * tanh(x / softcap);
            }
            weights[k * QUERIES + q] = x;
            top = max(top, x);
        }
        atomicMax(tops[q], ordered(floatBitsToInt(top)));
    }
    barrier();
    if (first < SHARE) {
        top = intBitsToFloat(ordered(tops[q]));
        const float factor = exp(own_top - top);
        own_total *= factor;
        own_top = top;
        if (first == 0) factors[q] = factor;
        for (uint k = first; k < KEYS; k += SHARE) {
            const float x = weights[k * QUERIES + q], weight = x == LOWEST ? 0 : exp(x - top);
            weights[k * QUERIES + q] = weight;
            own_total += weight;
        }
    }
}

// Values of what is no key of a query may be NaN: they are left out.
void add_values(uint start, uint page) {
    const uint slice = gl_LocalInvocationIndex / PAIRS, offset = open_page_of(min(page, highest)) + SIDE_BYTES;
    [[unroll]] for (uint first = 0; first < PAGE; first += SLICES) {
        const uint slot = min(first + slice, PAGE - 1), key = page + slot, at = (key - start) * QUERIES;
        const bool known = first + slice < PAGE && key >= lowest && key <= highest;
        vec2 value = value_pair(offset, slot, 2 * (gl_LocalInvocationIndex % PAIRS));
        if (!known) value = vec2(0);
        EACH(q, MOST_QUERIES, QUERIES) {
            const float weight = weights[at + q];
            if (ROWS == 1 || weight != 0) found[q] += weight * value;
        }
    }
}

uint part_of(uint row, uint head) {
    return ((row * n_head + head) * gl_NumWorkGroups.z + gl_WorkGroupID.z) * (HEAD_SIZE + 2);
}

// Leaves in `weights` what the threads have found, and what is to be made of it in `factors`.
void join_threads() {
    const uint t = gl_LocalInvocationIndex, slice = t / PAIRS;
    totals[t] = own_total;
    if (slice < SLICES)
        EACH(q, MOST_QUERIES, QUERIES) {
            const uint at = (slice * QUERIES + q) * HEAD_SIZE + 2 * (t % PAIRS);
            weights[at] = found[q].x, weights[at + 1] = found[q].y;
        }
    barrier();
    const uint r = t / HEADS, h = t % HEADS, n_parts = gl_NumWorkGroups.z;
    if (r < n_rows && h < n_heads) {
        float total = 0, factor = 1;
        for (uint i = 0; i < SHARE; i++) total += totals[i * QUERIES + t];
        if (n_parts > 1) {
            const uint at = part_of(first_row + r, first_head + h);
            parts.v[at] = own_top, parts.v[at + 1] = total;
        } else {
            const float sink = SINKS ? sinks.v[first_head + h] : LOWEST, top = max(own_top, sink);
            factor = exp(own_top - top);
            factor /= total * factor + exp(sink - top);
        }
        factors[t] = factor;
    }
    barrier();
}

void write() {
    const uint n_parts = gl_NumWorkGroups.z, vectors = (HEAD_SIZE + 3) / 4, n_vectors = n_rows * HEADS * vectors;
    for (uint first = 0; first < n_vectors; first += THREADS) {
        const uint i = first + gl_LocalInvocationIndex, q = i / vectors, d = i % vectors * 4;
        const uint row = first_row + q / HEADS, head = first_head + q % HEADS;
        const uint start = row * to_stride + head * HEAD_SIZE + d;
        const bool written = i < n_vectors && q % HEADS < n_heads;
        vec4 x = vec4(0);
        for (uint k = 0; k < 4 && d + k < HEAD_SIZE && written; k++) {
            for (uint slice = 0; slice < SLICES; slice++) x[k] += weights[(slice * QUERIES + q) * HEAD_SIZE + d + k];
            if (n_parts == 1) to.v[start + k] = x[k] *= factors[q];
            else parts.v[part_of(row, head) + 2 + d + k] = x[k];
        }
        if (QUANTIZES && n_parts == 1) write_codes(codes, row, to_stride / 32, (head * HEAD_SIZE + d) / 4, x, written);
    }
}

void attend_run() {
    const uint t = gl_LocalInvocationIndex;
    for (uint i = t; i < n_rows * HEADS * HEAD_SIZE; i += THREADS) {
        const uint q = i / HEAD_SIZE, d = i % HEAD_SIZE, row = listed(has_list, list, first_row + q / HEADS);
        const uint head = first_head + min(q % HEADS, n_heads - 1);
        queries[d * QUERIES + q] = qkv.v[row * qkv_stride + head * HEAD_SIZE + d];
    }
    EACH(q, MOST_QUERIES, QUERIES) found[q] = vec2(0);
    own_top = LOWEST, own_total = 0;
    if (t < QUERIES) tops[t] = ordered(floatBitsToInt(LOWEST));
    barrier();
    const uint first = lowest / PAGE * PAGE + gl_WorkGroupID.z * KEYS;
    for (uint start = first; start <= highest; start += gl_NumWorkGroups.z * KEYS) {
        score(start);
        barrier();
        weigh(start);
        barrier();
        EACH(q, MOST_QUERIES, QUERIES) found[q] *= factors[q];
        for (uint page = start; page < start + KEYS && page <= highest; page += AT_ONCE * PAGE)
            [[unroll]] for (uint k = 0; k < AT_ONCE; k++) add_values(start, page + k * PAGE);
        barrier();
    }
    join_threads();
    write();
}

void main() {
    const uint of_kv = n_head / n_head_kv, n_slices = (of_kv + HEADS - 1) / HEADS;
    const uint head = gl_WorkGroupID.x % n_slices * HEADS; // of those of the kv head
    kv_head = gl_WorkGroupID.x / n_slices;
    first_head = kv_head * of_kv + head;
    n_heads = min(HEADS, of_kv - head);
    first_row = gl_WorkGroupID.y * ROWS;
    const uint tile_end = ROWS > 1 ? min(first_row + ROWS, n) : first_row + 1;
    for (; first_row < tile_end; first_row += n_rows) {
        find_run(tile_end);
        attend_run();
    }
}
