// Which layers of a model go to which devices, on machines whose devices the tests make up: the CPU's backend computes
// under the name of a Vulkan one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/serve/memory_size.h"
#include "engine/serve/placement_choose.h"
#include "engine/serve/registry.h"
#include "tests/unit/tiny_model.h"

enum { LAYERS = 16, TEXT_BYTES = 4096 };
#define PLENTY (1ull << 40)

static uint64_t memory_free = PLENTY; // of the machine
uint64_t machine_memory_free(void) { return memory_free; }

// ---- the devices there are ----

static struct device machine[3];
static int n_devices, n_opened;
static enum status_code open_fails;

static int fake_devices(struct device *out, int most) {
    const int n = n_devices < most ? n_devices : most;
    for (int i = 0; i < n; i++) {
        out[i] = machine[i];
        out[i].own_free = 0;
        snprintf(out[i].name, sizeof out[i].name, "vulkan%d", i);
    }
    return n;
}

static void fake_heaps(int device, struct device *out) { out->own_free = machine[device].own_free; }

// A device reads nothing in place.
static bool fake_measure(const struct backend_params *params, struct backend_memory *out, struct status *st) {
    if (!cpu_backend.measure(params, out, st)) return false;
    out->weights += out->in_place;
    out->in_place = 0;
    return true;
}

static struct backend *fake_open(const struct backend_params *params, struct status *st) {
    n_opened++;
    if (!open_fails) return cpu_backend.open(params, st);
    status_fail(st, open_fails, "no device today");
    return NULL;
}

static void fake_close(struct backend *b) { cpu_backend.close(b); }
static bool fake_repack(struct backend *b) { return cpu_backend.repack(b); }
static const struct backend_info *fake_info(const struct backend *b) { return cpu_backend.info(b); }

static bool fake_run(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    return cpu_backend.run(b, batch, out, st);
}

static void fake_for_each(struct backend *b, int n, void (*item)(void *context, int i, int worker), void *context) {
    cpu_backend.for_each(b, n, item, context);
}

const struct backend_ops vulkan_backend = {.name = "fake",
                                           .devices = fake_devices,
                                           .heaps = fake_heaps,
                                           .measure = fake_measure,
                                           .open = fake_open,
                                           .close = fake_close,
                                           .repack = fake_repack,
                                           .run = fake_run,
                                           .for_each = fake_for_each,
                                           .info = fake_info};

// A card of its own memory, beside which n others are.
static struct device card(uint64_t own_free) { return (struct device){.own_free = own_free}; }

static void has(int n, struct device a, struct device b) {
    machine[0] = a, machine[1] = b;
    n_devices = n;
    n_opened = 0;
    open_fails = STATUS_OK;
    memory_free = PLENTY;
}

static void skip_without_devices(void) {
    struct device all[DEVICE_MOST];
    has(1, card(1), card(1));
    if (device_list(all) > 1) return;
    print_message("built without Vulkan: skipped\n");
    skip();
}

// ---- the model ----

struct opened {
    void *bytes;
    struct model_file *file;
};

static struct opened open_model(void) {
    const struct tiny_model_options options = {
        .n_layer = LAYERS, .n_embd = 128, .n_ff = 256, .n_context = 8192, .format = BLOCK_Q8_0};
    struct opened m;
    struct status st = {0};
    size_t size;
    skip_without_devices();
    m.bytes = tiny_model_bytes(options, &size);
    m.file = model_file_open_memory("tiny.gguf", m.bytes, size, NULL, &st);
    if (!m.file) fail_msg("%s", st.text);
    m.file->model.weight_bytes = 2 * MODEL_SMALL_BYTES; // as if it were worth a device
    return m;
}

static void close_model(struct opened m) {
    model_file_close(m.file);
    free(m.bytes);
}

static struct engine_params on(const char *device, int gpu_layers) {
    return (struct engine_params){.n_threads = 1, .options = {.device = device, .gpu_layers = gpu_layers}};
}

static struct placement_plan chosen(const struct opened *m, struct engine_params p) {
    struct placement_plan plan;
    struct status st = {0};
    if (!placement_choose(&plan, m->file, &p, memory_free, &st)) fail_msg("%s", st.text);
    return plan;
}

static int layers_of(const struct placement_part *part) {
    return (part->end_layer ? part->end_layer : LAYERS) - part->first_layer;
}

static void assert_part(const struct placement_part *part, int device, int first, int end) {
    assert_ptr_equal(part->ops, device < 0 ? &cpu_backend : &vulkan_backend);
    if (device >= 0) assert_int_equal(part->device, device);
    assert_int_equal(part->first_layer, first);
    assert_int_equal(part->first_layer + layers_of(part), end);
}

static void assert_cpu(const struct placement_plan *plan) {
    assert_int_equal(plan->n, 1);
    assert_part(&plan->parts[0], -1, 0, LAYERS);
}

// What the last n layers take on a device, with a KV cache of so many tokens.
static uint64_t need_of(const struct opened *m, int n, int kv_tokens) {
    const struct placement_plan plan = {.parts = {{&vulkan_backend, 0, LAYERS - n, LAYERS, 1}}, .n = 1};
    struct engine_params p = on(NULL, 0);
    struct memory_size size;
    p.kv_tokens = kv_tokens;
    assert_true(memory_size_plan(&size, m->file, &p, &plan, 0, NULL));
    return size.memory.on_devices;
}

// Free memory of a card of which so many bytes may be used.
static uint64_t free_for(uint64_t bytes) { return bytes * 16 / 15 + 1; }

// ---- how many layers ----

static void as_many_layers_as_fit_go_to_a_device(void **state) {
    (void)state;
    struct opened m = open_model();
    for (int n = 1; n <= LAYERS; n++) {
        has(1, card(free_for(need_of(&m, n, 4096))), card(0));
        const struct placement_plan plan = chosen(&m, on(n % 2 ? "vulkan0" : "auto", 0));
        assert_int_equal(plan.n, n < LAYERS ? 2 : 1);
        if (n < LAYERS) assert_part(&plan.parts[0], -1, 0, LAYERS - n);
        assert_part(&plan.parts[plan.n - 1], 0, LAYERS - n, LAYERS);
    }
    close_model(m);
}

// A conversation of the context that was asked for has to fit, or the KV cache that was.
static void less_context_leaves_room_for_layers(void **state) {
    (void)state;
    struct opened m = open_model();
    struct engine_params p = on("auto", 0);
    has(1, card(free_for(need_of(&m, 4, 4096))), card(0));
    p.context = 512;
    struct placement_plan plan = chosen(&m, p);
    assert_true(layers_of(&plan.parts[1]) > 4);
    p.kv_tokens = 8192;
    plan = chosen(&m, p);
    assert_true(layers_of(&plan.parts[1]) < 4);
    close_model(m);
}

static void if_nothing_fits_all_stays_on_the_cpu_unless_the_device_was_named(void **state) {
    (void)state;
    struct opened m = open_model();
    struct placement_plan plan;
    struct engine_params named = on("vulkan0", 0);
    struct status st = {0};
    has(1, card(1 << 20), card(0));
    plan = chosen(&m, on("auto", 0));
    assert_cpu(&plan);
    assert_false(placement_choose(&plan, m.file, &named, memory_free, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    assert_non_null(strstr(st.text, "tiny.gguf: 0 MiB of memory are free on vulkan0, the weights of layers 15 to 15 "));
    close_model(m);
}

static void so_many_layers_as_asked_for_go_to_a_device(void **state) {
    (void)state;
    struct opened m = open_model();
    has(1, card(PLENTY), card(0));
    struct placement_plan plan = chosen(&m, on("auto", 3));
    assert_int_equal(plan.n, 2);
    assert_part(&plan.parts[0], -1, 0, LAYERS - 3);
    assert_part(&plan.parts[1], 0, LAYERS - 3, LAYERS);
    plan = chosen(&m, on("vulkan0", 1000));
    assert_int_equal(plan.n, 1);
    assert_part(&plan.parts[0], 0, 0, LAYERS);
    plan = chosen(&m, on("cpu", 3));
    assert_cpu(&plan);
    close_model(m);
}

static void more_layers_than_fit_are_refused(void **state) {
    (void)state;
    struct opened m = open_model();
    struct engine_params p = on("auto", 9);
    struct status st = {0};
    has(1, card(free_for(need_of(&m, 8, 512))), card(0));
    assert_null(local_engine_open(m.file, &p, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    assert_non_null(strstr(st.text, " MiB of memory are free on vulkan0, the weights of layers 7 to 15 need "));
    assert_non_null(strstr(st.text, "a KV cache of 512 tokens"));
    assert_int_equal(n_opened, 0);
    p.options.gpu_layers = 8;
    struct engine *e = local_engine_open(m.file, &p, &st);
    if (!e) fail_msg("%s", st.text);
    engine_close(e);
    close_model(m);
}

// ---- which devices ----

static void two_cards_share_layers_by_their_memory(void **state) {
    (void)state;
    struct opened m = open_model();
    has(2, card(PLENTY), card(PLENTY / 3));
    struct placement_plan plan = chosen(&m, on("auto", 0));
    assert_int_equal(plan.n, 2);
    assert_int_equal(plan.parts[0].device, 0);
    assert_int_equal(plan.parts[1].device, 1);
    assert_int_equal(layers_of(&plan.parts[0]) + layers_of(&plan.parts[1]), LAYERS);
    assert_in_range(layers_of(&plan.parts[0]), LAYERS * 3 / 4 - 1, LAYERS * 3 / 4 + 1);

    has(2, card(free_for(need_of(&m, 5, 4096))), card(free_for(need_of(&m, 5, 4096))));
    plan = chosen(&m, on("auto", 0));
    assert_int_equal(plan.n, 3);
    assert_part(&plan.parts[0], -1, 0, plan.parts[1].first_layer);
    assert_int_equal(plan.parts[1].end_layer, plan.parts[2].first_layer);
    assert_in_range(layers_of(&plan.parts[1]), 4, 5);
    assert_in_range(layers_of(&plan.parts[2]), 4, 5);

    plan = chosen(&m, on("vulkan1", 2)); // one alone, by its name
    assert_int_equal(plan.n, 2);
    assert_part(&plan.parts[1], 1, LAYERS - 2, LAYERS);
    close_model(m);
}

static void an_emulated_device_is_used_only_if_named(void **state) {
    (void)state;
    struct opened m = open_model();
    has(1, (struct device){.emulated = true}, card(0));
    struct placement_plan plan = chosen(&m, on("auto", 0));
    assert_cpu(&plan);
    plan = chosen(&m, on(NULL, 4));
    assert_cpu(&plan);
    plan = chosen(&m, on("vulkan0", 0));
    assert_int_equal(plan.n, 1);
    assert_part(&plan.parts[0], 0, 0, LAYERS);
    has(2, (struct device){.emulated = true}, card(PLENTY));
    plan = chosen(&m, on("auto", 0));
    assert_int_equal(plan.n, 1);
    assert_part(&plan.parts[0], 1, 0, LAYERS);
    close_model(m);
}

static void a_device_without_memory_of_its_own_comes_after_those_with(void **state) {
    (void)state;
    struct opened m = open_model();
    has(2, (struct device){0}, card(PLENTY));
    struct placement_plan plan = chosen(&m, on("auto", 0));
    assert_int_equal(plan.n, 1);
    assert_part(&plan.parts[0], 1, 0, LAYERS);
    has(1, (struct device){0}, card(0));
    plan = chosen(&m, on("auto", 0));
    assert_int_equal(plan.n, 1);
    assert_part(&plan.parts[0], 0, 0, LAYERS);
    memory_free = need_of(&m, LAYERS, 4096); // of the machine, where its weights lie
    plan = chosen(&m, on("auto", 0));
    assert_part(&plan.parts[0], 0, 0, LAYERS);
    memory_free /= 2;
    plan = chosen(&m, on("auto", 0));
    assert_cpu(&plan);
    close_model(m);
}

static void what_the_cpu_does_fast_or_exactly_stays_there_unasked(void **state) {
    (void)state;
    struct opened m = open_model();
    struct engine_params exact = on(NULL, 0);
    has(1, card(PLENTY), card(0));
    exact.options.exact = true;
    struct placement_plan plan = chosen(&m, exact);
    assert_cpu(&plan);
    m.file->model.weight_bytes = MODEL_SMALL_BYTES;
    plan = chosen(&m, on("auto", 0));
    assert_cpu(&plan);
    plan = chosen(&m, on("auto", LAYERS));
    assert_part(&plan.parts[0], 0, 0, LAYERS);
    plan = chosen(&m, on("vulkan0", 0));
    assert_part(&plan.parts[0], 0, 0, LAYERS);
    close_model(m);
}

// ---- memory ----

static void each_part_is_reckoned_in_its_own_memory(void **state) {
    (void)state;
    struct opened m = open_model();
    struct engine_params p = on("auto", 8);
    struct model_memory half, cpu, scarce;
    struct status st = {0};
    const uint64_t room = need_of(&m, 8, 2048);
    has(1, card(free_for(room)), card(0));
    assert_true(local_engine_memory(m.file, &p, memory_free, &half, &st));
    assert_in_range(half.kv_tokens, 2048 - KV_PAGE_TOKENS, 2048 + KV_PAGE_TOKENS); // all that is left of the device's
    assert_in_range(half.on_devices, room - room / 20, room);
    assert_int_equal(half.total, half.weights + half.buffers + half.kv);
    const uint64_t token = local_engine_token_bytes(m.file, KV_F16);
    assert_int_equal(half.kv, (uint64_t)half.kv_tokens * token / 2); // half of the layers
    struct engine_params on_cpu = on("cpu", 0);
    on_cpu.kv_tokens = half.kv_tokens;
    assert_true(local_engine_memory(m.file, &on_cpu, memory_free, &cpu, &st));
    assert_true(cpu.on_devices == 0 && cpu.total > half.total);
    assert_true(
        local_engine_memory(m.file, &p, half.total, &scarce, &st)); // a quarter of what is left of the machine's
    assert_true(scarce.kv_tokens < half.kv_tokens);
    close_model(m);
}

// ---- answers ----

static void answer(const struct opened *m, struct engine_params p, char out[TEXT_BYTES]) {
    struct status st = {0};
    struct engine *e = local_engine_open(m->file, &p, &st);
    if (!e) fail_msg("%s", st.text);
    struct engine_client *client = engine_client_open(e, &st);
    struct sampling greedy = sampling_default();
    struct engine_event event = {0};
    greedy.temperature = 0;
    const struct request_params request = {
        .conversation = 1, .raw = "one two three", .sampling = greedy, .max_tokens = 40, .ignore_end = true};
    engine_submit(client, &request);
    *out = 0;
    while (event.kind != EVENT_STATE || event.state < REQUEST_FINISHED) {
        if (!engine_wait(client, &event, 60000)) fail_msg("no event for a minute");
        if (event.kind == EVENT_TEXT) strncat(out, event.text, TEXT_BYTES - strlen(out) - 1);
    }
    assert_int_equal(event.state, REQUEST_FINISHED);
    engine_client_close(client);
    engine_close(e);
}

static void answers_are_the_same_wherever_layers_are(void **state) {
    (void)state;
    struct opened m = open_model();
    char cpu[TEXT_BYTES], text[TEXT_BYTES];
    has(2, card(PLENTY), card(PLENTY));
    answer(&m, on("cpu", 0), cpu);
    assert_true(strlen(cpu) > 40);
    assert_int_equal(n_opened, 0);
    for (int n = 0; n < LAYERS; n += 5) {
        n_opened = 0;
        answer(&m, on("auto", n), text);
        assert_string_equal(text, cpu);
        assert_int_equal(n_opened, 2);
    }
    close_model(m);
}

static void devices_that_nobody_asked_for_may_fail(void **state) {
    (void)state;
    struct opened m = open_model();
    char cpu[TEXT_BYTES], text[TEXT_BYTES];
    struct log_entry last[8];
    struct status st = {0};
    struct engine_params named = on("vulkan0", 0), unasked = on("auto", 0);
    has(1, card(PLENTY), card(0));
    answer(&m, on("cpu", 0), cpu);
    open_fails = STATUS_DEVICE;
    const uint64_t logged = log_count();
    answer(&m, unasked, text);
    assert_string_equal(text, cpu);
    assert_int_equal(n_opened, 1);
    assert_true(log_read(logged, last, 8) >= 1);
    assert_int_equal(last[0].level, LOG_LEVEL_WARNING);
    assert_string_equal(last[0].text, "computing on the CPU: no device today");
    assert_null(local_engine_open(m.file, &named, &st));
    assert_int_equal(st.code, STATUS_DEVICE);
    assert_string_equal(st.text, "no device today");
    open_fails = STATUS_CANCELLED;
    assert_null(local_engine_open(m.file, &unasked, &st));
    assert_int_equal(st.code, STATUS_CANCELLED);
    close_model(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_layers_as_fit_go_to_a_device),
        cmocka_unit_test(less_context_leaves_room_for_layers),
        cmocka_unit_test(if_nothing_fits_all_stays_on_the_cpu_unless_the_device_was_named),
        cmocka_unit_test(so_many_layers_as_asked_for_go_to_a_device),
        cmocka_unit_test(more_layers_than_fit_are_refused),
        cmocka_unit_test(two_cards_share_layers_by_their_memory),
        cmocka_unit_test(an_emulated_device_is_used_only_if_named),
        cmocka_unit_test(a_device_without_memory_of_its_own_comes_after_those_with),
        cmocka_unit_test(what_the_cpu_does_fast_or_exactly_stays_there_unasked),
        cmocka_unit_test(each_part_is_reckoned_in_its_own_memory),
        cmocka_unit_test(answers_are_the_same_wherever_layers_are),
        cmocka_unit_test(devices_that_nobody_asked_for_may_fail),
    };
    return cmocka_run_group_tests_name("placement_choose", tests, NULL, NULL);
}
