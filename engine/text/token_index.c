#include "engine/text/token_index.h"

#include <string.h>
#include <sys/auxv.h>

struct token_slot {
    uint32_t hash;
    int32_t id_plus_1; // 0: free
};

// The sixteen random bytes that the kernel gives every process.
uint64_t token_hash_seed(void) {
    uint64_t seed = 0;
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random) memcpy(&seed, random, sizeof seed);
    return seed;
}

// The 128-bit product of two words, folded.
static inline uint64_t mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t token_hash_pair(uint64_t seed, int32_t a, int32_t b) {
    return mix(((uint64_t)(uint32_t)a << 32 | (uint32_t)b) ^ seed, 0x9e3779b97f4a7c15u);
}

static uint64_t load_tail(const char *p, size_t size) {
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) word |= (uint64_t)(uint8_t)p[i] << 8 * i;
    return word;
}

static uint32_t hash_text(uint64_t seed, const char *text, size_t size) {
    static const uint64_t odd[2] = {0xd6e8feb86659fd93u, 0xa0761d6478bd642fu};
    uint64_t hash = seed ^ size;
    for (; size >= 8; text += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = mix(hash ^ word, odd[0]);
    }
    return (uint32_t)mix(hash ^ load_tail(text, size), odd[1]);
}

uint64_t token_table_size(uint64_t count) {
    uint64_t size = 16;
    while (size / 3 * 2 < count) size *= 2;
    return size;
}

// The slot that holds the text, or the free one where it belongs.
static struct token_slot *find_slot(const struct token_index *index, const char *text, size_t size, uint32_t hash) {
    for (uint64_t at = hash & index->mask;; at = (at + 1) & index->mask) {
        struct token_slot *slot = &index->slots[at];
        if (!slot->id_plus_1) return slot;
        if (slot->hash != hash) continue;
        struct span known = index->texts[slot->id_plus_1 - 1];
        if (known.size == size && !memcmp(known.data, text, size)) return slot;
    }
}

bool token_index_open(struct token_index *index, struct arena *arena, const struct span *texts, int32_t count,
                      struct status *st) {
    uint64_t n_slots = token_table_size((uint64_t)count);
    *index = (struct token_index){texts, arena_array(arena, n_slots, sizeof *index->slots, st), n_slots - 1,
                                  token_hash_seed()};
    if (!index->slots) return false;
    for (int32_t id = 0; id < count; id++) {
        uint32_t hash = hash_text(index->seed, texts[id].data, texts[id].size);
        *find_slot(index, texts[id].data, texts[id].size, hash) = (struct token_slot){hash, id + 1};
    }
    return true;
}

int32_t token_index_find(const struct token_index *index, const char *text, size_t size) {
    return find_slot(index, text, size, hash_text(index->seed, text, size))->id_plus_1 - 1;
}
