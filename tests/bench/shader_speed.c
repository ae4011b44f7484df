// shader_speed [--device N] [--quick] [--only PREFIX] [--constants I=V,…] [--shaders FOLDER]: times single operations
// on a Vulkan device, as they run in a pass: recorded by the functions of engine/vulkan, each behind a barrier, with
// weights and keys that come from memory and not from a cache. Shapes are those of an 8B llama; with --quick, and on
// emulated devices, a sixteenth of them.
//
// --only: cases whose names begin with PREFIX. --constants: other specialisation constants for all shaders that are
// run; the numbers of work groups follow. --shaders: FOLDER/NAME.spv in place of the embedded shader of that name.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "engine/vulkan/forward.c" // in whose place this stands in the program: their operations are static
#include "engine/vulkan/matmuls.c"
#include "engine/vulkan/shaders.h"

enum { RUNS = 5, MOST_TURNS = 512, MOST_ROWS = 512, STAGING_BYTES = 16 << 20 };

static struct {
    int device;
    bool quick;
    const char *only, *folder;
    int constants[VULKAN_MOST_CONSTANTS]; // negative: as a pass has them
} options;

static struct backend b;
static struct model model;
static struct layer_spec layer_spec;
static struct vulkan_buffer memory; // of weights
static struct vulkan_list list;
static VkDeviceAddress page_list; // of all pages
static uint64_t turn;             // of all repetitions

static void need(bool ok, const struct status *st) {
    if (!ok) panic("%s", st->text);
}

// ---- a pass, in the place of engine/vulkan/pass.c ----

static const char *building; // name of the shader whose pipeline is wanted

// Which constants say what share of the rows and columns a work group has, in y and in x.
static const struct {
    const char *shader;
    int x, y; // negative: none
} shares[] = {{"matvec_", 0, -1}, {"matmul_", 0, -1}, {"cooperative", 1, 0}, {"attention", 3, 4}};

static void share_anew(uint32_t *n_groups, const uint32_t *constants, int i) {
    if (i >= 0 && options.constants[i] > 0)
        *n_groups = groups(*n_groups * constants[i], (uint32_t)options.constants[i]);
}

void pass_run(struct pass *p, const char *shader, const uint32_t *constants, int n, const void *push, size_t size,
              uint32_t x, uint32_t y, uint32_t z) {
    uint32_t chosen[VULKAN_MOST_CONSTANTS] = {0};
    if (!p->ok || !x || !y || !z) return;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (!strncmp(shader, shares[i].shader, strlen(shares[i].shader)) && shares[i].x < n && shares[i].y < n)
            share_anew(&x, constants, shares[i].x), share_anew(&y, constants, shares[i].y);
    memcpy(chosen, constants, (size_t)n * sizeof *constants);
    for (int i = 0; i < VULKAN_MOST_CONSTANTS && i <= n; i++) // one more than there are: of a new shader
        if (options.constants[i] >= 0) chosen[i] = (uint32_t)options.constants[i], n = i < n ? n : i + 1;
    building = shader;
    const VkPipeline pipeline = vulkan_pipeline(b.context.device, shader, chosen, n, p->st);
    p->ok = pipeline != VK_NULL_HANDLE;
    if (p->ok) vulkan_dispatch(&b.context, pipeline, push, size, x, y, z);
}

void pass_barrier(struct pass *p) {
    p->halved = p->widened_begin = p->widened_end = 0;
    if (p->ok) vulkan_barrier(&b.context);
}

void pass_end_stage(struct pass *p, enum backend_stage stage) { (void)p, (void)stage; }

// ---- shaders from files ----

static PFN_vkCreateShaderModule create_module;

static VkResult create_from_file(VkDevice device, const VkShaderModuleCreateInfo *embedded,
                                 const VkAllocationCallbacks *allocator, VkShaderModule *out) {
    VkShaderModuleCreateInfo info = *embedded;
    struct status st = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.spv", options.folder, building);
    char *code = file_read_regular(path, 1 << 24, &info.codeSize, &st);
    if (code) info.pCode = (const uint32_t *)code;
    else info.codeSize = embedded->codeSize;
    const VkResult result = create_module(device, &info, allocator, out);
    free(code);
    return result;
}

static void wrap_functions(struct vulkan_device_functions *call) {
    create_module = call->CreateShaderModule;
    call->CreateShaderModule = create_from_file;
}

// ---- measuring ----

struct trial {
    int n; // rows of the batch
    const struct block_format *format;
    uint32_t rows, columns;   // of the matrix
    int n_segments, context;  // conversations, and tokens of each
    double bytes, operations; // that it reads, and computes
    bool apart, times, lists; // without barriers; with a timestamp after each; with lists of rows
};

static struct {
    struct trial trial;
    void (*record)(struct pass *p, const struct trial *t);
} now;

// Seconds that a repetition takes.
static double time_turns(int n_turns) {
    struct status st = {0};
    struct pass p = {.b = &b, .st = &st, .ok = true, .shape.n_rows = now.trial.n, .shape.reach = 1};
    double seconds[MOST_TURNS + 1], sum = 0;
    p.shape.long_segments = now.trial.n >= 4 * now.trial.n_segments; // as pass.c has them
    while (p.shape.reach <= now.trial.context / 2) p.shape.reach *= 2;
    need(vulkan_begin(&b.context, &list, &st), &st);
    workspace_record_input(&b, now.trial.n);
    vulkan_time(&b.context);
    for (int i = 0; i < n_turns; i++, turn++) {
        now.record(&p, &now.trial);
        if (!now.trial.apart) pass_barrier(&p);
        if (now.trial.times) vulkan_time(&b.context);
    }
    vulkan_time(&b.context);
    const struct vulkan_list *const lists[] = {&list};
    need(p.ok && vulkan_end(&b.context, &st) && vulkan_run(&b.context, lists, 1, &st), &st);
    if (!vulkan_seconds(&b.context, &list, seconds)) panic("the device has no timestamps");
    for (int i = 1; i < list.n_times; i++) sum += seconds[i - 1];
    return sum / n_turns;
}

static int compare(const void *x, const void *y) {
    const double a = *(const double *)x, c = *(const double *)y;
    return (a > c) - (a < c);
}

static void measure(const char *name, void (*record)(struct pass *, const struct trial *), struct trial trial) {
    const double patience = options.quick ? 0.002 : 0.02;
    const int n_runs = options.quick ? 1 : RUNS;
    double seconds[RUNS];
    if (options.only && strncmp(name, options.only, strlen(options.only))) return;
    now.trial = trial, now.record = record;
    time_turns(1); // builds pipelines
    const double wanted = patience / time_turns(2);
    const int n = wanted < 1 ? 1 : wanted < MOST_TURNS ? (int)wanted : MOST_TURNS;
    for (int i = 0; i < n_runs; i++) seconds[i] = time_turns(n);
    qsort(seconds, (size_t)n_runs, sizeof *seconds, compare);
    const double median = seconds[n_runs / 2];
    printf("%-40s %10.2f %10.1f %10.2f\n", name, median * 1e6, trial.bytes / median * 1e-9,
           trial.operations / median * 1e-12);
    fflush(stdout);
}

// ---- norms and activations ----

static void record_norm(struct pass *p, const struct trial *t) {
    const struct device_norm norm = {memory.address, 0};
    const struct rows from = rows_of(b.work.gate, stride_of((int)t->columns), t->n),
                      to = coded(rows_of(b.work.up, stride_of((int)t->columns), t->n), b.work.gate_codes);
    const VkDeviceAddress zeros = b.work.logits_in; // which nothing here writes to
    norm_rows(p, &norm, &from, t->lists ? zeros : 0, &to, (int)t->columns, 0);
}

static void measure_norm(int n, int columns) {
    char name[64];
    snprintf(name, sizeof name, "norm %d x %d", n, columns);
    measure(name, record_norm, (struct trial){.n = n, .columns = (uint32_t)columns, .bytes = 12.0 * n * columns});
}

static void record_activate(struct pass *p, const struct trial *t) {
    const struct device_matrix gate = {.format = &block_formats[BLOCK_F32]};
    const struct rows middle = coded(rows_of(b.work.gate, stride_of((int)t->columns), t->n), b.work.gate_codes);
    activate(p, &(struct gated){.gate = &gate, .middle = &middle, .scratch = b.work.up});
}

static void measure_activate(int n, int columns) {
    char name[64];
    snprintf(name, sizeof name, "activate %d x %d", n, columns);
    measure(name, record_activate, (struct trial){.n = n, .columns = (uint32_t)columns, .bytes = 12.0 * n * columns});
}

// ---- heads and attention ----

static int pages_of(int context) { return groups((uint32_t)context, KV_PAGE_TOKENS); }

// Other pages with each repetition.
static void turn_pages(const struct trial *t) {
    const int each = t->n_segments * pages_of(t->context);
    b.work.pages.address = page_list + sizeof(VkDeviceAddress) * (turn % (uint64_t)(b.n_pages / each)) * (uint64_t)each;
}

static void record_heads(struct pass *p, const struct trial *t) {
    turn_pages(t);
    prepare_heads(p, 0);
}

static void record_attention(struct pass *p, const struct trial *t) {
    const struct rows to = coded(rows_of(b.work.attended, b.work.attended_stride, t->n), b.work.attended_codes);
    turn_pages(t);
    attend(p, 0, &to, 0);
}

// The last n / n_segments rows of conversations with so many tokens.
static void measure_heads(int n, int n_segments, int context) {
    char name[64];
    const int size = b.spec->head_size, n_head = layer_spec.n_head, each = n / n_segments;
    for (int i = 0; i < n; i++)
        ((struct row_info *)b.work.rows.host)[i] =
            (struct row_info){context - each + i % each, i / each * pages_of(context), 0.125f};
    struct trial t = {.n = n, .n_segments = n_segments, .context = context};
    if (n_segments * pages_of(context) > b.n_pages) return;
    snprintf(name, sizeof name, "heads %d of %d, context %d", n, n_segments, context);
    t.bytes = 4.0 * n * size * (2 * n_head + 3 * layer_spec.n_head_kv);
    measure(name, record_heads, t);
    snprintf(name, sizeof name, "attention %d of %d, context %d", n, n_segments, context);
    t.bytes = 4.0 * n_segments * context * size * layer_spec.n_head_kv;
    t.operations = 4.0 * n * context * size * n_head;
    measure(name, record_attention, t);
}

// ---- matrices ----

// Another matrix with each repetition.
static void record_matmul(struct pass *p, const struct trial *t) {
    const uint64_t size = ((uint64_t)t->bytes + 255) / 256 * 256, n = memory.size / size;
    const struct device_matrix m = {t->format, memory.address + turn % n * size, t->rows, t->columns};
    const struct rows from = coded(rows_of(b.work.gate, stride_of((int)t->columns), t->n), b.work.gate_codes),
                      to = rows_of(b.work.logits_out, t->rows, t->n);
    matmul(p, &(struct matmul){.matrix = &m, .from = &from, .to = &to, .scale = 1});
}

static void record_widen(struct pass *p, const struct trial *t) {
    const uint64_t size = ((uint64_t)t->bytes + 255) / 256 * 256, n = memory.size / size;
    const struct device_matrix m = {t->format, memory.address + turn % n * size, t->rows, t->columns};
    const uint64_t most = b.work.widened_bytes / sizeof(uint16_t) / cooperative_stride(t->columns);
    widen(p, &(struct matmul){.matrix = &m}, 0, t->rows < most ? t->rows : (uint32_t)most, b.work.widened);
}

// Both matrices of a gate in one dispatch.
static void record_gated(struct pass *p, const struct trial *t) {
    const uint64_t size = ((uint64_t)t->bytes / 2 + 255) / 256 * 256, n = memory.size / size / 2;
    const VkDeviceAddress at = memory.address + turn % n * 2 * size;
    const struct device_matrix gate = {t->format, at, t->rows, t->columns},
                               up = {t->format, at + size, t->rows, t->columns};
    const struct rows in = coded(rows_of(b.work.normed, stride_of((int)t->columns), t->n), b.work.normed_codes),
                      middle = coded(rows_of(b.work.gate, stride_of((int)t->rows), t->n), b.work.gate_codes);
    matmuls_gated(p, &(struct gated){.gate = &gate, .up = &up, .in = &in, .middle = &middle, .scratch = b.work.up});
}

static void measure_gated(enum block_id id, int n) {
    const struct block_format *f = &block_formats[id];
    const int rows = layer_spec.n_ff, columns = b.spec->n_embd;
    char name[64];
    snprintf(name, sizeof name, "gated %s 2 x %d x %d for %d", f->name, rows, columns, n);
    measure(name, record_gated,
            (struct trial){.n = n,
                           .format = f,
                           .rows = (uint32_t)rows,
                           .columns = (uint32_t)columns,
                           .bytes = 2.0 * rows * columns / (double)f->elements * (double)f->bytes,
                           .operations = 4.0 * rows * columns * n});
}

static void measure_widen(enum block_id id, int rows, int columns) {
    const struct block_format *f = &block_formats[id];
    char name[64];
    snprintf(name, sizeof name, "widen %s %d x %d", f->name, rows, columns);
    if (!b.work.widened_bytes) return;
    measure(name, record_widen,
            (struct trial){.n = 1,
                           .format = f,
                           .rows = (uint32_t)rows,
                           .columns = (uint32_t)columns,
                           .bytes = (double)rows * columns / (double)f->elements * (double)f->bytes});
}

static void measure_matmul(const char *what, enum block_id id, const int (*shapes)[2], int n_shapes, int n) {
    const struct block_format *f = &block_formats[id];
    for (int i = 0; i < n_shapes; i++) {
        const int rows = shapes[i][0], columns = shapes[i][1];
        char name[64];
        snprintf(name, sizeof name, "%s %s %d x %d for %d", what, f->name, rows, columns, n);
        measure(name, record_matmul,
                (struct trial){.n = n,
                               .format = f,
                               .rows = (uint32_t)rows,
                               .columns = (uint32_t)columns,
                               .bytes = (double)rows * columns / (double)f->elements * (double)f->bytes,
                               .operations = 2.0 * rows * columns * n});
    }
}

// ---- the device and its memory ----

static void fill(const struct vulkan_buffer *to, const struct vulkan_buffer *from) {
    struct status st = {0};
    need(vulkan_begin(&b.context, &b.context.once, &st), &st);
    for (uint64_t at = 0; at < to->size; at += from->size)
        vulkan_copy(&b.context, from, 0, to, at, to->size - at < from->size ? to->size - at : from->size);
    need(vulkan_run_once(&b.context, &st), &st);
}

// Bytes that are small positive numbers in every format.
static void fill_memory(void) {
    struct status st = {0};
    struct vulkan_buffer staging;
    uint32_t random = 1;
    need(vulkan_buffer_open(b.context.device, &staging, STAGING_BYTES, VULKAN_MEMORY_UPLOAD, "staging", &st), &st);
    for (int i = 0; i < STAGING_BYTES / 4; i++) {
        random = random * 1664525u + 1013904223u;
        ((uint32_t *)staging.mapped)[i] = (random ^ random >> 16) & 0x3b3b3b3b;
    }
    fill(&memory, &staging);
    for (int i = 0; i < b.pages.n_chunks; i++) fill(&b.pages.chunks[i], &staging);
    vulkan_buffer_close(b.context.device, &staging);
}

// A model of one layer, with room for what is measured of it.
static void open_model(void) {
    static double frequencies[64];
    static struct device_layer device_layer;
    const int share = options.quick ? 16 : 1;
    layer_spec = (struct layer_spec){.n_head = 32, .n_head_kv = 8, .n_ff = 14336 / share, .rope = ROPE_TABLE_FULL};
    model.spec = (struct model_spec){.n_layer = 1,
                                     .n_embd = 4096 / share,
                                     .n_vocab = 128256 / share,
                                     .head_size = 128,
                                     .layers = &layer_spec,
                                     .norm_epsilon = 1e-5f,
                                     .rope = {.kind = ROPE_NORM, .n_rot = 128},
                                     .residual_scale = 1};
    device_layer.spec = &layer_spec;
    b.model = &model, b.spec = &model.spec;
    b.end_layer = 1;
    b.max_rows = b.max_logits = MOST_ROWS / share;
    b.n_pages = options.quick ? 128 : 8448;
    b.weights.layers = &device_layer;
    b.weights.output =
        (struct device_matrix){&block_formats[BLOCK_F16], 0, 128256 / (uint32_t)share, 4096 / (uint32_t)share};
    b.weights.quantised = true;
    b.weights.rope.frequency[ROPE_TABLE_FULL] = frequencies;
    b.info.page_bytes = layer_page_bytes(&b, 0);
}

static void open_device(void) {
    struct status st = {0};
    VkPhysicalDevice all[32];
    const int n = vulkan_physical_devices(all, 32);
    if (options.device < 0 || options.device >= n) panic("there is no device vulkan%d", options.device);
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    vulkan_instance(NULL)->call.GetPhysicalDeviceProperties2(all[options.device], &properties);
    if (vulkan_type(all[options.device]) == VK_PHYSICAL_DEVICE_TYPE_CPU) options.quick = true;
    if (options.folder) vulkan_wrap_functions = wrap_functions;
    open_model();
    need(vulkan_context_open(&b.context, all[options.device], &st) &&
             vulkan_list_open(&b.context, &list, MOST_TURNS + 2, &st) && workspace_open(&b, &st) &&
             pages_open(&b, &st) &&
             vulkan_buffer_open(b.context.device, &memory, options.quick ? 20 << 20 : 1100 << 20, VULKAN_MEMORY_DEVICE,
                                "weights", &st) &&
             vulkan_input_open(b.context.device, &b.work.pages, (uint64_t)b.n_pages * sizeof(VkDeviceAddress),
                               "the page list", &st),
         &st);
    page_list = b.work.pages.address;
    for (int i = 0; i < b.n_pages; i++) ((VkDeviceAddress *)b.work.pages.mapped)[i] = page_address(&b, i);
    b.weights.grids = memory.address;
    fill_memory();
    printf("%s%s\n%-40s %10s %10s %10s\n", properties.properties.deviceName, options.quick ? ", small shapes" : "", "",
           "us", "GB/s", "TFLOP/s");
}

static void close_device(void) {
    vulkan_list_close(&b.context, &list);
    vulkan_buffer_close(b.context.device, &memory);
    workspace_close(&b);
    pages_close(&b);
    vulkan_context_close(&b.context);
    arena_free(&b.arena);
}

// ---- the program ----

static void measure_all(void) {
    static const enum block_id formats[] = {BLOCK_Q4_K, BLOCK_Q6_K, BLOCK_Q8_0, BLOCK_Q4_0, BLOCK_MXFP4, BLOCK_F16};
    const int embd = b.spec->n_embd, ff = layer_spec.n_ff;
    const int shapes[][2] = {{embd, embd}, {embd / 4, embd}, {ff, embd}, {embd, ff}, {b.spec->n_vocab, embd}};
    measure("phase", record_norm, (struct trial){.n = 1, .columns = 32});
    measure("phase without barriers", record_norm, (struct trial){.n = 1, .columns = 32, .apart = true});
    measure("phase with a timestamp", record_norm, (struct trial){.n = 1, .columns = 32, .times = true});
    measure("phase with a list of rows", record_norm, (struct trial){.n = 1, .columns = 32, .lists = true});
    measure_norm(1, embd), measure_norm(16, embd);
    measure_activate(1, ff);
    measure_heads(1, 1, 70), measure_heads(1, 1, 2048), measure_heads(1, 1, 32768);
    measure_heads(8, 8, 70), measure_heads(8, 8, 2048), measure_heads(8, 8, 32768);
    measure_heads(8, 1, 70), measure_heads(8, 1, 2048), measure_heads(8, 1, 32768);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (int n = 1; n <= 16; n *= 2) measure_matmul("matvec", formats[i], shapes, 5, n);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (int n = 1; n <= 16; n *= 4) measure_gated(formats[i], n);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) measure_widen(formats[i], ff, embd);
    for (int n = 32; n <= b.max_rows; n *= 4) {
        measure_matmul("matmul", BLOCK_Q4_K, shapes, 5, n);
        measure_gated(BLOCK_Q4_K, n);
    }
}

static bool read_constants(char *text) {
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        int i, value;
        if (sscanf(word, "%d=%d", &i, &value) != 2 || i < 0 || i >= VULKAN_MOST_CONSTANTS || value < 0) return false;
        options.constants[i] = value;
    }
    return true;
}

int main(int argc, char **argv) {
    static const struct option names[] = {
        {"device", required_argument, NULL, 'd'},  {"quick", no_argument, NULL, 'q'},
        {"only", required_argument, NULL, 'o'},    {"constants", required_argument, NULL, 'c'},
        {"shaders", required_argument, NULL, 's'}, {0}};
    bool usable = true;
    for (int i = 0; i < VULKAN_MOST_CONSTANTS; i++) options.constants[i] = -1;
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) switch (c) {
        case 'd': options.device = atoi(optarg); break;
        case 'q': options.quick = true; break;
        case 'o': options.only = optarg; break;
        case 'c': usable &= read_constants(optarg); break;
        case 's': options.folder = optarg; break;
        default: usable = false;
        }
    if (!usable || optind < argc) {
        fprintf(stderr, "usage: shader_speed [--device N] [--quick] [--only PREFIX] [--constants I=V,…] "
                        "[--shaders FOLDER]\n");
        return 2;
    }
    open_device();
    measure_all();
    close_device();
    return 0;
}
