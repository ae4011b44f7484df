// The chat controller: other programs are served while a person chats.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/chat_fixture.h"
#include "tests/unit/told_server.h"

static int setup(void **state) {
    memset(&told_server, 0, sizeof told_server);
    told_server.fd = -1;
    return chat_setup(state);
}

#define SERVE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, chat_teardown)

static void test_nothing_is_served_until_it_is_asked_for(void **state) {
    (void)state;
    assert_int_equal(told_server.opened, 0);
    assert_null(screen.view.serving);
    act(COMMAND_CLIENTS, -1, "1"); // which nobody has
    act(COMMAND_SERVE, -1, NULL);
    pass(0.05);
    assert_int_equal(told_server.opened, 1);
    assert_ptr_equal(told_server.lent, &engine.engine);
    assert_string_equal(screen.view.serving->address, "127.0.0.1:8080");
    assert_string_equal(screen.status, "serving http://127.0.0.1:8080/v1 (F12 shows who asks)");
    assert_true(config_has("serve = yes\n"));
    act(COMMAND_SERVE, -1, NULL);
    assert_null(screen.view.serving);
    assert_true(told_server.stops);
    assert_string_equal(screen.status, "other programs are no longer served");
    assert_true(config_has("serve = no\n"));
}

static void test_the_configuration_may_ask_for_it(void **state) {
    (void)state;
    close_chat();
    settings.serve = true;
    settings.host = xstrdup("::");
    open_chat();
    pass(0.05);
    assert_ptr_equal(told_server.lent, &engine.engine);
    assert_string_equal(screen.view.serving->address, "[::]:8080");
    assert_string_equal(screen.status,
                        "serving http://[::]:8080/v1: whoever reaches :: may use this server (see --api-keys)");
}

// The setting stays: at the next start it may work.
static void test_where_it_cannot_serve_the_chat_goes_on(void **state) {
    (void)state;
    told_server.problem = "127.0.0.1, port 8080: Address already in use";
    act(COMMAND_SETTINGS, 1, "serve on");
    pass(0.05);
    assert_null(screen.view.serving);
    assert_string_equal(screen.status, "not serving: 127.0.0.1, port 8080: Address already in use");
    assert_true(screen.view.status_bad);
    assert_true(config_has("serve = yes\n"));
    told_server.problem = NULL;
    act(COMMAND_SERVE, -1, NULL); // it is tried again
    pass(0.05);
    assert_non_null(screen.view.serving);
    act(COMMAND_SEND, -1, "q");
    assert_string_equal(engine.prompt, "user: q|");
}

static void test_what_it_listens_on_can_be_changed(void **state) {
    (void)state;
    act(COMMAND_SERVE, -1, NULL);
    pass(0.05);
    act(COMMAND_SETTINGS, 1, "port 9000");
    assert_true(told_server.stops);
    assert_null(screen.view.serving);
    assert_int_equal(told_server.opened, 1);
    told_server_stopped();
    pass(0.05), pass(0.05);
    assert_int_equal(told_server.opened, 2);
    assert_ptr_equal(told_server.lent, &engine.engine);
    assert_string_equal(screen.view.serving->address, "127.0.0.1:9000");
}

// Off and on again: one has ended before the next one begins.
static void test_it_ends_before_it_begins_again(void **state) {
    (void)state;
    act(COMMAND_SERVE, -1, NULL);
    pass(0.05);
    for (int i = 0; i < 4; i++) act(COMMAND_SERVE, -1, NULL);
    assert_int_equal(told_server.opened, 1);
    told_server_stopped();
    pass(0.05), pass(0.05);
    assert_int_equal(told_server.opened, 2);
    act(COMMAND_SERVE, -1, NULL);
    told_server_stopped();
    pass(0.05);
    assert_int_equal(told_server.opened, 2);
    assert_null(screen.view.serving);
}

static void test_the_engine_is_withdrawn_before_it_is_closed(void **state) {
    (void)state;
    act(COMMAND_SERVE, -1, NULL);
    pass(0.05);
    act(COMMAND_RELOAD, -1, NULL);
    for (int i = 0; i < 2000 && !told_server.withdrawn; i++) step(), usleep(1000);
    assert_int_equal(told_server.withdrawn, 1);
    wait_for_model();
    assert_ptr_equal(told_server.lent, &engine.engine);
}

static void test_clients_are_shown_and_cancelled(void **state) {
    (void)state;
    static const struct server_client clients[] = {{.number = 7,
                                                    .name = "curl",
                                                    .path = "/api/chat",
                                                    .model = "guide",
                                                    .state = REQUEST_DECODING,
                                                    .n_tokens = 12,
                                                    .tokens_per_second = 4,
                                                    .first_token = 0.5f},
                                                   {.number = 9, .name = "10.0.0.1", .path = "/v1/responses"}};
    act(COMMAND_SERVE, -1, NULL);
    pass(10);
    assert_int_equal(chat->tick, 0);
    told_server_clients(clients, 2, 70);
    pass(0.05);
    const struct view_serving *v = screen.view.serving;
    assert_int_equal(v->n_clients, 2);
    assert_int_equal(v->n_more, 68);
    assert_int_equal(v->clients[0].id, 7);
    assert_string_equal(v->clients[0].name, "curl");
    assert_int_equal(v->clients[0].tokens, 12);
    assert_true(v->clients[0].first_token > 0.49 && v->clients[0].first_token < 0.51);
    assert_int_equal(v->clients[1].state, REQUEST_PENDING);
    assert_true(chat->tick); // there is something to be seen in the graphs
    act(COMMAND_CLIENTS, -1, "9");
    assert_int_equal(told_server.cancelled, 9);
    assert_string_equal(screen.status, "the request is cancelled");
    told_server_clients(NULL, 0, 0);
    pass(0.05);
    assert_int_equal(screen.view.serving->n_clients, 0);
}

static void choose_another(void) {
    temporary_folder_write(folder, "Other 2B.gguf", "GGUF");
    char *path = xasprintf("%s/Other 2B.gguf", folder);
    act(COMMAND_MODEL, -1, path);
    free(path);
}

// They are cut off as answers of the person's own chats are, of which both is said.
static void test_clients_count_as_answers_that_run(void **state) {
    (void)state;
    static const struct server_client clients[] = {{.number = 7, .name = "curl", .state = REQUEST_DECODING}};
    act(COMMAND_SERVE, -1, NULL);
    pass(0.05);
    told_server_clients(clients, 1, 1);
    pass(0.05);
    act(COMMAND_QUIT, -1, NULL);
    assert_true(screen.asks);
    act(COMMAND_SEND, -1, "q");
    choose_another();
    wait_for_model();
    assert_int_equal(told_server.withdrawn, 1);
    assert_non_null(strstr(screen.status, "2 answers were stopped"));
}

uint64_t machine_memory_free(void) { return 100; }

static void idle(uint64_t bytes) {
    told_server.report.clients.idle_bytes = bytes;
    told_server_notify();
    pass(0.05);
}

static void test_idle_models_of_clients_make_room(void **state) {
    (void)state;
    act(COMMAND_SERVE, -1, NULL);
    pass(0.05);
    fixture_need = 500;
    idle(300);
    choose_another();
    wait_for_model();
    assert_non_null(strstr(screen.status, "not enough memory: needs 500 B, 401 B free")); // what the first one has, too
    assert_int_equal(told_server.made_room, 0);
    idle(400);
    choose_another();
    wait_for_model();
    assert_int_equal(told_server.made_room, 1);
    assert_non_null(strstr(screen.status, "answers from now on"));
    fixture_need = 1;
}

static void test_nothing_is_drawn_while_nothing_changes(void **state) {
    (void)state;
    act(COMMAND_SERVE, -1, NULL);
    pass(10), pass(10);
    const int draws = screen.draws;
    for (int i = 0; i < 10; i++) pass(1);
    assert_int_equal(screen.draws, draws);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVE_TEST(test_nothing_is_served_until_it_is_asked_for),
        SERVE_TEST(test_the_configuration_may_ask_for_it),
        SERVE_TEST(test_where_it_cannot_serve_the_chat_goes_on),
        SERVE_TEST(test_what_it_listens_on_can_be_changed),
        SERVE_TEST(test_it_ends_before_it_begins_again),
        SERVE_TEST(test_the_engine_is_withdrawn_before_it_is_closed),
        SERVE_TEST(test_clients_are_shown_and_cancelled),
        SERVE_TEST(test_clients_count_as_answers_that_run),
        SERVE_TEST(test_idle_models_of_clients_make_room),
        SERVE_TEST(test_nothing_is_drawn_while_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
