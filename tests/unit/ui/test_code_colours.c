#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ui/code_colours.h"

// A letter for each byte: c comment, s string, n number, k keyword, t type, f function, v name, + - lines of a diff.
static char letter(const struct flow_piece *p) {
    static const struct {
        enum theme_role role;
        char letter;
    } letters[] = {
        {ROLE_TEXT, '.'},         {ROLE_CODE_COMMENT, 'c'}, {ROLE_CODE_STRING, 's'},   {ROLE_CODE_NUMBER, 'n'},
        {ROLE_CODE_KEYWORD, 'k'}, {ROLE_CODE_TYPE, 't'},    {ROLE_CODE_FUNCTION, 'f'}, {ROLE_CODE_NAME, 'v'},
        {ROLE_GOOD, '+'},         {ROLE_BAD, '-'}};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (p->style.role == letters[i].role) return letters[i].letter;
    return '?';
}

static void check(const char *language, const char *code, const char *expected) {
    const struct code_language *l = code_language(language, strlen(language));
    struct code_state open = {0};
    struct flow f = {0};
    char *out = calloc(1, strlen(code) + 1);
    assert_non_null(l);
    flow_add_text(&f, (struct style){0}, code);
    flow_restyle(&f);
    code_colour(l, &open, &f, 0, f.size);
    size_t at = 0;
    for (size_t i = 0; i < f.n_pieces; i++)
        for (; at < f.pieces[i].end; at++) out[at] = code[at] == '\n' ? '\n' : letter(&f.pieces[i]);
    assert_int_equal(at, f.size);
    assert_string_equal(out, expected);
    free(out);
    flow_free(&f);
}

static void test_words_numbers_and_calls(void **state) {
    (void)state;
    check("c", "int x = f(0x1fUL, 1.5e-3, a);", "ttt.....f.nnnnnn..nnnnnn.....");
    check("rust", "for i in 0..10 { v.push(i) }", "kkk...kk.n..nn.....ffff.....");
    check("java", "List<String> a = new A();", "tttt.tttttt......kkk.f...");
    check("sql", "SELECT count(*) from t", "kkkkkk.fffff....kkkk..");
    check("python", "def f(x): return self", "kkk.f.....kkkkkk.kkkk");
    check("c", "forest form; xfor", "................."); // words are whole
}

static void test_comments_and_strings(void **state) {
    (void)state;
    check("c", "a; // if \"x\"\nb", "...ccccccccc\n.");
    check("c", "/* a\n\"b */ \"c\\\"d\" 'e'", "cccc\nccccc.ssssss.sss");
    check("c", "it's\nint", "....\nttt"); // a quote alone is no string
    check("python", "'''a\nb''' # c", "ssss\nssss.ccc");
    check("python", "f\"a\" + rb'c'", "ssss...sssss");
    check("bash", "echo \"$x\n\" ${y} $# # c", "kkkk.sss\ns.vvvv....ccc");
    check("rust", "fn f<'a>(x: &'a str) { 'b' }", "kk..............ttt....sss..");
    check("lua", "--[[ a\nb ]] x -- c", "cccccc\ncccc...cccc");
}

static void test_keys_tags_and_marks(void **state) {
    (void)state;
    check("json", "{\"a\": [1, \"b\", null]}", ".vvv...n..sss..kkkk..");
    check("yaml", "a-b: true # c\nurl: http://x", "vvv..kkkk.ccc\nvvv..........");
    check("toml", "[a.b]\nc = \"d\" # e", "ttttt\nv...sss.ccc");
    check("html", "<a href=\"x\">if</a>", "kk.vvvv.sssk..kkkk");
    check("html", "<!-- a\nb --><br/>", "cccccc\nccccckkkkk");
    check("c", "#include <x>\n a #b", "kkkkkkkk....\n.....");
    check("java", "@Test void x", "vvvvv.tttt..");
    check("diff", "@@ -1 +1 @@\n+a\n-b\n c\n--- d", "kkkkkkkkkkk\n++\n--\n..\nvvvvv");
}

static void test_languages_are_known_by_what_people_write(void **state) {
    (void)state;
    static const char *const same[][2] = {
        {"c++", "cpp"}, {"Python", "py"}, {"{.rs}", "rust"}, {"js title=\"a\"", "javascript"}, {"sh,ignore", "bash"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const struct code_language *l = code_language(same[i][0], strlen(same[i][0]));
        assert_non_null(l);
        assert_ptr_equal(l, code_language(same[i][1], strlen(same[i][1])));
    }
    static const char *const unknown[] = {"", " ", "text", "cobol",
                                          "a very long word that is no language's name at all"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(code_language(unknown[i], strlen(unknown[i])));
}

// Any bytes, in any language, in two parts that are cut at any line: each byte gets one style, the same as at once.
static void test_random_code_in_parts_is_coloured_as_at_once(void **state) {
    (void)state;
    static const char *const parts[] = {
        "\"", "'",      "/*", "*/", "\n", "#",  "//",           "<a ",  ">", "<!--", "-->", "\\",
        "`",  "\"\"\"", "if", "A",  "x",  "0x", "1.5",          "e-",   "$", "{",    "}",   "@",
        "--", "[[",     "]]", "=",  ":",  " ",  "\xe6\x97\xa5", "\x80", "("};
    static const char *const names[] = {"c",    "cpp",  "java", "ts",   "py",   "rs",   "go",   "rb",
                                        "php",  "bash", "sql",  "html", "css",  "json", "yaml", "toml",
                                        "make", "lua",  "hs",   "ml",   "perl", "diff"};
    unsigned seed = 5;
    for (int round = 0; round < 4000; round++) {
        struct flow whole = {0}, cut = {0};
        for (int i = 0; i < 40; i++) {
            seed = seed * 1664525u + 1013904223u;
            flow_add_text(&whole, (struct style){0}, parts[(seed >> 16) % (sizeof parts / sizeof *parts)]);
        }
        flow_add(&cut, (struct style){0}, whole.text, whole.size);
        const char *name = names[(size_t)round % (sizeof names / sizeof *names)];
        const struct code_language *l = code_language(name, strlen(name));
        struct code_state a = {0}, b = {0};
        flow_restyle(&whole), flow_restyle(&cut);
        code_colour(l, &a, &whole, 0, whole.size);
        size_t at = 0;
        for (size_t i = 0; i < cut.size; i++)
            if (cut.text[i] == '\n' && (seed >> (i % 16) & 1)) code_colour(l, &b, &cut, at, i + 1), at = i + 1;
        code_colour(l, &b, &cut, at, cut.size);
        assert_int_equal(a.open, b.open);
        assert_int_equal(whole.n_pieces, cut.n_pieces);
        for (size_t i = 0; i < whole.n_pieces; i++)
            assert_memory_equal(&whole.pieces[i], &cut.pieces[i], sizeof *whole.pieces);
        assert_int_equal(whole.pieces[whole.n_pieces - 1].end, whole.size);
        flow_free(&whole), flow_free(&cut);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_numbers_and_calls),
        cmocka_unit_test(test_comments_and_strings),
        cmocka_unit_test(test_keys_tags_and_marks),
        cmocka_unit_test(test_languages_are_known_by_what_people_write),
        cmocka_unit_test(test_random_code_in_parts_is_coloured_as_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
