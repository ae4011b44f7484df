// Listing the models in the places where other programs keep theirs, imitated in a folder, and finding them by name.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/models/model.h"
#include "app/models/models.h"
#include "app/models/models_used.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_huggingface.h"
#include "tests/unit/tiny_model.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char *home;

static char *in_home(const char *name) { return xasprintf("%s/%s", home, name); }

static void put(const char *name, const char *text) {
    char *path = in_home(name);
    struct status st = {0};
    if (!path_make_parents(path, &st)) fail_msg("%s", st.text);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(path);
}

static void put_model(const char *name) {
    char *path = in_home(name);
    put(name, "");
    tiny_model_write(path, (struct tiny_model_options){0});
    free(path);
}

static void put_link(const char *name, const char *to) {
    char *path = in_home(name);
    struct status st = {0};
    if (!path_make_parents(path, &st)) fail_msg("%s", st.text);
    assert_int_equal(symlink(to, path), 0);
    free(path);
}

static const struct model_entry *entry(const struct model_list *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->entries[i].name, name)) return &list->entries[i];
    return NULL;
}

static const struct model_entry *must(const struct model_list *list, const char *name, const char *source,
                                      const char *path) {
    const struct model_entry *e = entry(list, name);
    if (!e) {
        for (int i = 0; i < list->count; i++) print_message("%s\n", list->entries[i].name);
        fail_msg("no %s", name);
    }
    assert_string_equal(e->source, source);
    char *whole = in_home(path);
    assert_string_equal(e->path, whole);
    free(whole);
    return e;
}

// ---- places ----

static void test_own_folder(void **state) {
    (void)state;
    struct model_list list;
    put_model("data/confab/models/one.gguf");
    put_model("data/confab/models/deep/er/two.GGUF");
    put("data/confab/models/notes.txt", "no model");
    put("data/confab/models/empty.gguf", "");
    put_model("data/confab/models/.hidden/three.gguf");
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 3);
    must(&list, "one", "confab", "data/confab/models/one.gguf");
    must(&list, "two", "confab", "data/confab/models/deep/er/two.GGUF");
    const struct model_entry *guide = entry(&list, "guide");
    assert_non_null(guide);
    assert_null(guide->path);
    assert_false(list.cut);
    models_describe(&list, &local_models, 60);
    assert_string_equal(entry(&list, "one")->family, "llama");
    assert_string_equal(entry(&list, "one")->format, "F32");
    assert_true(entry(&list, "one")->n_parameters > 1000);
    assert_true(entry(&list, "one")->need > 0);
    assert_null(entry(&list, "one")->problem);
    models_free(&list);
}

static void test_hub(void **state) {
    (void)state;
    struct model_list list;
    put("cache/huggingface/hub/models--some--Thing-7B/refs/main", "bbb\n");
    put("cache/huggingface/hub/models--some--Thing-7B/blobs/x", "weights of a sort");
    put("cache/huggingface/hub/models--some--Thing-7B/snapshots/aaa/config.json", "{\"model_type\":\"old\"}");
    put_link("cache/huggingface/hub/models--some--Thing-7B/snapshots/aaa/model.safetensors", "../../blobs/x");
    put("cache/huggingface/hub/models--some--Thing-7B/snapshots/bbb/config.json",
        "{\"model_type\":\"llama\",\"torch_dtype\":\"bfloat16\"}");
    put_link("cache/huggingface/hub/models--some--Thing-7B/snapshots/bbb/model-1.safetensors", "../../blobs/x");
    put_link("cache/huggingface/hub/models--some--Thing-7B/snapshots/bbb/model-2.safetensors", "../../blobs/x");
    put_model("cache/huggingface/hub/models--one--Tiny-GGUF/snapshots/ccc/tiny-Q8.gguf");
    put("cache/huggingface/hub/datasets--one--words/snapshots/ccc/data.gguf", "x");
    put("cache/huggingface/hub/models--evil--x/refs/main", "../../../../..");
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 3);
    const struct model_entry *e =
        must(&list, "some/Thing-7B", "Hugging Face", "cache/huggingface/hub/models--some--Thing-7B/snapshots/bbb");
    assert_int_equal(e->container, MODEL_SAFETENSORS);
    assert_int_equal(e->parts, 2);
    assert_int_equal(e->bytes, 2 * strlen("weights of a sort"));
    must(&list, "tiny-Q8", "Hugging Face", "cache/huggingface/hub/models--one--Tiny-GGUF/snapshots/ccc/tiny-Q8.gguf");
    models_describe(&list, &local_models, 60);
    assert_non_null(entry(&list, "some/Thing-7B")->problem); // those are not weights
    models_free(&list);
    setenv("HF_HOME", "/nonexistent", 1); // moves it elsewhere
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 1);
    models_free(&list);
}

static void test_a_folder_is_described(void **state) {
    (void)state;
    struct model_list list;
    struct gguf g;
    struct status st = {0};
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){.pre = "llama-bpe"}, &size);
    assert_true(gguf_open_memory(&g, "tiny", bytes, size, &st));
    put("data/confab/models/folder/note", "");
    char *folder = in_home("data/confab/models/folder");
    tiny_huggingface_write(folder, &g, (struct tiny_huggingface_options){.model_type = "llama"});
    gguf_close(&g);
    free(bytes);
    models_scan(&list, &local_models);
    models_describe(&list, &local_models, 60);
    const struct model_entry *e = must(&list, "folder", "confab", "data/confab/models/folder");
    assert_int_equal(e->container, MODEL_SAFETENSORS);
    if (e->problem) fail_msg("%s", e->problem);
    assert_string_equal(e->family, "llama");
    assert_true(e->n_parameters > 1000 && e->need > 0);
    models_free(&list);
    free(folder);
}

#define MANIFEST(digest)                                                                                               \
    "{\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.license\",\"digest\":\"sha256:1\"},"                   \
    "{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"" digest "\"}]}"

static void test_ollama(void **state) {
    (void)state;
    struct model_list list;
    put_model("ollama/blobs/sha256-" DIGEST);
    put("ollama/manifests/registry.ollama.ai/library/llama3.2/1b", MANIFEST("sha256:" DIGEST));
    put("ollama/manifests/registry.ollama.ai/library/again/latest", MANIFEST("sha256:" DIGEST)); // the same file
    put("ollama/manifests/hf.co/me/mine/Q4", MANIFEST("sha256:../../../etc/passwd"));
    put("ollama/manifests/registry.ollama.ai/library/broken/x", "{\"layers\": 7}");
    put("ollama/manifests/registry.ollama.ai/library/broken/y", "not JSON");
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 2);
    const struct model_entry *e = entry(&list, "llama3.2:1b");
    if (!e) e = entry(&list, "again:latest");
    assert_non_null(e);
    assert_string_equal(e->source, "Ollama");
    models_describe(&list, &local_models, 60);
    assert_string_equal(e->family, "llama");
    models_free(&list);
}

static void test_lm_studio_and_llama_cpp(void **state) {
    (void)state;
    struct model_list list;
    char *elsewhere = in_home("elsewhere\n");
    put_model(".lmstudio/models/maker/Name-GGUF/name-q4.gguf");
    put_model("elsewhere/models/maker/other.gguf");
    put(".lmstudio-home-pointer", elsewhere);
    put_model("cache/llama.cpp/third.gguf");
    put_link("cache/llama.cpp/copy.gguf", "third.gguf"); // the same file again
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 4);
    must(&list, "name-q4", "LM Studio", ".lmstudio/models/maker/Name-GGUF/name-q4.gguf");
    must(&list, "other", "LM Studio", "elsewhere/models/maker/other.gguf");
    assert_true(!!entry(&list, "third") != !!entry(&list, "copy"));
    models_free(&list);
    free(elsewhere);
}

static void test_models_used_before(void **state) {
    (void)state;
    struct model_list list;
    put_model("far/away.gguf");
    put_model("far/gone.gguf");
    put_model("data/confab/models/known.gguf");
    char *away = in_home("far/away.gguf"), *gone = in_home("far/gone.gguf"),
         *known = in_home("data/confab/models/known.gguf");
    models_used_add(away);
    models_used_add(gone);
    models_used_add(known);
    models_used_add(away);
    unlink(gone);
    int count;
    struct model_use *uses = models_used(&count);
    assert_int_equal(count, 3);
    models_used_free(uses, count);
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 3);
    assert_true(must(&list, "away", "used before", "far/away.gguf")->last_used > 1600000000);
    assert_true(must(&list, "known", "confab", "data/confab/models/known.gguf")->last_used > 1600000000);
    assert_int_equal(entry(&list, "guide")->last_used, 0);
    models_free(&list);
    free(away), free(gone), free(known);
}

// Shells complete the name of a folder with a slash.
static void test_a_folder_used_before_has_its_name(void **state) {
    (void)state;
    struct model_list list;
    put("far/Folder-0.6B/config.json", "{}");
    put("far/Folder-0.6B/model.safetensors", "12345");
    char *folder = in_home("far/Folder-0.6B"), *completed = xasprintf("%s/", folder),
         *here = xasprintf("%s/./", folder), *before = xasprintf("12 %s\n", completed);
    put("data/confab/models-used", before);
    models_used_add(completed);
    models_used_add(here);
    int count;
    struct model_use *uses = models_used(&count);
    assert_int_equal(count, 1);
    assert_string_equal(uses[0].path, folder);
    models_used_free(uses, count);
    put("data/confab/models-used", before); // as it was written once
    models_scan(&list, &local_models);
    must(&list, "Folder-0.6B", "used before", "far/Folder-0.6B");
    models_free(&list);
    free(folder), free(completed), free(here), free(before);
}

static void test_the_list_of_uses_is_bounded(void **state) {
    (void)state;
    char *file = path_data("models-used");
    put("data/confab/models-used", "broken\n-5 /x\n12 relative\n99999999999 /late.gguf\n");
    for (int i = 0; i < 600; i++) {
        char path[40];
        snprintf(path, sizeof path, "/some/model-%d.gguf", i % 100);
        models_used_add(path);
    }
    int count;
    struct model_use *uses = models_used(&count);
    struct stat there;
    assert_int_equal(count, 64);
    assert_string_equal(uses[0].path, "/late.gguf");
    assert_int_equal(stat(file, &there), 0);
    assert_true(there.st_size < 600 * 30);
    assert_int_equal(there.st_mode & 0777, 0600);
    models_used_free(uses, count);
    free(file);
}

// ---- what is a model ----

static void test_split_files_are_one_model(void **state) {
    (void)state;
    struct model_list list;
    put_model("data/confab/models/big-00001-of-00003.gguf");
    put("data/confab/models/big-00002-of-00003.gguf", "12345");
    put("data/confab/models/big-00003-of-00003.gguf", "12345");
    put_model("data/confab/models/torn-00001-of-00002.gguf");
    put("data/confab/models/end-00002-of-00002.gguf", "12345");
    put_model("data/confab/models/mmproj-big-f16.gguf");
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 3);
    const struct model_entry *e = must(&list, "big", "confab", "data/confab/models/big-00001-of-00003.gguf");
    struct stat first;
    stat(e->path, &first);
    assert_int_equal(e->bytes, (uint64_t)first.st_size + 10);
    assert_int_equal(e->parts, 3);
    assert_null(e->problem);
    assert_string_equal(entry(&list, "torn")->problem, "1 of 2 parts missing");
    models_free(&list);
}

static void test_models_that_cannot_run_have_a_reason(void **state) {
    (void)state;
    struct model_list list;
    put("data/confab/models/text.gguf", "this is no model at all");
    models_scan(&list, &local_models);
    models_describe(&list, &local_models, 60);
    assert_non_null(entry(&list, "text")->problem);
    assert_null(strstr(entry(&list, "text")->problem, home)); // the path is shown elsewhere
    assert_string_equal(model_problem("/m/x.gguf", "/m/x.gguf: No such file or directory"),
                        "No such file or directory");
    assert_string_equal(model_problem("/m/x.gguf", "/m/x.gguf2: gone"), "/m/x.gguf2: gone");
    assert_string_equal(model_problem("/m/x.gguf", "/m/x"), "/m/x");
    assert_string_equal(model_problem(NULL, "too large"), "too large");
    models_free(&list);
}

static void test_hostile_folders(void **state) {
    (void)state;
    struct model_list list;
    put_link("data/confab/models/loop", ".");
    put_link("data/confab/models/up", "../..");
    put_link("data/confab/models/nowhere.gguf", "/nonexistent/file");
    put_model("data/confab/models/\033[2Jname\xff\n\xe2\x80\xae.gguf");
    char *deep = xstrdup("data/confab/models");
    for (int i = 0; i < 12; i++) {
        char *longer = xasprintf("%s/d", deep);
        free(deep);
        deep = longer;
    }
    char *file = xasprintf("%s/too-deep.gguf", deep), *fifo = in_home("data/confab/models/pipe.gguf");
    put_model(file);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 2);
    const char *name = list.entries[0].path ? list.entries[0].name : list.entries[1].name;
    for (const char *c = name; *c; c++) assert_true((unsigned char)*c >= 0x20);
    assert_null(strstr(name, "\xe2\x80\xae"));
    assert_non_null(models_find(&list, name, NULL)); // -m accepts it nevertheless
    models_free(&list);
    free(deep), free(file), free(fifo);
}

static void test_the_number_of_files_is_limited(void **state) {
    (void)state;
    struct model_list list;
    for (int i = 0; i < 1100; i++) {
        char name[64];
        snprintf(name, sizeof name, "data/confab/models/%d.gguf", i);
        put(name, "x");
    }
    models_scan(&list, &local_models);
    assert_true(list.cut);
    assert_true(list.count <= 1001);
    models_free(&list);
}

// ---- names ----

static void test_names_are_unique(void **state) {
    (void)state;
    struct model_list list;
    put_model("data/confab/models/same.gguf");
    put_model("data/confab/models/x/SAME.gguf");
    put_model(".lmstudio/models/same.gguf");
    models_scan(&list, &local_models);
    assert_int_equal(list.count, 4);
    for (int i = 1; i < list.count; i++) assert_true(strcasecmp(list.entries[i - 1].name, list.entries[i].name));
    assert_non_null(entry(&list, "same@LM-Studio"));
    models_free(&list);
}

static void check_find(const struct model_list *list, const char *word, const char *name, const char *message) {
    struct status st = {0};
    const struct model_entry *e = models_find(list, word, &st);
    if (name) {
        if (!e) fail_msg("%s: %s", word, st.text);
        assert_string_equal(e->name, name);
    } else {
        assert_null(e);
        if (!strstr(st.text, message)) fail_msg("%s: %s", word, st.text);
    }
}

static void test_models_are_found_by_name(void **state) {
    (void)state;
    struct model_list list;
    put_model("data/confab/models/alpha-7B-Q4.gguf");
    put_model("data/confab/models/alpha-7B-Q8.gguf");
    put_model("data/confab/models/beta.gguf");
    put_model("data/confab/models/beta-large.gguf");
    models_scan(&list, &local_models);
    check_find(&list, "beta", "beta", NULL); // a whole name, although another begins with it
    check_find(&list, "BETA-L", "beta-large", NULL);
    check_find(&list, "q8", "alpha-7B-Q8", NULL);
    check_find(&list, "alpha", NULL, "is ambiguous: alpha-7B-Q4, alpha-7B-Q8");
    check_find(&list, "alhpa", NULL, "did you mean alpha-7B-Q4, alpha-7B-Q8");
    check_find(&list, "bta", NULL, "did you mean beta");
    check_find(&list, "zzzzzzzz", NULL, "no file or model named 'zzzzzzzz' (");
    check_find(&list, "", NULL, "no file or model");
    char *path = NULL, *file = in_home("data/confab/models/beta.gguf");
    struct status st = {0};
    assert_true(models_resolve("large", &path, &st));
    assert_non_null(strstr(path, "beta-large.gguf"));
    free(path);
    assert_true(models_resolve(file, &path, &st)); // an existing path
    assert_string_equal(path, file);
    free(path), free(file);
    assert_false(models_resolve("", &path, &st)); // not taken for a path
    assert_non_null(strstr(st.text, "no file or model named ''"));
    assert_null(strstr(st.text, "no such file"));
    assert_true(models_resolve("guide", &path, &st));
    assert_null(path);
    file = in_home("data/confab/models/betta.gguf");
    assert_false(models_resolve(file, &path, &st));
    assert_non_null(strstr(st.text, "betta.gguf: no such file; did you mean beta.gguf"));
    assert_false(models_resolve("/nonexistent/folder/x.gguf", &path, &st));
    assert_non_null(strstr(st.text, "no such folder: /nonexistent/folder"));
    free(file);
    models_free(&list);
}

// ---- a temporary home for each test ----

static int setup(void **state) {
    (void)state;
    static const char *const unset[] = {"HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
    home = xstrdup("/tmp/confab-test-XXXXXX");
    if (!mkdtemp(home)) return -1;
    char *data = in_home("data"), *cache = in_home("cache"), *ollama = in_home("ollama");
    setenv("HOME", home, 1);
    setenv("XDG_DATA_HOME", data, 1);
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("OLLAMA_MODELS", ollama, 1);
    free(data), free(cache), free(ollama);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    int result = temporary_folder_remove(home);
    free(home);
    return result;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_own_folder),
        TEST(test_hub),
        TEST(test_a_folder_is_described),
        TEST(test_ollama),
        TEST(test_lm_studio_and_llama_cpp),
        TEST(test_models_used_before),
        TEST(test_a_folder_used_before_has_its_name),
        TEST(test_the_list_of_uses_is_bounded),
        TEST(test_split_files_are_one_model),
        TEST(test_models_that_cannot_run_have_a_reason),
        TEST(test_hostile_folders),
        TEST(test_the_number_of_files_is_limited),
        TEST(test_names_are_unique),
        TEST(test_models_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
