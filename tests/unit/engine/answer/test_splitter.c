// Splitter: thinking, answer and stop texts, however the text is split into tokens.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/answer/splitter.h"
#include "engine/base/panic.h"
#include "engine/base/utf8.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

// Token ids: harmony marks by their enumerators, then the two control brackets.
enum { TOKEN_OPEN = HARMONY_MARK_COUNT, TOKEN_CLOSE };

static const struct channel_brackets think = {"<think>", "</think>"}, response = {"<response>", "</response>"};
static const struct channel_scheme plain = {.kind = CHANNELS_NONE},
                                   brackets = {CHANNELS_BRACKETS, &think, &response, -1, -1, {0}},
                                   tokens = {CHANNELS_BRACKETS, &think, NULL, TOKEN_OPEN, TOKEN_CLOSE, {0}},
                                   harmony = {CHANNELS_HARMONY, NULL, NULL, -1, -1, {0, 1, 2, 3, 4, 5, 6}};

// The output as "T(thinking)A(answer)", with a piece per change of channel.
struct heard {
    char text[4096];
    size_t size;
    int channel;
    int stop;
};

static void hear(void *context, enum channel channel, const char *text, size_t size) {
    struct heard *h = context;
    assert_true(size > 0);
    assert_int_equal(utf8_incomplete(text, size), 0);
    if (h->channel != (int)channel) {
        h->size += (size_t)sprintf(h->text + h->size, "%s%c(", h->size ? ")" : "", channel ? 'T' : 'A');
        h->channel = (int)channel;
    }
    memcpy(h->text + h->size, text, size);
    h->text[h->size += size] = 0;
}

#define CASE(scheme_, input_, expected_, ...)                                                                          \
    { .scheme = scheme_, .input = input_, .expected = expected_, ##__VA_ARGS__ }
struct split_case {
    const struct channel_scheme *scheme;
    const char *input, *expected;
    bool inside;
    const char *end, *stops[3];
    int stop; // that was found, from 1
};

// The mark token at the start of text; −1: none.
static int32_t mark_at(const struct channel_scheme *s, const char *text, size_t *size) {
    static const char *const marks[] = {
#define X(id, mark) [id] = mark,
        HARMONY_MARKS(X)
#undef X
            [TOKEN_OPEN] = "<think>",
        [TOKEN_CLOSE] = "</think>",
    };
    for (size_t i = 0; i < COUNT(marks); i++) {
        bool known = s->kind == (i < HARMONY_MARK_COUNT ? CHANNELS_HARMONY : CHANNELS_BRACKETS) &&
                     (i < HARMONY_MARK_COUNT || s->open >= 0);
        *size = strlen(marks[i]);
        if (known && !strncmp(text, marks[i], *size)) return (int32_t)i;
    }
    return -1;
}

static size_t characters(const char *text, int n) {
    size_t size = 0;
    uint32_t code;
    while (n-- && text[size]) size += utf8_decode(text + size, strlen(text + size), &code);
    return size;
}

// Feeds the text `step` characters at a time.
static void split(const struct split_case *c, int step, struct heard *h) {
    int n_stops = 0;
    while (n_stops < (int)COUNT(c->stops) && c->stops[n_stops]) n_stops++;
    *h = (struct heard){.channel = -1};
    struct splitter *s = splitter_open(&(struct splitter_params){.scheme = c->scheme,
                                                                 .inside = c->inside,
                                                                 .end = c->end,
                                                                 .stops = c->stops,
                                                                 .n_stops = n_stops,
                                                                 .context = h,
                                                                 .text = hear});
    bool stopped = false;
    for (const char *at = c->input; *at && !stopped;) {
        size_t size, most = characters(at, step);
        int32_t mark = mark_at(c->scheme, at, &size);
        if (mark >= 0) {
            assert_true(splitter_is_mark(s, mark));
            stopped = splitter_mark(s, mark);
            at += size;
            continue;
        }
        for (size = 0; size < most; size += characters(at + size, 1)) {
            size_t ignored;
            if (mark_at(c->scheme, at + size, &ignored) >= 0) break;
        }
        stopped = splitter_text(s, at, size);
        at += size;
    }
    if (!stopped) splitter_finish(s);
    h->stop = splitter_stop(s);
    splitter_close(s);
    if (h->size) strcpy(h->text + h->size, ")");
}

static void check(const struct split_case *c) {
    static const int steps[] = {1, 2, 3, 7, 300};
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct heard h;
        split(c, steps[i], &h);
        if (strcmp(h.text, c->expected))
            fail_msg("%s\n by %d: %s\n expected: %s", c->input, steps[i], h.text, c->expected);
        if (h.stop != c->stop) fail_msg("%s\n by %d: stop %d, expected %d", c->input, steps[i], h.stop, c->stop);
    }
}

static void brackets_separate_thinking(void **state) {
    (void)state;
    static const struct split_case cases[] = {
        CASE(&plain, "<think>a</think>b", "A(<think>a</think>b)"),
        CASE(&brackets, "Hello", "A(Hello)"),
        CASE(&brackets, "  Hello\n", "A(  Hello\n)"),
        CASE(&brackets, "<think>\nhm, é\n</think>\n\nYes.\n", "T(hm, é\n)A(Yes.\n)"),
        CASE(&brackets, "\n <think>a</think>b", "T(a)A(b)"),
        CASE(&brackets, "<think>\n\n</think>\n\nb", "A(b)"),
        CASE(&brackets, "<think>never closed </thin", "T(never closed </thin)"),
        CASE(&brackets, "say <think> to think</think>", "A(say <think> to think</think>)"), // only at the start
        CASE(&brackets, "<thinking>a", "A(<thinking>a)"),
        CASE(&brackets, "<thin", "A(<thin)"),
        CASE(&brackets, "  <thin air", "A(  <thin air)"),
        CASE(&brackets, "<think>a <think> b</think>c</think>", "T(a <think> b)A(c</think>)"),
        CASE(&brackets, "<think>a</think> <think>b</think> c", "T(a\n\nb)A(c)"),
        CASE(&brackets, "a</think>b", "A(a</think>b)"),
        CASE(&brackets, "a</think>b", "T(a)A(b)", .inside = true),
        CASE(&brackets, "\n\na", "T(a)", .inside = true),
        CASE(&brackets, "</think>b", "A(b)", .inside = true),
        CASE(&brackets, "<think>a</think>\n<response>b</response>\n", "T(a)A(b)"),
        CASE(&brackets, "<response>b</response>", "A(<response>b</response>)"), // no thinking before it
        CASE(&brackets, "", ""),
        CASE(&tokens, "<think>a</think>\n\nb", "T(a)A(b)"),
        CASE(&tokens, "a <think>b</think>c", "A(a )T(b)A(\n\nc)"),
        CASE(&tokens, "a</think> b", "A(a\n\nb)"),
        CASE(&tokens, "<think>a</think><response>b", "T(a)A(<response>b)"), // not in this scheme
    };
    for (size_t i = 0; i < COUNT(cases); i++) check(&cases[i]);
}

#define ANALYSIS "<|channel|>analysis<|message|>"
#define FINAL    "<|start|>assistant<|channel|>final<|message|>"

static void harmony_messages_are_split(void **state) {
    (void)state;
    static const struct split_case cases[] = {
        CASE(&harmony, ANALYSIS "hm<|end|>" FINAL "Yes.<|return|>", "T(hm)A(Yes.)"),
        CASE(&harmony, ANALYSIS "hm<|end|>" FINAL "Yes <|x|> </think>.", "T(hm)A(Yes <|x|> </think>.)"),
        CASE(&harmony, ANALYSIS "a<|end|><|start|>assistant" ANALYSIS "b<|end|>" FINAL "c", "T(a\n\nb)A(c)"),
        // Preambles go to the answer, tool calls do not.
        CASE(&harmony,
             ANALYSIS "a<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>" FINAL "Done.",
             "T(a)A(I look.\n\nDone.)"),
        CASE(&harmony,
             ANALYSIS
             "a<|end|><|start|>assistant<|channel|>commentary to=functions.get <|constrain|>json<|message|>{}<|call|>",
             "T(a\n\nto=functions.get: {})"),
        CASE(&harmony, " to=functions.get<|channel|>commentary json<|message|>{}<|call|>", "T(to=functions.get: {})"),
        // Malformed, but no text is lost.
        CASE(&harmony, "Hello", "A(Hello)"),
        CASE(&harmony, "Hello there\nand more", "A(Hello there\nand more)"),
        CASE(&harmony, "<|message|>Hello", "A(Hello)"),
        CASE(&harmony, "Hello<|end|>", "A(Hello)"),
        CASE(&harmony, "Hello<|channel|>final<|message|>b", "A(Hello\n\nb)"),
        CASE(&harmony, "<|channel|>thoughts<|message|>Hello", "A(Hello)"),
        CASE(&harmony, "<|channel|><|message|>Hello", "A(Hello)"),
        CASE(&harmony, "<|channel|>analysis Hello there<|end|>", "A( Hello there)"),
        CASE(&harmony, "<|start|>assistant Hello<|return|>", "A( Hello)"),
        CASE(&harmony, ANALYSIS "a<|channel|>final<|message|>b", "T(a)A(b)"),
        CASE(&harmony, ANALYSIS "a<|start|>assistant<|channel|>final<|message|>b", "T(a)A(b)"),
        CASE(&harmony, ANALYSIS "a<|end|><|channel|>final<|message|>b", "T(a)A(b)"),
        CASE(&harmony, ANALYSIS "a<|end|><|message|>b", "T(a)A(b)"),
        CASE(&harmony, ANALYSIS "a<|end|>b", "T(a)A(b)"),
        CASE(&harmony, ANALYSIS "a<|message|>b", "T(ab)"),
        CASE(&harmony, "<|end|><|end|><|start|><|start|>assistant<|message|>b<|end|>", "A(b)"),
        // Ends in the middle of a header.
        CASE(&harmony, ANALYSIS "a<|end|><|start|>assis", "T(a)"),
        CASE(&harmony, ANALYSIS "a<|end|><|start|>assistant<|channel|>fin", "T(a)"),
        CASE(&harmony, ANALYSIS "a<|end|><|start|>assistant<|channel|>commentary to=f", "T(a)"),
        CASE(&harmony, "<|channel|>", ""),
        CASE(&harmony, "", ""),
    };
    for (size_t i = 0; i < COUNT(cases); i++) check(&cases[i]);
}

static void stop_texts_end_the_answer(void **state) {
    (void)state;
    static const struct split_case cases[] = {
        CASE(&plain, "one two three", "A(one )", .stops = {"two"}, .stop = 1),
        CASE(&plain, "one tw", "A(one tw)", .stops = {"two"}),
        CASE(&plain, "aaaab", "A(a)", .stops = {"aaab"}, .stop = 1),
        CASE(&plain, "one two three", "A(on)", .stops = {"three", "e t", "two"}, .stop = 2), // whichever comes first
        CASE(&plain, "abcdx", "A(ab)", .stops = {"abcdef", "cd"}, .stop = 2),
        CASE(&plain, "日本語", "A(日)", .stops = {"本"}, .stop = 1),
        CASE(&plain, "a\n\nb", "A(a)", .stops = {"\n\n"}, .stop = 1),
        CASE(&plain, "stop", "", .stops = {"stop"}, .stop = 1),
        CASE(&plain, "a<|im_end|>b", "A(a)", .end = "<|im_end|>"),
        CASE(&plain, "a<|im_end|>b", "A()", .end = "<|im_end|>", .stops = {"x", "a"}, .stop = 2),
        CASE(&plain, "abc", "A(abc)", .stops = {""}),
        CASE(&plain, "abc", "A(abc)", .stops = {"\xac"}), // half a character never matches
        // Stop texts do not apply to thinking.
        CASE(&brackets, "<think>two</think>one two", "T(two)A(one )", .stops = {"two"}, .stop = 1),
        CASE(&brackets, "<think>a<|im_end|>b</think>c", "T(a)", .end = "<|im_end|>"),
        CASE(&brackets, "\n<think>\na\n</think>\n\nb\nc", "T(a\n)A(b)", .stops = {"\n"}, .stop = 1),
        CASE(&brackets, "\n\nb\nc", "A(\n\nb)", .stops = {"\n"}, .stop = 1),
        CASE(&plain, "\nb", "", .stops = {"\n"}, .stop = 1),
        CASE(&harmony, ANALYSIS "two<|end|>" FINAL "one two", "T(two)A(one )", .stops = {"two"}, .stop = 1),
        // In a possible header too.
        CASE(&harmony, "one two three", "A(one )", .stops = {"two"}, .stop = 1),
        CASE(&harmony, "one two\nthree", "A(one )", .stops = {"two\nt"}, .stop = 1),
        CASE(&harmony, "one two<|end|>" FINAL "three", "A(one )", .stops = {"two"}, .stop = 1),
        CASE(&harmony, "one two<|message|>three", "A(one )", .stops = {"two"}, .stop = 1),
        CASE(&harmony, "one tw<|end|>" FINAL "o", "A(one tw\n\no)", .stops = {"two"}),
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct split_case c = cases[i];
        if (!strcmp(c.expected, "A()")) c.expected = "";
        check(&c);
    }
}

// Any text in any scheme: only marks and white space are dropped, and held text stays within its buffer.
static void random_text_loses_only_marks(void **state) {
    (void)state;
    static const char *const pieces[] = {"<think>", "</think>",  "<|start|>", "<|channel|>", "<|message|>",
                                         "<|end|>", "assistant", "final",     "analysis",    " to=f",
                                         "\n",      "      ",    "<thi",      "</",          "x",
                                         "é",       "stop",      "sto",       "<response>"};
    static const struct channel_scheme *const schemes[] = {&plain, &brackets, &tokens, &harmony};
    uint32_t random = 7;
    for (int round = 0; round < 20000; round++) {
        char input[512] = "";
        size_t n = 0;
        for (int i = 0; i < 20; i++) {
            random = random * 1664525u + 1013904223u;
            n += (size_t)sprintf(input + n, "%s", pieces[(random >> 16) % COUNT(pieces)]);
        }
        struct split_case c = {
            .scheme = schemes[round % 4], .input = input, .inside = round & 4, .stops = {round & 8 ? "stop" : NULL}};
        struct heard whole, by_character;
        split(&c, 300, &whole);
        split(&c, 1, &by_character);
        assert_string_equal(whole.text, by_character.text);
        size_t wanted = 0, got = 0;
        for (const char *p = input; *p; p++) wanted += *p == 'x';
        for (const char *p = whole.text; *p; p++) got += *p == 'x';
        if (!c.stops[0] && c.scheme != &harmony) assert_int_equal(got, wanted); // a header may contain one
    }
    char blank[SPLITTER_SLICE];
    memset(blank, ' ', sizeof blank);
    memcpy(blank + sizeof blank - 4, "<thi", 4);
    struct heard h = {.channel = -1};
    struct splitter *s = splitter_open(&(struct splitter_params){.scheme = &brackets, .context = &h, .text = hear});
    for (int i = 0; i < 8; i++) assert_false(splitter_text(s, blank, sizeof blank));
    splitter_finish(s);
    splitter_close(s);
    assert_int_equal(h.size, 2 + 8 * sizeof blank);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brackets_separate_thinking),
        cmocka_unit_test(harmony_messages_are_split),
        cmocka_unit_test(stop_texts_end_the_answer),
        cmocka_unit_test(random_text_loses_only_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
