// The current model and the one that replaces it, with real engines over small files.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/models/model_host.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "tests/unit/host_events.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"

#define PLENTY (1ull << 40)

// Free memory as the host sees it, which decides whether the old model is closed, and as the loading threads see it.
static atomic_uint_fast64_t memory = PLENTY, memory_loading = PLENTY;
static pthread_t host_thread;
uint64_t machine_memory_free(void) {
    return pthread_equal(pthread_self(), host_thread) ? memory : memory_loading;
}

static const char *folder;
static struct settings settings;
static int released;

static void on_release(void *context) {
    assert_non_null(model_host_engine(context)); // still open
    released++;
}

static struct model_host *open_host_with(const struct model_opener *opener) {
    struct status st = {0};
    struct model_host *h = model_host_open(&settings, opener, &st);
    if (!h) fail_msg("%s", st.text);
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    model_host_watch(h, on_release, h);
    released = 0;
    return h;
}

static struct model_host *open_host(void) { return open_host_with(&local_models); }

// Until it is known what comes of it. False: refused.
static bool choose(struct model_host *h, const char *word, struct status *st) {
    model_host_choose(h, word);
    assert_true(model_host_choosing(h));
    model_host_wait(h);
    assert_false(model_host_choosing(h));
    return model_host_poll(h, st) != HOST_REFUSED;
}

static char *write_model(const char *name, int n_layer) {
    char *path = xasprintf("%s/%s", folder, name);
    tiny_model_write(path, (struct tiny_model_options){.n_layer = n_layer});
    return path;
}

static void test_the_first_model_is_loaded(void **state) {
    (void)state;
    struct status st = {0};
    struct model_host *h = model_host_open(&settings, &local_models, &st);
    assert_non_null(h);
    assert_non_null(model_host_loading(h));
    assert_false(model_host_loading(h)->stoppable);
    assert_null(model_host_engine(h));
    assert_string_equal(model_host_info(h)->family, "llama");
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_non_null(model_host_engine(h));
    assert_null(model_host_loading(h));
    assert_null(model_host_path(h));
    model_host_close(h);
}

static void test_another_model_replaces_it(void **state) {
    (void)state;
    struct status st = {0};
    char *path = write_model("three.gguf", 3);
    struct model_host *h = open_host();
    assert_true(choose(h, path, &st));
    assert_non_null(model_host_engine(h)); // the old one stays while there is memory for both
    assert_true(model_host_loading(h)->stoppable);
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_int_equal(released, 1);
    assert_int_equal(model_host_info(h)->n_layer, 3);
    assert_string_equal(model_host_path(h), path);
    assert_false(choose(h, path, &st)); // already in use
    model_host_close(h);
    free(path);
}

// A draft model that has drafted so far is no reason not to load a model of another vocabulary.
static void test_a_model_of_another_vocabulary_is_loaded_without_the_draft_model(void **state) {
    (void)state;
    struct status st = {0};
    char *small = write_model("small.gguf", 1), *large = write_model("large.gguf", 2),
         *other = xasprintf("%s/other.gguf", folder);
    tiny_model_write(other, (struct tiny_model_options){.pre = "gpt-2"});
    settings.model = large;
    settings.draft = small;
    struct model_host *h = open_host();
    assert_null(model_host_draft_refused(h));
    assert_true(choose(h, other, &st));
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_string_equal(model_host_path(h), other);
    assert_non_null(strstr(model_host_draft_refused(h), "cannot draft for"));
    assert_true(choose(h, large, &st));
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_null(model_host_draft_refused(h));
    settings.draft = (char *)"/nowhere/draft.gguf";
    assert_true(choose(h, small, &st));
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_non_null(strstr(model_host_draft_refused(h), "/nowhere/draft.gguf"));
    model_host_close(h);
    settings.model = settings.draft = NULL;
    free(small), free(large), free(other);
}

static void test_a_failure_to_load_changes_nothing(void **state) {
    (void)state;
    struct status st = {0};
    char *path = xasprintf("%s/text.gguf", folder);
    FILE *f = fopen(path, "w");
    fputs("no model at all", f);
    fclose(f);
    struct model_host *h = open_host();
    assert_false(choose(h, path, &st));
    assert_non_null(strstr(st.text, "text.gguf"));
    assert_false(choose(h, "/nonexistent/model.gguf", &st));
    assert_null(model_host_loading(h));
    assert_non_null(model_host_engine(h));
    assert_int_equal(released, 0);
    model_host_close(h);
    free(path);
}

static void test_stopping_keeps_the_old_model(void **state) {
    (void)state;
    struct status st = {0};
    char *path = write_model("four.gguf", 4);
    struct model_host *h = open_host();
    assert_true(choose(h, path, &st));
    model_host_stop(h);
    assert_null(model_host_loading(h)); // discarded
    assert_null(model_host_path(h));
    // Whatever the loader is still doing, the next choice is loaded.
    char *other = write_model("five.gguf", 5);
    assert_true(choose(h, other, &st));
    assert_non_null(model_host_loading(h));
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_int_equal(model_host_info(h)->n_layer, 5);
    model_host_close(h);
    free(path), free(other);
}

static void test_the_host_closes_while_loading(void **state) {
    (void)state;
    struct status st = {0};
    char *path = write_model("six.gguf", 6);
    struct model_host *h = open_host();
    assert_true(choose(h, path, &st));
    model_host_look(h);
    model_host_close(h);
    free(path);
}

// The minimum memory of an engine over this file.
static uint64_t need_of(const char *path) {
    struct status st = {0};
    struct model_memory need;
    struct model_file *m = model_file_open_header(path, false, &st);
    assert_non_null(m);
    assert_true(local_engine_memory(m, &(struct engine_params){.n_threads = 1}, 1 << 20, &need, &st));
    model_file_close(m);
    return need.total;
}

static void test_without_memory_for_both_the_old_is_closed_first(void **state) {
    (void)state;
    struct status st = {0};
    char *path = write_model("seven.gguf", 7);
    struct model_host *h = open_host();
    memory = need_of(path) - 1; // not enough for both
    assert_true(choose(h, path, &st));
    assert_int_equal(released, 1);
    assert_null(model_host_engine(h));
    assert_null(model_host_memory(h));
    assert_string_equal(model_host_info(h)->name, "confab guide"); // until there is another
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_int_equal(model_host_info(h)->n_layer, 7);
    assert_true(model_host_memory(h)->total >= need_of(path));
    model_host_close(h);
    memory = PLENTY;
    free(path);
}

static uint64_t others_hold;

static uint64_t hold(void *context) {
    (void)context;
    return others_hold;
}

static void give_back(void *context) {
    (void)context;
    memory += others_hold;
    others_hold = 0;
}

static void test_others_make_room_before_the_old_is_closed(void **state) {
    (void)state;
    struct status st = {0};
    struct model_host *h = open_host();
    char *path = write_model("second.gguf", 3), *other = write_model("third.gguf", 2);
    const uint64_t held = model_host_memory(h)->total;
    model_host_share(h, &(struct model_host_others){hold, give_back, NULL});
    others_hold = 1000;
    assert_int_equal(model_host_room(h), PLENTY + held + 1000);
    assert_true(choose(h, path, &st));
    assert_int_equal(others_hold, 1000); // there is enough for both
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    memory = 1;
    others_hold = PLENTY;
    assert_true(choose(h, other, &st));
    assert_int_equal(others_hold, 0);
    assert_non_null(model_host_engine(h)); // there is memory for both now
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    memory = PLENTY;
    model_host_close(h);
    free(path), free(other);
}

static bool memory_on_devices(const struct model_file *m, const struct engine_params *p, uint64_t available,
                              struct model_memory *out, struct status *st) {
    if (!local_engine_memory(m, p, available, out, st)) return false;
    out->on_devices = 1 << 20;
    return true;
}

// Its KV cache takes all that is left of theirs.
static void test_a_model_on_devices_is_closed_before_another(void **state) {
    (void)state;
    struct status st = {0};
    struct model_opener opener = local_models;
    opener.memory = memory_on_devices;
    char *path = write_model("eight.gguf", 8);
    struct model_host *h = open_host_with(&opener);
    assert_int_equal(model_host_room(h), PLENTY + model_host_memory(h)->total + (1 << 20));
    assert_true(choose(h, path, &st));
    assert_int_equal(released, 1);
    assert_null(model_host_engine(h));
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_int_equal(model_host_info(h)->n_layer, 8);
    model_host_close(h);
    free(path);
}

static void test_the_old_is_loaded_again_after_a_failure(void **state) {
    (void)state;
    struct status st = {0};
    char *small = write_model("two.gguf", 2), *large = write_model("fifty.gguf", 50);
    settings.model = small;
    struct model_host *h = open_host();
    settings.model = NULL;
    memory = memory_loading = need_of(large) - 1; // room for the small one
    assert_true(choose(h, large, &st));
    assert_null(model_host_engine(h));
    enum model_host_event event = next_event(h, &st); // the memory was not freed after all
    assert_int_equal(event, HOST_FAILED);
    assert_int_equal(st.code, STATUS_MEMORY);
    assert_non_null(model_host_loading(h));
    assert_false(model_host_loading(h)->stoppable);
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_string_equal(model_host_path(h), small);
    assert_non_null(model_host_engine(h));
    model_host_close(h);
    memory = memory_loading = PLENTY;
    free(small), free(large);
}

static void test_a_model_that_is_too_large_is_rejected(void **state) {
    (void)state;
    struct status st = {0};
    char *small = write_model("one.gguf", 1), *large = write_model("forty.gguf", 40);
    settings.model = small;
    struct model_host *h = open_host();
    settings.model = NULL;
    memory = 1; // besides what the small one would free
    assert_false(choose(h, large, &st));
    memory = PLENTY;
    assert_int_equal(st.code, STATUS_MEMORY);
    assert_non_null(strstr(st.text, "not enough memory: needs "));
    assert_non_null(model_host_engine(h));
    assert_int_equal(released, 0);
    model_host_close(h);
    free(small), free(large);
}

static void test_models_are_listed(void **state) {
    (void)state;
    struct status st = {0};
    char *models = xasprintf("%s/confab/models/listed.gguf", folder),
         *command = xasprintf("mkdir -p %s/confab/models", folder);
    assert_int_equal(system(command), 0);
    tiny_model_write(models, (struct tiny_model_options){0});
    struct model_host *h = open_host();
    model_host_look(h);
    while (model_host_looking(h)) assert_int_equal(next_event(h, &st), HOST_LISTED);
    const struct model_list *list = model_host_list(h);
    assert_ptr_equal(model_host_entry(h), models_find(list, "guide", &st));
    assert_non_null(models_find(list, "listed", &st));
    assert_string_equal(models_find(list, "listed", &st)->family, "llama");
    assert_true(choose(h, "LISTED", &st));
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_string_equal(model_host_path(h), models);
    assert_true(choose(h, "guide", &st)); // and back
    assert_int_equal(next_event(h, &st), HOST_LOADED);
    assert_null(model_host_path(h));
    model_host_close(h);
    free(command), free(models);
}

static void test_a_failure_says_why(void **state) {
    (void)state;
    struct status st = {0};
    struct settings wrong = settings;
    wrong.kv_tokens = 16777216;
    struct model_host *h = model_host_open(&wrong, &local_models, &st);
    assert_non_null(h);
    assert_int_equal(next_event(h, &st), HOST_FAILED);
    assert_non_null(strstr(st.text, "16777216"));
    assert_null(model_host_engine(h));
    assert_null(model_host_loading(h));
    model_host_close(h);
}

static int setup(void **state) {
    (void)state;
    host_thread = pthread_self();
    folder = temporary_folder_make();
    if (!folder) return -1;
    static const char *const unset[] = {"HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "OLLAMA_MODELS", "LLAMA_CACHE"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    setenv("HOME", folder, 1);
    setenv("XDG_DATA_HOME", folder, 1);
    setenv("OLLAMA_MODELS", folder, 1);
    settings = settings_default();
    settings.threads = 1;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_model_is_loaded),
        cmocka_unit_test(test_another_model_replaces_it),
        cmocka_unit_test(test_a_model_of_another_vocabulary_is_loaded_without_the_draft_model),
        cmocka_unit_test(test_a_failure_to_load_changes_nothing),
        cmocka_unit_test(test_stopping_keeps_the_old_model),
        cmocka_unit_test(test_the_host_closes_while_loading),
        cmocka_unit_test(test_without_memory_for_both_the_old_is_closed_first),
        cmocka_unit_test(test_others_make_room_before_the_old_is_closed),
        cmocka_unit_test(test_a_model_on_devices_is_closed_before_another),
        cmocka_unit_test(test_the_old_is_loaded_again_after_a_failure),
        cmocka_unit_test(test_a_model_that_is_too_large_is_rejected),
        cmocka_unit_test(test_models_are_listed),
        cmocka_unit_test(test_a_failure_says_why),
    };
    return cmocka_run_group_tests(tests, setup, temporary_folder_teardown);
}
