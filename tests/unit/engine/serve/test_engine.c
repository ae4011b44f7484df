// The engine from outside: text in, events and metrics out, over the toy backend and over the real one.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"
#include "engine/model/opened_model.h"
#include "engine/serve/local_engine_state.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/toy_backend.h"

enum { MOST = 512 };
#define PLENTY (1ull << 40)

static uint64_t memory_free = PLENTY; // of the machine
uint64_t machine_memory_free(void) { return memory_free; }

struct answer_text {
    char *text;
    size_t size;
    enum request_state state;
    enum finish_reason reason;
    int n_prompt, n_reused, n_generated, n_tokens, times_pending;
    char message[512];
};

struct bench {
    void *bytes;
    struct model_file *file;
    struct engine *engine;
    struct engine_client *client;
    struct answer_text answers[MOST];
    int open_requests;
};

static struct bench *bench_open_file(struct model_file *file, const struct backend_ops *ops, struct engine_params p) {
    struct bench *b = xcalloc(1, sizeof *b);
    struct status st = {0};
    toy_reset();
    b->file = file;
    if (!p.n_threads) p.n_threads = 2;
    b->engine = local_engine_open_on(b->file, &p, ops, &st);
    if (!b->engine) fail_msg("%s", st.text);
    b->client = engine_client_open(b->engine, &st);
    return b;
}

static struct bench *bench_open(struct tiny_model_options o, const struct backend_ops *ops, struct engine_params p) {
    struct status st = {0};
    size_t size;
    void *bytes = tiny_model_bytes(o, &size);
    struct model_file *file = model_file_open_memory("tiny.gguf", bytes, size, NULL, &st);
    if (!file) fail_msg("%s", st.text);
    struct bench *b = bench_open_file(file, ops, p);
    b->bytes = bytes;
    return b;
}

static void bench_close_engine(struct bench *b) {
    engine_client_close(b->client);
    engine_close(b->engine);
    b->client = NULL, b->engine = NULL;
}

static void bench_close(struct bench *b) {
    bench_close_engine(b);
    model_file_close(b->file);
    free(b->bytes);
    for (int i = 0; i < MOST; i++) free(b->answers[i].text);
    free(b);
}

static struct sampling greedy(void) {
    struct sampling s = sampling_default();
    s.temperature = 0;
    s.repeat_penalty = 1;
    return s;
}

static uint64_t ask_raw(struct bench *b, uint64_t conversation, const char *text, int n) {
    struct request_params p = {
        .conversation = conversation, .raw = text, .sampling = greedy(), .max_tokens = n, .ignore_end = true};
    b->open_requests++;
    return engine_submit(b->client, &p);
}

static void note(struct bench *b, const struct engine_event *e) {
    assert_true(e->request > 0 && e->request < MOST);
    struct answer_text *a = &b->answers[e->request];
    if (e->kind == EVENT_NOTICE) return;
    if (e->kind == EVENT_TEXT) {
        a->n_tokens += e->token >= 0;
        assert_true(e->size < sizeof e->text);
        assert_int_equal(utf8_incomplete(e->text, e->size), 0);
        a->text = xrealloc(a->text, a->size + e->size + 1);
        memcpy(a->text + a->size, e->text, e->size + 1);
        a->size += e->size;
        return;
    }
    a->state = e->state;
    a->reason = e->reason;
    a->n_prompt = e->n_prompt, a->n_reused = e->n_reused, a->n_generated = e->n_generated;
    a->times_pending += e->state == REQUEST_PENDING;
    if (e->state == REQUEST_FAILED) snprintf(a->message, sizeof a->message, "%s", e->text);
    if (e->state >= REQUEST_FINISHED) b->open_requests--;
}

static void wait_for_all(struct bench *b) {
    struct engine_event e;
    while (b->open_requests) {
        if (!engine_wait(b->client, &e, 60000)) fail_msg("no event for a minute, %d requests open", b->open_requests);
        note(b, &e);
    }
}

static const char *answer_alone(struct bench *b, const char *text, int n) {
    uint64_t id = ask_raw(b, 1, text, n);
    wait_for_all(b);
    assert_int_equal(b->answers[id].state, REQUEST_FINISHED);
    return b->answers[id].text;
}

// ---- text ----

static void test_streams_the_text_of_the_tokens(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    uint64_t id = ask_raw(b, 1, "one two", 200);
    wait_for_all(b);
    struct answer_text *a = &b->answers[id];
    assert_int_equal(a->reason, FINISH_LENGTH);
    assert_int_equal(a->n_generated, 200);
    assert_int_equal(a->n_tokens, 200); // each token once, long or split ones too
    // The same by hand: ids, the toy's continuation, bytes, valid UTF-8.
    int n_vocab = model_file_info(b->file)->n_vocab;
    size_t count, size;
    int32_t *ids = model_file_tokenize(b->file, "one two", 7, true, &count), with_bos[64], next[200];
    with_bos[0] = tokenizer_bos(b->file->tokenizer);
    memcpy(with_bos + 1, ids, count * sizeof *ids);
    toy_continue(with_bos, (int)count + 1, n_vocab, next, 200);
    assert_int_equal(a->n_prompt, count + 1);
    char expected[8192], *at = expected;
    struct utf8_stream stream = {0};
    for (int i = 0; i < 200; i++) {
        struct span piece = tokenizer_piece(b->file->tokenizer, next[i], false);
        if (piece.size) at += utf8_stream_push(&stream, piece.data, piece.size, at);
    }
    at += utf8_stream_finish(&stream, at);
    size = (size_t)(at - expected);
    assert_int_equal(a->size, size);
    assert_memory_equal(a->text, expected, size);
    free(ids);
    bench_close(b);
}

static void test_reports_alternatives(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    uint64_t started = clock_ns(), last = 0;
    ask_raw(b, 1, "x", 5);
    struct engine_event e;
    int texts = 0;
    while (b->open_requests) {
        assert_true(engine_wait(b->client, &e, 60000));
        note(b, &e);
        if (e.kind != EVENT_TEXT || e.token < 0) continue;
        texts++;
        assert_int_equal(e.n_alternatives, SAMPLING_TOP);
        assert_true(e.at >= started && e.at <= clock_ns() && e.at >= last);
        last = e.at;
        assert_int_equal(e.alternatives[0].id, e.token); // greedy
        assert_true(e.probability == e.alternatives[0].probability);
        for (int i = 1; i < SAMPLING_TOP; i++)
            assert_true(e.alternatives[i].probability <= e.alternatives[i - 1].probability);
        assert_true(e.entropy > 0);
    }
    assert_int_equal(texts, 5);
    bench_close(b);
}

static void test_chat_template_and_end_token(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){.pre = "gpt-2", .chat_template = TINY_CHATML},
                                 &toy_backend, (struct engine_params){0});
    const struct tokenizer *t = b->file->tokenizer;
    int32_t end = tokenizer_find(t, "<|im_end|>", 10);
    struct engine_message messages[] = {{.role = "user", .text = "say <|im_end|> please"}};
    struct request_params p = {
        .conversation = 1, .messages = messages, .n_messages = 1, .sampling = greedy(), .max_tokens = 10};
    toy.likely = end;
    uint64_t id = engine_submit(b->client, &p);
    b->open_requests++;
    wait_for_all(b);
    assert_int_equal(b->answers[id].reason, FINISH_END);
    assert_int_equal(b->answers[id].n_generated, 0);
    // What a user types stays text: its ids alone hold no mark, and the prompt is as long as marks and text together.
    struct token_list list = {0};
    tokenizer_encode(t, "say <|im_end|> please", 21, false, &list);
    for (size_t i = 0; i < list.count; i++) assert_int_not_equal(list.ids[i], end);
    tokenizer_encode(t, "<|im_start|>user\n", 17, true, &list);
    tokenizer_encode(t, "<|im_end|>\n<|im_start|>assistant\n", 33, true, &list);
    assert_int_equal(b->answers[id].n_prompt, list.count);
    free(list.ids);
    bench_close(b);
}

// An answer ends where the first of several texts begins, whatever tokens those are made of.
static void test_stop_texts(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    const char *whole = answer_alone(b, "one two", 200);
    size_t size = strlen(whole), at = size / 2;
    while ((whole[at] & 0xc0) == 0x80) at++;
    char *stop = xstrndup(whole + at, 9 - utf8_incomplete(whole + at, 9));
    at = (size_t)(strstr(whole, stop) - whole); // its first place
    const char *const stops[] = {"nowhere to be found", stop};
    struct request_params p = {.conversation = 1,
                               .raw = "one two",
                               .sampling = greedy(),
                               .max_tokens = 200,
                               .ignore_end = true,
                               .stops = stops,
                               .n_stops = 2};
    uint64_t id = engine_submit(b->client, &p);
    b->open_requests++;
    wait_for_all(b);
    struct answer_text *a = &b->answers[id];
    assert_int_equal(a->reason, FINISH_END);
    assert_int_equal(a->size, at);
    assert_memory_equal(a->text, whole, at);
    assert_true(a->n_generated < 200);
    free(stop);
    bench_close(b);
}

static void test_refused_conversation_is_told(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.pre = "gpt-2",
                                               .chat_template = "{{ raise_exception('too many') if messages|"
                                                                "length > 3 }}<|im_start|>"},
                   &toy_backend, (struct engine_params){0});
    struct engine_message messages[4];
    for (int i = 0; i < 4; i++)
        messages[i] = (struct engine_message){.role = i % 2 ? "assistant" : "user", .text = "x"};
    for (int n = 3; n <= 4; n++) {
        struct request_params p = {
            .conversation = 1, .messages = messages, .n_messages = n, .sampling = greedy(), .max_tokens = 3};
        engine_submit(b->client, &p);
        b->open_requests++;
        char notice[512] = "";
        struct engine_event e;
        while (b->open_requests) {
            assert_true(engine_wait(b->client, &e, 60000));
            note(b, &e);
            if (e.kind == EVENT_NOTICE) snprintf(notice, sizeof notice, "%s", e.text);
        }
        assert_string_equal(notice,
                            n == 3 ? ""
                                   : "the model's own chat template refuses this conversation (too many); confab's "
                                     "for chatml is used instead");
    }
    bench_close(b);
}

static void test_refusals(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){.kv_tokens = 64});
    char text[400];
    memset(text, 'q', sizeof text);
    text[sizeof text - 1] = 0;
    int32_t wrong[] = {3, 1 << 20};
    uint64_t large = ask_raw(b, 1, text, 5);
    struct request_params ids = {.conversation = 1, .ids = wrong, .n_ids = 2, .sampling = greedy()};
    uint64_t out_of_range = engine_submit(b->client, &ids);
    b->open_requests += 1;
    wait_for_all(b);
    assert_int_equal(b->answers[large].state, REQUEST_FAILED);
    assert_non_null(strstr(b->answers[large].message, "a conversation may have 64"));
    assert_int_equal(b->answers[out_of_range].state, REQUEST_FAILED);
    assert_non_null(strstr(b->answers[out_of_range].message, "token 1 of the prompt is 1048576"));
    struct status st = {0};
    assert_null(local_engine_open_on(b->file, &(struct engine_params){.kv_tokens = 1 << 30}, &toy_backend, &st));
    assert_int_equal(st.code, STATUS_LIMIT);
    bench_close(b);
}

static void test_sizes(void **state) {
    (void)state;
    const struct {
        struct engine_params params;
        int context, n_pages; // 0: whatever the machine allows, up to 16 conversations
    } cases[] = {{{0}, 512, 0},
                 {{.context = 100}, 100, 0},
                 {{.context = 9999}, 512, 0},
                 {{.kv_tokens = 65}, 96, 3},
                 {{.kv_tokens = 128, .context = 50}, 50, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, cases[i].params);
        const struct engine_metrics *f = engine_metrics(b->client);
        assert_int_equal(f->context, cases[i].context);
        if (cases[i].n_pages) assert_int_equal(f->n_pages, cases[i].n_pages);
        else assert_true(f->n_pages * f->page_tokens >= f->context && f->n_pages <= 16 * (f->context + 31) / 32);
        struct backend_memory memory;
        toy_backend.measure(&(struct backend_params){.n_pages = f->n_pages}, &memory, NULL);
        assert_int_equal(f->kv_bytes, memory.kv);
        bench_close(b);
    }
}

static bool absurd_measure(const struct backend_params *params, struct backend_memory *out, struct status *st) {
    (void)st;
    *out = (struct backend_memory){.kv = (uint64_t)params->n_pages << 40};
    return true;
}

static void test_more_memory_than_there_is(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct backend_ops absurd = toy_backend;
    absurd.measure = absurd_measure;
    struct status st = {0};
    assert_null(local_engine_open_on(b->file, &(struct engine_params){.kv_tokens = 1024}, &absurd, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    assert_non_null(strstr(st.text, "a KV cache of 1024 tokens 33554432 MiB"));
    bench_close(b);
}

// ---- memory ----

// Opens a model of this format on a machine with room for so many tokens beside everything else.
static void check_room_for(enum block_id format, int tokens) {
    const struct tiny_model_options options = {
        .format = format, .n_embd = 512, .n_ff = 2048, .n_layer = 2, .n_head = 16, .n_head_kv = 16, .n_context = 8192};
    struct bench *b = bench_open(options, &cpu_backend, (struct engine_params){.kv_tokens = tokens});
    struct engine_params params = {.n_threads = 2, .kv_tokens = tokens};
    struct model_memory need, planned;
    struct status st = {0};
    assert_true(local_engine_memory(b->file, &params, 0, &need, &st));
    assert_int_equal(engine_metrics(b->client)->kv_bytes, need.kv);
    bench_close_engine(b);
    memory_free = need.total;
    params.kv_tokens = 0;
    assert_true(local_engine_memory(b->file, &params, memory_free, &planned, &st));
    b->engine = local_engine_open(b->file, &params, &st);
    if (!b->engine) fail_msg("%s: %s", block_formats[format].name, st.text);
    b->client = engine_client_open(b->engine, &st);
    assert_true(planned.total <= memory_free);
    assert_int_equal(engine_metrics(b->client)->kv_bytes, planned.kv);
    assert_int_equal(engine_metrics(b->client)->context, planned.context);
    memory_free = PLENTY;
    bench_close(b);
}

static void test_a_model_gets_the_cache_that_fits_beside_its_tiles(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) check_room_for(format, 1024);
}

static void test_what_show_says_fits_can_be_opened(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.format = BLOCK_IQ1_S, .n_embd = 512, .n_ff = 2048, .n_context = 65536},
                   &cpu_backend, (struct engine_params){.kv_tokens = 40000});
    struct status st = {0};
    struct model_memory need;
    assert_true(local_engine_memory(b->file, &(struct engine_params){.kv_tokens = 40000}, 0, &need, &st));
    memory_free = need.total;
    struct engine_params params = {.kv_tokens = local_engine_tokens_that_fit(b->file, KV_F16, memory_free),
                                   .options.quick_start = true};
    assert_true(params.kv_tokens > 39000 && params.kv_tokens <= 40000);
    struct engine *e = local_engine_open(b->file, &params, &st);
    if (!e) fail_msg("%s", st.text);
    engine_close(e);
    params.kv_tokens += 1000;
    assert_null(local_engine_open(b->file, &params, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    memory_free = PLENTY;
    bench_close(b);
}

// ---- LongRoPE ----

enum { LONG_IDS = 40 };

// Logits of some tokens by an engine with these over a model whose factors differ beyond 4096 tokens.
static float *long_logits(const struct engine_params *p, int n_context, size_t *n) {
    struct tiny_shape shape = {0};
    struct status st = {0};
    int32_t ids[LONG_IDS];
    size_t size;
    for (int i = 0; i < tiny_family_count; i++)
        if (!strcmp(tiny_families[i].name, "phi3-short")) shape = tiny_families[i];
    shape.n_context = n_context;
    void *bytes = tiny_shape_bytes(&shape, &size);
    struct model_file *file = model_file_open_memory("phi3.gguf", bytes, size, NULL, &st);
    if (!file) fail_msg("%s", st.text);
    *n = LONG_IDS * (size_t)model_file_info(file)->n_vocab;
    float *logits = xmalloc(*n * sizeof *logits);
    for (int i = 0; i < LONG_IDS; i++) ids[i] = 3 + i;
    struct engine *e = local_engine_open(file, p, &st);
    if (!e || !engine_logits(e, ids, LONG_IDS, logits, &st)) fail_msg("%s", st.text);
    engine_close(e);
    model_file_close(file);
    free(bytes);
    return logits;
}

static void test_long_rope_does_not_depend_on_memory(void **state) {
    (void)state;
    const struct {
        struct engine_params params;
        uint64_t memory_free;
        int n_context;
        bool is_long;
    } cases[] = {
        {{.n_threads = 1}, PLENTY, 131072, true},
        {{.n_threads = 1}, 24 << 20, 131072, true},
        {{.n_threads = 1, .kv_tokens = 64}, PLENTY, 131072, true},
        {{.n_threads = 1, .context = 8192, .kv_tokens = 64}, PLENTY, 131072, true},
        {{.n_threads = 1, .context = 4096}, PLENTY, 131072, false}, // asked for
        {{.n_threads = 1}, PLENTY, 4096, false},
        {{.n_threads = 1}, 24 << 20, 4096, false},
    };
    size_t n;
    float *want[2] = {long_logits(&cases[5].params, 4096, &n), long_logits(&cases[0].params, 131072, &n)};
    assert_memory_not_equal(want[0], want[1], n * sizeof(float));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memory_free = cases[i].memory_free;
        float *logits = long_logits(&cases[i].params, cases[i].n_context, &n);
        assert_memory_equal(logits, want[cases[i].is_long], n * sizeof *logits);
        free(logits);
    }
    memory_free = PLENTY;
    free(want[0]), free(want[1]);
}

static void test_logits(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    int n_vocab = model_file_info(b->file)->n_vocab;
    const int32_t ids[] = {1, 5, 9, 5};
    float *logits = xmalloc(2 * 4 * (size_t)n_vocab * sizeof *logits), *expected = logits + 4 * n_vocab;
    struct status st = {0};
    assert_true(engine_logits(b->engine, ids, 4, logits, &st));
    for (int i = 0; i < 4; i++) toy_logits(ids, i + 1, n_vocab, expected + i * n_vocab);
    assert_memory_equal(logits, expected, 4 * (size_t)n_vocab * sizeof *logits);
    assert_false(engine_logits(b->engine, ids, 0, logits, &st));
    free(logits);
    bench_close(b);
}

// A caller of engine_logits on a thread of its own.
enum { LONG_TEXT = 400 };

struct logits_caller {
    struct engine *engine;
    pthread_t thread;
    atomic_int id; // of the thread, once it runs
    int32_t ids[LONG_TEXT];
    float *logits;
    bool ok;
    struct status st;
};

static void *call_logits(void *argument) {
    struct logits_caller *c = argument;
    c->id = gettid();
    c->ok = engine_logits(c->engine, c->ids, LONG_TEXT, c->logits, &c->st);
    return NULL;
}

static void *call_close(void *argument) {
    struct logits_caller *c = argument;
    c->id = gettid();
    engine_close(c->engine);
    return NULL;
}

static struct logits_caller *caller_start(struct bench *b, void *(*call)(void *)) {
    struct logits_caller *c = xcalloc(1, sizeof *c);
    c->engine = b->engine;
    for (int i = 0; i < LONG_TEXT; i++) c->ids[i] = i % 7;
    c->logits = xcalloc(LONG_TEXT * (size_t)model_file_info(b->file)->n_vocab, sizeof *c->logits);
    if (pthread_create(&c->thread, NULL, call, c)) fail_msg("no thread");
    return c;
}

static void caller_free(struct logits_caller *c) {
    free(c->logits);
    free(c);
}

static void caller_join(struct logits_caller *c) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    if (pthread_timedjoin_np(c->thread, NULL, &until)) fail_msg("a caller waits for ever");
}

// Until it has pushed its command and waits for what comes of that.
static void caller_settle(const struct logits_caller *c) {
    for (char state = 0; state != 'S';) {
        char path[64];
        usleep(1000);
        if (!c->id) continue;
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", c->id);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%*d %*[^)]) %c", &state), 1);
        fclose(f);
    }
}

static void wait_for_runs(int n) {
    while (toy.runs < n) usleep(1000);
}

static void assert_logits_right(const struct logits_caller *c, int n_vocab) {
    float *expected = xmalloc((size_t)n_vocab * sizeof *expected);
    if (!c->ok) fail_msg("%s", c->st.text);
    for (int i = 0; i < LONG_TEXT; i++) {
        toy_logits(c->ids, i + 1, n_vocab, expected);
        assert_memory_equal(c->logits + (size_t)i * (size_t)n_vocab, expected, (size_t)n_vocab * sizeof *expected);
    }
    free(expected);
}

static void bench_free_closed(struct bench *b) {
    b->engine = NULL;
    bench_close(b);
}

// Whoever waits for logits is told that the engine closes: in the middle of them, in the queue behind them, and with a
// command that came after the one to close.
static void test_closing_wakes_who_waits_for_logits(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct logits_caller *callers[4];
    toy.allowed = 3;
    toy.patience = 10000;
    callers[0] = caller_start(b, call_logits);
    wait_for_runs(4); // waits in its fourth pass
    callers[1] = caller_start(b, call_logits);
    caller_settle(callers[1]);
    engine_client_close(b->client);
    b->client = NULL;
    callers[2] = caller_start(b, call_close);
    caller_settle(callers[2]);
    callers[3] = caller_start(b, call_logits);
    caller_settle(callers[3]);
    toy.allowed = -1;
    for (int i = 0; i < 4; i++) caller_join(callers[i]);
    for (int i = 0; i < 4; i++) {
        if (i != 2) assert_false(callers[i]->ok);
        if (i != 2) assert_int_equal(callers[i]->st.code, STATUS_CANCELLED);
        caller_free(callers[i]);
    }
    assert_int_equal(toy.runs, 4);
    assert_int_equal(toy.given_up, 1);
    bench_free_closed(b);
}

static void test_commands_are_obeyed_between_passes_of_logits(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    const int n_vocab = model_file_info(b->file)->n_vocab;
    toy.allowed = 1;
    struct logits_caller *first = caller_start(b, call_logits);
    wait_for_runs(2);
    struct logits_caller *second = caller_start(b, call_logits);
    caller_settle(second);
    uint64_t unwanted = ask_raw(b, 1, "Once upon", 20), wanted = ask_raw(b, 2, "The", 8);
    engine_cancel(b->client, unwanted);
    struct logits_caller *refused = caller_start(b, call_logits); // a request is there before it
    caller_settle(refused);
    toy.allowed = 2; // the third pass waits
    struct engine_event e;
    while (b->open_requests > 1 && engine_wait(b->client, &e, 10000)) note(b, &e);
    const int still_open = b->open_requests;
    toy.allowed = -1;
    caller_join(first), caller_join(second), caller_join(refused);
    wait_for_all(b);
    assert_int_equal(still_open, 1);
    assert_int_equal(b->answers[unwanted].state, REQUEST_CANCELLED);
    assert_logits_right(first, n_vocab);
    assert_logits_right(second, n_vocab);
    assert_false(refused->ok);
    assert_string_equal(refused->st.text, "1 requests are running");
    assert_int_equal(b->answers[wanted].state, REQUEST_FINISHED);
    assert_string_equal(b->answers[wanted].text, answer_alone(b, "The", 8));
    caller_free(first), caller_free(second), caller_free(refused);
    bench_close(b);
}

// ---- many at once ----

static const char *const openings[8] = {
    "Once upon a time", "Once upon a day",        "The", "Lily had a dog", "In the park",
    "Tom and Ben",      "It was a big, red ball", "Once"};

static void eight_at_once(struct bench *alone, struct bench *together, int n) {
    uint64_t ids[8];
    for (int i = 0; i < 8; i++) ids[i] = ask_raw(together, (uint64_t)i + 1, openings[i], n);
    wait_for_all(together);
    for (int i = 0; i < 8; i++) {
        const struct answer_text *a = &together->answers[ids[i]];
        assert_int_equal(a->state, REQUEST_FINISHED);
        assert_int_equal(a->n_generated, n);
        assert_string_equal(a->text, answer_alone(alone, openings[i], n));
    }
}

static void test_eight_at_once(void **state) {
    (void)state;
    struct bench *alone = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct bench *together =
        bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){.prefill_chunk = 8});
    eight_at_once(alone, together, 100);
    bench_close(together);
    together = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){.kv_tokens = 256});
    eight_at_once(alone, together, 100);
    assert_true(engine_metrics(together->client)->preemptions > 0);
    bench_close(together);
    bench_close(alone);
}

static void test_metrics_after_work(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    toy.step_delay = 1000;
    for (int i = 0; i < 4; i++) ask_raw(b, (uint64_t)i + 1, openings[i], 100);
    float fastest = 0;
    int most_rows = 0;
    while (b->open_requests) {
        struct engine_event e;
        assert_true(engine_wait(b->client, &e, 60000));
        note(b, &e);
        const struct engine_metrics *f = engine_metrics(b->client);
        if (f->decode_now > fastest) fastest = f->decode_now;
        if (f->batch_decode_rows > most_rows) most_rows = f->batch_decode_rows;
        assert_int_equal(f->pages_used + f->pages_kept + f->pages_free, f->n_pages);
    }
    assert_true(fastest > 0);
    assert_true(most_rows > 0 && most_rows <= 4);
    const struct engine_metrics *f = engine_metrics(b->client);
    for (int i = 0; f->decode_now > 0 && i < 600; i++) { // the last snapshot comes when the window has passed
        usleep(100 * 1000);
        f = engine_metrics(b->client);
    }
    assert_string_equal(f->backend, "toy");
    assert_true(f->decode_now == 0 && f->prefill_now == 0);
    assert_true(f->stages[STAGE_ATTEND].bytes > 0 && f->decode.bytes > 0); // the last second of work is kept
    assert_true(f->decode_peak >= fastest);
    assert_int_equal(f->decode_tokens, 400);
    assert_int_equal(f->first_token.count, 4);
    assert_true(f->next_token.p50 > 0 && f->next_token.p50 <= f->next_token.p99);
    assert_int_equal(f->running + f->queue, 0);
    assert_int_equal(f->pages_used, 0);
    assert_true(f->pages_kept > 0);
    // From now on nothing moves, and nothing is computed.
    uint64_t sequence = f->sequence;
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(300 * 1000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    assert_int_equal(engine_metrics(b->client)->sequence, sequence);
    assert_true((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec < 150000000L);
    bench_close(b);
}

static bool prepare_forever(struct backend *b) {
    (void)b;
    usleep(1000);
    return true;
}

// Whoever cancels an answer while weights are prepared sees that nothing is computed any more.
static void test_metrics_move_during_preparation(void **state) {
    (void)state;
    struct backend_ops preparing = toy_backend;
    preparing.repack = prepare_forever;
    struct bench *b = bench_open((struct tiny_model_options){.n_context = 4096}, &preparing,
                                 (struct engine_params){.options.quick_start = true});
    toy.step_delay = 1000;
    uint64_t id = ask_raw(b, 1, "Once", 3000);
    while (!(engine_metrics(b->client)->decode_now > 0)) usleep(1000);
    engine_cancel(b->client, id);
    wait_for_all(b);
    for (int ms = 0; engine_metrics(b->client)->decode_now > 0; ms++) {
        if (ms > 20000) fail_msg("the metrics stand still");
        usleep(1000);
    }
    assert_true(engine_metrics(b->client)->preparing);
    bench_close(b);
}

static void test_event_fd_and_cancel(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    toy.step_delay = 2000;
    struct pollfd fd = {.fd = engine_event_fd(b->client), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 0), 0);
    uint64_t id = ask_raw(b, 1, "Once", 3000);
    while (b->answers[id].n_tokens < 5) {
        struct engine_event e;
        assert_int_equal(poll(&fd, 1, 60000), 1);
        while (engine_poll(b->client, &e)) note(b, &e);
    }
    engine_cancel(b->client, id);
    wait_for_all(b);
    assert_int_equal(b->answers[id].state, REQUEST_CANCELLED);
    assert_true(b->answers[id].n_generated < 3000);
    bench_close(b);
}

// A long step computes a prompt; each of these commands ends it at once, though the backend would wait a minute. Each
// waits until the step that it ends has begun: between two steps a command is obeyed without ending one.
static void test_urgent_commands_end_a_step(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    toy.patience = 60000;
    uint64_t first = ask_raw(b, 1, "Once", 5);
    while (!toy.runs) usleep(1000);
    engine_focus(b->client, 2);
    uint64_t second = ask_raw(b, 2, "Upon", 5); // is looked at: goes first
    while (toy.runs < 2) usleep(1000);
    engine_cancel(b->client, second);
    while (toy.runs < 3) usleep(1000);
    engine_cancel(b->client, first);
    wait_for_all(b);
    assert_int_equal(toy.given_up, 3);
    assert_int_equal(b->answers[first].state, REQUEST_CANCELLED);
    assert_int_equal(b->answers[second].state, REQUEST_CANCELLED);
    const int runs = toy.runs;
    ask_raw(b, 2, "More", 5);
    while (toy.runs == runs) usleep(1000);
    bench_close(b); // likewise
    assert_int_equal(toy.given_up, 4);
}

static void test_close_while_running(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    for (int i = 0; i < 20; i++) ask_raw(b, 1, openings[i % 8], 3000);
    usleep(20000);
    ask_raw(b, 1, "late", 10); // may be discarded unread
    bench_close(b);
}

// ---- stress: commands from another thread while events and metrics are read here ----

struct disturber {
    struct bench *bench;
    uint32_t random;
    int submitted;
};

static void *disturb(void *argument) {
    struct disturber *d = argument;
    struct engine_client *e = d->bench->client;
    for (int i = 0; i < 600; i++) {
        d->random = d->random * 1664525u + 1013904223u;
        uint32_t what = d->random >> 24, pick = d->random >> 8 & 0xff;
        struct sampling sampling = sampling_default();
        sampling.temperature = (float)(pick % 20) / 10;
        if (what < 70 && d->submitted < MOST - 1) {
            struct engine_message messages[] = {{.role = "system", .text = "be brief"},
                                                {.role = "user", .text = openings[pick % 8]}};
            struct request_params p = {.conversation = 1 + pick % 6,
                                       .sampling = sampling,
                                       .max_tokens = 1 + (int)(pick % 60),
                                       .time_limit = pick % 9 ? 0 : 0.01};
            if (pick & 1) p.raw = openings[pick / 2 % 8];
            else p.messages = messages, p.n_messages = 2;
            engine_submit(e, &p);
            d->submitted++;
        } else if (what < 110) engine_cancel(e, 1 + pick % (uint32_t)(d->submitted + 1));
        else if (what < 140) engine_focus(e, pick % 7);
        else if (what < 160) engine_forget(e, pick % 7, 0);
        else if (what < 200) engine_set_sampling(e, 1 + pick % (uint32_t)(d->submitted + 1), &sampling);
        else usleep(pick);
    }
    return NULL;
}

static void test_random_commands(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){.chat_template = TINY_CHATML}, &toy_backend,
                                 (struct engine_params){.kv_tokens = 400, .prefill_chunk = 16});
    struct disturber d = {.bench = b, .random = 42};
    pthread_t thread;
    struct engine_event e;
    assert_int_equal(pthread_create(&thread, NULL, disturb, &d), 0);
    uint64_t last_sequence = 0;
    for (int quiet = 0; quiet < 5;) {
        bool any = engine_wait(b->client, &e, 20);
        if (any) note(b, &e);
        const struct engine_metrics *f = engine_metrics(b->client);
        assert_true(f->sequence >= last_sequence);
        assert_int_equal(f->pages_used + f->pages_kept + f->pages_free, f->n_pages);
        last_sequence = f->sequence;
        quiet = any ? 0 : quiet + 1;
    }
    pthread_join(thread, NULL);
    b->open_requests += d.submitted; // counted down as they ended
    wait_for_all(b);
    for (int id = 1; id <= d.submitted; id++) assert_true(b->answers[id].state >= REQUEST_FINISHED);
    bench_close(b);
}

// ---- several answers ----

enum { ANSWERS = 3 };

// Each answer has its own text, states and end; the events say whose they are.
static void test_answers_to_one_prompt(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct request_params p = {
        .conversation = 1,
        .raw = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq",
        .sampling = greedy(),
        .max_tokens = 40,
        .ignore_end = true};
    const char *alone = answer_alone(b, p.raw, 40);
    engine_forget(b->client, 1, 0);
    p.n_answers = ANSWERS;
    uint64_t id = engine_submit(b->client, &p);
    struct engine_event e;
    char text[ANSWERS][4096] = {{0}};
    int pending[ANSWERS] = {0}, ends[ANSWERS] = {0}, n_prompt = 0;
    for (int open = ANSWERS; open;) {
        assert_true(engine_wait(b->client, &e, 60000));
        assert_int_equal(e.request, id);
        assert_in_range(e.answer, 0, ANSWERS - 1);
        assert_false(ends[e.answer]);
        if (e.kind == EVENT_TEXT) strcat(text[e.answer], e.text);
        if (e.kind != EVENT_STATE) continue;
        n_prompt = e.n_prompt;
        pending[e.answer] += e.state == REQUEST_PENDING;
        ends[e.answer] = e.state == REQUEST_FINISHED;
        open -= ends[e.answer];
        if (ends[e.answer]) assert_int_equal(e.n_generated, 40);
    }
    for (int i = 0; i < ANSWERS; i++) {
        assert_int_equal(pending[i], 1);
        assert_string_equal(text[i], alone);
    }
    for (int ms = 0; engine_metrics(b->client)->decode_tokens < 40 * (1 + ANSWERS) && ms < 20000; ms++) usleep(1000);
    assert_true(n_prompt > 2 * KV_PAGE_TOKENS);
    assert_in_range(engine_metrics(b->client)->prefill_tokens, 2 * n_prompt, 2 * n_prompt + ANSWERS - 1);
    bench_close(b);
}

static void test_cancel_ends_all_answers(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    toy.step_delay = 1000;
    struct request_params p = {.conversation = 1,
                               .raw = "Once",
                               .sampling = greedy(),
                               .n_answers = ANSWERS,
                               .max_tokens = 3000,
                               .ignore_end = true};
    uint64_t id = engine_submit(b->client, &p);
    struct engine_event e;
    int texts = 0;
    for (int open = ANSWERS; open;) {
        assert_true(engine_wait(b->client, &e, 60000));
        if (e.kind == EVENT_TEXT && ++texts == 20) engine_cancel(b->client, id);
        open -= e.kind == EVENT_STATE && e.state == REQUEST_CANCELLED;
    }
    assert_true(texts >= 20);
    bench_close(b);
}

// ---- the real backend ----

static void test_real_backend_eight_at_once(void **state) {
    (void)state;
    const struct tiny_model_options models[] = {
        {0}, {.family = TINY_QWEN3, .format = BLOCK_Q8_0}, {.family = TINY_QWEN2, .format = BLOCK_Q4_K, .tied = true}};
    for (size_t i = 0; i < sizeof models / sizeof *models * 2; i++) { // each in halves, then in blocks
        const struct tiny_model_options model = models[i / 2];
        const enum kv_type types[] = {KV_BF16, KV_F16, KV_Q8_0, KV_Q4_0};
        const enum kv_type type = types[i % 2 * 2 + i / 2 % 2];
        struct bench *alone = bench_open(model, &cpu_backend, (struct engine_params){.options.kv_type = type});
        struct bench *together =
            bench_open(model, &cpu_backend,
                       (struct engine_params){.kv_tokens = 256, .prefill_chunk = 16, .options.kv_type = type});
        eight_at_once(alone, together, 80);
        assert_true(engine_metrics(together->client)->preemptions > 0);
        bench_close(together);
        bench_close(alone);
    }
}

static void close_while_it_prepares(struct model_file *file) {
    const struct engine_params params = {.n_threads = 2, .options.quick_start = true};
    const struct request_params request = {
        .conversation = 1, .raw = "Once upon a time", .sampling = greedy(), .max_tokens = 100, .ignore_end = true};
    struct status st = {0};
    for (int i = 0; i < 4; i++) {
        struct engine *e = local_engine_open_on(file, &params, &cpu_backend, &st);
        assert_non_null(e);
        struct engine_client *c = engine_client_open(e, &st);
        if (i % 2) engine_submit(c, &request);
        usleep((useconds_t)i * 1000);
        engine_client_close(c);
        engine_close(e);
    }
}

static void test_answers_during_preparation_are_the_same(void **state) {
    (void)state;
    // Large enough for several steps.
    const struct tiny_model_options model = {.format = BLOCK_Q8_0, .n_layer = 4, .n_embd = 512, .n_ff = 1024};
    struct bench *ready = bench_open(model, &cpu_backend, (struct engine_params){0});
    assert_false(engine_metrics(ready->client)->preparing);
    struct bench *quick = bench_open(model, &cpu_backend, (struct engine_params){.options.quick_start = true});
    eight_at_once(ready, quick, 30);
    for (int ms = 0; engine_metrics(quick->client)->preparing; ms++) {
        if (ms > 60000) fail_msg("the weights are never prepared");
        usleep(1000);
    }
    eight_at_once(ready, quick, 15);
    close_while_it_prepares(quick->file);
    bench_close(quick);
    bench_close(ready);
}

static const char story[] =
    ", there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball. "
    "She wanted to play with it, but it was too high.";

static void test_trained_model_tells_its_story(void **state) {
    (void)state;
    const char *path = shared_file("models/stories260K-f32.gguf");
    struct status st = {0};
    struct bench *alone = bench_open_file(model_file_open(path, &st), &cpu_backend, (struct engine_params){0});
    assert_memory_equal(answer_alone(alone, "Once upon a time", 100), story, sizeof story - 1);
    struct bench *together =
        bench_open_file(model_file_open(path, &st), &cpu_backend, (struct engine_params){.kv_tokens = 320});
    eight_at_once(alone, together, 100);
    assert_true(engine_metrics(together->client)->preemptions > 0);
    bench_close(together);
    bench_close(alone);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_the_text_of_the_tokens),
        cmocka_unit_test(test_reports_alternatives),
        cmocka_unit_test(test_chat_template_and_end_token),
        cmocka_unit_test(test_stop_texts),
        cmocka_unit_test(test_refused_conversation_is_told),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_more_memory_than_there_is),
        cmocka_unit_test(test_a_model_gets_the_cache_that_fits_beside_its_tiles),
        cmocka_unit_test(test_what_show_says_fits_can_be_opened),
        cmocka_unit_test(test_long_rope_does_not_depend_on_memory),
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_closing_wakes_who_waits_for_logits),
        cmocka_unit_test(test_commands_are_obeyed_between_passes_of_logits),
        cmocka_unit_test(test_eight_at_once),
        cmocka_unit_test(test_metrics_after_work),
        cmocka_unit_test(test_metrics_move_during_preparation),
        cmocka_unit_test(test_event_fd_and_cancel),
        cmocka_unit_test(test_urgent_commands_end_a_step),
        cmocka_unit_test(test_close_while_running),
        cmocka_unit_test(test_random_commands),
        cmocka_unit_test(test_answers_to_one_prompt),
        cmocka_unit_test(test_cancel_ends_all_answers),
        cmocka_unit_test(test_real_backend_eight_at_once),
        cmocka_unit_test(test_answers_during_preparation_are_the_same),
        cmocka_unit_test(test_trained_model_tells_its_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
