// The system refuses a thread or an eventfd, at each place where loading a model asks for one: the result is a message
// that names the limit, nothing leaks, and the old model keeps working.
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/bench/limits_meter.h"
#include "app/models/model_host.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/base/thread_pool.h"
#include "engine/model/opened_model.h"
#include "engine/quantize.h"
#include "tests/unit/host_events.h"
#include "tests/unit/huggingface_folder.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_huggingface.h"
#include "tests/unit/tiny_model.h"

enum { THREADS = 4, NEVER = 1 << 20 };
#define PLENTY (1ull << 40)

// ---- the system ----

static atomic_int left = NEVER; // threads and eventfds to grant before one is refused; later ones are granted again

static bool refused(void) { return atomic_fetch_sub(&left, 1) == 0; }

// The linker replaces the system's functions with these (--wrap).
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *), void *argument) {
    return refused() ? EAGAIN : __real_pthread_create(thread, attributes, main, argument);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags) {
    if (!refused()) return __real_eventfd(count, flags);
    errno = EMFILE;
    return -1;
}

// Free memory as the main thread sees it, which decides what has to go; those that load find plenty.
static uint64_t memory = PLENTY;
static pthread_t main_thread;
uint64_t machine_memory_free(void) { return pthread_equal(pthread_self(), main_thread) ? memory : PLENTY; }

static int entries(const char *path) {
    DIR *dir = opendir(path);
    int n = 0;
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

// Descriptors and threads of the process. A thread that was joined may be listed a moment longer.
static int held(void) { return entries("/proc/self/fd") + entries("/proc/self/task"); }

static void expect_held(int n) {
    for (int i = 0; held() != n && i < 5000; i++) usleep(1000);
    assert_int_equal(held(), n);
}

static void expect_limit(const struct status *st) {
    assert_int_equal(st->code, STATUS_LIMIT);
    bool thread = strstr(st->text, "cannot start a thread: Resource temporarily unavailable (ulimit -u is ");
    bool file = strstr(st->text, "cannot open an eventfd: Too many open files (ulimit -n is ");
    if (!thread && !file) fail_msg("%s", st->text);
}

// ---- an engine ----

static struct model_file *open_tiny(void **bytes) {
    size_t size;
    struct status st = {0};
    *bytes = tiny_model_bytes((struct tiny_model_options){.format = BLOCK_Q8_0}, &size);
    struct model_file *file = model_file_open_memory("tiny.gguf", *bytes, size, NULL, &st);
    if (!file) fail_msg("%s", st.text);
    return file;
}

static void expect_answer(struct engine_client *e) {
    const int32_t ids[] = {3, 4, 5};
    struct request_params p = {
        .conversation = 1, .ids = ids, .n_ids = 3, .sampling = sampling_default(), .max_tokens = 4, .ignore_end = true};
    engine_submit(e, &p);
    struct engine_event event = {0};
    while (event.kind != EVENT_STATE || event.state < REQUEST_FINISHED) assert_true(engine_wait(e, &event, 60000));
    assert_int_equal(event.state, REQUEST_FINISHED);
}

static void test_an_engine_opens_wholly_or_not_at_all(void **state) {
    (void)state;
    void *bytes;
    struct model_file *file = open_tiny(&bytes);
    struct status st = {0};
    const struct engine_params params = {.n_threads = THREADS};
    struct engine *beside = local_engine_open(file, &params, &st), *e = NULL;
    assert_non_null(beside);
    struct engine_client *client = engine_client_open(beside, &st);
    const int before = held();
    int n = 0;
    for (; !e; n++) {
        st = (struct status){0};
        left = n;
        e = local_engine_open(file, &params, &st);
        left = NEVER;
        if (e) break;
        expect_limit(&st);
        expect_held(before);
        expect_answer(client);
    }
    assert_int_equal(n, 2 + (THREADS - 1) + 2); // queues, workers, the engine's and the encoder's threads
    engine_client_close(client);
    client = engine_client_open(e, &st);
    expect_answer(client);
    engine_client_close(client);
    engine_close(e);
    engine_close(beside);
    model_file_close(file);
    free(bytes);
}

static void test_logits_need_an_eventfd(void **state) {
    (void)state;
    void *bytes;
    struct model_file *file = open_tiny(&bytes);
    struct status st = {0};
    struct engine *e = local_engine_open(file, &(struct engine_params){.n_threads = 1}, &st);
    float *logits = xmalloc((size_t)model_file_info(file)->n_vocab * sizeof *logits);
    left = 0;
    assert_false(engine_logits(e, (int32_t[]){3}, 1, logits, &st));
    left = NEVER;
    expect_limit(&st);
    assert_true(engine_logits(e, (int32_t[]){3}, 1, logits, &st));
    free(logits);
    engine_close(e);
    model_file_close(file);
    free(bytes);
}

// ---- the model host ----

static const char *folder;
static struct settings settings;

static char *write_model(const char *name, int n_layer) {
    char *path = xasprintf("%s/%s", folder, name);
    tiny_model_write(path, (struct tiny_model_options){.n_layer = n_layer});
    return path;
}

static struct model_host *open_host(char *path) {
    struct status st = {0};
    settings.model = path;
    struct model_host *h = model_host_open(&settings, &local_models, &st);
    if (!h) fail_msg("%s", st.text);
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    model_host_wait(h); // until the list of used models is written
    return h;
}

static void test_the_first_model_is_loaded_or_a_message_says_why_not(void **state) {
    (void)state;
    char *path = write_model("first.gguf", 1);
    const int before = held();
    bool loaded = false;
    settings.model = path;
    for (int n = 0; !loaded; n++) {
        struct status st = {0};
        left = n;
        struct model_host *h = model_host_open(&settings, &local_models, &st);
        loaded = h && next_event(h, &st) == HOST_LOADED;
        left = NEVER;
        assert_true((h == NULL) == (n < 5)); // eventfds and threads, its own and its worker's, and the loader's thread
        if (!loaded) expect_limit(&st);
        if (h) assert_true(!model_host_engine(h) == !loaded);
        model_host_close(h);
        expect_held(before);
    }
    free(path);
}

// Until it is known what comes of it. False: refused.
static bool choose(struct model_host *h, const char *word, struct status *st) {
    model_host_choose(h, word);
    assert_true(model_host_choosing(h));
    model_host_wait(h);
    assert_false(model_host_choosing(h));
    return model_host_poll(h, st) != HOST_REFUSED;
}

static void test_the_old_model_keeps_answering(void **state) {
    (void)state;
    char *old = write_model("old.gguf", 1), *new = write_model("new.gguf", 2);
    struct model_host *h = open_host(old);
    const int before = held();
    for (int n = 0; !strcmp(model_host_path(h), old); n++) {
        struct status st = {0};
        left = n;
        bool chosen = choose(h, new, &st);
        assert_int_equal(chosen, n > 0); // the loader's thread
        bool loaded = chosen && next_event(h, &st) == HOST_LOADED;
        left = NEVER;
        assert_null(model_host_loading(h));
        expect_answer(model_host_client(h));
        if (loaded) break;
        expect_limit(&st);
        expect_held(before);
        assert_int_equal(model_host_info(h)->n_layer, 1);
    }
    assert_string_equal(model_host_path(h), new);
    model_host_close(h);
    free(old), free(new);
}

static void test_a_model_closed_for_space_is_loaded_again(void **state) {
    (void)state;
    char *old = write_model("gone.gguf", 1), *new = write_model("wide.gguf", 12);
    struct model_host *h = open_host(old);
    struct status st = {0};
    struct model_memory need;
    struct model_file *file = model_file_open_header(new, false, &st);
    struct engine_params engine = {.n_threads = 1, .options.quick_start = true};
    assert_true(local_engine_memory(file, &engine, 1, &need, &st));
    model_file_close(file);
    bool loaded = false;
    for (int n = 0; !loaded; n++) {
        st = (struct status){0};
        memory = need.total - 1; // not enough for both
        left = n;
        bool chosen = choose(h, new, &st);
        assert_int_equal(chosen, n > 0);
        assert_null(model_host_engine(h));
        loaded = chosen && next_event(h, &st) == HOST_LOADED;
        if (loaded) break;
        expect_limit(&st);
        assert_int_equal(next_event(h, &st), HOST_LOADED);
        assert_string_equal(model_host_path(h), old);
        expect_answer(model_host_client(h));
    }
    left = NEVER;
    memory = PLENTY;
    assert_string_equal(model_host_path(h), new);
    model_host_close(h);
    free(old), free(new);
}

static void test_models_are_listed_without_a_thread(void **state) {
    (void)state;
    char *path = write_model("listed.gguf", 1);
    struct model_host *h = open_host(path);
    struct status st = {0};
    left = 0;
    model_host_look(h);
    left = NEVER;
    assert_int_equal(next_event(h, &st), HOST_LISTED);
    assert_true(model_host_list(h)->count > 0);
    assert_false(model_host_looking(h));
    model_host_close(h);
    free(path);
}

// ---- others that start threads ----

static void test_quantizing_needs_threads(void **state) {
    (void)state;
    char *in = write_model("in.gguf", 1), *out = xasprintf("%s/out.gguf", folder);
    struct status st = {0};
    const struct quantize_params p = {.in = in, .out = out, .type = "Q8_0", .n_threads = 2};
    const int before = held();
    left = 0;
    assert_null(quantize_model(&p, &st));
    left = NEVER;
    expect_limit(&st);
    expect_held(before);
    assert_int_equal(access(out, F_OK), -1);
    struct quantize_report *report = quantize_model(&p, &st);
    assert_non_null(report);
    quantize_report_free(report);
    free(in), free(out);
}

static void test_converting_a_folder_needs_threads(void **state) {
    (void)state;
    if (thread_pool_default_size() < 2) skip();
    struct huggingface_folder f = huggingface_folder_new("");
    struct status st = {0};
    struct gguf g;
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){.n_layer = 1}, &size);
    assert_true(gguf_open_memory(&g, "tiny", bytes, size, &st));
    tiny_huggingface_write(
        f.path, &g, (struct tiny_huggingface_options){.model_type = "llama", .quantisation = TINY_FP8_TENSOR});
    gguf_close(&g);
    const int before = held();
    left = 0;
    assert_null(model_file_open(f.path, &st));
    left = NEVER;
    expect_limit(&st);
    expect_held(before);
    struct model_file *m = model_file_open(f.path, &st);
    assert_non_null(m);
    model_file_close(m);
    huggingface_folder_remove(&f);
    free(bytes);
}

static void test_measuring_the_machine_needs_threads(void **state) {
    (void)state;
    struct status st = {0};
    struct machine_limits limits;
    int fd = eventfd(0, 0);
    const int before = held();
    left = 0;
    assert_null(limits_meter_start("cpu", 2, fd, &st));
    expect_limit(&st);
    left = 1; // the meter's thread, but none for its pool
    struct limits_meter *m = limits_meter_start("cpu", 2, fd, &st);
    assert_non_null(m);
    assert_false(limits_meter_take(m, &limits));
    left = NEVER;
    expect_held(before);
    close(fd);
}

static int setup(void **state) {
    (void)state;
    if (!(folder = temporary_folder_make())) return -1;
    static const char *const unset[] = {"HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "OLLAMA_MODELS", "LLAMA_CACHE"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    setenv("HOME", folder, 1);
    setenv("XDG_DATA_HOME", folder, 1);
    settings = settings_default();
    settings.threads = THREADS;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_engine_opens_wholly_or_not_at_all),
        cmocka_unit_test(test_logits_need_an_eventfd),
        cmocka_unit_test(test_the_first_model_is_loaded_or_a_message_says_why_not),
        cmocka_unit_test(test_the_old_model_keeps_answering),
        cmocka_unit_test(test_a_model_closed_for_space_is_loaded_again),
        cmocka_unit_test(test_models_are_listed_without_a_thread),
        cmocka_unit_test(test_quantizing_needs_threads),
        cmocka_unit_test(test_converting_a_folder_needs_threads),
        cmocka_unit_test(test_measuring_the_machine_needs_threads),
    };
    main_thread = pthread_self();
    return cmocka_run_group_tests(tests, setup, temporary_folder_teardown);
}
