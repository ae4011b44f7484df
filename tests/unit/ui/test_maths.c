#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/utf8.h"
#include "ui/maths.h"

static void check(const char *tex, const char *expected) {
    struct flow out = {0};
    maths_add(&out, tex, strlen(tex), true);
    flow_add(&out, (struct style){0}, "", 1);
    assert_string_equal(out.text, expected);
    flow_free(&out);
}

static void test_symbols_have_their_blanks(void **state) {
    (void)state;
    check("\\alpha\\leq \\beta", "α ≤ β");
    check("x\\in\\mathbb{R}, y \\notin \\mathcal{L}", "x ∈ ℝ, y ∉ ℒ");
    check("f: A \\to B", "f: A → B");
    check("\\unknown{x} + \\,y", "\\unknownx + y");
    check("a-b'", "a−b′");
    check("\\{1, \\dots, n\\}", "{1, …, n}");
}

static void test_scripts(void **state) {
    (void)state;
    check("x^2 + y_{ij}^{n+1}", "x² + yᵢⱼⁿ⁺¹");
    check("\\sum_{i = 1}^{n} a_i", "∑ᵢ₌₁ⁿ aᵢ");
    check("e^{-x^2}", "e^(−x²)");
    check("A_{max} B_Q \\int_0^\\infty", "Aₘₐₓ B_Q ∫₀^∞");
    check("x^\\alpha 90^\\circ", "x^α 90°");
    check("\\lim_{x \\to 0} f", "lim_(x → 0) f");
}

static void test_fractions_roots_and_accents(void **state) {
    (void)state;
    check("\\frac{1}{2}\\frac{a+b}{c d}", "1/2(a+b)/(c d)");
    check("x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}", "x = (−b ± √(b² − 4ac))/2a");
    check("\\sqrt2 \\sqrt[3]{x+1}", "√2 ³√(x+1)");
    check("\\hat{x} \\overline{AB} \\vec v", "x\u0302 AB v\u20d7");
    check("\\left( \\frac{x}{y} \\right. \\text{ if so}", "( x/y if so");
}

static void test_rows_and_matrices(void **state) {
    (void)state;
    check("\\begin{aligned} a &= b \\\\ &= c \\end{aligned}", "a = b\n= c");
    check("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "(1 2; 3 4)");
    check("|x| = \\begin{cases} x & x \\ge 0 \\\\ -x & x < 0 \\end{cases}", "|x| = { x x ≥ 0; −x x < 0");
}

static void test_what_is_no_formula(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size;
    } texts[] = {
        {"$x$", 3},       {"$a_1 + b$.", 9}, {"\\(x\\) y", 5},  {"\\[ x\n= y \\]", 11},
        {"$$x$$", 5},     {"$5 and $6", 0},  {"$5, 6$ and", 0}, {"$HOME:$PATH", 0},
        {"$ x$", 0},      {"$x", 0},         {"\\(x", 0},       {"\\[x\n\ny\\]", 0},
        {"\\(`x`\\)", 0}, {"$$", 0},         {"\\(\\)", 0},     {"$20 to me or 30$", 0},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct maths_span s = maths_find(texts[i].text, strlen(texts[i].text), 0);
        if (s.size != texts[i].size) fail_msg("%s: %zu bytes", texts[i].text, s.size);
    }
    assert_int_equal(maths_find("US$a+b$", 7, 2).size, 0);
}

static void test_random_tex_ends_as_text(void **state) {
    (void)state;
    static const char *const parts[] = {"\\frac",  "{",       "}",     "^",    "_",     "\\sqrt", "[", "]",
                                        "\\begin", "{cases}", "\\end", "\\\\", "&",     "\\",     "x", "\\left",
                                        ".",       "\xff",    "é",     "\n",   "\\hat", "12"};
    unsigned seed = 3;
    for (int round = 0; round < 4000; round++) {
        char tex[1024] = "";
        for (int i = 0; i < 60; i++) {
            seed = seed * 1664525u + 1013904223u;
            strcat(tex, parts[(seed >> 16) % (sizeof parts / sizeof *parts)]);
        }
        struct flow out = {0};
        maths_add(&out, tex, strlen(tex), round & 1);
        if (!(round & 1)) assert_null(out.size ? memchr(out.text, '\n', out.size) : NULL);
        flow_free(&out);
    }
    enum { DEEP = 100000 };
    char *deep = malloc(DEEP);
    memset(deep, '{', DEEP);
    struct flow out = {0};
    maths_add(&out, deep, DEEP, true);
    for (int i = 0; i < DEEP; i += 2) memcpy(deep + i, "x^", 2);
    maths_add(&out, deep, DEEP, true);
    flow_free(&out);
    free(deep);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols_have_their_blanks),   cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_fractions_roots_and_accents), cmocka_unit_test(test_rows_and_matrices),
        cmocka_unit_test(test_what_is_no_formula),          cmocka_unit_test(test_random_tex_ends_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
