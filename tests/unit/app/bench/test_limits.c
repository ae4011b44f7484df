// The machine's limits: stored in a file, measured in the background, and shown in the chat.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>

#include "app/bench/limits_file.h"
#include "app/bench/limits_meter.h"
#include "app/chat/chat_state.h"
#include "engine/base/machine_memory.h"
#include "engine/base/reader.h"
#include "tests/unit/chat_fixture.h"

static long long age; // as last read

static char *limits_path(void) { return xasprintf("%s/cache/limits", folder); }

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

// Replaces the beginning of the file's only line.
static void change_line(const char *path, const char *beginning) {
    size_t size;
    char *text = file_read(path, 10000, &size, NULL), *rest = text;
    assert_non_null(text);
    for (int i = 0; i < 4; i++) rest = strchr(rest, ' ') + 1;
    char *changed = xasprintf("%s %s", beginning, rest);
    write_text(path, changed);
    free(changed), free(text);
}

static void test_limits_are_stored_by_engine(void **state) {
    (void)state;
    char *path = limits_path();
    struct machine_limits read = {0};
    assert_false(limits_file_read(path, "AVX2, 2 threads", &read, &age));
    limits_file_add(path, "AVX2, 2 threads",
                    &(struct machine_limits){.read_bytes = 5e10, .int8_operations = 9e11, .float_operations = 2e11},
                    false);
    limits_file_add(path, "AVX2, 1 thread", &(struct machine_limits){.read_bytes = 3e10}, false);
    assert_true(limits_file_read(path, "AVX2, 2 threads", &read, &age));
    assert_true(read.read_bytes == 5e10 && read.int8_operations == 9e11 && read.float_operations == 2e11);
    assert_true(limits_file_read(path, "AVX2, 1 thread", &read, &age));
    assert_true(read.read_bytes == 3e10 && read.int8_operations == 0);
    assert_false(limits_file_read(path, "AVX2, 3 threads", &read, &age));
    limits_file_add(path, "AVX2, 2 threads", &(struct machine_limits){.read_bytes = 4e10, .int8_operations = 1e11},
                    false);
    assert_true(limits_file_read(path, "AVX2, 2 threads", &read, &age));
    assert_true(read.read_bytes == 5e10 && read.int8_operations == 9e11); // the best of the last days
    limits_file_add(path, "AVX2, 2 threads", &(struct machine_limits){.read_bytes = 6e10, .int8_operations = 1e11},
                    false);
    assert_true(limits_file_read(path, "AVX2, 2 threads", &read, &age));
    assert_true(read.read_bytes == 6e10 && read.int8_operations == 9e11 && age < 60);
    limits_file_add(path, "AVX2, 2 threads", &(struct machine_limits){.read_bytes = 2e10}, true);
    assert_true(limits_file_read(path, "AVX2, 2 threads", &read, &age));
    assert_true(read.read_bytes == 2e10 && read.int8_operations == 0);  // replaces all
    assert_true(limits_file_read(path, "AVX2, 1 thread", &read, &age)); // except those of other engines
    free(path);
}

static void test_old_and_invalid_lines_are_ignored(void **state) {
    (void)state;
    char *path = limits_path(), old[64], young[64];
    struct machine_limits read;
    limits_file_add(path, "e", &(struct machine_limits){.read_bytes = 5e10, .int8_operations = 9e11}, false);
    const long long today = time(NULL);
    const char *const dates[] = {"99999999999999", "x"}, *const rates[] = {"nan 9e11 1", "inf 1 1", "-5 1 1",
                                                                           "5e10 -1 1",  "1 1 nan", "5e10 9e11"};
    snprintf(young, sizeof young, "%lld 5e10 9e11 2e11", today - (LIMITS_DAYS - 1) * 86400);
    change_line(path, young);
    assert_true(limits_file_read(path, "e", &read, &age));
    snprintf(old, sizeof old, "%lld 5e10 9e11 2e11", today - (LIMITS_DAYS + 1) * 86400);
    change_line(path, old);
    assert_false(limits_file_read(path, "e", &read, &age));
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        snprintf(old, sizeof old, "%s 5e10 9e11 2e11", dates[i]);
        change_line(path, old);
        assert_false(limits_file_read(path, "e", &read, &age));
    }
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        snprintf(old, sizeof old, "%lld %s", today, rates[i]);
        change_line(path, old);
        assert_false(limits_file_read(path, "e", &read, &age));
    }
    write_text(path, "\n1\n1 2\n\xff\xfe 3 4 5\n");
    assert_false(limits_file_read(path, "e", &read, &age));
    limits_file_add(path, "e", &(struct machine_limits){.read_bytes = 1}, false);
    assert_true(limits_file_read(path, "e", &read, &age));
    free(path);
}

// An outlier expires with its day, however often lower limits were measured since.
static void test_the_best_expires(void **state) {
    (void)state;
    char *path = limits_path(), old[64];
    struct machine_limits read;
    limits_file_add(path, "e", &(struct machine_limits){.read_bytes = 9e10}, false);
    snprintf(old, sizeof old, "%lld 9e10 0 0", (long long)time(NULL) - LIMITS_DAYS * 86400 + 3600);
    change_line(path, old);
    limits_file_add(path, "e", &(struct machine_limits){.read_bytes = 3e10}, false);
    assert_true(limits_file_read(path, "e", &read, &age));
    assert_true(read.read_bytes == 9e10 && age < 60);
    size_t size;
    char *text = file_read(path, 10000, &size, NULL), *second = strchr(text, '\n') + 1, *name = second;
    for (int i = 0; i < 4; i++) name = strchr(name, ' ') + 1;
    *second = 0;
    char *aged = xasprintf("%s%lld 9e10 0 0 %s", text, (long long)time(NULL) - LIMITS_DAYS * 86400 - 1, name);
    write_text(path, aged);
    assert_true(limits_file_read(path, "e", &read, &age));
    assert_true(read.read_bytes == 3e10);
    free(aged), free(text), free(path);
}

static bool memory_is_short(void) {
    uint64_t unused = machine_memory_free();
    if (!unused || unused > 2ull << 30) return false;
    print_message("not enough free memory to measure with\n");
    return true;
}

static void test_the_meter_measures_and_stops(void **state) {
    (void)state;
    struct machine_limits limits;
    uint64_t times;
    if (memory_is_short()) skip();
    clock_freeze(0); // use the real clock
    int fd = eventfd(0, 0);
    struct limits_meter *m = limits_meter_start("cpu", 2, fd, NULL);
    assert_int_equal(read(fd, &times, sizeof times), sizeof times);
    assert_true(limits_meter_done(m));
    assert_true(limits_meter_take(m, &limits));
    assert_true(limits.read_bytes > 1e8);
    m = limits_meter_start("cpu", 2, fd, NULL);
    limits_meter_stop(m);
    assert_int_equal(read(fd, &times, sizeof times), sizeof times); // it notifies even if stopped
    assert_false(limits_meter_take(m, &limits));
    close(fd);
}

// ---- the chat ----

static void reopen_with(char *path) {
    close_chat();
    strcpy(engine.metrics.backend, "AVX2, 1 thread");
    engine.metrics.n_threads = 1;
    chat_limits_path = path;
    open_chat();
}

static void test_a_chat_shows_stored_limits(void **state) {
    (void)state;
    char *path = limits_path();
    assert_true(screen.view.time->most_bytes == 0);
    limits_file_add(path, "AVX2, 1 thread", &(struct machine_limits){.read_bytes = 5e10, .int8_operations = 9e11},
                    false);
    reopen_with(path);
    assert_true(screen.view.time->most_bytes == 5e10 && screen.view.time->most_operations == 9e11);
    engine.metrics.running = 1;
    engine.metrics.stages[STAGE_FEED] = (struct stage_work){0.5, 2e10, 1e11};
    engine.metrics.decode = (struct stage_work){0.8, 6e10, 1e11};
    described()->weight_bytes = 1 << 20;
    act(COMMAND_SEND, -1, "Hello");
    pass(0.5);
    assert_true(screen.view.time->busy);
    assert_true(screen.view.time->stages[STAGE_FEED].bytes == 2e10 && screen.view.time->decode.seconds == 0.8);
    assert_true(screen.view.time->most_bytes == 5e10); // so small a model is read from caches
    assert_true(screen.view.time->cache_share == (machine_cache_bytes() > 0 ? 0 : 1));
    described()->weight_bytes = 1ull << 40;
    pass(0.5);
    assert_true(fabs(screen.view.time->most_bytes - 7.5e10) < 1); // the machine evidently allows more
    assert_true(screen.view.time->cache_share >= 1);
    engine.metrics.decode.operations = 8e11;
    pass(0.5);
    assert_true(fabs(screen.view.time->most_operations - 1e12) < 1); // also in computing
    engine.metrics.running = 0;
    pass(0.5);
    assert_false(screen.view.time->busy);
    reopen_with(NULL);
    free(path);
}

static void test_a_chat_shows_the_limits_of_the_device_with_most_layers(void **state) {
    (void)state;
    char *path = limits_path();
    const struct machine_limits fast = {.read_bytes = 5e11, .float_operations = 9e12};
    limits_file_add(path, "Vulkan, fast", &fast, false);
    limits_file_add(path, "AVX2, 1 thread", &(struct machine_limits){.read_bytes = 5e10}, false);
    engine.metrics.n_parts = 2;
    engine.metrics.parts[0] = (struct part_metrics){.device = "cpu", .description = "AVX2, 1 thread", .end_layer = 4};
    engine.metrics.parts[1] =
        (struct part_metrics){.device = "vulkan0", .description = "Vulkan, fast", .first_layer = 4, .end_layer = 9};
    reopen_with(path);
    assert_true(screen.view.time->most_bytes == 5e11 && screen.view.time->most_operations == 9e12);
    assert_true(screen.view.time->cache_share == 1); // the processor's cache is none of its own
    engine.metrics.n_parts = 1;                      // the device fails
    engine.metrics.decode = (struct stage_work){0.8, 1e9, 1e9};
    engine.metrics.running = 1;
    act(COMMAND_SEND, -1, "Hello");
    pass(0.5);
    chat_wait(chat);
    pass(0.5);
    assert_true(screen.view.time->most_bytes == 5e10);
    engine.metrics.n_parts = engine.metrics.running = 0;
    reopen_with(NULL);
    free(path);
}

// Steps in real time until the limits are measured. False: they are not.
static bool turn_until_known(void) {
    for (int i = 0; i < 2000 && screen.view.time->most_bytes <= 0; i++) assert_true(chat_step(chat, 5));
    return screen.view.time->most_bytes > 0;
}

static void press_and_step(enum ui_command_id id, const char *text) {
    press(id, -1, text);
    for (int i = 0; i < 3; i++) step();
    chat_draw(chat);
}

static void test_an_idle_chat_measures_and_an_answer_stops_it(void **state) {
    (void)state;
    char *path = limits_path();
    if (memory_is_short()) skip();
    reopen_with(path);
    assert_true(screen.view.time->most_bytes == 0);
    engine.metrics.preparing = true;
    press_and_step(COMMAND_MEASURE, NULL);
    assert_string_equal(screen.status, "measured as soon as nothing runs");
    pass(2);
    assert_true(chat_limits_due(chat) > clock_ns());
    engine.metrics.preparing = false;
    pass(2); // it begins
    assert_true(chat_limits_due(chat) == 0);
    press_and_step(COMMAND_SEND, "Hello");
    assert_string_equal(engine.prompt, "user: Hello|"); // at once
    for (int i = 0; i < 40; i++) pass(0.05), usleep(10000);
    assert_true(screen.view.time->most_bytes == 0); // not while it answers
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    clock_freeze(0);
    assert_true(turn_until_known());
    struct machine_limits kept;
    chat_wait(chat);
    assert_true(limits_file_read(path, "AVX2, 1 thread", &kept, &age));
    press_and_step(COMMAND_MEASURE, NULL);
    assert_string_equal(screen.status, "measuring what this machine can do");
    for (int i = 0; i < 2000 && !strstr(screen.status, "GB/s"); i++) assert_true(chat_step(chat, 5));
    assert_non_null(strstr(screen.status, "at most this machine reads"));
    reopen_with(NULL);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_limits_are_stored_by_engine),
        CHAT_TEST(test_old_and_invalid_lines_are_ignored),
        CHAT_TEST(test_the_best_expires),
        CHAT_TEST(test_the_meter_measures_and_stops),
        CHAT_TEST(test_a_chat_shows_stored_limits),
        CHAT_TEST(test_a_chat_shows_the_limits_of_the_device_with_most_layers),
        CHAT_TEST(test_an_idle_chat_measures_and_an_answer_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
