// Decodes weights of the block format chosen with -DFORMAT_<name>, name as in engine/format/block.h.
//
// The layouts are drawn in engine/format/block_*.c, whose scalar decoders define the values. Work is divided into
// pieces: 32 elements of a row.
//
//   Weights         blocks of a matrix, row after row
//   BLOCK_ELEMENTS  elements per block
//   Grids           a copy of C's struct block_grids, read by the IQ1, IQ2 and IQ3 formats only
//   HAS_CODES       defined for quantised formats, which have
//   unpack          a piece as small integers and their scales
//   multiply        its product with quantised activations
//   decode          a piece as floats
//
// Eight and sixteen-bit numbers are only loaded, never calculated with one by one: devices need the storage features
// and integer dot products alone.
#ifndef BLOCKS_GLSL
#define BLOCKS_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_GOOGLE_include_directive : require

#include "common.glsl"
#include "codes.glsl"

// Eight or four signed bytes per entry.
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Grids {
    uvec2 iq2_xxs[256], iq2_xs[512], iq2_s[1024];
    uint iq3_xxs[256], iq3_s[512];
    uvec2 iq1[2048];
};

// Follows struct block. The alignment is that of any block in an aligned matrix.
#define WEIGHTS(alignment, elements)                                                                                   \
    layout(buffer_reference, scalar, buffer_reference_align = alignment) readonly buffer Weights { block b[]; };       \
    const uint BLOCK_ELEMENTS = elements;

float f16(uint bits) { return unpackHalf2x16(bits).x; }

#if defined(FORMAT_F32) || defined(FORMAT_F16) || defined(FORMAT_BF16)

#ifdef FORMAT_F32
struct block { float value; };
WEIGHTS(4, 1)

const uint BLOCK_BYTES = 4;

float value_of(Weights m, uint i) { return m.b[i].value; }

void put_values(uvec4 words, uint load, inout float w[8]) {
    [[unroll]] for (uint i = 0; i < 4; i++) w[4 * load + i] = uintBitsToFloat(words[i]);
}
#else
struct block { uint16_t bits; };
WEIGHTS(2, 1)

const uint BLOCK_BYTES = 2;

#ifdef FORMAT_F16
vec2 values_of(uint word) { return unpackHalf2x16(word); }
#else
vec2 values_of(uint word) { return uintBitsToFloat(uvec2(word << 16, word & 0xffff0000u)); }
#endif

float value_of(Weights m, uint i) { return values_of(uint(m.b[i].bits)).x; }

void put_values(uvec4 words, uint load, inout float w[8]) {
    [[unroll]] for (uint i = 0; i < 4; i++) {
        vec2 pair = values_of(words[i]);
        w[8 * load + 2 * i] = pair.x;
        w[8 * load + 2 * i + 1] = pair.y;
    }
}
#endif

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Wide { uvec4 v[]; };

// Elements at and past `columns` are 0 and not read. Rows at 16-byte addresses are loaded 16 bytes at a time.
void decode_eight(Weights m, uint first_block, uint eight, uint columns, out float w[8]) {
    uint at = first_block + 8 * eight, left = max(columns, 8 * eight) - 8 * eight;
    if (left >= 8 && ((uvec2(m).x | at * BLOCK_BYTES) & 15) == 0) {
        Wide wide = Wide(m);
        const uint each = 16 / BLOCK_BYTES;
        [[unroll]] for (uint load = 0; load < 8 / each; load++) put_values(wide.v[at / each + load], load, w);
    } else {
        [[unroll]] for (uint i = 0; i < 8; i++) {
            w[i] = 0;
            if (i < left) w[i] = value_of(m, at + i);
        }
    }
}

void decode(Weights m, Grids grids, uint first_block, uint piece, uint columns, out float w[32]) {
    [[unroll]] for (uint k = 0; k < 4; k++) {
        float eight[8];
        decode_eight(m, first_block, 4 * piece + k, columns, eight);
        [[unroll]] for (uint i = 0; i < 8; i++) w[8 * k + i] = eight[i];
    }
}

#else
#define HAS_CODES

// Element i of a piece = scale[i / 16] × code − minimum[i / 16], where code is the signed byte i % 4 of
// code[i / 16][i / 4 % 4]. Minimums are 0 unless HAS_MINIMUM is defined. With ONE_SCALE, the halves' scales are the
// same, and so are their minimums.
struct codes {
    uvec4 code[2];
    float scale[2], minimum[2];
};

codes codes_of(uvec4 first, uvec4 second, float scale0, float scale1, float minimum0, float minimum1) {
    return codes(uvec4[2](first, second), float[2](scale0, scale1), float[2](minimum0, minimum1));
}

codes codes_of(uvec4 first, uvec4 second, float scale0, float scale1) {
    return codes_of(first, second, scale0, scale1, 0, 0);
}

codes codes_of(uvec4 first, uvec4 second, float scale) { return codes_of(first, second, scale, scale); }

// Word i of an array of 16-bit halves.
#define WORD(halves, i) (uint((halves)[2 * (i)]) | uint((halves)[2 * (i) + 1]) << 16)
// Byte i of them.
#define BYTE(halves, i) (uint((halves)[(i) / 2]) >> (i) % 2 * 8 & 255)

// Vectors of words hold 16 bytes, which are calculated with all at once.
const uint EACH = 0x01010101u, TOPS = 0x80808080u;

// Subtracts n (at most 128) from bytes of at most 127.
uvec4 minus(uvec4 bytes, uint n) { return ((bytes | TOPS) - n * EACH) ^ TOPS; }

uvec4 low_nibbles(uvec4 q) { return q & 0x0f0f0f0fu; }
uvec4 high_nibbles(uvec4 q) { return q >> 4 & 0x0f0f0f0fu; }

// Bits 16·part … 16·part + 15 of a word, one to a byte.
uvec4 bit_bytes(uint word, uint part) {
    uvec4 four = uvec4(word) >> (uvec4(0, 4, 8, 12) + 16 * part) & 15;
    return (four * 0x00204081u) & EACH;
}

// Negates the bytes, none of them 0, whose bit of bit_bytes is set.
uvec4 negate(uvec4 bytes, uint signs, uint part) {
    uvec4 ones = bit_bytes(signs, part);
    return (bytes ^ ones * 255) + ones;
}

// Four times seven sign bits, each with its parity as the eighth.
uint even_signs(uint word) {
    uint sevens = (word & 0x7fu) | (word & 0x3f80u) << 1 | (word & 0x1fc000u) << 2 | (word & 0xfe00000u) << 3;
    uint parity = sevens ^ sevens >> 4;
    parity ^= parity >> 2;
    return sevens | ((parity ^ parity >> 1) & EACH) << 7;
}

float odd(uint scale) { return float(2 * scale + 1); }

// The four-bit values are chosen by arithmetic: lookups that differ from thread to thread are slow in constant memory.
uvec4 select(uvec4 mask, uvec4 off, uvec4 on) { return off ^ ((off ^ on) & mask); }
uvec4 select(uvec4 mask, int off, int on) {
    return select(mask, uvec4(uint(off & 255) * EACH), uvec4(uint(on & 255) * EACH));
}

// C's iq4_values of nibbles.
uvec4 iq4_values(uvec4 nibbles) {
    uvec4 bit0 = (nibbles & EACH) * 255, bit1 = (nibbles >> 1 & EACH) * 255, bit2 = (nibbles >> 2 & EACH) * 255,
          bit3 = (nibbles >> 3 & EACH) * 255;
    uvec4 v0 = select(bit1, select(bit0, -127, -104), select(bit0, -83, -65)),
          v4 = select(bit1, select(bit0, -49, -35), select(bit0, -22, -10)),
          v8 = select(bit1, select(bit0, 1, 13), select(bit0, 25, 38)),
          v12 = select(bit1, select(bit0, 53, 69), select(bit0, 89, 113));
    return select(bit3, select(bit2, v0, v4), select(bit2, v8, v12));
}

// C's fp4_values of nibbles: 0 … 4, 6, 8 and 12, and a sign.
uvec4 fp4_values(uvec4 nibbles) {
    uvec4 magnitude = nibbles & 0x07070707u, large = magnitude >> 2 & EACH;
    uvec4 value = magnitude + (magnitude & large * 3) + 2 * (large & magnitude >> 1 & magnitude);
    uvec4 negative = value & (nibbles >> 3 & EACH) * 255;
    return (TOPS + value - 2 * negative) ^ TOPS;
}

// Sixteen bytes from a half of a word on; the matrix begins at a whole one. A fifth word is only loaded where the bytes
// reach into it.
#define four_words(m, first_half) words_at(Uints(uvec2(m)), first_half)
uvec4 words_at(Uints words, uint first_half) {
    uint at = first_half / 2, odd = first_half & 1;
    uvec4 four = uvec4(words.v[at], words.v[at + 1], words.v[at + 2], words.v[at + 3]);
    return odd == 0 ? four : four >> 16 | uvec4(four.yzw, words.v[at + 3 + odd]) << 16;
}

// unpack(m, grids, at, part): piece `part` of block `at`.

#if defined(FORMAT_Q8_0)
#define ONE_SCALE
struct block { uint16_t d, q[16]; };
WEIGHTS(2, 32)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    return codes_of(four_words(m, 17 * at + 1), four_words(m, 17 * at + 9), f16(uint(m.b[at].d)));
}

#elif defined(FORMAT_Q4_0)
#define ONE_SCALE
struct block { uint16_t d, q[8]; };
WEIGHTS(2, 32)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec4 q = four_words(m, 9 * at + 1);
    return codes_of(minus(low_nibbles(q), 8), minus(high_nibbles(q), 8), f16(uint(m.b[at].d)));
}

#elif defined(FORMAT_Q4_1)
#define ONE_SCALE
#define HAS_MINIMUM
struct block { uint d_and_m; uvec4 q; };
WEIGHTS(4, 32)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec4 q = m.b[at].q;
    vec2 d = unpackHalf2x16(m.b[at].d_and_m);
    return codes_of(low_nibbles(q), high_nibbles(q), d.x, d.x, -d.y, -d.y);
}

#elif defined(FORMAT_Q5_0)
#define ONE_SCALE
struct block { uint16_t d, qh[2], q[8]; };
WEIGHTS(2, 32)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec4 q = four_words(m, 11 * at + 3);
    uint qh = WORD(m.b[at].qh, 0);
    return codes_of(minus(low_nibbles(q) | bit_bytes(qh, 0) << 4, 16),
                    minus(high_nibbles(q) | bit_bytes(qh, 1) << 4, 16), f16(uint(m.b[at].d)));
}

#elif defined(FORMAT_Q5_1)
#define ONE_SCALE
#define HAS_MINIMUM
struct block { uint d_and_m, qh; uvec4 q; };
WEIGHTS(4, 32)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec4 q = m.b[at].q;
    uint qh = m.b[at].qh;
    vec2 d = unpackHalf2x16(m.b[at].d_and_m);
    return codes_of(low_nibbles(q) | bit_bytes(qh, 0) << 4, high_nibbles(q) | bit_bytes(qh, 1) << 4,
                    d.x, d.x, -d.y, -d.y);
}

#elif defined(FORMAT_Q2_K)
#define HAS_MINIMUM
struct block { uint scales[4]; uvec4 q[4]; uint d_and_dmin; };
WEIGHTS(4, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint from = part / 4 * 2, shift = part % 4 * 2, scales = m.b[at].scales[part / 2] >> part % 2 * 16;
    vec2 d = unpackHalf2x16(m.b[at].d_and_dmin);
    return codes_of(m.b[at].q[from] >> shift & 0x03030303u, m.b[at].q[from + 1] >> shift & 0x03030303u,
                    d.x * float(scales & 15), d.x * float(scales >> 8 & 15),
                    d.y * float(scales >> 4 & 15), d.y * float(scales >> 12 & 15));
}

#elif defined(FORMAT_Q3_K)
struct block { uint16_t qh[16], q[32], scales[6], d; };
WEIGHTS(2, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint from = 55 * at + 16 + part / 4 * 16, shift = part % 4 * 2;
    uvec4 first = four_words(m, from) >> shift & 0x03030303u, second = four_words(m, from + 8) >> shift & 0x03030303u;
    first |= (four_words(m, 55 * at) >> part & EACH) << 2;
    second |= (four_words(m, 55 * at + 8) >> part & EACH) << 2;
    uint scales = (uint(m.b[at].scales[part % 4]) >> part / 4 * 4 & 0x0f0fu) |
                  (uint(m.b[at].scales[4 + part % 2]) >> part / 2 * 2 & 0x0303u) << 4;
    float d = f16(uint(m.b[at].d));
    return codes_of(minus(first, 4), minus(second, 4),
                    d * float(int(scales & 255) - 32), d * float(int(scales >> 8) - 32));
}

#elif defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
#define ONE_SCALE
#define HAS_MINIMUM
#ifdef FORMAT_Q4_K
struct block { uvec4 head, q[8]; };
#else
struct block { uvec4 head, qh[2], q[8]; };
#endif
WEIGHTS(16, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint from = part / 2 * 2, shift = part % 2 * 4;
    uvec4 first = m.b[at].q[from] >> shift & 0x0f0f0f0fu, second = m.b[at].q[from + 1] >> shift & 0x0f0f0f0fu;
#ifdef FORMAT_Q5_K
    first |= (m.b[at].qh[0] >> part & EACH) << 4;
    second |= (m.b[at].qh[1] >> part & EACH) << 4;
#endif
    uvec4 head = m.b[at].head; // d and dmin, scales
    uvec3 bytes = head.yzw >> part % 4 * 8;
    uvec2 scale_and_minimum = part < 4 ? bytes.xy & 63 : (uvec2(bytes.z, bytes.z >> 4) & 15) | (bytes.xy >> 2 & 48);
    vec2 d = unpackHalf2x16(head.x) * vec2(scale_and_minimum);
    return codes_of(first, second, d.x, d.x, d.y, d.y);
}

#elif defined(FORMAT_Q6_K)
struct block { uint16_t ql[64], qh[32], scales[8], d; };
WEIGHTS(2, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint low = 105 * at + part / 4 * 32 + part % 2 * 16, high = 105 * at + 64 + part / 4 * 16;
    uint low_shift = part % 4 / 2 * 4, high_shift = part % 4 * 2;
    uvec4 first = four_words(m, low) >> low_shift & 0x0f0f0f0fu,
          second = four_words(m, low + 8) >> low_shift & 0x0f0f0f0fu;
    first |= (four_words(m, high) >> high_shift & 0x03030303u) << 4;
    second |= (four_words(m, high + 8) >> high_shift & 0x03030303u) << 4;
    int scales = int(uint(m.b[at].scales[part]));
    float d = f16(uint(m.b[at].d));
    return codes_of(minus(first, 32), minus(second, 32),
                    d * float(bitfieldExtract(scales, 0, 8)), d * float(bitfieldExtract(scales, 8, 8)));
}

#elif defined(FORMAT_IQ4_NL)
#define ONE_SCALE
struct block { uint16_t d, q[8]; };
WEIGHTS(2, 32)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec4 q = four_words(m, 9 * at + 1);
    return codes_of(iq4_values(low_nibbles(q)), iq4_values(high_nibbles(q)), f16(uint(m.b[at].d)));
}

#elif defined(FORMAT_IQ4_XS)
#define ONE_SCALE
struct block { uint d_and_scales_high, scales_low; uvec4 q[8]; };
WEIGHTS(4, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec4 q = m.b[at].q[part];
    uint head = m.b[at].d_and_scales_high;
    uint scale = (m.b[at].scales_low >> 4 * part & 15) | (head >> 16 >> 2 * part & 3) << 4;
    return codes_of(iq4_values(low_nibbles(q)), iq4_values(high_nibbles(q)), f16(head) * float(int(scale) - 32));
}

#elif defined(FORMAT_IQ3_S)
#define ONE_SCALE
struct block { uint16_t d, q[32], qh[4], signs[16], scales[2]; };
WEIGHTS(2, 256)

uvec4 grid_words(Grids grids, uint q, uint qh) {
    return uvec4(grids.iq3_s[(q & 255) | (qh << 8 & 256)], grids.iq3_s[(q >> 8 & 255) | (qh << 7 & 256)],
                 grids.iq3_s[(q >> 16 & 255) | (qh << 6 & 256)], grids.iq3_s[(q >> 24) | (qh << 5 & 256)]);
}

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint qh = BYTE(m.b[at].qh, part), signs = WORD(m.b[at].signs, part);
    float scale = odd(WORD(m.b[at].scales, 0) >> 4 * part & 15);
    return codes_of(negate(grid_words(grids, WORD(m.b[at].q, 2 * part), qh), signs, 0),
                    negate(grid_words(grids, WORD(m.b[at].q, 2 * part + 1), qh >> 4), signs, 1),
                    f16(uint(m.b[at].d)) * scale);
}

#elif defined(FORMAT_IQ3_XXS)
#define ONE_SCALE
struct block { uint16_t d, q[32], signs[16]; };
WEIGHTS(2, 256)

uvec4 grid_words(Grids grids, uint q) {
    return uvec4(grids.iq3_xxs[q & 255], grids.iq3_xxs[q >> 8 & 255], grids.iq3_xxs[q >> 16 & 255],
                 grids.iq3_xxs[q >> 24]);
}

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint word = WORD(m.b[at].signs, part), signs = even_signs(word);
    return codes_of(negate(grid_words(grids, WORD(m.b[at].q, 2 * part)), signs, 0),
                    negate(grid_words(grids, WORD(m.b[at].q, 2 * part + 1)), signs, 1),
                    f16(uint(m.b[at].d)) * 0.25 * odd(word >> 28));
}

#elif defined(FORMAT_IQ2_S)
struct block { uint16_t d, q[16], signs[16], qh[4], scales[4]; };
WEIGHTS(2, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint q = WORD(m.b[at].q, part), qh = BYTE(m.b[at].qh, part), signs = WORD(m.b[at].signs, part);
    uint scales = BYTE(m.b[at].scales, part);
    float d = f16(uint(m.b[at].d)) * 0.125;
    uvec4 first = uvec4(grids.iq2_s[(q & 255) | (qh << 8 & 768)], grids.iq2_s[(q >> 8 & 255) | (qh << 6 & 768)]),
          second = uvec4(grids.iq2_s[(q >> 16 & 255) | (qh << 4 & 768)], grids.iq2_s[(q >> 24) | (qh << 2 & 768)]);
    return codes_of(negate(first, signs, 0), negate(second, signs, 1), d * odd(scales & 15), d * odd(scales >> 4));
}

#elif defined(FORMAT_IQ2_XS)
struct block { uint16_t d, q[32], scales[4]; };
WEIGHTS(2, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec4 q = uvec4(uint(m.b[at].q[4 * part]), uint(m.b[at].q[4 * part + 1]),
                    uint(m.b[at].q[4 * part + 2]), uint(m.b[at].q[4 * part + 3]));
    uvec4 sevens = q >> 9;
    uint signs = even_signs(sevens.x | sevens.y << 7 | sevens.z << 14 | sevens.w << 21);
    uint scales = BYTE(m.b[at].scales, part);
    float d = f16(uint(m.b[at].d)) * 0.125;
    q &= 511;
    return codes_of(negate(uvec4(grids.iq2_xs[q.x], grids.iq2_xs[q.y]), signs, 0),
                    negate(uvec4(grids.iq2_xs[q.z], grids.iq2_xs[q.w]), signs, 1),
                    d * odd(scales & 15), d * odd(scales >> 4));
}

#elif defined(FORMAT_IQ2_XXS)
#define ONE_SCALE
struct block { uint16_t d, q_and_signs[32]; };
WEIGHTS(2, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint q = WORD(m.b[at].q_and_signs, 2 * part), word = WORD(m.b[at].q_and_signs, 2 * part + 1);
    uint signs = even_signs(word);
    return codes_of(negate(uvec4(grids.iq2_xxs[q & 255], grids.iq2_xxs[q >> 8 & 255]), signs, 0),
                    negate(uvec4(grids.iq2_xxs[q >> 16 & 255], grids.iq2_xxs[q >> 24]), signs, 1),
                    f16(uint(m.b[at].d)) * 0.125 * odd(word >> 28));
}

#elif defined(FORMAT_IQ1_S) || defined(FORMAT_IQ1_M)
#ifdef FORMAT_IQ1_S
struct block { uint16_t d, q[16], qh[8]; };
WEIGHTS(2, 256)
#else
struct block { uint q[8], qh[4], scales[2]; };
WEIGHTS(4, 256)
#endif

// The codes of two groups in eighths: 8·grid ± 1.
uvec4 eighths(uvec2 first, uvec2 second, bool first_negative, bool second_negative) {
    uvec2 shift = uvec2(first_negative ? -EACH : EACH, second_negative ? -EACH : EACH);
    return (((uvec4(first, second) << 3 & 0xf8f8f8f8u) ^ TOPS) + shift.xxyy) ^ TOPS;
}

codes unpack(Weights m, Grids grids, uint at, uint part) {
#ifdef FORMAT_IQ1_S
    uint q = WORD(m.b[at].q, part), qh = uint(m.b[at].qh[part]);
    uvec4 high = uvec4(qh, qh >> 3, qh >> 6, qh >> 9) & 7;
    bvec4 negative = bvec4(qh >> 15 != 0);
    float scale = f16(uint(m.b[at].d)) * 0.125 * odd(qh >> 12 & 7);
    vec2 scales = vec2(scale);
#else
    uint q = m.b[at].q[part], qh = m.b[at].qh[part / 2] >> part % 2 * 16;
    uvec4 nibbles = uvec4(qh, qh >> 4, qh >> 8, qh >> 12), high = nibbles & 7;
    bvec4 negative = notEqual(nibbles & 8, uvec4(0));
    uint low = m.b[at].scales[0], top = m.b[at].scales[1];
    float d = f16((low >> 12 & 15) | (low >> 28) << 4 | (top >> 12 & 15) << 8 | (top >> 28) << 12) * 0.125;
    uint bits = (part < 4 ? low : top) >> part / 2 % 2 * 16 + part % 2 * 6;
    vec2 scales = vec2(d * odd(bits & 7), d * odd(bits >> 3 & 7));
#endif
    uvec4 index = (uvec4(q, q >> 8, q >> 16, q >> 24) & 255) | high << 8;
    return codes_of(eighths(grids.iq1[index.x], grids.iq1[index.y], negative.x, negative.y),
                    eighths(grids.iq1[index.z], grids.iq1[index.w], negative.z, negative.w), scales.x, scales.y);
}

#elif defined(FORMAT_MXFP4)
#define ONE_SCALE
struct block { uint8_t e, q[16]; };
WEIGHTS(1, 32)

float mxfp4_scale(uint e) { return uintBitsToFloat(e > 1 ? e - 1 << 23 : 0x200000u << e); }

// Loads the five words that a block touches instead of 17 bytes: up to three bytes on either side of it are read.
codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec2 base = uvec2(m);
    uint offset = (base.x & 3) + at % 4, from = 4 * at + at / 4 + offset / 4, shift = offset % 4 * 8; // 17·at bytes
    Uints words = Uints(uvec2(base.x & ~3u, base.y));
    uint first = words.v[from];
    uvec4 rest = uvec4(words.v[from + 1], words.v[from + 2], words.v[from + 3], words.v[from + 4]);
    // A shift by 32 is undefined.
    uvec4 q = shift == 24 ? rest : uvec4(first, rest.xyz) >> shift + 8 | rest << 24 - shift;
    return codes_of(fp4_values(low_nibbles(q)), fp4_values(high_nibbles(q)), mxfp4_scale(first >> shift & 255));
}

#elif defined(FORMAT_NVFP4)
struct block { uint d; uvec4 q[2]; };
WEIGHTS(4, 64)

float nvfp4_scale(uint bits) {
    uint exponent = bits >> 3 & 15, mantissa = bits & 7;
    if (bits == 127) return 0; // NaN
    float step = uintBitsToFloat(max(exponent, 1) + 116 << 23);
    return step * float(exponent > 0 ? mantissa + 8 : mantissa);
}

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uvec4 q = m.b[at].q[part];
    uvec4 low = fp4_values(low_nibbles(q)), high = fp4_values(high_nibbles(q));
    uint d = m.b[at].d >> 16 * part;
    return codes_of(uvec4(low.xy, high.xy), uvec4(low.zw, high.zw), nvfp4_scale(d & 255), nvfp4_scale(d >> 8 & 255));
}

#elif defined(FORMAT_TQ1_0)
#define ONE_SCALE
struct block { uint16_t q[24], qh[2], d; };
WEIGHTS(2, 256)

// Digit n of all bytes, minus 1; powers are 3ⁿ.
uvec4 ternary(uvec4 bytes, uvec4 powers) {
    uvec4 even = (bytes & 0x00ff00ffu) * powers & 0x00ff00ffu, odd = (bytes >> 8 & 0x00ff00ffu) * powers & 0x00ff00ffu;
    return minus((even * 3 >> 8 & 0x00030003u) | (odd * 3 & 0x03000300u), 1);
}

uint power(uint n) { return n < 4 ? 0x1b090301u >> 8 * n & 255 : 81; }

codes unpack(Weights m, Grids grids, uint at, uint part) {
    float d = f16(uint(m.b[at].d));
    if (part < 5)
        return codes_of(ternary(four_words(m, 27 * at), uvec4(power(part))),
                        ternary(four_words(m, 27 * at + 8), uvec4(power(part))), d);
    uvec4 q = four_words(m, 27 * at + 16);
    if (part < 7)
        return codes_of(ternary(q, uvec4(power(2 * part - 10))), ternary(q, uvec4(power(2 * part - 9))), d);
    return codes_of(ternary(q, uvec4(81)), ternary(uvec4(WORD(m.b[at].qh, 0)), uvec4(1, 3, 9, 27)), d);
}

#elif defined(FORMAT_TQ2_0)
#define ONE_SCALE
struct block { uint16_t q[32], d; };
WEIGHTS(2, 256)

codes unpack(Weights m, Grids grids, uint at, uint part) {
    uint from = 33 * at + part / 4 * 16, shift = part % 4 * 2;
    return codes_of(minus(four_words(m, from) >> shift & 0x03030303u, 1),
                    minus(four_words(m, from + 8) >> shift & 0x03030303u, 1), f16(uint(m.b[at].d)));
}

#else
#error "no block format chosen: define FORMAT_<name>"
#endif

#include "dot.glsl"

int sixteen_products(uvec4 a, uvec4 b) {
    return four_products(a.x, b.x, 0) + four_products(a.y, b.y, 0) + four_products(a.z, b.z, 0) +
           four_products(a.w, b.w, 0);
}

// Of an integer below 2²²: devices add faster than they convert. 1.5 × 2²³ has a last place of 1.
float float_of(int x) { return uintBitsToFloat(0x4b400000u + uint(x)) - 12582912.0; }

float multiply(codes w, Piece x) {
    const int low = sixteen_products(w.code[0], x.code[0]), high = sixteen_products(w.code[1], x.code[1]);
#ifdef ONE_SCALE
    float sum = w.scale[0] * x.scale * float_of(low + high);
#else
    float sum = x.scale * (w.scale[0] * float_of(low) + w.scale[1] * float_of(high));
#endif
#if defined(HAS_MINIMUM) && defined(ONE_SCALE)
    sum -= w.minimum[0] * (x.sum.x + x.sum.y);
#elif defined(HAS_MINIMUM)
    sum -= w.minimum[0] * x.sum.x + w.minimum[1] * x.sum.y;
#endif
    return sum;
}

vec4 signed_bytes(uint word) {
    int bytes = int(word);
    return vec4(bitfieldExtract(bytes, 0, 8), bitfieldExtract(bytes, 8, 8), bitfieldExtract(bytes, 16, 8), bytes >> 24);
}

// Four elements of word i. Multiplication and subtraction are not contracted, for the same values on all devices.
void put_values(codes c, uint i, inout float w[32]) {
    precise vec4 value = c.scale[i / 4] * signed_bytes(c.code[i / 4][i % 4]);
#ifdef HAS_MINIMUM
    value -= c.minimum[i / 4];
#endif
    w[4 * i] = value.x, w[4 * i + 1] = value.y, w[4 * i + 2] = value.z, w[4 * i + 3] = value.w;
}

// Rows are whole blocks: `columns` is ignored.
void decode(Weights m, Grids grids, uint first_block, uint piece, uint columns, out float w[32]) {
    const uint pieces = BLOCK_ELEMENTS / 32;
    codes c = unpack(m, grids, first_block + piece / pieces, piece % pieces);
    // No loop: when glslc unrolls one, all but the first iteration lose `precise` and are contracted.
    put_values(c, 0, w), put_values(c, 1, w), put_values(c, 2, w), put_values(c, 3, w);
    put_values(c, 4, w), put_values(c, 5, w), put_values(c, 6, w), put_values(c, 7, w);
}

#endif
#endif
