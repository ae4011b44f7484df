// What `confab bench` computes, writes and reads back, and the command itself with the built-in model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "app/bench/bench.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "engine/device.h"
#include "tests/unit/full_disk.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_shape.h"

static const char *folder;

static void assert_near(double got, double wanted) {
    if (fabs(got - wanted) > 1e-5 * fabs(wanted) + 1e-12) fail_msg("got %g, expected %g", got, wanted);
}

static void test_medians(void **state) {
    (void)state;
    const double values[] = {5, 1, 4, 2, 100};
    assert_true(bench_median(values, 5) == 4);
    assert_true(bench_median(values, 4) == 3);
    assert_true(bench_median(values, 1) == 5);
    assert_true(bench_median(values, 0) == 0);
    assert_true(values[0] == 5 && values[4] == 100); // the values are not reordered
}

// Two positions with three tokens, computed by hand: logits that differ by a constant, which does not change the
// probabilities, and probabilities of 1/2, 1/4, 1/4 compared with 1/4, 1/2, 1/4.
static void test_distances(void **state) {
    (void)state;
    const float a[] = {1, 2, 3}, b[] = {2, 3, 4};
    const float c[] = {logf(2), 0, 0}, d[] = {0, logf(2), 0};
    struct bench_distance sums = {0};
    assert_int_equal(bench_distance_mean(&sums).positions, 0);
    bench_distance_add(&sums, a, b, 3);
    struct bench_accuracy mean = bench_distance_mean(&sums);
    assert_true(mean.same_top == 1 && fabs(mean.divergence) < 1e-12);
    assert_near(mean.error, 3.0 / 14);
    bench_distance_add(&sums, c, d, 3);
    mean = bench_distance_mean(&sums);
    assert_int_equal(mean.positions, 2);
    assert_near(mean.same_top, 0.5);
    assert_near(mean.divergence, (0.5 * log(2) + 0.25 * log(0.5)) / 2);
}

static void test_impossible_tokens_do_not_count(void **state) {
    (void)state;
    const float a[] = {0, -INFINITY}, b[] = {0, -INFINITY};
    struct bench_distance sums = {0};
    bench_distance_add(&sums, a, b, 2);
    assert_true(sums.divergence == 0 && sums.same_top == 1);
}

static void test_limits(void **state) {
    (void)state;
    struct model_info info = {.n_parameters = 1200, .weight_bytes = 600, .n_vocab = 10, .n_embd = 20};
    struct bench_result r = {.name = "decode2", .conversations = 2, .context = 10};
    r.read_bytes = 6000, r.int8_operations = 1e9;
    bench_limit(&r, &info, 5, 0);
    assert_true(r.by_memory);
    assert_near(r.limit, 6000.0 * 2 / (500 + 2 * 50)); // 1000 of the 1200 weights are read
    assert_near(r.bytes_per_token, 500.0 / 2 + 50);
    assert_near(r.operations_per_token, 2 * 1000);
    r.int8_operations = 20000;
    bench_limit(&r, &info, 5, 0);
    assert_false(r.by_memory);
    assert_near(r.limit, 20000.0 / 2000);
    r.int8_operations = 1e9;
    r.tokens_per_second = 22; // above the measured limit of 20
    bench_limit(&r, &info, 5, 100);
    assert_true(r.by_memory);
    assert_near(r.limit, 22);
    assert_near(r.read_bytes, 6600);
    r.read_bytes = 6000;
    bench_limit(&r, &info, 5, 0); // with a cache of unknown size
    assert_false(r.by_memory);
    r.tokens_per_second = 33; // faster than memory, although the cache is small
    bench_limit(&r, &info, 5, 100);
    assert_false(r.by_memory);
    r.tokens_per_second = 0;
    bench_limit(&r, &info, 5, 1e6); // everything stays in the cache
    assert_false(r.by_memory);
    strcpy(r.name, "prefill512");
    bench_limit(&r, &info, 5, 0);
    assert_false(r.by_memory);
    assert_near(r.limit, 1e9 / (2 * 800)); // the output matrix is not used either
    assert_true(r.bytes_per_token == 0);
    info.float_share = 0.5, r.float_operations = 2.5e8; // half of the operations take four times as long
    bench_limit(&r, &info, 5, 0);
    assert_near(r.operations, 4e8);
    assert_near(r.limit, 4e8 / (2 * 800));
    info.float_share = 1, r.int8_operations = 0;
    bench_limit(&r, &info, 5, 0);
    assert_near(r.limit, 2.5e8 / (2 * 800));
    info.float_share = 0.5; // without a rate for integers they are computed as floats
    bench_limit(&r, &info, 5, 0);
    assert_near(r.limit, 2.5e8 / (2 * 800));
    r.float_operations = 0; // an unknown rate does not limit
    bench_limit(&r, &info, 5, 0);
    assert_true(r.limit == 0);
}

static void test_a_device_is_measured_in_place_of_the_processor(void **state) {
    (void)state;
    struct device all[DEVICE_MOST];
    struct status st = {0};
    setenv("XDG_CACHE_HOME", folder, 1); // of its pipelines
    const int n = device_list(all);
    if (n < 2) {
        print_message("no device but the processor: skipped\n");
        skip();
    }
    struct machine_limits_probe *p = machine_limits_open_on(all[n - 1].name, 2, NULL, &st);
    const struct machine_limits limits = machine_limits_sample(p, 0), best = machine_limits_best(p);
    assert_string_equal(best.device, all[n - 1].name);
    assert_true(limits.read_bytes > 0 && best.read_bytes >= limits.read_bytes);
    assert_true(limits.float_operations > 0 && limits.int8_operations > 0);
    machine_limits_close(p);
    p = machine_limits_open_on("abacus", 2, NULL, &st); // one that cannot be measured has no limits
    assert_true(machine_limits_sample(p, 0).read_bytes == 0);
    machine_limits_close(p);
}

// ---- JSON ----

static char *path_of(const char *name) { return xasprintf("%s/%s", folder, name); }

static void test_reports_round_trip(void **state) {
    (void)state;
    struct bench_report report = {.model = "a \"model\"",
                                  .backend = "scalar, 3 threads",
                                  .note = "é",
                                  .threads = 3,
                                  .load_seconds = 0.25,
                                  .peak_bytes = 1e10,
                                  .limits = {.device = "vulkan0", .int8_name = "AVX2", .read_bytes = 5e10},
                                  .n_parts = 2,
                                  .parts = {{.device = "vulkan0", .end_layer = 3, .weights = 70, .kv = 8},
                                            {.device = "cpu", .first_layer = 3, .end_layer = 4}},
                                  .accuracy = {.positions = 7, .same_top = 0.5, .divergence = 0.125, .error = 0.5},
                                  .n_results = 2};
    report.results[0] = (struct bench_result){.name = "decode1",
                                              .conversations = 1,
                                              .context = 64,
                                              .tokens_per_second = 42.5,
                                              .limit = 85,
                                              .by_memory = true,
                                              .stages = {[STAGE_ATTEND] = 0.5}};
    report.results[1] = (struct bench_result){.name = "decode1@8k", .tokens_per_second = 3};
    struct bench_report earlier = report, back;
    earlier.results[0].tokens_per_second = 85;
    earlier.n_results = 1;
    char *path = path_of("report.json");
    FILE *out = fopen(path, "w");
    assert_true(bench_json_write(out, &report, &earlier));
    fclose(out);
    struct status st = {0};
    json_t *written = json_load_file(path, 0, NULL);
    const char *device = NULL, *limits_of = NULL;
    int first, end, weights, kv;
    assert_int_equal(json_unpack(written, "{s:{s:s}, s:[{s:s, s:i, s:i, s:i, s:i}, {s:s, s:i}]}", "limits", "device",
                                 &limits_of, "devices", "device", &device, "first_layer", &first, "end_layer", &end,
                                 "weight_bytes", &weights, "kv_bytes", &kv, "device", &device, "first_layer", &first),
                     0);
    assert_string_equal(limits_of, "vulkan0");
    assert_string_equal(device, "cpu");
    assert_true(first == 3 && end == 3 && weights == 70 && kv == 8);
    json_decref(written);
    if (!bench_json_read(&back, path, &st)) fail_msg("%s", st.text);
    assert_string_equal(back.model, report.model);
    assert_string_equal(back.backend, report.backend);
    assert_string_equal(back.note, report.note);
    assert_int_equal(back.threads, 3);
    assert_near(back.load_seconds, 0.25);
    assert_near(back.peak_bytes, 1e10);
    assert_near(back.limits.read_bytes, 5e10);
    assert_int_equal(back.accuracy.positions, 7);
    assert_near(back.accuracy.divergence, 0.125);
    assert_int_equal(back.n_results, 2);
    const struct bench_result *r = bench_find(&back, "decode1");
    assert_non_null(r);
    assert_near(r->tokens_per_second, 42.5);
    assert_near(r->limit, 85);
    assert_true(r->by_memory);
    assert_int_equal(r->context, 64);
    assert_near(r->stages[STAGE_ATTEND], 0.5);
    assert_null(bench_find(&back, "decode2"));
    json_t *object = json_load_file(path, 0, NULL);
    const json_t *results = json_object_get(object, "results");
    assert_near(json_real_value(json_object_get(json_array_get(results, 0), "share_of_limit")), 0.5);
    assert_near(json_real_value(json_object_get(json_array_get(results, 0), "ratio")), 0.5);
    assert_null(json_object_get(json_array_get(results, 1), "ratio"));
    json_decref(object);
    free(path);
}

static void assert_refused(const char *text, const char *why) {
    struct bench_report report;
    struct status st = {0};
    char *path = path_of("bad.json");
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
    if (bench_json_read(&report, path, &st)) fail_msg("read: %.200s", text);
    if (!strstr(st.text, why) || !strstr(st.text, "bad.json")) fail_msg("%s; expected: %s", st.text, why);
    free(path);
}

#define RESULT "{\"name\": \"decode1\", \"tokens_per_second\": 1}"

static void test_invalid_reports_are_rejected(void **state) {
    (void)state;
    assert_refused("", "");
    assert_refused("results", "line 1");
    assert_refused("[1]", "not an object");
    assert_refused("{}", "results is missing");
    assert_refused("{\"results\": {}}", "results is an object, not an array");
    assert_refused("{\"results\": [7]}", "results[0] is a number");
    assert_refused("{\"results\": [" RESULT ", {\"name\": 7, \"tokens_per_second\": 1}]}",
                   "results[1].name is a number");
    assert_refused("{\"results\": [{\"name\": \"decode1\"}]}", "results[0].tokens_per_second is missing");
    assert_refused("{\"results\": [{\"name\": \"a\", \"tokens_per_second\": \"1\"}]}", "tokens_per_second is a string");
    assert_refused("{\"results\": [{\"name\": \"a\", \"tokens_per_second\": -1}]}", "is out of range: -1 (0 to ");
    assert_refused("{\"results\": [{\"name\": \"a\", \"tokens_per_second\": 1e300}]}", "is out of range: 1e+300 ");
    assert_refused("{\"threads\": true, \"results\": []}", "threads is true");
    assert_refused("{\"threads\": 1e12, \"results\": []}", "threads is out of range: 1e+12 ");
    assert_refused("{\"limits\": [], \"results\": []}", "limits is an array");
    assert_refused("{\"results\": [], \"results\": []}", "duplicate");
    assert_refused("{\"results\": [" RESULT "," RESULT "," RESULT "," RESULT "," RESULT "," RESULT "," RESULT "," RESULT
                   "," RESULT "," RESULT "," RESULT "," RESULT "," RESULT "," RESULT "," RESULT "," RESULT "," RESULT
                   "]}",
                   "too many entries: 17 (maximum 16)");
    char *deep = xmalloc(5001);
    memset(deep, '[', 5000);
    deep[5000] = 0;
    assert_refused(deep, "depth");
    free(deep);
}

static void test_report_names_are_cleaned(void **state) {
    (void)state;
    struct bench_report report;
    char *path = path_of("names.json");
    FILE *out = fopen(path, "w");
    fputs("{\"model\": \"a\\u001b[31mb\", \"results\": [{\"name\": \"decode\\u0007\", \"tokens_per_second\": 2}]}",
          out);
    fclose(out);
    assert_true(bench_json_read(&report, path, NULL));
    assert_null(strchr(report.model, '\033'));
    assert_null(strchr(report.results[0].name, '\a'));
    free(path);
}

// ---- the program ----

// Runs `confab bench` and returns its output; the caller frees.
static char *bench(const char *arguments, int *status) {
    const char *program = getenv("CONFAB");
    char *command = xasprintf("'%s' bench %s 2>&1 < /dev/null", program ? program : "./confab", arguments);
    char *text = xcalloc(1, 1 << 16);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    text[fread(text, 1, (1 << 16) - 1, out)] = 0;
    const int result = pclose(out);
    *status = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
    free(command);
    return text;
}

static void test_the_built_in_model_is_measured(void **state) {
    (void)state;
    static const char *const names[] = {"prefill512", "decode1", "decode2", "decode4", "decode8", "decode16"};
    int status;
    struct bench_report report;
    struct status st = {0};
    char *path = path_of("guide.json"), *arguments = xasprintf("--seconds 0.05 --accuracy 0.2 --save %s", path);
    char *text = bench(arguments, &status);
    if (status) fail_msg("exit status %d: %s", status, text);
    if (!bench_json_read(&report, path, &st)) fail_msg("%s", st.text);
    assert_int_equal(report.n_results, 6);
    for (int i = 0; i < 6; i++) {
        const struct bench_result *r = &report.results[i];
        double stages = 0;
        assert_string_equal(r->name, names[i]);
        assert_non_null(strstr(text, names[i]));
        assert_true(r->repetitions >= 3 && r->lowest <= r->tokens_per_second && r->tokens_per_second <= r->highest);
        assert_true(r->read_bytes > 0);
        for (int k = 0; k < STAGE_COUNT; k++) stages += r->stages[k];
        assert_true(stages > 0.01 && stages < 1.01);
    }
    assert_true(report.accuracy.positions >= 4 && report.accuracy.same_top > 0.8 && report.accuracy.divergence < 0.1);
    assert_true(report.load_seconds > 0 && report.first_token_seconds > report.load_seconds);
    assert_true(report.peak_bytes > 1e6);
    free(text), free(arguments);
    arguments = xasprintf("--seconds 0 --accuracy 0 --compare %s", path);
    text = bench(arguments, &status);
    assert_int_equal(status, 0);
    assert_non_null(strstr(text, "guide.json"));
    assert_non_null(strstr(text, "ratio"));
    assert_null(strstr(text, "different model"));
    free(text), free(arguments), free(path);
}

// Long prompts among them, which are left out unless they are asked for.
static void test_only_named_work_is_measured(void **state) {
    (void)state;
    int status;
    struct bench_report report;
    struct status st = {0};
    char *model = path_of("long.gguf"), *path = path_of("only.json");
    const struct tiny_shape shape = {.name = "long",
                                     .architecture = "llama",
                                     .parts = PART_ATTN_NORM | PART_FFN_NORM | PART_UP_DOWN | PART_GATE,
                                     .n_layer = 1,
                                     .n_embd = 32,
                                     .n_head = 2,
                                     .n_head_kv = 1,
                                     .head_size = 16,
                                     .n_ff = 32,
                                     .n_context = 5000,
                                     .keys = {TINY_FLOAT("attention.layer_norm_rms_epsilon", 1e-5)}};
    size_t size;
    void *bytes = tiny_shape_bytes(&shape, &size);
    FILE *out = fopen(model, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(out);
    char *arguments = xasprintf("--seconds 0 --accuracy 0 --only decode2,prefill4096 -m %s --save %s", model, path);
    char *text = bench(arguments, &status);
    if (status) fail_msg("exit status %d: %s", status, text);
    if (!bench_json_read(&report, path, &st)) fail_msg("%s", st.text);
    assert_int_equal(report.n_results, 2);
    assert_string_equal(report.results[0].name, "prefill4096");
    assert_true(report.results[0].tokens == 4096 * report.results[0].repetitions);
    assert_string_equal(report.results[1].name, "decode2");
    free(text), free(arguments);
    arguments = xasprintf("--seconds 0 --accuracy 0 --only decode1@8k -m %s", model);
    text = bench(arguments, &status);
    assert_int_equal(status, 1);
    assert_non_null(strstr(text, "decode1@8k: the context of 5000 tokens is too small"));
    free(text), free(arguments);
    text = bench("--only decode3", &status);
    assert_int_equal(status, 2);
    assert_non_null(strstr(text, "unknown name 'decode3' (expected some of prefill512,prefill4096,decode1,"));
    free(text), free(bytes), free(model), free(path);
}

static void test_an_invalid_comparison_fails_before_measuring(void **state) {
    (void)state;
    int status;
    char *text = bench("--compare README.md", &status);
    assert_int_equal(status, 1);
    assert_non_null(strstr(text, "README.md: line 1"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); // one line
    free(text);
}

// If the new file cannot be written completely, the old one stays.
static void test_a_failed_save_keeps_the_old_file(void **state) {
    (void)state;
    char *path = path_of("kept.json"), line[8] = "";
    temporary_folder_write(folder, "kept.json", "before");
    full_disk_begin(0);
    int status;
    char *arguments = xasprintf("--seconds 0 --accuracy 0 --save %s", path), *text = bench(arguments, &status);
    full_disk_end();
    assert_int_equal(status, 1);
    assert_non_null(strstr(text, "kept.json: cannot write"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "before");
    fclose(file);
    free(text), free(arguments), free(path);
}

static int setup(void **state) {
    (void)state;
    folder = temporary_folder_make_home();
    return folder ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_medians),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_impossible_tokens_do_not_count),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_a_device_is_measured_in_place_of_the_processor),
        cmocka_unit_test(test_reports_round_trip),
        cmocka_unit_test(test_invalid_reports_are_rejected),
        cmocka_unit_test(test_report_names_are_cleaned),
        cmocka_unit_test(test_the_built_in_model_is_measured),
        cmocka_unit_test(test_only_named_work_is_measured),
        cmocka_unit_test(test_an_invalid_comparison_fails_before_measuring),
        cmocka_unit_test(test_a_failed_save_keeps_the_old_file),
    };
    return cmocka_run_group_tests(tests, setup, temporary_folder_teardown);
}
