#include "engine/text/token_index.h"

#include <string.h>

#include "engine/base/hash_seed.h"

// Most texts fit in a word and are compared in the slot, without touching the text.
struct token_slot {
    uint64_t key; // the text itself if at most 8 bytes, otherwise its hash
    uint32_t size;
    int32_t id_plus_1; // 0: free
};

// The 128-bit product of two words, folded.
static inline uint64_t mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t token_hash_pair(uint64_t seed, int32_t a, int32_t b) {
    return mix(((uint64_t)(uint32_t)a << 32 | (uint32_t)b) ^ seed, 0x9e3779b97f4a7c15u);
}

// The first 1–8 bytes as a word. Short texts are loaded in two halves that may overlap.
static inline uint64_t load_word(const char *p, size_t size) {
    uint64_t word = 0;
    uint32_t head = 0, tail = 0;
    if (size >= 8) memcpy(&word, p, 8);
    else if (size >= 4) {
        memcpy(&head, p, 4);
        memcpy(&tail, p + size - 4, 4);
        word = (uint64_t)tail << 32 | head;
    } else if (size) {
        word = (uint64_t)(uint8_t)p[0] | (uint64_t)(uint8_t)p[size / 2] << 8 | (uint64_t)(uint8_t)p[size - 1] << 16;
    }
    return word;
}

static uint64_t hash_long(uint64_t seed, const char *text, size_t size) {
    uint64_t hash = seed;
    for (; size > 8; text += 8, size -= 8) hash = mix(hash ^ load_word(text, 8), 0xd6e8feb86659fd93u);
    return mix(hash ^ load_word(text, size), 0xd6e8feb86659fd93u);
}

bool token_table_open(struct token_table *t, uint64_t count, size_t slot_size, struct status *st) {
    uint64_t n = 16, bytes;
    while (n / 3 * 2 < count) n *= 2;
    *t = (struct token_table){.mask = n - 1};
    if (checked_mul(n, slot_size, &bytes)) t->slots = region_alloc(t->size = (size_t)bytes);
    return t->slots ||
           status_fail(st, STATUS_MEMORY, "cannot allocate a table of %llu entries", (unsigned long long)count);
}

void token_table_close(struct token_table *t) {
    region_free(t->slots, t->size);
    *t = (struct token_table){0};
}

// The slot of the text, or the free slot for it; *key is its key.
static struct token_slot *find_slot(const struct token_index *index, const char *text, size_t size, uint64_t *key) {
    struct token_slot *slots = index->table.slots;
    *key = size <= 8 ? load_word(text, size) : hash_long(index->seed, text, size);
    for (uint64_t at = mix(*key ^ index->seed, 0xa0761d6478bd642fu + size * 2);; at++) {
        struct token_slot *slot = &slots[at & index->table.mask];
        if (!slot->id_plus_1) return slot;
        if (slot->key != *key || slot->size != size) continue;
        if (size <= 8 || !memcmp(index->texts[slot->id_plus_1 - 1].data, text, size)) return slot;
    }
}

bool token_index_open(struct token_index *index, const struct span *texts, int32_t count, struct status *st) {
    *index = (struct token_index){.texts = texts, .seed = hash_seed(), .unique = true};
    if (!token_table_open(&index->table, (uint64_t)count, sizeof(struct token_slot), st)) return false;
    for (int32_t id = 0; id < count; id++) {
        uint64_t key;
        struct token_slot *slot = find_slot(index, texts[id].data, texts[id].size, &key);
        if (slot->id_plus_1) index->unique = false;
        *slot = (struct token_slot){key, (uint32_t)texts[id].size, id + 1};
    }
    return true;
}

int32_t token_index_find(const struct token_index *index, const char *text, size_t size) {
    uint64_t key;
    return find_slot(index, text, size, &key)->id_plus_1 - 1;
}

void token_index_close(struct token_index *index) { token_table_close(&index->table); }
