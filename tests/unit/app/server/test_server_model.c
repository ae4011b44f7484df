// Requests for several models: which are loaded when, and who waits.
#include <semaphore.h>

#include "app/server/server_state.h"
#include "engine/base/machine_memory.h"
#include "tests/unit/server_fixture.h"

#define HI "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}"

#define ASK(model) "{\"model\":\"" model "\",\"messages\":[{\"role\":\"user\",\"content\":\"" model "\"}]}"

static int ask(const char *body) { return post("/v1/chat/completions", body); }

// Until the engine has so many requests in all.
static void wait_for_requests(uint64_t n) {
    for (int turns = 0; turns < 3000 && engine.n_requests < n; turns++) turn(1);
    assert_int_equal(engine.n_requests, n);
}

static void answer(const char *text) {
    tell_text(0, CHANNEL_ANSWER, 6, text);
    tell_end(0, REQUEST_FINISHED, FINISH_END, "");
}

static void assert_answered(int fd, const char *model, const char *text) {
    char *name = xasprintf("\"model\":\"%s\"", model);
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 200);
    assert_says(reply, name);
    assert_says(reply, text);
    free(name);
    close(fd);
}

// The names of the models that are loaded, as /api/ps tells them: "other guide ".
static const char *loaded(void) {
    static char names[256];
    json_t *reply = json_of(exchange("GET /api/ps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")), *model;
    size_t i;
    *names = 0;
    json_array_foreach(json_object_get(reply, "models"), i, model) snprintf(
        names + strlen(names), sizeof names - strlen(names), "%s ", json_string_value(json_object_get(model, "name")));
    json_decref(reply);
    return names;
}

static void asked_and_answered(const char *model, const char *body) {
    const uint64_t before = engine.n_requests;
    int fd = ask(body);
    wait_for_requests(before + 1);
    answer("ok");
    assert_answered(fd, model, "ok");
}

// ---- beside each other ----

static void test_a_model_is_loaded_beside_others(void **state) {
    (void)state;
    int first = ask(ASK("guide")), second = ask(ASK("other"));
    wait_for_requests(2);
    assert_string_equal(engine.prompt, "user: other|");
    assert_string_equal(loaded(), "other guide ");
    answer("from the other"); // while the first is still being answered
    assert_answered(second, "other", "from the other");
    engine.n_requests = 1;
    answer("from the guide");
    assert_answered(first, "guide", "from the guide");
    engine.n_requests = 2;
    asked_and_answered("guide", HI); // whoever names none
    asked_and_answered("other", ASK("other:latest"));
}

static sem_t released; // the model whose loading takes long

static struct engine *open_slowly(struct model_file *m, const struct engine_params *p, struct status *st) {
    if (strstr(model_file_info(m)->path, "other")) sem_wait(&released);
    return fixture_open_engine(m, p, st);
}

static const struct model_opener slow_models = {
    .open = fixture_open, .open_header = fixture_open_header, .memory = fixture_memory, .open_engine = open_slowly};

static void test_a_loaded_model_answers_while_another_is_loaded(void **state) {
    (void)state;
    server->params.opener = &slow_models;
    sem_init(&released, 0, 0);
    int slow = ask(ASK("other"));
    turn(20);
    asked_and_answered("guide", ASK("guide"));
    assert_string_equal(loaded(), "guide ");
    sem_post(&released);
    wait_for_requests(2);
    answer("at last");
    assert_answered(slow, "other", "at last");
    sem_destroy(&released);
}

static void test_figures_have_the_name_of_their_model(void **state) {
    (void)state;
    asked_and_answered("other", ASK("other"));
    const char *reply = exchange("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_says(reply, "request_success_total{model_name=\"other\",finished_reason=\"stop\"} 1\n");
    assert_says(reply, "request_success_total{model_name=\"guide\",finished_reason=\"stop\"} 0\n");
    assert_says(reply, "num_requests_running{model_name=\"other\"}");
    const char *type = strstr(reply, "# TYPE vllm:num_requests_running ");
    assert_non_null(type);
    assert_null(strstr(type + 1, "# TYPE vllm:num_requests_running "));
}

// ---- memory ----

static uint64_t tenths(unsigned n) { return machine_memory_free() / 10 * n; }

static void test_the_least_recently_used_model_makes_room(void **state) {
    (void)state;
    model_need = tenths(4);
    asked_and_answered("other", ASK("other"));
    asked_and_answered("third", ASK("third"));
    asked_and_answered("other", ASK("other"));
    assert_string_equal(loaded(), "third other guide ");
    model_need = tenths(5);
    asked_and_answered("fourth", ASK("fourth"));
    assert_string_equal(loaded(), "fourth other "); // the guide takes nothing, and was used first
    asked_and_answered("guide", HI);                // which comes back
    assert_string_equal(loaded(), "fourth guide ");
}

static void test_nobody_is_passed_over(void **state) {
    (void)state;
    int first = ask(ASK("guide"));
    wait_for_requests(1);
    int second = ask(ASK("other")), third = ask(ASK("guide"));
    turn(20);
    assert_int_equal(engine.n_requests, 1);  // the third waits for the second
    assert_string_equal(loaded(), "guide "); // which waits for the first
    answer("one");
    assert_answered(first, "guide", "one");
    wait_for_requests(2);
    assert_string_equal(engine.prompt, "user: other|");
    answer("two");
    assert_answered(second, "other", "two");
    wait_for_requests(3);
    answer("three");
    assert_answered(third, "guide", "three");
}

static void test_two_that_do_not_fit_take_turns(void **state) {
    (void)state;
    static const char *const bodies[] = {ASK("guide"), ASK("other")}, *const names[] = {"guide", "other"};
    int fds[7];
    for (int i = 0; i < 7; i++) {
        fds[i] = ask(bodies[i % 2]);
        turn(10);
    }
    // One of the guide's runs; the other model comes next, with all that waited for it; then the guide's others.
    static const int order[] = {0, 1, 3, 5, 2, 4, 6};
    for (int i = 0; i < 7; i++) {
        const uint64_t n = (uint64_t)i + 1;
        if (engine.n_requests < n) wait_for_requests(i == 0 ? 1 : i < 4 ? 4 : 7);
        const uint64_t all = engine.n_requests;
        engine.n_requests = n;
        answer("turn");
        engine.n_requests = all;
        assert_answered(fds[order[i]], names[order[i] % 2], "turn");
    }
}

static void test_what_is_too_large_unloads_nothing(void **state) {
    (void)state;
    model_need = 2 * tenths(10);
    int fd = ask(ASK("other"));
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    assert_says(heard, "not enough memory: needs ");
    assert_says(heard, "Retry-After: 1");
    close(fd);
    assert_string_equal(loaded(), "guide ");
}

static void test_who_leaves_while_waiting_holds_nobody_up(void **state) {
    (void)state;
    int first = ask(ASK("guide"));
    wait_for_requests(1);
    int second = ask(ASK("other"));
    turn(20);
    int third = ask(ASK("guide"));
    turn(20);
    assert_int_equal(engine.n_requests, 1);
    close(second);
    wait_for_requests(2);
    answer("three");
    assert_answered(third, "guide", "three");
    engine.n_requests = 1;
    answer("one");
    assert_answered(first, "guide", "one");
}

static void test_who_finds_no_room_to_wait_holds_nobody_up(void **state) {
    (void)state;
    int fds[8];
    for (int i = 0; i < 8; i++) fds[i] = ask("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"n\":64}");
    wait_for_requests(8);
    int refused = ask(ASK("other"));
    assert_int_equal(status_of(hear(refused, NULL)), 503);
    close(refused);
    for (int i = 1; i < 8; i++) close(fds[i]);
    turn(5);
    for (engine.n_requests = 2; engine.n_requests <= 8; engine.n_requests++)
        for (int k = 0; k < 64; k++) tell_end(k, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    engine.n_requests = 8;
    turn(5);
    int last = ask(ASK("guide"));
    wait_for_requests(9);
    close(last), close(fds[0]);
}

static void test_a_model_that_cannot_be_loaded(void **state) {
    (void)state;
    int fd = ask(ASK("FAILS"));
    const char *reply = hear(fd, NULL);
    assert_int_equal(status_of(reply), 503);
    assert_says(reply, "does not fit");
    close(fd);
    fd = ask(ASK("guide")); // the one before stays
    wait_for_requests(1);
    answer("still here");
    assert_answered(fd, "guide", "still here");
    fd = ask(ASK("FAILS")); // it is tried again
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    close(fd);
}

static void test_a_server_closes_while_somebody_waits(void **state) {
    (void)state;
    int first = ask(ASK("guide")), second = ask(ASK("other"));
    turn(20);
    close_server();
    close(first), close(second);
    serve();
}

static void test_a_server_closes_while_a_model_is_loaded(void **state) {
    (void)state;
    server->params.opener = &slow_models;
    sem_init(&released, 0, 0);
    int fd = ask(ASK("other"));
    turn(20);
    sem_post(&released);
    close_server();
    sem_destroy(&released);
    close(fd);
    serve();
}

static void test_models_are_described_without_loading(void **state) {
    (void)state;
    int fd = post("/api/show", "{\"model\":\"other\"}");
    assert_says(hear(fd, NULL), "\"llama.context_length\":512");
    close(fd);
    assert_string_equal(loaded(), "guide ");
}

// ---- a lent one ----

static struct model_file *lent_file;

static void lend(const char *name) {
    struct status st = {0};
    lent_file = fixture_open(name, &st);
    assert_non_null(lent_file);
    const struct model_memory memory = {.total = tenths(6)};
    assert_true(
        server_model_lend(server, &engine.engine, name, NULL, model_file_info(lent_file), lent_file, &memory, &st));
}

static void take_back(void) {
    server_model_withdraw(server);
    model_file_close(lent_file);
}

static void test_a_lent_model_answers_and_is_never_unloaded(void **state) {
    (void)state;
    lend("lent");
    asked_and_answered("lent", HI);
    asked_and_answered("lent", ASK("lent"));
    asked_and_answered("guide", ASK("guide"));
    model_need = tenths(6);
    int fd = ask(ASK("other"));
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    close(fd);
    assert_string_equal(loaded(), "lent guide ");
    take_back();
    asked_and_answered("guide", HI);
    asked_and_answered("other", ASK("other"));
    assert_string_equal(loaded(), "other guide ");
}

static void test_a_model_is_withdrawn_in_mid_answer(void **state) {
    (void)state;
    int others = ask(ASK("guide"));
    wait_for_requests(1);
    lend("lent");
    int whole = ask(HI), stream = ask("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"stream\":true}"),
        tokens = post("/tokenize", "{\"content\":\"Hi\"}");
    wait_for_requests(3);
    tell_text(0, CHANNEL_ANSWER, 6, "Hel");
    hear(stream, "Hel");
    take_back();
    assert_says(hear(stream, NULL), "{\"error\":{\"message\":\"the model was unloaded\"");
    assert_int_equal(status_of(hear(whole, NULL)), 503);
    assert_int_equal(status_of(hear(tokens, NULL)), 200); // it was waited for
    assert_int_equal(engine.n_cancelled, 2);
    engine.n_requests = 1;
    answer("still here");
    assert_answered(others, "guide", "still here");
    close(whole), close(stream), close(tokens);
}

static void test_the_loaded_model_makes_way_for_a_lent_one_of_its_name(void **state) {
    (void)state;
    int before = ask(ASK("guide"));
    wait_for_requests(1);
    lend("guide");
    assert_int_equal(status_of(hear(before, NULL)), 503);
    close(before);
    asked_and_answered("guide", ASK("guide"));
    assert_string_equal(loaded(), "guide ");
    take_back();
    assert_string_equal(loaded(), "");
    asked_and_answered("guide", ASK("guide")); // loaded again
}

static void test_a_server_begins_without_a_model(void **state) {
    (void)state;
    struct status st = {0};
    const struct server_params params = server_params();
    close_server();
    server = server_open(&params, &st);
    assert_non_null(server);
    int fd = ask(HI);
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    assert_says(heard, "no model is loaded at the moment");
    close(fd);
    asked_and_answered("other", ASK("other"));
    lend("lent");
    asked_and_answered("lent", HI);
    take_back();
    fd = ask(HI);
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    close(fd);
}

// The models of the machine are known: before, nobody can tell whether a name is one of them.
static int start_with_list(void **state) {
    start_server(state);
    exchange("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return 0;
}

// The same, and no memory for a second one.
static int start_with_little_memory(void **state) {
    settings = settings_default();
    model_need = tenths(6);
    serve();
    (void)state;
    exchange("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return 0;
}

static int make_models(void **state) {
    if (make_home(state)) return -1;
    char *models = xasprintf("%s/confab/models", folder);
    temporary_folder_write(models, "third.gguf", "GGUF");
    temporary_folder_write(models, "fourth.gguf", "GGUF");
    free(models);
    return 0;
}

#define WITH_LITTLE(test) cmocka_unit_test_setup_teardown(test, start_with_little_memory, stop_server)
#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)
#define WITH_LIST(test)   cmocka_unit_test_setup_teardown(test, start_with_list, stop_server)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_a_model_is_loaded_beside_others),
        WITH_SERVER(test_a_loaded_model_answers_while_another_is_loaded),
        WITH_SERVER(test_figures_have_the_name_of_their_model),
        WITH_SERVER(test_the_least_recently_used_model_makes_room),
        WITH_LITTLE(test_nobody_is_passed_over),
        WITH_LITTLE(test_two_that_do_not_fit_take_turns),
        WITH_SERVER(test_what_is_too_large_unloads_nothing),
        WITH_LITTLE(test_who_leaves_while_waiting_holds_nobody_up),
        WITH_LIST(test_who_finds_no_room_to_wait_holds_nobody_up),
        WITH_SERVER(test_a_model_that_cannot_be_loaded),
        WITH_LITTLE(test_a_server_closes_while_somebody_waits),
        WITH_SERVER(test_a_server_closes_while_a_model_is_loaded),
        WITH_SERVER(test_models_are_described_without_loading),
        WITH_SERVER(test_a_lent_model_answers_and_is_never_unloaded),
        WITH_SERVER(test_a_model_is_withdrawn_in_mid_answer),
        WITH_SERVER(test_the_loaded_model_makes_way_for_a_lent_one_of_its_name),
        WITH_SERVER(test_a_server_begins_without_a_model),
    };
    return cmocka_run_group_tests(tests, make_models, remove_home);
}
