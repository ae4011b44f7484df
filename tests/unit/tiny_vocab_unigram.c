#include <stdlib.h>
#include <string.h>

#include "tests/unit/tiny_vocab.h"
#include "tests/unit/tiny_vocab_parts.h"

// A characters map: keys, in the order of their bytes, and what replaces them.
static const char *const map[][2] = {
    {"\t", " "},
    {"\n", " "},
    {"A\u030a", "Å"},
    {"\u00a0", " "},
    {"½", "1⁄2"},
    {"ö\u0308", "ö"},
    {"\u200b", ""},
    {"①", "1"},
    {"\u3000", " "},
    {"ﬁ", "fi"},
    {"ﷺ", "صلى الله عليه وسلم"},
    {"ｶ", "カ"},
    {"ｶﾞ", "ガ"},
};
enum { MAP_COUNT = sizeof map / sizeof *map, UNITS = 4096 };

// Lays the keys out as a double array: a node's children stand at its offset, exclusive-or their byte.
struct layout {
    uint32_t units[UNITS];
    bool used[UNITS];
    uint32_t values[MAP_COUNT]; // where each replacement begins
};

static bool fits(const struct layout *l, uint32_t base, const uint8_t *labels, int n) {
    for (int i = 0; i < n; i++)
        if ((base ^ labels[i]) >= UNITS || l->used[base ^ labels[i]]) return false;
    return true;
}

// The node at `index` stands for the first `depth` bytes of keys [first, end).
static void lay(struct layout *l, uint32_t index, int first, int end, size_t depth) {
    uint8_t labels[MAP_COUNT] = {0};
    int n = 0;
    for (int i = first; i < end; i++) {
        uint8_t byte = (uint8_t)map[i][0][depth];
        if (n == 0 || labels[n - 1] != byte) labels[n++] = byte;
    }
    uint32_t base = 1;
    while (!fits(l, base, labels, n)) base++;
    for (int i = 0; i < n; i++) l->used[base ^ labels[i]] = true;
    l->units[index] |= (index ^ base) << 10 | (labels[0] == 0 ? 1u << 8 : 0);
    for (int i = 0, from = first, to; i < n; i++, from = to) {
        for (to = from; to < end && (uint8_t)map[to][0][depth] == labels[i];) to++;
        uint32_t child = base ^ labels[i];
        l->units[child] = labels[i] ? labels[i] : 1u << 31 | l->values[from];
        if (labels[i]) lay(l, child, from, to, depth + 1);
    }
}

static void write_map(struct gguf_writer *w) {
    struct layout *l = calloc(1, sizeof *l);
    struct bytes values = {0}, all = {0};
    for (int i = 0; i < MAP_COUNT; i++) {
        l->values[i] = (uint32_t)values.size;
        bytes_put(&values, map[i][1], strlen(map[i][1]) + 1);
    }
    l->used[0] = true;
    lay(l, 0, 0, MAP_COUNT, 0);
    bytes_u32(&all, sizeof l->units);
    for (int i = 0; i < UNITS; i++) bytes_u32(&all, l->units[i]);
    bytes_put(&all, values.data, values.size);
    gguf_writer_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, all.size, all.data, all.size);
    free(values.data);
    free(all.data);
    free(l);
}

int tiny_vocab_unigram(struct gguf_writer *w) {
    static const struct {
        const char *text;
        float score;
    } pieces[] = {
        {"▁", -2.0f},      {"s", -3.1f},      {"▁the", -3.4f},   {"e", -3.7f},     {"t", -3.8f},   {"a", -3.9f},
        {"▁a", -4.0f},     {"o", -4.1f},      {"n", -4.2f},      {"i", -4.3f},     {"r", -4.4f},   {"l", -4.5f},
        {"d", -4.6f},      {"h", -4.7f},      {"ing", -4.8f},    {"▁w", -4.9f},    {"or", -5.0f},  {"ld", -5.1f},
        {"▁world", -6.5f}, {"▁hello", -6.9f}, {"▁Hello", -7.1f}, {"er", -5.2f},    {"he", -5.3f},  {"ll", -5.4f},
        {"lo", -5.5f},     {"H", -6.0f},      {"w", -5.6f},      {"c", -5.7f},     {"u", -5.8f},   {"p", -5.9f},
        {"m", -6.1f},      {"f", -6.2f},      {"fi", -6.3f},     {"g", -6.4f},     {"y", -6.6f},   {"b", -6.7f},
        {"1", -6.8f},      {"2", -7.0f},      {"12", -9.0f},     {"3", -7.2f},     {".", -4.0f},   {",", -4.1f},
        {"!", -7.3f},      {"世", -9.5f},     {"界", -9.6f},     {"世界", -10.0f}, {"カ", -10.5f}, {"ガ", -10.6f},
        {"Å", -10.7f},     {"é", -8.1f},      {"▁é", -8.5f},     {"ö", -8.2f},     {"ß", -8.3f},   {"😀", -11.0f},
        {"aa", -7.8f},     {"aaa", -11.7f},   {"▁▁", -8.8f},     {"th", -5.0f},    {"▁t", -4.4f},  {"in", -5.1f},
    };
    struct tiny_vocab v = {0};
    tiny_vocab_add(&v, "<pad>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "</s>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "<unk>", 0, TOKEN_UNKNOWN);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        tiny_vocab_add(&v, pieces[i].text, pieces[i].score, TOKEN_NORMAL);
    tiny_vocab_add(&v, "old", -1.0f, TOKEN_UNUSED);
    tiny_vocab_add(&v, "<extra_id_0>", 0, TOKEN_USER_DEFINED);
    gguf_writer_string(w, "tokenizer.ggml.model", "t5");
    write_map(w);
    return tiny_vocab_write(&v, w, true);
}
