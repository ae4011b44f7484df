// How a backend computes, and how it keeps weights, keys and values: what whoever opens an engine decides and nobody
// below it changes. Said once for the engine's interface, the scheduler, the backends and the settings.
#ifndef CONFAB_BACKEND_OPTIONS_H
#define CONFAB_BACKEND_OPTIONS_H

#include <stdbool.h>

// The forms in which a KV cache can keep keys and values, in the order of enum kv_type.
#define KV_TYPE_CHOICES "f16|bf16|q8_0|q4_0"
enum kv_type {
    KV_F16,  // halves, up to 65504
    KV_BF16, // halves with the range of 32-bit floats
    KV_Q8_0, // 32 elements of a token's head: bytes under one scale, a half
    KV_Q4_0, // the same in four bits
    KV_TYPES
};

struct backend_options {
    const char *device;   // by its name (device.h), or "auto", read while opening; NULL: auto, every GPU there is
    int gpu_layers;       // of the model's last layers, how many run on devices; 0: as many as fit
    enum kv_type kv_type; // fewer bytes, more tokens; unless exact
    bool exact;           // the scalar f32 reference path, keys and values in f32
    bool lock_weights;    // into memory, so that they are never swapped out; opening fails where that is not allowed
    bool small_pages;     // no huge pages for weights, KV cache and buffers
    // Where the weights' file is in memory: runs may begin before they are repacked, and take longer until they are;
    // progress is not told.
    bool quick_start;
    // Told now and then how much of the weights is ready, 0 to 1, on the thread that opens; false: stop and fail with
    // STATUS_CANCELLED. NULL: nobody cares.
    bool (*progress)(void *context, double done);
    void *progress_context;
};

#endif
