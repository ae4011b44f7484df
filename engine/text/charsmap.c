#include "engine/text/charsmap.h"

#include <string.h>

// A 32-bit unit of the array: a node, or a value that a node's offset leads to.
//
//     31        30                10   9       8       7 0
//   +-------+-------------------------+-------+-------+-------+
//   | value |  offset to the children | × 256 | value | label |
//   | unit? |  (xor the node's index) |       |  too? |       |
//   +-------+-------------------------+-------+-------+-------+
static uint32_t unit_at(const struct charsmap *map, uint32_t index) {
    const uint8_t *p = map->units + 4 * (size_t)index;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static uint32_t unit_offset(uint32_t unit) { return unit >> 10 << (unit & 1u << 9 ? 8 : 0); }
static bool unit_has_value(uint32_t unit) { return unit & 1u << 8; }
static uint32_t unit_label(uint32_t unit) { return unit & (1u << 31 | 0xff); } // of a value unit: not a byte
static uint32_t unit_value(uint32_t unit) { return unit & ~(1u << 31); }

static bool check_values(struct span values, const char *path, struct status *st) {
    for (size_t at = 0; at < values.size;) {
        size_t left = values.size - at, room = left < CHARSMAP_LONGEST + 1 ? left : CHARSMAP_LONGEST + 1;
        const char *end = memchr(values.data + at, 0, room);
        if (!end)
            return status_fail(st, STATUS_FORMAT,
                               "%s: tokenizer.ggml.precompiled_charsmap: value at byte %zu is too long (maximum %d)",
                               path, at, CHARSMAP_LONGEST);
        at = (size_t)(end - values.data) + 1;
    }
    return true;
}

bool charsmap_open(struct charsmap *map, struct span bytes, const char *path, struct status *st) {
    struct reader r = reader_over(bytes.data, bytes.size);
    uint32_t size = reader_u32(&r);
    struct span array = reader_bytes(&r, size);
    if (reader_failed(&r) || size % 4 || size == 0)
        return status_fail(st, STATUS_FORMAT,
                           "%s: tokenizer.ggml.precompiled_charsmap: invalid array size %u in %zu bytes", path,
                           (unsigned)size, bytes.size);
    map->units = (const uint8_t *)array.data;
    map->count = size / 4;
    map->values = reader_bytes(&r, reader_left(&r));
    return check_values(map->values, path, st);
}

size_t charsmap_match(const struct charsmap *map, const char *text, size_t size, struct span *value) {
    size_t longest = 0;
    if (!map->count) return 0;
    if (size > CHARSMAP_LONGEST) size = CHARSMAP_LONGEST;
    uint32_t index = unit_offset(unit_at(map, 0));
    for (size_t i = 0; i < size && text[i]; i++) {
        index ^= (uint8_t)text[i];
        if (index >= map->count || unit_label(unit_at(map, index)) != (uint8_t)text[i]) break;
        uint32_t unit = unit_at(map, index);
        index ^= unit_offset(unit);
        if (!unit_has_value(unit) || index >= map->count) continue;
        uint32_t at = unit_value(unit_at(map, index));
        if (at >= map->values.size) continue;
        *value = (struct span){map->values.data + at, strlen(map->values.data + at)};
        longest = i + 1;
    }
    return longest;
}
