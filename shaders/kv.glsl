#extension GL_EXT_buffer_reference_uvec2 : require

// KV pages of a layer on a device. Of a page and kv head first the keys, then the values, of KV_PAGE_TOKENS slots.
//     f16, bf16   keys [head size][slots], values [slots][head size]
//     q8_0, q4_0  blocks of 32 elements, each with the scales of all slots before the codes:
//                 keys f16 [slots], codes [elements][slots]; values f16 [slots], codes [slots][elements];
//                 of q4_0 element i lies in the low, element i + 16 in the high half of a byte, plus 8
const uint PAGE = 32; // KV_PAGE_TOKENS
const uint KV_F16 = 0, KV_BF16 = 1, KV_Q8_0 = 2, KV_Q4_0 = 3; // enum kv_type
layout(constant_id = 0) const uint HEAD_SIZE = 64;
layout(constant_id = 1) const uint KV_TYPE = KV_F16;

const uint BLOCKS = (HEAD_SIZE + 31) / 32; // of quantised ones
const uint CODES = KV_TYPE == KV_Q4_0 ? 16 : 32; // bytes of a block and slot
const uint BLOCK_BYTES = PAGE * (2 + CODES);
const uint SIDE_BYTES = KV_TYPE < KV_Q8_0 ? HEAD_SIZE * PAGE * 2 : BLOCKS * BLOCK_BYTES; // keys or values

layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Halves { float16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Words { uint16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Codes { int8_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t v[]; };

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer PageList { uvec2 v[]; }; // addresses
Bytes kv; // the page that was opened last

// Where the keys of a kv head begin in the page, of whose layers this one begins at `layer`.
uint open_page(uvec2 page, uint layer, uint head) {
    kv = Bytes(page);
    return layer + head * 2 * SIDE_BYTES;
}
