// The draft model's file: it must have the vocabulary of the model that answers, and the text stays that model's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"

enum { TOKENS = 60 };

static const char *folder;

static int setup(void **state) {
    (void)state;
    folder = temporary_folder_make();
    return folder ? 0 : -1;
}

static char *write_model(const char *name, struct tiny_model_options o) {
    char *path = xasprintf("%s/%s", folder, name);
    tiny_model_write(path, o);
    return path;
}

static struct engine *open_engine(struct model_file *file, const char *draft_model, struct status *refused,
                                  struct status *st) {
    const struct engine_params p = {.n_threads = 1,
                                    .draft = draft_model ? DRAFT_MODEL : DRAFT_OFF,
                                    .draft_model = draft_model,
                                    .draft_refused = refused,
                                    .kv_tokens = 1024,
                                    .options.device = "cpu"};
    return local_engine_open(file, &p, st);
}

static void write_text(struct model_file *file, const char *draft_model, int32_t out[TOKENS],
                       struct engine_event *event) {
    struct status st = {0};
    struct engine *engine = open_engine(file, draft_model, NULL, &st);
    if (!engine) fail_msg("%s", st.text);
    struct engine_client *client = engine_client_open(engine, &st);
    struct request_params q = {.conversation = 1,
                               .raw = "once upon a time there was",
                               .sampling = sampling_default(),
                               .max_tokens = TOKENS,
                               .ignore_end = true};
    q.sampling.seed = 5;
    engine_submit(client, &q);
    int n = 0;
    do {
        assert_true(engine_wait(client, event, 60000));
        if (event->kind == EVENT_TEXT && event->token >= 0) out[n++] = event->token;
    } while (event->kind != EVENT_STATE || event->state < REQUEST_FINISHED);
    assert_int_equal(n, TOKENS);
    engine_client_close(client);
    engine_close(engine);
}

static void test_the_text_is_that_of_the_model_that_answers(void **state) {
    (void)state;
    struct status st = {0};
    char *large = write_model("large.gguf", (struct tiny_model_options){.n_layer = 3, .seed = 1}),
         *small = write_model("small.gguf", (struct tiny_model_options){.n_layer = 1, .seed = 2});
    struct model_file *file = model_file_open(large, &st);
    const char *const drafts[] = {NULL, small, large};
    int32_t plain[TOKENS], drafted[TOKENS];
    struct engine_event event;
    write_text(file, NULL, plain, &event);
    assert_int_equal(event.n_drafted, 0);
    for (size_t i = 1; i < sizeof drafts / sizeof *drafts; i++) {
        write_text(file, drafts[i], drafted, &event);
        assert_memory_equal(drafted, plain, sizeof plain);
        assert_true(event.n_accepted <= event.n_drafted);
    }
    model_file_close(file);
    free(large), free(small);
}

static void test_another_vocabulary_is_refused(void **state) {
    (void)state;
    struct status st = {0};
    char *large = write_model("large.gguf", (struct tiny_model_options){0}),
         *other = write_model("other.gguf", (struct tiny_model_options){.pre = "gpt-2"});
    struct model_file *file = model_file_open(large, &st);
    assert_null(open_engine(file, other, NULL, &st));
    assert_int_equal(st.code, STATUS_USAGE);
    assert_non_null(strstr(st.text, "cannot draft for"));
    assert_null(open_engine(file, "/nowhere/draft.gguf", NULL, &st));
    assert_non_null(strstr(st.text, "/nowhere/draft.gguf"));
    struct engine *engine = open_engine(file, NULL, NULL, &st); // the model itself is as good as before
    assert_non_null(engine);
    engine_close(engine);
    model_file_close(file);
    free(large), free(other);
}

static void test_its_memory_is_a_part_of_what_is_needed(void **state) {
    (void)state;
    struct status st = {0};
    char *large = write_model("large.gguf", (struct tiny_model_options){.n_layer = 3}),
         *small = write_model("small.gguf", (struct tiny_model_options){.n_layer = 1});
    struct model_file *answers = model_file_open(large, &st), *drafts = model_file_open(small, &st);
    struct engine_params p = {.n_threads = 1, .kv_tokens = 1024, .options.device = "cpu"}, own = p;
    struct model_memory alone, drafter, both;
    own.kv_tokens = 16384;
    assert_true(local_engine_memory(answers, &p, 0, &alone, &st));
    assert_true(local_engine_memory(drafts, &own, 0, &drafter, &st));
    p.draft = DRAFT_MODEL;
    p.draft_model = small;
    assert_true(local_engine_memory(answers, &p, 0, &both, &st));
    assert_true(drafter.total > 0);
    assert_int_equal(both.total, alone.total + drafter.total);
    assert_int_equal(both.kv, alone.kv + drafter.kv);
    assert_int_equal(both.kv_tokens, 1024);
    p.draft_model = "/nowhere/draft.gguf";
    assert_false(local_engine_memory(answers, &p, 0, &both, &st));
    assert_non_null(strstr(st.text, "/nowhere/draft.gguf"));
    model_file_close(answers), model_file_close(drafts);
    free(large), free(small);
}

static void test_where_it_may_be_refused_the_engine_opens(void **state) {
    (void)state;
    struct status st = {0}, refused = {0};
    char *large = write_model("large.gguf", (struct tiny_model_options){0}),
         *other = write_model("other.gguf", (struct tiny_model_options){.pre = "gpt-2"});
    struct model_file *file = model_file_open(large, &st);
    struct engine *engine = open_engine(file, large, &refused, &st);
    assert_non_null(engine);
    assert_int_equal(refused.code, STATUS_OK);
    engine_close(engine);
    engine = open_engine(file, other, &refused, &st);
    if (!engine) fail_msg("%s", st.text);
    assert_non_null(strstr(refused.text, "cannot draft for"));
    engine_close(engine);
    model_file_close(file);
    free(large), free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_text_is_that_of_the_model_that_answers),
        cmocka_unit_test(test_another_vocabulary_is_refused),
        cmocka_unit_test(test_its_memory_is_a_part_of_what_is_needed),
        cmocka_unit_test(test_where_it_may_be_refused_the_engine_opens),
    };
    return cmocka_run_group_tests(tests, setup, temporary_folder_teardown);
}
