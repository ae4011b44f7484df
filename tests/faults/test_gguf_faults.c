// Damaged model files: truncated at every byte of the header, and mutated in thousands of ways. Each must either fail
// with a message or load and run; run this under the sanitizers as well.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "engine/base/panic.h"
#include "engine/text/tokenizer.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/xorshift.h"

enum { MUTATIONS = 2000, FIELDS_MAX = 2048, SECONDS_MAX = 300 };

// ---- loading ----

// A step of the model reads every weight; its result does not matter.
static void run_model(const struct model *m, bool exact) {
    const int32_t pages[] = {1};
    const struct batch_row rows[] = {{.token = 0},
                                     {.token = m->spec.n_vocab - 1},
                                     {.token = m->spec.n_vocab / 2, .output = ROW_LOGITS}};
    const struct batch_segment segment = {.n_rows = 3, .pages = pages};
    const struct batch batch = {.n_rows = 3, .n_segments = 1, .rows = rows, .segments = &segment};
    const struct backend_params params = {
        .model = m, .n_threads = 1, .n_pages = 2, .max_rows = 3, .max_logits = 1, .options.exact = exact};
    struct status st = {0};
    struct backend *b = cpu_backend.open(&params, &st);
    if (!b) {
        assert_true(st.text[0] != 0);
        return;
    }
    struct backend_result result;
    assert_true(cpu_backend.run(b, &batch, &result, &st));
    volatile float last = result.logits[m->spec.n_vocab - 1];
    (void)last;
    cpu_backend.close(b);
}

static void touch_tokenizer(const struct tokenizer *t) {
    static const char text[] = "Hello, the world <s> <|im_end|> \xf0\x9f\x98\x80 \xff 1999";
    struct token_list list = {0};
    tokenizer_encode(t, text, sizeof text - 1, true, &list);
    for (size_t i = 0; i < list.count; i++) assert_in_range(list.ids[i], 0, tokenizer_count(t) - 1);
    size_t size;
    free(tokenizer_decode(t, list.ids, list.count, true, &size));
    free(list.ids);
}

// Loads like the program: the file, its tokenizer, its model.
static bool load(const uint8_t *data, size_t size, struct status *st) {
    struct gguf g;
    struct model m;
    if (!gguf_open_memory(&g, "faulty.gguf", data, size, st)) return false;
    struct tokenizer *t = tokenizer_open(&g, st);
    bool loaded = t && model_open(&m, &g, tokenizer_count(t), st);
    if (loaded) {
        touch_tokenizer(t);
        run_model(&m, true);
        run_model(&m, false);
        model_close(&m);
    }
    tokenizer_close(t);
    gguf_close(&g);
    return loaded;
}

// True if it loaded.
static bool load_checked(const uint8_t *data, size_t size, const char *what, unsigned number) {
    struct status st = {0};
    uint8_t *copy = exact_copy(data, size);
    bool loaded = load(copy, size, &st);
    free(copy);
    if (loaded != (st.code == STATUS_OK)) fail_msg("%s %u: status and result disagree", what, number);
    if (!loaded && !strstr(st.text, "faulty.gguf: "))
        fail_msg("%s %u: '%s' does not name the file", what, number, st.text);
    if (!loaded && strlen(st.text) <= strlen("faulty.gguf: ")) fail_msg("%s %u: an empty message", what, number);
    return loaded;
}

// ---- valid files and the places of their fields ----

struct field {
    uint32_t at, width;
};

struct sample {
    uint8_t *data;
    size_t size, header;             // header: up to the tensor data
    struct field fields[FIELDS_MAX]; // lengths, counts, types, dimensions, offsets
    struct field values[FIELDS_MAX]; // of keys and elements, checked by later stages
    size_t n_fields, n_values;
};

static struct field field_at(const struct sample *s, const void *place, int before, size_t width) {
    assert_true(s->n_fields < FIELDS_MAX && s->n_values < FIELDS_MAX);
    return (struct field){(uint32_t)((const uint8_t *)place - s->data - before), (uint32_t)width};
}

static void add_field(struct sample *s, const void *place, int before, size_t width) {
    s->fields[s->n_fields] = field_at(s, place, before, width);
    s->n_fields++;
}

static void add_value(struct sample *s, const void *place, size_t width) {
    s->values[s->n_values] = field_at(s, place, 0, width);
    s->n_values++;
}

static void add_pair_fields(struct sample *s, const struct gguf_pair *p) {
    add_field(s, p->key.data, 8, 8);
    add_field(s, p->key.data + p->key.size, 0, 4); // the value's type
    if (p->type == GGUF_ARRAY) {
        add_field(s, p->data, 12, 4); // the elements' type
        add_field(s, p->data, 8, 8);  // their count
    }
    if (p->element == GGUF_STRING) {
        add_field(s, p->data, 0, 8);
        if (p->type == GGUF_STRING) add_value(s, p->data + 8, p->size - 8);
    } else {
        size_t width = p->size / p->count, step = 1 + p->count / 8;
        for (uint64_t i = 0; i < p->count; i += step) add_value(s, p->data + i * width, width);
    }
}

static void add_tensor_fields(struct sample *s, const struct gguf_tensor *t) {
    const char *at = t->name.data + t->name.size;
    add_field(s, t->name.data, 8, 8);
    add_value(s, t->name.data, t->name.size);
    add_field(s, at, 0, 4); // the number of dimensions
    for (int i = 0; i < t->n_dims; i++) add_field(s, at + 4 + 8 * i, 0, 8);
    add_field(s, at + 4 + 8 * t->n_dims, 0, 4); // the format
    add_field(s, at + 8 + 8 * t->n_dims, 0, 8); // the offset
}

static const struct tiny_model_options kinds[] = {
    {.family = TINY_LLAMA, .format = BLOCK_Q8_0, .n_layer = 1, .chat_template = TINY_CHATML},
    {.family = TINY_LLAMA_ROPE_FREQS, .format = BLOCK_F16, .n_layer = 2, .pre = "llama-bpe"},
    {.family = TINY_QWEN2, .format = BLOCK_Q4_0, .n_layer = 1, .pre = "qwen2", .chat_template = TINY_CHATML},
    {.family = TINY_QWEN3, .format = BLOCK_F32, .n_layer = 1, .tied = true, .pre = "gpt-2"},
};
// Families with more complex files.
static const char *const families[] = {"mixtral-singly", "mistral3", "deepseek",  "qwen2moe",    "qwen3moe-fused",
                                       "gpt-oss",        "gemma3",   "phi3-long", "llama-layers"};
enum {
    PLAIN_KINDS = sizeof kinds / sizeof *kinds,
    KINDS = PLAIN_KINDS + sizeof families / sizeof *families,
};

static uint8_t *kind_bytes(unsigned kind, size_t *size) {
    if (kind < PLAIN_KINDS) return tiny_model_bytes(kinds[kind], size);
    for (int i = 0; i < tiny_family_count; i++)
        if (!strcmp(tiny_families[i].name, families[kind - PLAIN_KINDS]))
            return tiny_shape_bytes(&tiny_families[i], size);
    fail_msg("no tiny model named %s", families[kind - PLAIN_KINDS]);
    return NULL;
}

static void make_sample(struct sample *s, unsigned kind) {
    struct gguf g;
    struct status st = {0};
    *s = (struct sample){0};
    s->data = kind_bytes(kind, &s->size);
    assert_true(gguf_open_memory(&g, "good", s->data, s->size, &st));
    s->header = s->size;
    for (int i = 0; i < 2; i++) add_field(s, s->data + 4 * i, 0, 4), add_field(s, s->data + 8 + 8 * i, 0, 8);
    for (uint64_t i = 0; i < g.n_pairs; i++) add_pair_fields(s, &g.pairs[i]);
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        size_t start = (size_t)((const uint8_t *)g.tensors[i].data - s->data);
        if (start < s->header) s->header = start;
        add_tensor_fields(s, &g.tensors[i]);
    }
    gguf_close(&g);
}

// ---- mutations ----

static size_t below(uint64_t *random, size_t n) { return (size_t)((xorshift(random) >> 16) % n); }

// Most of the header is token lengths, which all fail alike, so every other mutation changes a key or a tensor.
static size_t somewhere(const struct sample *s, uint64_t *random) {
    if (below(random, 2)) return below(random, s->header);
    size_t field = below(random, s->n_fields), at = s->fields[field].at + below(random, s->fields[field].width + 12u);
    return at < s->header ? at : 0;
}

static void flip_bits(struct sample *s, uint64_t *random) {
    for (size_t n = 1 + below(random, 3); n > 0; n--)
        s->data[somewhere(s, random)] ^= (uint8_t)(1u << below(random, 8));
}

static void set_bytes(struct sample *s, uint64_t *random) {
    static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff, ' ', '%', '\n'};
    for (size_t n = 1 + below(random, 3); n > 0; n--)
        s->data[somewhere(s, random)] = bytes[below(random, sizeof bytes)];
}

// The last two are a NaN and infinity as f32.
static const uint64_t extremes[] = {0,
                                    1,
                                    2,
                                    3,
                                    7,
                                    13,
                                    255,
                                    1000,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    1ull << 32,
                                    1ull << 40,
                                    1ull << 62,
                                    1ull << 63,
                                    UINT64_MAX - 31,
                                    UINT64_MAX / 8,
                                    UINT64_MAX,
                                    0x7fc00000,
                                    0x7f800000};

// Sets a number to an extreme, or changes it by one.
static void set_number(uint8_t *at, size_t width, uint64_t *random) {
    uint64_t value = 0;
    if (width > sizeof value) at += below(random, width - sizeof value), width = sizeof value;
    memcpy(&value, at, width);
    switch (below(random, 4)) {
    case 0: value++; break;
    case 1: value--; break;
    default: value = extremes[below(random, sizeof extremes / sizeof *extremes)];
    }
    memcpy(at, &value, width);
}

static void set_field(struct sample *s, uint64_t *random) {
    const struct field *f = &s->fields[below(random, s->n_fields)];
    set_number(s->data + f->at, f->width, random);
}

static void set_value(struct sample *s, uint64_t *random) {
    const struct field *f = &s->values[below(random, s->n_values)];
    set_number(s->data + f->at, f->width, random);
}

static void swap_runs(struct sample *s, uint64_t *random) {
    size_t length = 1 + below(random, 64), room = s->header - length, a = below(random, room), b = below(random, room);
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = s->data[a + i];
        s->data[a + i] = s->data[b + i], s->data[b + i] = byte;
    }
}

static void cut_out(struct sample *s, uint64_t *random) {
    size_t length = 1 + below(random, 64), at = below(random, s->header - length);
    memmove(s->data + at, s->data + at + length, s->size - at - length);
    s->size -= length;
}

static void (*const mutations[])(struct sample *, uint64_t *) = {flip_bits, set_bytes, set_field, set_value,
                                                                 set_value, swap_runs, cut_out};

// ---- tests ----

static void good_samples_load(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct sample s;
        make_sample(&s, kind);
        assert_true(load_checked(s.data, s.size, "sample", kind));
        free(s.data);
    }
}

static void files_cut_off_anywhere_in_the_header_are_refused(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < PLAIN_KINDS; kind++) {
        struct sample s;
        make_sample(&s, kind);
        for (size_t size = 0; size < s.header; size++)
            if (load_checked(s.data, size, "cut off at", (unsigned)size)) fail_msg("%zu bytes loaded", size);
        for (size_t size = s.header; size < s.size; size += 1 + s.size / 50)
            if (load_checked(s.data, size, "cut off at", (unsigned)size)) fail_msg("%zu bytes loaded", size);
        free(s.data);
    }
}

static void mutations_load_or_are_refused(void **state) {
    (void)state;
    struct sample samples[KINDS];
    unsigned loaded = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) make_sample(&samples[kind], kind);
    for (unsigned seed = 0; seed < MUTATIONS; seed++) {
        struct sample s = samples[seed % KINDS];
        uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15u;
        s.data = xmalloc(s.size);
        memcpy(s.data, samples[seed % KINDS].data, s.size);
        size_t kind = below(&random, sizeof mutations / sizeof *mutations);
        for (size_t n = 1 + below(&random, 2); n > 0; n--) mutations[kind](&s, &random);
        loaded += load_checked(s.data, s.size, "mutation", seed);
        free(s.data);
    }
    print_message("%u of %d loaded, the others were rejected\n", loaded, MUTATIONS);
    assert_in_range(loaded, 1, MUTATIONS - 1);
    for (unsigned kind = 0; kind < KINDS; kind++) free(samples[kind].data);
}

// Shapes that are valid although no real model has them: they must run with every kernel.
static void models_of_strange_shapes_run(void **state) {
    (void)state;
    static const struct tiny_model_options strange[] = {
        {.n_embd = 36, .n_head = 6, .n_head_kv = 3, .n_ff = 50},
        {.n_embd = 2, .n_head = 1, .n_head_kv = 1, .n_ff = 1, .n_layer = 1},
        {.n_embd = 100, .n_head = 5, .n_head_kv = 1, .n_ff = 33, .family = TINY_QWEN2, .format = BLOCK_F16},
        {.n_embd = 34, .n_head = 1, .n_head_kv = 1, .n_ff = 15, .family = TINY_QWEN3, .format = BLOCK_BF16},
        {.n_embd = 96, .n_head = 4, .n_head_kv = 4, .n_ff = 160, .format = BLOCK_Q8_0},
        {.n_embd = 96, .n_head = 48, .n_head_kv = 16, .n_ff = 32, .format = BLOCK_Q4_0},
        {.n_embd = 32, .n_head = 1, .n_head_kv = 1, .n_ff = 32, .head_size = 1024, .format = BLOCK_Q8_0},
        {.n_embd = 768, .n_head = 3, .n_head_kv = 3, .n_ff = 256, .n_layer = 1, .format = BLOCK_Q4_K},
        {.n_embd = 256, .n_head = 128, .n_head_kv = 1, .n_ff = 768, .n_layer = 1, .format = BLOCK_Q6_K},
    };
    for (unsigned i = 0; i < sizeof strange / sizeof *strange; i++) {
        size_t size;
        uint8_t *data = tiny_model_bytes(strange[i], &size);
        struct status st = {0};
        if (!load(data, size, &st)) fail_msg("shape %u: %s", i, st.text);
        free(data);
    }
}

// The same with files: a mapping ends where the file does.
static void files_on_disk_that_end_early_are_refused(void **state) {
    (void)state;
    char path[] = "/tmp/confab-faults-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    struct sample s;
    make_sample(&s, 0);
    tiny_model_write(path, kinds[0]);
    for (size_t size = s.header; size > 0; size -= size < 97 ? size : 97) {
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        struct gguf g;
        struct status st = {0};
        assert_false(gguf_open(&g, path, &st));
        assert_non_null(strstr(st.text, path));
    }
    close(fd);
    unlink(path);
    free(s.data);
}

int main(void) {
    alarm(SECONDS_MAX); // a load that hangs is a failure too
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_samples_load),
        cmocka_unit_test(files_cut_off_anywhere_in_the_header_are_refused),
        cmocka_unit_test(mutations_load_or_are_refused),
        cmocka_unit_test(models_of_strange_shapes_run),
        cmocka_unit_test(files_on_disk_that_end_early_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
