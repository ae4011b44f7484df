// Answers held to a grammar, over random weights: whatever these want, the text matches.
#include "tests/unit/engine_fixture.h"

#include <math.h>

#include "engine/answer/splitter.h"
#include "engine/base/clock.h"
#include "engine/grammar.h"
#include "tests/unit/cases.h"
#include "tests/unit/opened_tokenizer.h"
#include "tests/unit/random_schema.h"
#include "tests/unit/tiny_vocab_parts.h"
#include "tests/unit/xorshift.h"

enum { SCHEMAS = 60 };

static struct grammar *compile(enum grammar_kind kind, const char *text) {
    struct status st;
    struct grammar *g = grammar_compile(kind, text, strlen(text), &st);
    if (!g) fail_msg("%s: %s", text, st.text);
    return g;
}

static struct sampling wild(uint32_t seed) {
    struct sampling s = sampling_default();
    s.temperature = 1.5f, s.top_p = 1, s.top_k = 0, s.min_p = 0;
    s.seed = seed;
    return s;
}

static uint64_t ask(struct bench *b, struct request_params p) {
    p.conversation = 1;
    if (!p.raw && !p.messages) p.raw = "Once upon a time";
    if (!p.max_tokens) p.max_tokens = 400;
    b->open_requests += p.n_answers > 1 ? p.n_answers : 1;
    return engine_submit(b->client, &p);
}

// CONSTRAINT_SCHEMAS in the environment: how many.
static int n_schemas(void) {
    const char *n = getenv("CONSTRAINT_SCHEMAS");
    return n ? atoi(n) : SCHEMAS;
}

static void check_random_schemas(struct tiny_model_options o) {
    struct bench *b = bench_open(o, &cpu_backend, (struct engine_params){0});
    uint64_t random = 4711;
    for (int i = 0; i < n_schemas(); i += CASE_STEP) {
        json_t *schema = random_schema(&random, 3);
        char *text = json_dumps(schema, JSON_COMPACT);
        struct grammar *g = compile(GRAMMAR_SCHEMA, text);
        for (int k = 0; k < MOST; k++) free(b->answers[k].text), b->answers[k] = (struct answer_text){0};
        const uint64_t id = ask(b, (struct request_params){.grammar = g, .sampling = wild((uint32_t)i + 1)});
        grammar_drop(g);
        wait_for_all(b);
        const struct answer_text *a = &b->answers[id];
        if (a->state != REQUEST_FINISHED || a->reason != FINISH_END)
            fail_msg("%s: state %d, reason %d, %s: %s", text, a->state, a->reason, a->message, a->text);
        json_error_t error;
        json_t *value = json_loads(a->text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
        if (!value) fail_msg("%s: %s is no JSON: %s", text, a->text, error.text);
        if (!random_schema_matches(schema, value)) fail_msg("%s does not match %s", a->text, text);
        json_decref(value);
        json_decref(schema);
        free(text);
        if (id + 2 < MOST) continue;
        bench_close(b); // requests are numbered
        b = bench_open(o, &cpu_backend, (struct engine_params){0});
    }
    bench_close(b);
}

static void test_random_schemas_hold(void **state) {
    (void)state;
    check_random_schemas((struct tiny_model_options){.seed = 1});
    check_random_schemas((struct tiny_model_options){.seed = 2, .pre = "qwen2", .family = TINY_QWEN2});
}

// A text that no schema would have it say comes word by word, and ends by itself.
static void test_every_kind_of_grammar_holds(void **state) {
    (void)state;
    static const struct {
        enum grammar_kind kind;
        const char *source, *text;
    } cases[] = {
        {GRAMMAR_REGEX, "[0-9]{3}-x", NULL},
        {GRAMMAR_GBNF, "root ::= \"The only text\"", "The only text"},
        {GRAMMAR_CHOICE, "[\"Grün é 😀\"]", "Grün é 😀"},
        {GRAMMAR_SCHEMA, "{\"const\": {\"a\": [1]}}", NULL},
    };
    struct bench *b = bench_open((struct tiny_model_options){0}, &cpu_backend, (struct engine_params){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar *g = compile(cases[i].kind, cases[i].source);
        const uint64_t id = ask(b, (struct request_params){.grammar = g, .sampling = greedy()});
        grammar_drop(g);
        wait_for_all(b);
        assert_int_equal(b->answers[id].reason, FINISH_END);
        if (cases[i].text) assert_string_equal(b->answers[id].text, cases[i].text);
        else assert_int_equal(strcspn(b->answers[id].text, "0123456789{"), 0);
    }
    bench_close(b);
}

// Where the grammar allows more it is the model that ends the answer, and only where it may.
static void test_the_end_waits_for_the_grammar(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &cpu_backend, (struct engine_params){0});
    struct grammar *g = compile(GRAMMAR_REGEX, "(ab)*c?");
    for (uint32_t seed = 1; seed < 20; seed++) {
        struct request_params p = {.grammar = g, .sampling = wild(seed), .max_tokens = 200};
        const uint64_t id = ask(b, p);
        wait_for_all(b);
        const char *text = b->answers[id].text ? b->answers[id].text : "";
        size_t n = 0;
        while (!strncmp(text + n, "ab", 2)) n += 2;
        n += text[n] == 'c';
        assert_true(!text[n] || b->answers[id].reason == FINISH_LENGTH);
        p.ignore_end = true; // then only a c, after which nothing can follow
        p.max_tokens = 30;
        const uint64_t longer = ask(b, p);
        wait_for_all(b);
        const struct answer_text *a = &b->answers[longer];
        assert_true(a->reason == FINISH_LENGTH || (a->size && a->text[a->size - 1] == 'c'));
    }
    grammar_drop(g);
    bench_close(b);
}

// As many answers as one likes, each its own.
static void test_every_answer_of_a_request_holds(void **state) {
    (void)state;
    enum { ANSWERS = 6 };
    char texts[ANSWERS][256] = {{0}};
    struct bench *b = bench_open((struct tiny_model_options){0}, &cpu_backend, (struct engine_params){0});
    struct grammar *g = compile(GRAMMAR_REGEX, "[A-Z][a-z]{2,12}!");
    ask(b, (struct request_params){.grammar = g, .sampling = wild(5), .n_answers = ANSWERS});
    grammar_drop(g);
    struct engine_event e;
    for (int open = ANSWERS; open;) {
        assert_true(engine_wait(b->client, &e, 60000));
        if (e.kind == EVENT_TEXT) strcat(texts[e.answer], e.text);
        if (e.kind == EVENT_STATE && e.state >= REQUEST_FINISHED) open--;
    }
    int same = 0;
    for (int i = 0; i < ANSWERS; i++) {
        const size_t n = strlen(texts[i]);
        assert_true(n >= 4 && n <= 14 && texts[i][n - 1] == '!' && *texts[i] >= 'A' && *texts[i] <= 'Z');
        assert_int_equal(strspn(texts[i] + 1, "abcdefghijklmnopqrstuvwxyz"), n - 2);
        same += i && !strcmp(texts[i], texts[0]);
    }
    assert_true(same < ANSWERS - 1);
    bench_close(b);
}

// A step always takes as long, so that rows of drafts are free.
static bool timed_run(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    clock_freeze(clock_ns() + 1000000);
    return cpu_backend.run(b, batch, out, st);
}

// Drafts make no difference to the text.
static void test_drafts_hold(void **state) {
    (void)state;
    char *texts[2][10];
    int accepted[2] = {0};
    struct backend_ops timed = cpu_backend;
    timed.run = timed_run;
    for (int drafts = 0; drafts < 2; drafts++) {
        struct bench *b = bench_open((struct tiny_model_options){0}, &timed,
                                     (struct engine_params){.draft = drafts ? DRAFT_LOOKUP : DRAFT_OFF});
        struct grammar *g = compile(GRAMMAR_REGEX, "(one two three four |five six ){3,30}end");
        for (uint32_t i = 0; i < 10; i++) {
            struct sampling s = wild(i + 1);
            s.temperature = i % 2 ? 0.3f : 0;
            const uint64_t id = ask(b, (struct request_params){.grammar = g, .sampling = s});
            wait_for_all(b);
            assert_true(b->answers[id].reason == FINISH_END || b->answers[id].reason == FINISH_LENGTH);
            texts[drafts][i] = xstrdup(b->answers[id].text);
            accepted[drafts] += b->answers[id].n_accepted;
        }
        grammar_drop(g);
        bench_close(b);
    }
    clock_freeze(0);
    assert_int_equal(accepted[0], 0);
    assert_true(accepted[1] > 100);
    for (int i = 0; i < 10; i++) {
        assert_string_equal(texts[0][i], texts[1][i]);
        free(texts[0][i]), free(texts[1][i]);
    }
}

// Text that has to come is guessed at first sight.
static void test_forced_text_is_drafted(void **state) {
    (void)state;
    struct backend_ops timed = cpu_backend;
    timed.run = timed_run;
    static const char text[] =
        "pack my box with five dozen liquor jugs; how vexingly quick daft zebras jump, 0123456789";
    struct bench *b = bench_open((struct tiny_model_options){0}, &timed, (struct engine_params){.draft = DRAFT_LOOKUP});
    char *source = xasprintf("root ::= (\"a\" | \"b\")? \"%s\"", text);
    struct grammar *g = compile(GRAMMAR_GBNF, source);
    ask(b, (struct request_params){.grammar = g, .sampling = greedy()}); // what steps take has to be measured first
    wait_for_all(b);
    const uint64_t id = ask(b, (struct request_params){.grammar = g, .sampling = greedy()});
    wait_for_all(b);
    clock_freeze(0);
    assert_non_null(strstr(b->answers[id].text, text));
    assert_true(b->answers[id].n_accepted > 10);
    grammar_drop(g);
    free(source);
    bench_close(b);
}

// What an answer begins with is a part of it: it fits, or the request fails.
static void test_a_beginning_has_to_fit(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &cpu_backend, (struct engine_params){0});
    struct grammar *g = compile(GRAMMAR_REGEX, "abcdef|axy");
    const uint64_t fits = ask(b, (struct request_params){.grammar = g, .sampling = greedy(), .begun_text = "abc"});
    const uint64_t other = ask(b, (struct request_params){.grammar = g, .sampling = greedy(), .begun_text = "b"});
    const uint64_t whole = ask(b, (struct request_params){.grammar = g, .sampling = greedy(), .begun_text = "axy"});
    grammar_drop(g);
    wait_for_all(b);
    assert_string_equal(b->answers[fits].text, "abcdef");
    assert_int_equal(b->answers[other].state, REQUEST_FAILED);
    assert_string_equal(b->answers[other].message, "what the answer begins with does not fit the grammar");
    assert_string_equal(b->answers[whole].text, "axy");
    assert_int_equal(b->answers[whole].reason, FINISH_END);
    bench_close(b);
}

static void test_pre_empted_answers_hold(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){0}, &cpu_backend, (struct engine_params){.kv_tokens = 192});
    struct grammar *g = compile(GRAMMAR_REGEX, "(one two three four ){4}end");
    uint64_t ids[4];
    for (int i = 0; i < 4; i++) ids[i] = ask(b, (struct request_params){.grammar = g, .sampling = greedy()});
    grammar_drop(g);
    wait_for_all(b);
    for (int i = 0; i < 4; i++)
        assert_string_equal(b->answers[ids[i]].text, "one two three four one two three four one two three four one two "
                                                     "three four end");
    bench_close(b);
}

// ---- thinking ----

static bool allowed(struct constraint *c, int n, int32_t token) {
    float *logits = xcalloc((size_t)n, sizeof *logits);
    if (!constraint_mask(c, logits, n)) fail_msg("%s", constraint_problem(c));
    const bool yes = logits[token] == 0;
    assert_true(yes || logits[token] == -INFINITY);
    free(logits);
    return yes;
}

static int32_t token_of(const struct tokenizer *t, const char *text) {
    for (int32_t i = 0; i < tokenizer_count(t); i++)
        if (span_equals(tokenizer_piece(t, i, true), text)) return i;
    fail_msg("no token %s", text);
    return -1;
}

static void test_thinking_is_free(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){.pre = "qwen2"}, &cpu_backend, (struct engine_params){0});
    const struct tokenizer *t = b->file->tokenizer;
    const int n = tokenizer_count(t);
    const int32_t open = token_of(t, "<|im_start|>"), end = token_of(t, "<|im_end|>"), letter = token_of(t, "x"),
                  digit = token_of(t, "7"), line = token_of(t, "\n"), close = 3;
    const struct channel_scheme brackets = {.kind = CHANNELS_BRACKETS, .open = open, .close = close};
    struct constraint_vocabulary *v = constraint_vocabulary_open(t, &brackets);
    struct grammar *g = compile(GRAMMAR_REGEX, "[0-9]{2}");
    struct constraint *c =
        constraint_open(&(struct constraint_params){.vocabulary = v, .grammar = g, .chat = true, .end_token = -1});
    assert_true(allowed(c, n, digit) && allowed(c, n, open) && !allowed(c, n, letter) && !allowed(c, n, end));
    assert_false(constraint_take(c, open)); // what follows is told by whoever splits the text
    constraint_follow(c, false, false, (struct span){0});
    assert_true(allowed(c, n, letter) && allowed(c, n, close) && !allowed(c, n, end));
    assert_true(constraint_take(c, letter));
    assert_int_equal(constraint_fits(c, (int32_t[]){letter, letter, close, letter}, 4), 2);
    assert_false(constraint_take(c, close));
    constraint_follow(c, true, false, (struct span){0});
    assert_true(allowed(c, n, digit) && allowed(c, n, line) && !allowed(c, n, letter) && !allowed(c, n, end));
    assert_true(constraint_take(c, line) && constraint_take(c, line));
    assert_true(allowed(c, n, digit) && !allowed(c, n, line) && !allowed(c, n, open));
    assert_int_equal(constraint_fits(c, (int32_t[]){digit, letter}, 2), 1);
    assert_true(constraint_take(c, digit));
    assert_false(constraint_is_over(c));
    assert_true(constraint_take(c, digit));
    assert_true(constraint_is_over(c));
    assert_true(allowed(c, n, end) && !allowed(c, n, digit));
    constraint_close(c);
    constraint_vocabulary_close(v);
    grammar_drop(g);
    bench_close(b);
}

// A token goes to the constraint and to whoever splits the text, who says what follows.
static void say(struct constraint *c, struct splitter *s, const struct tokenizer *t, int32_t token) {
    const struct span text = tokenizer_piece(t, token, false);
    constraint_take(c, token);
    if (splitter_is_mark(s, token)) splitter_mark(s, token);
    else splitter_text(s, text.data, text.size);
    constraint_follow(c, splitter_is_answer(s), splitter_needs_header(s), splitter_held(s));
}

static void no_text(void *context, enum channel channel, const char *text, size_t size) {
    (void)context, (void)channel, (void)text, (void)size;
}

// <think> and </think> are tokens whose text is visible, as Qwen3's and SmolLM3's.
static struct opened open_text_marks(void) {
    struct gguf_writer w = {0};
    struct tiny_vocab v = {0};
    tiny_vocab_add(&v, "<unk>", 0, TOKEN_UNKNOWN);
    tiny_vocab_add(&v, "<s>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "</s>", 0, TOKEN_CONTROL);
    tiny_vocab_add(&v, "<think>", 0, TOKEN_USER_DEFINED);
    tiny_vocab_add(&v, "</think>", 0, TOKEN_USER_DEFINED);
    for (char c = '!'; c <= '~'; c++) tiny_vocab_add(&v, (char[]){c, 0}, (float)-v.count, TOKEN_NORMAL);
    tiny_vocab_add(&v, ">x", -200, TOKEN_NORMAL);
    tiny_vocab_add(&v, "nk>7", -201, TOKEN_NORMAL);
    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    gguf_writer_u32(&w, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_u32(&w, "tokenizer.ggml.eos_token_id", 2);
    tiny_vocab_write(&v, &w, true);
    return open_writer(&w);
}

static void test_thinking_between_text_marks_is_free(void **state) {
    (void)state;
    struct opened o = open_text_marks();
    if (!o.t) fail_msg("%s", o.status.text);
    const int n = tokenizer_count(o.t);
    const int32_t open = token_of(o.t, "<think>"), close = token_of(o.t, "</think>"), end = token_of(o.t, "</s>"),
                  letter = token_of(o.t, "x"), digit = token_of(o.t, "7");
    const struct channel_scheme scheme = channel_recognise(o.t, CHAT_TEMPLATE_NONE, (struct span){0});
    assert_int_equal(scheme.kind, CHANNELS_BRACKETS);
    assert_true(scheme.open < 0 && scheme.close < 0);
    struct constraint_vocabulary *v = constraint_vocabulary_open(o.t, &scheme);
    struct splitter *s = splitter_open(&(struct splitter_params){.scheme = &scheme, .text = no_text});
    struct grammar *g = compile(GRAMMAR_REGEX, "[0-9](<think>)?[0-9]");
    struct constraint *c =
        constraint_open(&(struct constraint_params){.vocabulary = v, .grammar = g, .chat = true, .end_token = -1});
    assert_true(allowed(c, n, digit) && allowed(c, n, open) && !allowed(c, n, letter) && !allowed(c, n, end));
    say(c, s, o.t, open);
    assert_true(allowed(c, n, letter) && allowed(c, n, close) && !allowed(c, n, end));
    say(c, s, o.t, letter);
    say(c, s, o.t, open); // in the thinking it is text
    assert_true(constraint_take(c, letter));
    assert_false(constraint_take(c, close) || constraint_take(c, token_of(o.t, ">")));
    assert_int_equal(constraint_fits(c, (int32_t[]){letter, digit, close, digit}, 4), 2);
    say(c, s, o.t, close);
    assert_true(allowed(c, n, digit) && !allowed(c, n, letter) && !allowed(c, n, end));
    say(c, s, o.t, digit);
    assert_true(allowed(c, n, digit) && allowed(c, n, open) && !allowed(c, n, letter));
    say(c, s, o.t, open); // in the answer it is text
    assert_true(allowed(c, n, digit) && !allowed(c, n, open) && !allowed(c, n, letter));
    say(c, s, o.t, digit);
    assert_true(constraint_is_over(c) && allowed(c, n, end));
    constraint_close(c);
    splitter_close(s);
    constraint_vocabulary_close(v);
    grammar_drop(g);
    close_opened(&o);
}

// Text that comes with the mark in one token would be the answer's without the grammar having seen it.
static void test_a_thinking_is_closed_before_the_answer(void **state) {
    (void)state;
    struct opened o = open_text_marks();
    if (!o.t) fail_msg("%s", o.status.text);
    const int n = tokenizer_count(o.t);
    const int32_t more = token_of(o.t, ">x"), end = token_of(o.t, "nk>7"), mark = token_of(o.t, ">");
    const struct channel_scheme scheme = channel_recognise(o.t, CHAT_TEMPLATE_NONE, (struct span){0});
    struct constraint_vocabulary *v = constraint_vocabulary_open(o.t, &scheme);
    struct splitter *s = splitter_open(&(struct splitter_params){.scheme = &scheme, .text = no_text});
    struct grammar *g = compile(GRAMMAR_REGEX, "[0-9]");
    struct constraint *c =
        constraint_open(&(struct constraint_params){.vocabulary = v, .grammar = g, .chat = true, .end_token = -1});
    say(c, s, o.t, token_of(o.t, "<think>"));
    assert_true(allowed(c, n, more) && allowed(c, n, end) && allowed(c, n, mark));
    assert_int_equal(constraint_fits(c, (int32_t[]){token_of(o.t, "x"), token_of(o.t, "<"), mark}, 3), 1);
    for (const char *at = "</thi"; *at; at++) say(c, s, o.t, token_of(o.t, (char[]){*at, 0}));
    assert_true(allowed(c, n, more) && !allowed(c, n, end) && allowed(c, n, mark));
    assert_int_equal(constraint_fits(c, (int32_t[]){token_of(o.t, "n"), token_of(o.t, "k")}, 2), 0);
    for (const char *at = "nk"; *at; at++) say(c, s, o.t, token_of(o.t, (char[]){*at, 0}));
    assert_true(!allowed(c, n, more) && allowed(c, n, end) && allowed(c, n, mark));
    say(c, s, o.t, mark);
    assert_true(allowed(c, n, token_of(o.t, "7")) && !allowed(c, n, more) && !allowed(c, n, end));
    constraint_close(c);
    splitter_close(s);
    constraint_vocabulary_close(v);
    grammar_drop(g);
    close_opened(&o);
}

static void test_harmony_begins_with_a_header(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){.pre = "qwen2"}, &cpu_backend, (struct engine_params){0});
    const struct tokenizer *t = b->file->tokenizer;
    const int n = tokenizer_count(t);
    const int32_t end = token_of(t, "<|im_end|>"), digit = token_of(t, "7"), letter = token_of(t, "f");
    const struct channel_scheme harmony = {CHANNELS_HARMONY, NULL, NULL, -1, -1, {0, 1, 2, 3, 4, 5, 6}};
    struct constraint_vocabulary *v = constraint_vocabulary_open(t, &harmony);
    struct splitter *s = splitter_open(&(struct splitter_params){.scheme = &harmony, .text = no_text});
    struct grammar *g = compile(GRAMMAR_REGEX, "[0-9]{2}");
    struct constraint *c =
        constraint_open(&(struct constraint_params){.vocabulary = v, .grammar = g, .chat = true, .end_token = -1});
    constraint_follow(c, splitter_is_answer(s), splitter_needs_header(s), splitter_held(s));
    assert_true(allowed(c, n, HARMONY_CHANNEL) && allowed(c, n, HARMONY_START));
    assert_true(!allowed(c, n, digit) && !allowed(c, n, letter) && !allowed(c, n, end));
    say(c, s, t, HARMONY_CHANNEL);
    assert_true(allowed(c, n, letter) && allowed(c, n, HARMONY_MESSAGE) && !allowed(c, n, end));
    for (const char *word = "analysis"; *word; word++) say(c, s, t, token_of(t, (char[]){*word, 0}));
    say(c, s, t, HARMONY_MESSAGE);
    say(c, s, t, letter);
    assert_true(allowed(c, n, letter) && allowed(c, n, HARMONY_END) && !allowed(c, n, end));
    say(c, s, t, HARMONY_END);
    assert_true(allowed(c, n, HARMONY_START) && !allowed(c, n, letter));
    say(c, s, t, HARMONY_CHANNEL);
    for (const char *word = "final"; *word; word++) say(c, s, t, token_of(t, (char[]){*word, 0}));
    say(c, s, t, HARMONY_MESSAGE);
    assert_true(allowed(c, n, digit) && !allowed(c, n, letter) && !allowed(c, n, end) && !allowed(c, n, HARMONY_END));
    say(c, s, t, digit);
    say(c, s, t, digit);
    assert_true(constraint_is_over(c) && allowed(c, n, end));
    constraint_close(c);
    splitter_close(s);
    constraint_vocabulary_close(v);
    grammar_drop(g);
    bench_close(b);
}

static void test_a_vocabulary_may_lack_tokens(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &cpu_backend, (struct engine_params){0});
    static const struct channel_scheme plain = {.kind = CHANNELS_NONE, .open = -1, .close = -1};
    struct constraint_vocabulary *v = constraint_vocabulary_open(b->file->tokenizer, &plain);
    const int n = tokenizer_count(b->file->tokenizer);
    struct grammar *g = compile(GRAMMAR_GBNF, "root ::= \"a\"");
    struct constraint *c = constraint_open(
        &(struct constraint_params){.vocabulary = v, .grammar = g, .end_token = -1, .ignore_end = true});
    float *logits = xcalloc((size_t)n + 40, sizeof *logits);
    assert_true(constraint_mask(c, logits, n + 40)); // of a model that has more rows than tokens
    for (int i = n; i < n + 40; i++) assert_true(logits[i] == -INFINITY);
    assert_true(constraint_take(c, token_of(b->file->tokenizer, "a")));
    assert_false(constraint_mask(c, logits, n));
    assert_string_equal(constraint_problem(c), "the vocabulary has no token that the grammar allows here");
    free(logits);
    constraint_close(c);
    constraint_vocabulary_close(v);
    grammar_drop(g);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_schemas_hold),
        cmocka_unit_test(test_every_kind_of_grammar_holds),
        cmocka_unit_test(test_the_end_waits_for_the_grammar),
        cmocka_unit_test(test_every_answer_of_a_request_holds),
        cmocka_unit_test(test_drafts_hold),
        cmocka_unit_test(test_forced_text_is_drafted),
        cmocka_unit_test(test_a_beginning_has_to_fit),
        cmocka_unit_test(test_pre_empted_answers_hold),
        cmocka_unit_test(test_thinking_is_free),
        cmocka_unit_test(test_thinking_between_text_marks_is_free),
        cmocka_unit_test(test_a_thinking_is_closed_before_the_answer),
        cmocka_unit_test(test_harmony_begins_with_a_header),
        cmocka_unit_test(test_a_vocabulary_may_lack_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
