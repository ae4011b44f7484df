// Requests for several models: which are loaded when, and who waits.
#include <semaphore.h>

#include "app/server/server_state.h"
#include "engine/base/machine_memory.h"
#include "tests/unit/server_fixture.h"

#define HI "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}"

#define ASK(model) "{\"model\":\"" model "\",\"messages\":[{\"role\":\"user\",\"content\":\"" model "\"}]}"

static int ask(const char *body) { return post("/v1/chat/completions", body); }

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
    await_requests(before + 1);
    answer("ok");
    assert_answered(fd, model, "ok");
}

// Until the guide has to make room for another model.
static void wait_until_it_leaves(void) {
    for (int turns = 0; turns < 3000 && !server->named->leaving; turns++) turn(1);
    assert_true(server->named->leaving);
}

// ---- beside each other ----

static void test_a_model_is_loaded_beside_others(void **state) {
    (void)state;
    int first = ask(ASK("guide")), second = ask(ASK("other"));
    await_requests(2);
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
    await_requests(2);
    answer("at last");
    assert_answered(slow, "other", "at last");
    sem_destroy(&released);
}

// Ollama's API tells how long the model took to be there, and counts that.
static void test_loading_is_timed(void **state) {
    (void)state;
    server->params.opener = &slow_models;
    sem_init(&released, 0, 0);
    int fd = post("/api/chat", "{\"model\":\"other\",\"stream\":false,"
                               "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}");
    turn(20);
    const uint64_t before = clock_ns();
    usleep(20000);
    const json_int_t waited = (json_int_t)(clock_ns() - before);
    sem_post(&released);
    await_requests(1);
    answer("at last");
    json_t *reply = json_of(hear(fd, NULL));
    const json_int_t loading = json_integer_value(json_object_get(reply, "load_duration"));
    assert_true(loading >= waited);
    assert_true(json_integer_value(json_object_get(reply, "total_duration")) >= loading);
    json_decref(reply);
    sem_destroy(&released);
    close(fd);
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

static atomic_uint_fast64_t memory_free = 10ull << 30; // as nothing is touched

uint64_t machine_memory_free(void) { return memory_free; }

static uint64_t tenths(unsigned n) { return (uint64_t)n << 30; }

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
    await_requests(1);
    int second = ask(ASK("other"));
    wait_until_it_leaves();
    int third = ask(ASK("guide"));
    turn(20);
    assert_int_equal(engine.n_requests, 1);  // the third waits for the second
    assert_string_equal(loaded(), "guide "); // which waits for the first
    answer("one");
    assert_answered(first, "guide", "one");
    await_requests(2);
    assert_string_equal(engine.prompt, "user: other|");
    answer("two");
    assert_answered(second, "other", "two");
    await_requests(3);
    answer("three");
    assert_answered(third, "guide", "three");
}

static void test_two_that_do_not_fit_take_turns(void **state) {
    (void)state;
    static const char *const bodies[] = {ASK("guide"), ASK("other")}, *const names[] = {"guide", "other"};
    int fds[7];
    for (int i = 0; i < 7; i++) {
        fds[i] = ask(bodies[i % 2]);
        if (i == 1) wait_until_it_leaves();
    }
    // One of the guide's runs; the other model comes next, with all that waited for it; then the guide's others.
    static const int order[] = {0, 1, 3, 5, 2, 4, 6};
    for (int i = 0; i < 7; i++) {
        const uint64_t n = (uint64_t)i + 1;
        if (engine.n_requests < n) await_requests(i == 0 ? 1 : i < 4 ? 4 : 7);
        const uint64_t all = engine.n_requests;
        engine.n_requests = n;
        answer("turn");
        engine.n_requests = all;
        assert_answered(fds[order[i]], names[order[i] % 2], "turn");
    }
}

static bool memory_of_long_conversations(const struct model_file *m, const struct engine_params *p, uint64_t available,
                                         struct model_memory *out, struct status *st) {
    (void)m, (void)available, (void)st;
    *out = (struct model_memory){.kv_tokens = p->kv_tokens ? p->kv_tokens : 64,
                                 .total = p->kv_tokens ? 2 * tenths(10) : 1};
    return true;
}

static void test_where_nothing_makes_room_a_model_gets_along_with_less(void **state) {
    (void)state;
    struct status st = {0};
    const struct model_opener opener = {.open = fixture_open,
                                        .open_header = fixture_open_header,
                                        .memory = memory_of_long_conversations,
                                        .open_engine = fixture_open_engine};
    struct server_params params = server_params();
    params.opener = &opener;
    close_server();
    server = server_open(&params, &st);
    assert_true(server && server_load(server, "guide", &st));
    asked_and_answered("guide", HI);
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
    await_requests(1);
    int second = ask(ASK("other"));
    wait_until_it_leaves();
    int third = ask(ASK("guide"));
    turn(20);
    assert_int_equal(engine.n_requests, 1);
    close(second);
    await_requests(2);
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
    await_requests(8);
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
    await_requests(9);
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
    await_requests(1);
    answer("still here");
    assert_answered(fd, "guide", "still here");
    fd = ask(ASK("FAILS")); // it is tried again
    assert_int_equal(status_of(hear(fd, NULL)), 503);
    close(fd);
    fd = ask("{\"model\":\"FAILS\",\"guided_regex\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}");
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

// ---- how long they stay ----

#define OLLAMA(model, more) "{\"model\":\"" model "\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]," more "}"

static void chat_keeping(const char *body) { // by Ollama's API
    const uint64_t before = engine.n_requests;
    int fd = post("/api/chat", body);
    await_requests(before + 1);
    answer("ok");
    assert_says(hear(fd, NULL), "\"done\":true");
    close(fd);
}

static void at(uint64_t begin, uint64_t seconds) {
    clock_freeze(begin + seconds * NANOSECONDS);
    turn(5);
}

static void test_idle_models_are_unloaded_in_time(void **state) {
    (void)state;
    const uint64_t begin = clock_ns();
    clock_freeze(begin);
    asked_and_answered("other", ASK("other"));
    int busy = ask(ASK("third"));
    await_requests(2);
    at(begin, 200);
    asked_and_answered("other", ASK("other"));
    at(begin, 499);
    assert_string_equal(loaded(), "third other guide ");
    at(begin, 501);
    assert_string_equal(loaded(), "third guide "); // one that answers stays
    engine.n_requests = 2;
    answer("late");
    assert_answered(busy, "third", "late");
    at(begin, 1000);
    assert_string_equal(loaded(), "guide "); // which the server was started with
    clock_freeze(0);
}

static void test_requests_say_how_long_a_model_stays(void **state) {
    (void)state;
    const uint64_t begin = 1000000000 * NANOSECONDS;
    clock_freeze(begin);
    chat_keeping(OLLAMA("other", "\"keep_alive\":\"1h30m\""));
    chat_keeping(OLLAMA("third", "\"keep_alive\":-1"));
    chat_keeping(OLLAMA("fourth", "\"keep_alive\":0"));
    turn(5);
    assert_string_equal(loaded(), "third other guide ");
    assert_says(heard, "\"expires_at\":\"2001-09-09T03:16:40.000000Z\"");
    at(begin, 5401);
    assert_string_equal(loaded(), "third guide ");
    at(begin, 100000000);
    assert_string_equal(loaded(), "third guide ");
    chat_keeping(OLLAMA("third", "\"keep_alive\":\"500ms\""));
    at(begin, 100000001);
    assert_string_equal(loaded(), "guide ");
    clock_freeze(0);
}

static void test_a_model_is_unloaded_on_request(void **state) {
    (void)state;
    static const struct {
        const char *path, *model;
    } cases[] = {{"/api/chat", "other"}, {"/api/generate", "guide"}, {"/api/generate", "third"}};
    asked_and_answered("other", ASK("other"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *body = xasprintf("{\"model\":\"%s\",\"keep_alive\":0}", cases[i].model);
        int fd = post(cases[i].path, body);
        assert_says(hear(fd, NULL), "\"done_reason\":\"unload\"");
        close(fd);
        free(body);
    }
    turn(5);
    assert_string_equal(loaded(), ""); // the third was never there
    asked_and_answered("guide", HI);
    turn(5);
    assert_string_equal(loaded(), "guide "); // it stays again
}

// ---- contexts ----

static int n_opened, opened_tokens; // engines; of KV cache, in the latest

static bool memory_of_tokens(const struct model_file *m, const struct engine_params *p, uint64_t available,
                             struct model_memory *out, struct status *st) {
    (void)m, (void)available, (void)st;
    *out = (struct model_memory){.kv_tokens = p->kv_tokens ? p->kv_tokens : 64, .total = 1};
    return true;
}

static struct engine *open_counted(struct model_file *m, const struct engine_params *p, struct status *st) {
    n_opened++;
    engine.metrics.context = opened_tokens = p->kv_tokens;
    return fixture_open_engine(m, p, st);
}

static const struct model_opener counted_models = {
    .open = fixture_open, .open_header = fixture_open_header, .memory = memory_of_tokens, .open_engine = open_counted};

static void test_a_larger_context_is_loaded_for_who_wants_it(void **state) {
    (void)state;
    server->params.opener = &counted_models;
    settings.context = 0;
    n_opened = 0;
    chat_keeping(OLLAMA("other", "\"options\":{\"num_ctx\":64}"));
    assert_int_equal(n_opened, 1);
    assert_int_equal(opened_tokens, 512); // all that the model has
    engine.metrics.context = 100;         // as if there had been no memory for it
    chat_keeping(OLLAMA("other", "\"options\":{\"num_ctx\":100}"));
    assert_int_equal(n_opened, 1);
    int before = ask(ASK("other"));
    await_requests(3);
    int larger = post("/api/chat", OLLAMA("other", "\"stream\":false,\"options\":{\"num_ctx\":200}"));
    turn(20);
    assert_int_equal(n_opened, 1); // what it answers comes first
    answer("before");
    assert_answered(before, "other", "before");
    await_requests(4);
    answer("larger");
    assert_answered(larger, "other", "larger");
    assert_int_equal(n_opened, 2);
    engine.metrics.context = 100; // nor is there now
    chat_keeping(OLLAMA("other", "\"options\":{\"num_ctx\":200}"));
    assert_int_equal(n_opened, 2); // it is not tried for ever
}

static bool memory_of_each_token(const struct model_file *m, const struct engine_params *p, uint64_t available,
                                 struct model_memory *out, struct status *st) {
    (void)m, (void)available, (void)st;
    const int tokens = p->kv_tokens ? p->kv_tokens : 8192;
    *out = (struct model_memory){.kv_tokens = tokens, .total = (uint64_t)tokens << 20};
    return true;
}

static struct model_file *open_long(const char *path, struct status *st) {
    static void *bytes;
    static size_t size;
    if (!path) return fixture_open(path, st);
    if (!bytes) bytes = tiny_model_bytes((struct tiny_model_options){.n_context = 1 << 16}, &size);
    return model_file_open_memory(path, bytes, size, NULL, st);
}

static struct model_file *open_long_header(const char *path, bool text, struct status *st) {
    return (void)text, open_long(path, st);
}

static const struct model_opener long_models = {
    .open = open_long, .open_header = open_long_header, .memory = memory_of_each_token, .open_engine = open_counted};

static void test_a_context_that_has_no_room_is_done_without(void **state) {
    (void)state;
    struct status st = {0};
    model_file_close(open_long("first", &st)); // before other threads do
    server->params.opener = &long_models;
    settings.context = 0;
    n_opened = 0;
    chat_keeping(OLLAMA("other", "\"options\":{\"num_ctx\":16384}")); // by 6 GB too large
    assert_int_equal(n_opened, 1);
    assert_int_equal(opened_tokens, 8192);
    chat_keeping(OLLAMA("other", "\"options\":{\"num_ctx\":16384}"));
    chat_keeping(OLLAMA("other", "\"options\":{\"num_ctx\":32768}")); // it is loaded already
    assert_int_equal(n_opened, 1);
    chat_keeping(OLLAMA("other", "\"keep_alive\":0"));
    turn(5);
    asked_and_answered("other", ASK("other")); // what was wanted keeps nobody out
    assert_int_equal(n_opened, 2);
}

// ---- files that change ----

static atomic_bool half_copied;

static struct model_file *open_what_is_whole(const char *path, bool text, struct status *st) {
    if (!atomic_load(&half_copied)) return fixture_open_header(path, text, st);
    return status_fail(st, STATUS_FORMAT, "it ends early"), NULL;
}

static const struct model_opener copied_models = {.open = fixture_open,
                                                  .open_header = open_what_is_whole,
                                                  .memory = fixture_memory,
                                                  .open_engine = fixture_open_engine};

static void test_a_model_that_was_being_copied_is_looked_at_again(void **state) {
    (void)state;
    const uint64_t begin = clock_ns();
    clock_freeze(begin);
    server->params.opener = &copied_models;
    half_copied = true;
    int fd = ask(ASK("other"));
    assert_int_equal(status_of(hear(fd, NULL)), 400);
    assert_says(heard, "it ends early");
    close(fd);
    half_copied = false;
    at(begin, 61);
    asked_and_answered("other", ASK("other"));
    clock_freeze(0);
}

static struct model_file *open_what_is_there(const char *path, bool text, struct status *st) {
    if (!path || !access(path, F_OK)) return fixture_open_header(path, text, st);
    return status_fail(st, STATUS_IO, "it is not there"), NULL;
}

static const struct model_opener models_there = {.open = fixture_open,
                                                 .open_header = open_what_is_there,
                                                 .memory = fixture_memory,
                                                 .open_engine = fixture_open_engine};

static void move(const char *from, const char *to) { // in the folder of models
    char *old = xasprintf("%s/confab/models/%s", folder, from), *new = xasprintf("%s/confab/models/%s", folder, to);
    struct status st = {0};
    assert_true(path_make_parents(new, &st));
    assert_int_equal(rename(old, new), 0);
    free(old), free(new);
}

static void unload(const char *name) {
    char *body = xasprintf("{\"model\":\"%s\",\"keep_alive\":0}", name);
    int fd = post("/api/generate", body);
    assert_says(hear(fd, NULL), "\"done_reason\":\"unload\"");
    close(fd);
    free(body);
    turn(5);
    assert_string_equal(loaded(), "guide ");
}

static void test_a_model_whose_file_moved_is_found(void **state) {
    (void)state;
    server->params.opener = &models_there;
    asked_and_answered("other", ASK("other"));
    unload("other");
    move("other.gguf", "elsewhere/other.gguf");
    asked_and_answered("other", ASK("other"));
    unload("other");
    move("elsewhere/other.gguf", "other.gguf");
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static void test_a_model_whose_file_is_gone_is_offered_no_longer(void **state) {
    (void)state;
    server->params.opener = &models_there;
    asked_and_answered("other", ASK("other"));
    unload("other");
    move("other.gguf", "other.away");
    int one = ask(ASK("other")), two = ask(ASK("other"));
    assert_int_equal(status_of(hear(one, NULL)), 404);
    assert_says(heard, "no model 'other'");
    assert_int_equal(status_of(hear(two, NULL)), 404);
    int show = post("/api/show", "{\"model\":\"other\"}");
    assert_int_equal(status_of(hear(show, NULL)), 404);
    close(one), close(two), close(show);
    move("other.away", "other.gguf");
}

static void test_a_list_has_no_model_that_was_removed(void **state) {
    (void)state;
    const uint64_t begin = clock_ns();
    clock_freeze(begin);
    server->params.opener = &models_there;
    asked_and_answered("other", ASK("other"));
    move("other.gguf", "other.away");
    at(begin, 61);
    assert_says(exchange(GET("/v1/models")), "\"id\":\"other\""); // it answers still
    unload("other");
    assert_null(strstr(exchange(GET("/v1/models")), "\"id\":\"other\""));
    assert_int_equal(status_of(exchange(GET("/v1/models/other"))), 404);
    int show = post("/api/show", "{\"model\":\"other\"}");
    assert_int_equal(status_of(hear(show, NULL)), 404);
    close(show);
    move("other.away", "other.gguf");
    clock_freeze(0);
}

static sem_t entered; // a search, which then waits until it is released
static atomic_int n_searches;

static struct model_file *open_after_a_while(const char *path, bool text, struct status *st) {
    if (path && strstr(path, "third")) {
        n_searches++;
        sem_post(&entered), sem_wait(&released);
    }
    return fixture_open_header(path, text, st);
}

static const struct model_opener slow_headers = {.open = fixture_open,
                                                 .open_header = open_after_a_while,
                                                 .memory = fixture_memory,
                                                 .open_engine = fixture_open_engine};

static void test_a_search_that_takes_a_minute_ends(void **state) {
    (void)state;
    server->params.opener = &slow_headers;
    n_searches = 0;
    sem_init(&entered, 0, 0), sem_init(&released, 0, 0);
    int fd = ask(ASK("nosuch"));
    sem_wait(&entered);
    clock_freeze(clock_ns() + 61 * NANOSECONDS);
    sem_post(&released), sem_post(&released);
    assert_int_equal(status_of(hear(fd, NULL)), 404);
    assert_int_equal(n_searches, 1);
    clock_freeze(0);
    close(fd);
}

// ---- a lent one ----

static struct model_file *lent_file;

static void lend_file(const char *name, const char *path, uint64_t weights) {
    struct status st = {0};
    lent_file = fixture_open(name, &st);
    assert_non_null(lent_file);
    const struct model_memory memory = {.weights = weights, .total = tenths(6)};
    assert_true(
        server_model_lend(server, &engine.engine, name, path, model_file_info(lent_file), lent_file, &memory, &st));
}

static void lend(const char *name) { lend_file(name, NULL, 0); }

static void take_back(void) {
    server_model_withdraw(server);
    model_file_close(lent_file);
}

static void test_a_lent_model_has_its_latest_path(void **state) {
    (void)state;
    static const char *const paths[] = {"/before", "/now"};
    for (int i = 0; i < 2; i++) {
        lend_file("lent", paths[i], 0);
        assert_string_equal(server->lent->path, paths[i]);
        take_back();
    }
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
    fd = post("/api/generate", "{\"model\":\"lent\",\"keep_alive\":0}");
    assert_int_equal(status_of(hear(fd, NULL)), 400);
    close(fd);
    chat_keeping(OLLAMA("lent", "\"keep_alive\":0"));
    turn(5);
    assert_string_equal(loaded(), "lent guide ");
    take_back();
    asked_and_answered("guide", HI);
    asked_and_answered("other", ASK("other"));
    assert_string_equal(loaded(), "other guide ");
}

static void test_the_weights_of_a_lent_model_are_counted_once(void **state) {
    (void)state;
    memory_free = server->most_free = tenths(6); // the other four are its weights
    model_need = tenths(5);
    lend_file("lent", NULL, tenths(4));
    int fd = ask(ASK("other"));
    assert_int_equal(status_of(hear(fd, NULL)), 503); // it may still take two
    close(fd);
    model_need = tenths(3);
    asked_and_answered("other", ASK("other"));
    assert_string_equal(loaded(), "other lent guide ");
    take_back();
    memory_free = tenths(10);
}

static void test_a_model_is_withdrawn_in_mid_answer(void **state) {
    (void)state;
    int others = ask(ASK("guide"));
    await_requests(1);
    lend("lent");
    int whole = ask(HI), stream = ask("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"stream\":true}"),
        tokens = post("/tokenize", "{\"content\":\"Hi\"}");
    await_requests(3);
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
    await_requests(1);
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
        WITH_SERVER(test_loading_is_timed),
        WITH_SERVER(test_figures_have_the_name_of_their_model),
        WITH_SERVER(test_the_least_recently_used_model_makes_room),
        WITH_LITTLE(test_nobody_is_passed_over),
        WITH_LITTLE(test_two_that_do_not_fit_take_turns),
        WITH_SERVER(test_where_nothing_makes_room_a_model_gets_along_with_less),
        WITH_SERVER(test_what_is_too_large_unloads_nothing),
        WITH_LITTLE(test_who_leaves_while_waiting_holds_nobody_up),
        WITH_LIST(test_who_finds_no_room_to_wait_holds_nobody_up),
        WITH_SERVER(test_a_model_that_cannot_be_loaded),
        WITH_LITTLE(test_a_server_closes_while_somebody_waits),
        WITH_SERVER(test_a_server_closes_while_a_model_is_loaded),
        WITH_SERVER(test_models_are_described_without_loading),
        WITH_SERVER(test_idle_models_are_unloaded_in_time),
        WITH_SERVER(test_requests_say_how_long_a_model_stays),
        WITH_SERVER(test_a_model_is_unloaded_on_request),
        WITH_SERVER(test_a_larger_context_is_loaded_for_who_wants_it),
        WITH_SERVER(test_a_context_that_has_no_room_is_done_without),
        WITH_SERVER(test_a_model_that_was_being_copied_is_looked_at_again),
        WITH_SERVER(test_a_search_that_takes_a_minute_ends),
        WITH_SERVER(test_a_model_whose_file_moved_is_found),
        WITH_SERVER(test_a_model_whose_file_is_gone_is_offered_no_longer),
        WITH_SERVER(test_a_list_has_no_model_that_was_removed),
        WITH_SERVER(test_a_lent_model_has_its_latest_path),
        WITH_SERVER(test_a_lent_model_answers_and_is_never_unloaded),
        WITH_SERVER(test_the_weights_of_a_lent_model_are_counted_once),
        WITH_SERVER(test_a_model_is_withdrawn_in_mid_answer),
        WITH_SERVER(test_the_loaded_model_makes_way_for_a_lent_one_of_its_name),
        WITH_SERVER(test_a_server_begins_without_a_model),
    };
    return cmocka_run_group_tests(tests, make_models, remove_home);
}
