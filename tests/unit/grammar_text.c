#include "tests/unit/grammar_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "tests/unit/xorshift.h"

enum { LONGEST_PIECE = 12 };

struct lexicon *lexicon_of_bytes(void) {
    return lexicon_of_pieces(256, 1);
}

struct lexicon *lexicon_of_pieces(int n, uint64_t seed) {
    static const char sample[] =
        "{\"name\": \"Zoë Ünal\", \"age\": 31, \"tags\": [\"a\", \"b\"],\n  \"x\\n\": -0.25e+3}, "
        "true, false, null, \"\\u00e9\\\"\": [[1,2],[]] yes no (a+b)*c 2024-02-29T10:11:12Z";
    struct span *texts = xcalloc((size_t)n, sizeof *texts);
    char *bytes = xmalloc(256);
    for (int i = 0; i < 256; i++) bytes[i] = (char)i;
    for (int i = 0; i < n; i++) {
        if (i < 256) texts[i] = (struct span){bytes + i, 1};
        if (i < 256) continue;
        const size_t size = 1 + xorshift_below(&seed, LONGEST_PIECE);
        texts[i] = (struct span){sample + xorshift_below(&seed, (uint32_t)(sizeof sample - size)), size};
    }
    struct lexicon *l = lexicon_open(texts, n);
    free(texts);
    free(bytes);
    return l;
}

struct grammar *grammar_open(enum grammar_kind kind, const char *source) {
    struct status st;
    struct grammar *g = grammar_compile(kind, source, strlen(source), &st);
    if (!g) fail_msg("%s: %s", source, st.text);
    return g;
}

bool grammar_matches(struct grammar *g, const char *text) {
    struct lexicon *l = lexicon_of_bytes();
    struct machine *m = grammar_machine(g, l);
    struct position at;
    struct status st;
    bool fits = true, may_end, goes_on;
    assert_true(machine_start(m, false, &at, &st));
    for (size_t i = 0; text[i] && fits; i++) {
        uint32_t mask[8];
        const uint8_t byte = (uint8_t)text[i];
        assert_true(machine_mask(m, at, mask, &st));
        assert_true(machine_advance(m, &at, l->texts[byte], &fits, &st));
        assert_int_equal(fits, mask[byte / 32] >> byte % 32 & 1);
    }
    assert_true(machine_look(m, at, &may_end, &goes_on, &st));
    machine_drop(m);
    lexicon_drop(l);
    return fits && may_end;
}

void check_grammar_cases(enum grammar_kind kind, const struct grammar_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct grammar *g = grammar_open(kind, cases[i].source);
        for (const char *const *text = cases[i].matches; *text; text++)
            if (!grammar_matches(g, *text)) fail_msg("%s does not match %s", cases[i].source, *text);
        for (const char *const *text = cases[i].others; *text; text++)
            if (grammar_matches(g, *text)) fail_msg("%s matches %s", cases[i].source, *text);
        grammar_drop(g);
    }
}

void check_grammar_errors(enum grammar_kind kind, const struct grammar_error *errors, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct status st = {0};
        struct grammar *g = grammar_compile(kind, errors[i].source, strlen(errors[i].source), &st);
        if (g) fail_msg("%s compiles", errors[i].source);
        assert_string_equal(st.text, errors[i].message);
        assert_int_not_equal(st.code, STATUS_OK);
    }
}
