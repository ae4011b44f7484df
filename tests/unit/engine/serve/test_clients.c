// Several clients of one engine, over the toy backend: each is alone with its events and its conversations.
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/distribution.h"
#include "engine/metrics.h"
#include "engine/serve/local_engine_state.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/toy_backend.h"

enum { PATIENCE = 60000 };

struct bench {
    void *bytes;
    struct model_file *file;
    struct engine *engine;
    struct engine_client *clients[2];
};

static struct bench bench_open(struct engine_params p) {
    struct bench b = {0};
    struct status st = {0};
    size_t size;
    toy_reset();
    p.n_threads = 1;
    b.bytes = tiny_model_bytes((struct tiny_model_options){.n_context = 4096}, &size);
    b.file = model_file_open_memory("tiny.gguf", b.bytes, size, NULL, &st);
    b.engine = b.file ? local_engine_open_on(b.file, &p, &toy_backend, &st) : NULL;
    if (!b.engine) fail_msg("%s", st.text);
    for (int i = 0; i < 2; i++) b.clients[i] = engine_client_open(b.engine, &st);
    return b;
}

static void bench_close(struct bench *b) {
    for (int i = 0; i < 2; i++) engine_client_close(b->clients[i]);
    engine_close(b->engine);
    model_file_close(b->file);
    free(b->bytes);
}

// A millisecond; a minute of them is too long.
static void nap(int *naps) {
    if (++*naps == PATIENCE) fail_msg("nothing has happened for a minute");
    usleep(1000);
}

static uint64_t ask(struct engine_client *c, uint64_t conversation, const char *text, int n) {
    struct request_params p = {
        .conversation = conversation, .raw = text, .sampling = sampling_default(), .max_tokens = n, .ignore_end = true};
    p.sampling.temperature = 0;
    return engine_submit(c, &p);
}

// Takes a client's events until this request has ended; each of them must be of it.
static struct engine_event end_of(struct engine_client *c, uint64_t request, uint64_t conversation) {
    struct engine_event e;
    do {
        if (!engine_wait(c, &e, PATIENCE)) fail_msg("no event for a minute");
        assert_int_equal(e.request, request);
        assert_int_equal(e.conversation, conversation);
    } while (e.kind != EVENT_STATE || e.state < REQUEST_FINISHED);
    return e;
}

static void test_each_sees_its_own_events_only(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    uint64_t one = ask(b.clients[0], 1, "Once upon", 60), two = ask(b.clients[1], 1, "a time", 40);
    assert_int_not_equal(one, two);
    assert_int_equal(end_of(b.clients[0], one, 1).n_generated, 60);
    assert_int_equal(end_of(b.clients[1], two, 1).n_generated, 40);
    struct engine_event e;
    for (int i = 0; i < 2; i++) {
        struct pollfd fd = {.fd = engine_event_fd(b.clients[i]), .events = POLLIN};
        assert_false(engine_poll(b.clients[i], &e));
        assert_int_equal(poll(&fd, 1, 0), 0);
    }
    bench_close(&b);
}

static void test_who_never_reads_blocks_nobody(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    for (int i = 0; i < 20; i++) ask(b.clients[0], 1 + (uint64_t)i % 3, "Once upon a time", 200);
    for (int i = 0; i < 20; i++) end_of(b.clients[1], ask(b.clients[1], 1, "there was", 50), 1);
    bench_close(&b);
}

static void test_closing_one_cancels_its_requests_and_leaves_the_other(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    toy.step_delay = 500;
    for (int i = 0; i < 4; i++) ask(b.clients[0], 1 + (uint64_t)i, "Once upon a time", 4000);
    uint64_t stays = ask(b.clients[1], 1, "there was", 300);
    struct engine_event e;
    do assert_true(engine_wait(b.clients[1], &e, PATIENCE));
    while (e.kind != EVENT_TEXT);
    engine_client_close(b.clients[0]);
    b.clients[0] = NULL;
    e = end_of(b.clients[1], stays, 1);
    assert_int_equal(e.state, REQUEST_FINISHED);
    assert_int_equal(e.n_generated, 300);
    const struct engine_metrics *f = engine_metrics(b.clients[1]);
    for (int ms = 0; (f->running || f->queue) && ms < PATIENCE; ms++) {
        usleep(1000);
        f = engine_metrics(b.clients[1]);
    }
    assert_int_equal(f->running + f->queue, 0);
    bench_close(&b);
}

// A long step computes a prompt of the client that goes; it is given up, though the backend would wait a minute.
static void test_closing_ends_a_step_for_the_client(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    toy.patience = 60000;
    int naps = 0;
    ask(b.clients[0], 1, "Once", 5);
    while (!toy.runs) nap(&naps);
    engine_client_close(b.clients[0]);
    b.clients[0] = NULL;
    while (!toy.given_up) nap(&naps);
    toy.patience = 0; // nothing runs
    end_of(b.clients[1], ask(b.clients[1], 1, "Upon", 5), 1);
    assert_int_equal(toy.given_up, 1);
    bench_close(&b);
}

// The last token of an answer that is watched, and of no other.
static void test_watches_an_answer(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    const struct sampling plain = {.temperature = 1, .top_p = 1, .repeat_penalty = 1};
    struct distribution d;
    struct engine_event e;
    assert_false(engine_distribution(b.clients[0], &plain, &d));
    end_of(b.clients[0], ask(b.clients[0], 1, "Once upon", 5), 1);
    assert_false(engine_distribution(b.clients[0], &plain, &d));
    toy.step_delay = 500;
    const uint64_t one = ask(b.clients[0], 7, "Once upon", 200), two = ask(b.clients[1], 3, "a time", 200);
    engine_watch(b.clients[0], one, 0);
    engine_watch(b.clients[1], one, 0); // which is not its own
    int32_t last = -1;
    float probability = 0;
    do {
        if (!engine_wait(b.clients[0], &e, PATIENCE)) fail_msg("no event for a minute");
        if (e.kind == EVENT_TEXT && e.token >= 0) last = e.token, probability = e.probability;
    } while (e.kind != EVENT_STATE || e.state < REQUEST_FINISHED);
    assert_true(engine_distribution(b.clients[0], &plain, &d));
    assert_int_equal(d.conversation, 7);
    assert_int_equal(d.drawn.id, last);
    assert_true(d.drawn.before == probability);
    assert_int_equal(d.left[FILTER_COUNT - 1], d.n_tokens);
    assert_true(*d.candidates[0].text);
    struct sampling three = plain;
    three.top_k = 3;
    assert_true(engine_distribution(b.clients[0], &three, &d));
    assert_int_equal(d.left[FILTER_COUNT - 1], 3);
    end_of(b.clients[1], two, 3);
    assert_false(engine_distribution(b.clients[1], &plain, &d));
    engine_watch(b.clients[0], 0, 0);
    bench_close(&b);
}

static const struct page_text *page_of(struct engine_client *c, int page) {
    const struct engine_metrics *f = engine_metrics(c);
    for (int ms = 0; f->page.page != page && ms < PATIENCE; ms++) {
        usleep(1000);
        f = engine_metrics(c);
    }
    assert_int_equal(f->page.page, page);
    return &f->page;
}

// Of pages in use and of those kept for reuse; what others said stays theirs.
static void test_pages_can_be_read(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    assert_int_equal(page_of(b.clients[0], -1)->page, -1);
    end_of(b.clients[0], ask(b.clients[0], 1, "Once upon a time there was", 80), 1);
    const struct engine_metrics *f = engine_metrics(b.clients[0]);
    int naps = 0;
    while (f->pages_kept < 3) nap(&naps), f = engine_metrics(b.clients[0]);
    engine_look_at_page(b.clients[0], 0);
    const struct page_text *t = page_of(b.clients[0], 0);
    assert_int_equal(t->position, 0);
    assert_int_equal(t->n_tokens, f->page_tokens);
    assert_non_null(strstr(t->text, "Once upon a time there was"));
    page_of(b.clients[1], 0);
    assert_string_equal(engine_metrics(b.clients[1])->page.text, "");
    engine_look_at_page(b.clients[0], 2);
    t = page_of(b.clients[0], 2);
    assert_int_equal(t->position, 2 * f->page_tokens);
    assert_int_equal(t->n_tokens, f->pages[2].filled);
    engine_look_at_page(b.clients[0], f->n_pages - 1);
    assert_int_equal(page_of(b.clients[0], f->n_pages - 1)->n_tokens, 0);
    engine_look_at_page(b.clients[0], 1 << 30);
    assert_int_equal(page_of(b.clients[0], 1 << 30)->n_tokens, 0);
    toy.step_delay = 500;
    const uint64_t runs = ask(b.clients[0], 2, "Upon once", 2000);
    struct engine_event e;
    do assert_true(engine_wait(b.clients[0], &e, PATIENCE));
    while (e.kind != EVENT_TEXT);
    int page = 0;
    while (f->pages[page].conversation != 2)
        if (++page == f->n_pages) nap(&naps), page = 0, f = engine_metrics(b.clients[0]);
    engine_look_at_page(b.clients[0], page);
    assert_non_null(strstr(page_of(b.clients[0], page)->text, "Upon once"));
    engine_cancel(b.clients[0], runs);
    bench_close(&b);
}

static void test_requests_of_others_cannot_be_touched(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    toy.step_delay = 500;
    uint64_t request = ask(b.clients[0], 1, "Once upon", 100);
    struct sampling wild = sampling_default();
    wild.temperature = 5;
    engine_set_sampling(b.clients[1], request, &wild);
    engine_cancel(b.clients[1], request);
    char text[2][4096] = {"", ""};
    for (int i = 0; i < 2; i++) {
        struct engine_event e = {0};
        while (e.kind != EVENT_STATE || e.state < REQUEST_FINISHED) {
            assert_true(engine_wait(b.clients[i], &e, PATIENCE));
            if (e.kind == EVENT_TEXT) strcat(text[i], e.text);
        }
        assert_int_equal(e.state, REQUEST_FINISHED);
        if (!i) ask(b.clients[1], 1, "Once upon", 100); // undisturbed
    }
    assert_string_equal(text[0], text[1]);
    bench_close(&b);
}

// Of a snapshot: the pages that this conversation owns.
static int pages_of(const struct engine_metrics *f, uint64_t conversation) {
    int n = 0;
    for (int i = 0; i < f->n_pages; i++) n += f->pages[i].references && f->pages[i].conversation == conversation;
    return n;
}

// The snapshot in which so many tokens have been drawn and nothing runs any more.
static const struct engine_metrics *settled(struct engine_client *c, int64_t tokens) {
    for (int ms = 0; ms < PATIENCE; ms++) {
        const struct engine_metrics *f = engine_metrics(c);
        if (f->decode_tokens == tokens && !f->pages_used && !f->running && !f->queue) return f;
        usleep(1000);
    }
    fail_msg("the engine never rests");
    return NULL;
}

static void test_pages_of_equal_numbers_do_not_mix(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    end_of(b.clients[0], ask(b.clients[0], 7, "Once upon a time there was a girl", 100), 7);
    end_of(b.clients[1], ask(b.clients[1], 7, "x", 10), 7);
    const int theirs = pages_of(settled(b.clients[0], 110), 7), own = pages_of(settled(b.clients[1], 110), 7);
    assert_true(theirs > own && own > 0);
    assert_int_equal(settled(b.clients[1], 110)->pages_kept, theirs + own);
    const struct engine_metrics *f = settled(b.clients[1], 110);
    for (int i = 0; i < f->n_pages; i++)
        if (f->pages[i].references)
            assert_true(f->pages[i].conversation == 7 || f->pages[i].conversation > CONVERSATION_MOST);
    // What one forgets the other keeps.
    engine_forget(b.clients[0], 7, 0);
    for (int naps = 0; pages_of(settled(b.clients[0], 110), 7);) nap(&naps);
    assert_int_equal(pages_of(settled(b.clients[1], 110), 7), own);
    bench_close(&b);
}

// The conversation in focus goes first, and it is one client's: another's of that number waits its turn.
static void test_focus_is_on_one_client(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){.kv_tokens = 4096});
    toy.patience = 1000;
    engine_focus(b.clients[0], 3);
    int naps = 0;
    uint64_t first = ask(b.clients[0], 1, "Once", 5);
    while (!toy.runs) nap(&naps); // waits in its prompt
    uint64_t waits = ask(b.clients[1], 3, "Upon", 5);
    usleep(20000);
    assert_int_equal(toy.given_up, 0);
    uint64_t focused = ask(b.clients[0], 3, "More", 5); // ends the step
    while (!toy.given_up) nap(&naps);
    toy.patience = 0;
    bool ended = false;
    for (struct engine_event e; !ended;) {
        assert_true(engine_wait(b.clients[0], &e, PATIENCE));
        assert_true(e.request == first || e.request == focused);
        ended = e.request == focused && e.kind == EVENT_STATE && e.state == REQUEST_FINISHED;
    }
    end_of(b.clients[1], waits, 3);
    bench_close(&b);
}

static void test_requests_are_listed_by_whose_they_are(void **state) {
    (void)state;
    struct bench b = bench_open((struct engine_params){0});
    toy.step_delay = 1000;
    uint64_t mine = ask(b.clients[0], 1, "Once", 4000), other = ask(b.clients[1], 1, "Upon", 4000);
    const struct engine_metrics *f = engine_metrics(b.clients[0]);
    for (int ms = 0; f->n_requests < 2 && ms < PATIENCE; ms++) {
        usleep(1000);
        f = engine_metrics(b.clients[0]);
    }
    assert_int_equal(f->n_requests, 2);
    for (int i = 0; i < 2; i++) {
        const bool own = f->requests[i].request == mine;
        assert_true(own || f->requests[i].request == other);
        assert_true(own ? f->requests[i].conversation == 1 : f->requests[i].conversation > CONVERSATION_MOST);
    }
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_sees_its_own_events_only),
        cmocka_unit_test(test_who_never_reads_blocks_nobody),
        cmocka_unit_test(test_closing_one_cancels_its_requests_and_leaves_the_other),
        cmocka_unit_test(test_closing_ends_a_step_for_the_client),
        cmocka_unit_test(test_watches_an_answer),
        cmocka_unit_test(test_pages_can_be_read),
        cmocka_unit_test(test_requests_of_others_cannot_be_touched),
        cmocka_unit_test(test_pages_of_equal_numbers_do_not_mix),
        cmocka_unit_test(test_focus_is_on_one_client),
        cmocka_unit_test(test_requests_are_listed_by_whose_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
