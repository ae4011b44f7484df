// The forms in which a KV cache can keep keys and values: said once for the engine's interface, the backends and the
// options.
#ifndef CONFAB_KV_TYPE_H
#define CONFAB_KV_TYPE_H

// In the order of enum kv_type.
#define KV_TYPE_CHOICES "f16|bf16|q8_0|q4_0"
enum kv_type {
    KV_F16,  // halves, up to 65504
    KV_BF16, // halves with the range of 32-bit floats
    KV_Q8_0, // 32 elements of a token's head: bytes under one scale, a half
    KV_Q4_0, // the same in four bits
    KV_TYPES
};

#endif
