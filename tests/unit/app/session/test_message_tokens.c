// Tokens of a message with their figures: what is written comes back, and no bytes do harm.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/message_tokens.h"
#include "engine/base/panic.h"
#include "tests/unit/xorshift.h"

static struct engine_event drawn(int32_t id, enum channel channel, float probability, float entropy, int n) {
    struct engine_event e = {.kind = EVENT_TEXT,
                             .token = id,
                             .channel = channel,
                             .probability = probability,
                             .entropy = entropy,
                             .n_alternatives = n};
    for (int i = 0; i < n; i++) {
        e.alternatives[i] = (struct token_alternative){.id = id + i, .probability = probability / (float)(1 << 3 * i)};
        snprintf(e.alternatives[i].text, sizeof e.alternatives[i].text, "word%d \xe2\x9c\x93", i);
    }
    return e;
}

static struct message_tokens some(void) {
    struct message_tokens t = {0};
    struct engine_event e = drawn(70000, CHANNEL_THINKING, 0.75f, 1.5f, 8);
    message_tokens_add(&t, &e, 4);
    e = drawn(3, CHANNEL_ANSWER, NAN, NAN, 0); // given
    message_tokens_add(&t, &e, 2);
    e.accepted = true; // where it was drawn
    message_tokens_add(&t, &e, 2);
    e = drawn(0, CHANNEL_ANSWER, 1, 0, 8);
    e.accepted = true;
    message_tokens_add(&t, &e, 2); // held back,
    e.token = -1;
    message_tokens_add(&t, &e, 9); // then told
    e = drawn(INT32_MAX, CHANNEL_ANSWER, 1e-6f, 12.25f, 1);
    message_tokens_add(&t, &e, 300);
    return t;
}

static void assert_equal(const struct message_tokens *a, const struct message_tokens *b) {
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        const struct message_token *x = &a->tokens[i], *y = &b->tokens[i];
        struct token_alternative one[SAMPLING_TOP] = {0}, two[SAMPLING_TOP] = {0};
        assert_int_equal(x->id, y->id);
        assert_int_equal(x->end, y->end);
        assert_int_equal(x->channel, y->channel);
        assert_int_equal(x->accepted, y->accepted);
        assert_int_equal(isnan(x->probability), isnan(y->probability));
        if (!isnan(x->probability)) {
            assert_true(fabsf(x->probability / y->probability - 1) < 0.001f);
            assert_true(fabsf(x->entropy - y->entropy) < 0.001f);
        }
        const int n = message_tokens_alternatives(a, i, one);
        assert_int_equal(message_tokens_alternatives(b, i, two), n);
        assert_int_equal(x->n_alternatives, n);
        assert_memory_equal(one, two, sizeof one);
    }
}

static void test_what_is_written_comes_back(void **state) {
    (void)state;
    struct message_tokens t = some(), again, copy = message_tokens_copy(&t);
    struct status st = {0};
    size_t size;
    uint8_t *blob = message_tokens_write(&t, &size);
    if (!message_tokens_read(&again, blob, size, (const size_t[]){300, 4}, &st)) fail_msg("%s", st.text);
    assert_equal(&t, &again);
    assert_equal(&t, &copy);
    assert_int_equal(t.tokens[3].end, 9);
    assert_true(again.tokens[2].accepted && again.tokens[3].accepted);
    assert_false(again.tokens[1].accepted || again.tokens[4].accepted);
    struct token_alternative alternatives[SAMPLING_TOP];
    assert_int_equal(message_tokens_alternatives(&again, 0, alternatives), 4); // the others are less than one in 1000
    assert_string_equal(alternatives[1].text, "word1 \xe2\x9c\x93");
    free(blob);
    message_tokens_free(&t), message_tokens_free(&again), message_tokens_free(&copy);
}

// A usual token with its alternatives takes some sixty bytes.
static void test_they_are_small(void **state) {
    (void)state;
    struct message_tokens t = {0};
    for (size_t i = 0; i < 1000; i++) {
        struct engine_event e = drawn(20000, CHANNEL_ANSWER, 0.75f, 1.5f, 8);
        message_tokens_add(&t, &e, 4 * (i + 1));
    }
    size_t size;
    uint8_t *blob = message_tokens_write(&t, &size);
    assert_in_range(size, 40000, 75000);
    free(blob);
    message_tokens_free(&t);
}

// What was an alternative has its probability, what nobody knows has none.
static void test_a_beginning_keeps_its_figures(void **state) {
    (void)state;
    struct message_tokens from = some(), t = {0};
    struct engine_event e = drawn(70001, CHANNEL_THINKING, NAN, NAN, 0);
    message_tokens_add_known(&t, &e, 4, &from, 0);
    assert_true(fabsf(t.tokens[0].probability - 0.75f / 8) < 0.001f);
    assert_true(fabsf(t.tokens[0].entropy - 1.5f) < 0.001f);
    assert_int_equal(t.tokens[0].n_alternatives, 4);
    e.token = 5;
    message_tokens_add_known(&t, &e, 4, &from, 0);
    assert_true(isnan(t.tokens[1].probability));
    assert_int_equal(t.tokens[1].n_alternatives, 0);
    e.token = 0;
    message_tokens_add_known(&t, &e, 4, &from, 3);
    assert_true(t.tokens[2].accepted);
    e.token = 1; // another one in its place
    message_tokens_add_known(&t, &e, 4, &from, 3);
    assert_false(t.tokens[3].accepted);
    message_tokens_free(&from), message_tokens_free(&t);
}

// As they were written before drafts were told: two tokens, of which the second was given.
static void test_blobs_without_drafts_are_read(void **state) {
    (void)state;
    static const uint8_t blob[] = {1, 2, 4, 2, 5, 1, 0, 8, 0, 16, 6, 0, 4, 1, 'x', 7, 0x80};
    struct message_tokens t;
    struct status st = {0};
    if (!message_tokens_read(&t, blob, sizeof blob, (const size_t[]){3, 0}, &st)) fail_msg("%s", st.text);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.tokens[0].n_alternatives, 1);
    assert_true(t.tokens[0].probability == 0.5f && t.tokens[0].entropy == 2);
    assert_true(isnan(t.tokens[1].probability));
    assert_false(t.tokens[0].accepted || t.tokens[1].accepted);
    message_tokens_free(&t);
}

static void refused(const uint8_t *blob, size_t size, size_t answer, const char *why) {
    struct message_tokens out;
    struct status st = {0};
    assert_false(message_tokens_read(&out, blob, size, (const size_t[]){answer, 4}, &st));
    if (!strstr(st.text, why)) fail_msg("%s", st.text);
    assert_null(out.tokens);
}

static void test_wrong_blobs_are_refused(void **state) {
    (void)state;
    struct message_tokens t = some();
    size_t size;
    uint8_t *blob = message_tokens_write(&t, &size);
    for (size_t n = 0; n < size; n++) refused(blob, n, 300, "");
    refused(blob, size, 299, "ends behind the text");
    uint8_t *longer = xmalloc(size + 1);
    memcpy(longer, blob, size);
    longer[size] = 0;
    refused(longer, size + 1, 300, "bytes behind the tokens");
    longer[0] = 2;
    refused(longer, size, 300, "version 2");
    refused((const uint8_t[]){1, 0xff, 0xff, 0xff, 0xff, 0x0f}, 6, 300, "tokens in 6 bytes");
    refused((const uint8_t[]){1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 7, 300, "too long");
    free(blob), free(longer);
    message_tokens_free(&t);
}

// Mutants are refused, or are other tokens.
static void test_mutants_do_no_harm(void **state) {
    (void)state;
    struct message_tokens t = some();
    size_t size;
    uint64_t random = 88172645463325252u;
    uint8_t *blob = message_tokens_write(&t, &size), *mutant = xmalloc(size);
    for (int i = 0; i < 100000; i++) {
        struct message_tokens out;
        struct token_alternative alternatives[SAMPLING_TOP];
        memcpy(mutant, blob, size);
        for (uint32_t k = 1 + xorshift_below(&random, 4); k > 0; k--)
            mutant[xorshift_below(&random, (uint32_t)size)] = (uint8_t)xorshift(&random);
        const size_t n = i % 3 ? size : xorshift_below(&random, (uint32_t)size);
        if (!message_tokens_read(&out, mutant, n, (const size_t[]){300, 4}, NULL)) continue;
        for (int k = 0; k < out.count; k++) {
            assert_true(out.tokens[k].end <= (out.tokens[k].channel ? 4 : 300));
            assert_int_equal(message_tokens_alternatives(&out, k, alternatives), out.tokens[k].n_alternatives);
        }
        message_tokens_free(&out);
    }
    free(blob), free(mutant);
    message_tokens_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_comes_back),    cmocka_unit_test(test_they_are_small),
        cmocka_unit_test(test_a_beginning_keeps_its_figures), cmocka_unit_test(test_blobs_without_drafts_are_read),
        cmocka_unit_test(test_wrong_blobs_are_refused),       cmocka_unit_test(test_mutants_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
