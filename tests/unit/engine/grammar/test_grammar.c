// Grammars: GBNF, regular expressions and choices; masks; limits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/grammar/machine_state.h"
#include "tests/unit/cases.h"
#include "tests/unit/grammar_text.h"
#include "tests/unit/xorshift.h"

#define N(a) (sizeof(a) / sizeof *(a))

static void test_gbnf_matches(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "y", "yesno", "No"}},
        {"root ::= [a-c]+ \"-\"? [^a-z\\n]", {"a9", "abc-X", "cé"}, {"-9", "d9", "ax", "a\n"}},
        {"# a comment\nroot ::= item (\",\" item)* # another\nitem ::= [0-9]{2,3}\n  | \"x\" .",
         {"12", "123,xé", "x\n,99"},
         {"1", "1234", "12,", "x"}},
        {"root ::= \"(\" root \")\" | \"\"", {"", "()", "(((())))"}, {"(", "())", ")("}},
        {"root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
         {"1", "1+2+33", "(1+(2))+3"},
         {"", "1+", "(1", "1)"}},
        {"root ::= \"\\x41\\u00e9\\U0001F600\\\"\\\\\\t\"", {"Aé😀\"\\\t"}, {"A"}},
        {"root ::= a a{0} a{1,} b?\na ::= \"a\"\nb ::= a* \"b\"", {"aa", "aaaa", "aab", "aaaab"}, {"a", "b", "aabb"}},
        {"root ::= (\"a\"? \"b\"?)* \"c\"", {"c", "ac", "babac"}, {"", "ab"}},
        {"root ::= x y\nx ::= \"a\" x | \"\"\ny ::= \"a\" \"b\"", {"ab", "aaaab"}, {"b", "aaa"}},
        {"root-1 ::= \"n\"\nroot ::= root-1", {"n"}, {""}},
        {"root ::= [0-9] + ( \"x\" ) ? \"y\"{ 1, 2 } \"z\"\n  *", {"1y", "12xyyzz"}, {"y", "1xxy", "1yyy"}},
        {"root ::= a { 2 } b {1 , }\na ::= \"a\" # once\nb ::= \"b\"", {"aab", "aabbb"}, {"ab", "aa"}},
    };
    check_grammar_cases(GRAMMAR_GBNF, cases, N(cases));
}

static void test_gbnf_errors_say_where(void **state) {
    (void)state;
    static const struct grammar_error errors[] = {
        {"", "there is no rule 'root'"},
        {"a ::= \"x\"", "there is no rule 'root'"},
        {"root ::= \"x\"\nroot ::= \"y\"", "line 2, column 1: rule 'root' is defined twice"},
        {"root ::= é", "line 1, column 10: unexpected '?'"},
        {"root ::= a\n  b", "line 1, column 10: rule 'a' is not defined"},
        {"root ::= \"x", "line 1, column 10: unterminated literal"},
        {"root ::= [b-a]", "line 1, column 14: the range ends before it begins"},
        {"root ::= \"\\q\"", "line 1, column 12: unknown escape '\\q'"},
        {"root ::= (\"x\" \n", "line 1, column 10: unterminated group"},
        {"root ::= \"x\" )", "line 1, column 14: ')' without '('"},
        {"root = \"x\"", "line 1, column 1: expected a rule, such as: root ::= \"yes\" | \"no\""},
        {"root ::= \"x\"{3,2}", "line 1, column 18: the minimum of repetitions is above the maximum"},
        {"root ::= \"x\"{1000000}", "line 1, column 18: too many repetitions (maximum 8192)"},
        {"root ::= root \"x\" | \"y\"", "rule 'root' begins with itself (left recursion)"},
        {"root ::= a\na ::= b? c\nb ::= \"b\"\nc ::= a \"c\" | \"d\"", "rule 'a' begins with itself (left recursion)"},
        {"root ::= \"x\" root", "the grammar matches no text"},
        {"root ::= <[12]>", "line 1, column 10: tokens in a grammar are not supported"},
    };
    check_grammar_errors(GRAMMAR_GBNF, errors, N(errors));
}

static void test_regex_matches(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"a|bc*", {"a", "b", "bccc"}, {"", "ac", "c"}},
        {"^[A-Z]\\d{2,}?(-\\w+)?$", {"A12", "Z999-x_1"}, {"A1", "a12", "A12-"}},
        {"(?:ab)+|(?<name>x)y", {"ab", "abab", "xy"}, {"a", "xyab"}},
        {".\\.\\s\\S[^\\w\\s]", {"é. x!", "a.\tb-"}, {"aa xb", "a. b9", "\n. x!"}},
        {"\\x41\\u00e9\\u{1F600}\\t\\/\\-", {"Aé😀\t/-"}, {"A"}},
        {"", {""}, {"x"}},
        {"[\\]\\-a-]+", {"]-a"}, {"b", ""}},
        {"\\D\\W", {"x!", "é "}, {"1!", "xx"}},
        {"(a?){3}b{0}", {"", "aaa"}, {"b", "aaaa"}},
    };
    check_grammar_cases(GRAMMAR_REGEX, cases, N(cases));
}

static void test_regex_errors_say_where(void **state) {
    (void)state;
    static const struct grammar_error errors[] = {
        {"(a", "line 1, column 1: unterminated group"},
        {"a)", "line 1, column 2: ')' without '('"},
        {"[a", "line 1, column 1: unterminated character class"},
        {"*a", "line 1, column 1: nothing to repeat"},
        {"a**", "line 1, column 3: nothing to repeat"},
        {"(?=a)b", "line 1, column 3: groups that look ahead or back, or change flags, are not supported"},
        {"(a)\\1", "line 1, column 5: references to groups are not supported"},
        {"a\\b", "line 1, column 3: '\\b' is not supported"},
        {"[]a", "the grammar matches no text"},
        {"\\p{L}", "line 1, column 2: '\\p' is not supported"},
        {"a^b", "line 1, column 2: '^' is supported only at the beginning of the whole expression"},
        {"a{9999}", "line 1, column 6: too many repetitions (maximum 8192)"},
    };
    check_grammar_errors(GRAMMAR_REGEX, errors, N(errors));
}

static void test_choices_match(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"[\"red\", \"green\", \"re\", \"red\"]", {"re", "red", "green"}, {"", "r", "redd", "gree"}},
        {"[\"\\u00e9\\n\"]", {"é\n"}, {"é"}},
    };
    static const struct grammar_error errors[] = {
        {"[]", "there are no choices"},
        {"{}", "expected a JSON array of strings"},
        {"[1]", "choice 0 is not a string"},
        {"[", "expected a JSON array of strings"},
    };
    check_grammar_cases(GRAMMAR_CHOICE, cases, N(cases));
    check_grammar_errors(GRAMMAR_CHOICE, errors, N(errors));
}

// ---- masks ----

static const struct {
    enum grammar_kind kind;
    const char *source;
} sources[] = {
    {GRAMMAR_JSON, ""},
    {GRAMMAR_GBNF, "root ::= \"(\" root \")\" root | [a-z \"{}:,]* | \"{\" root"},
    {GRAMMAR_REGEX, "([a-zA-Z\"]+[ ,:]*){1,9}"},
    {GRAMMAR_SCHEMA, "{\"type\": \"string\", \"maxLength\": 9}"},
    {GRAMMAR_SCHEMA, "{\"properties\": {\"name\": {\"type\": \"string\"}, \"age\": {\"type\": \"integer\"}, \"tags\": "
                     "{\"items\": {\"enum\": [\"a\", \"b\"]}}}}"},
    {GRAMMAR_CHOICE, "[\"true\", \"true, \", \"true, f\", \"{\\\"name\"]"},
};

// Texts grow by random tokens of those that are allowed; each time every bit says what advancing by the token does.
static void test_masks_say_what_advancing_does(void **state) {
    (void)state;
    uint64_t random = 12345;
    struct lexicon *l = lexicon_of_pieces(900, 77);
    uint32_t *mask = xcalloc((size_t)l->n_words, sizeof *mask);
    struct status st;
    for (size_t i = 0; i < N(sources); i++) {
        struct grammar *g = grammar_open(sources[i].kind, sources[i].source);
        struct machine *m = grammar_machine(g, l);
        for (int round = 0; round < 20; round += CASE_STEP) {
            struct position at;
            bool fits, any = true;
            assert_true(machine_start(m, round & 1, &at, &st));
            for (int step = 0; step < 25 && any; step++) {
                if (!machine_mask(m, at, mask, &st)) fail_msg("%s", st.text);
                int32_t allowed[900], n = 0;
                for (int t = 0; t < l->n_tokens; t++) {
                    struct position next = at;
                    assert_true(machine_advance(m, &next, l->texts[t], &fits, &st));
                    assert_int_equal(fits, mask[t / 32] >> t % 32 & 1);
                    if (fits) allowed[n++] = t;
                }
                bool may_end, goes_on;
                assert_true(machine_look(m, at, &may_end, &goes_on, &st));
                assert_int_equal(goes_on, n > 0); // every byte is a token
                assert_true(may_end || n);
                any = n;
                if (!n) break;
                const int32_t chosen = allowed[xorshift_below(&random, (uint32_t)n)];
                assert_true(machine_advance(m, &at, l->texts[chosen], &fits, &st));
            }
        }
        machine_drop(m);
        grammar_drop(g);
    }
    free(mask);
    lexicon_drop(l);
}

// A machine that is prepared has the masks of a short text already, and they are the same.
static void test_masks_are_made_ahead(void **state) {
    (void)state;
    static const struct {
        enum grammar_kind kind;
        const char *source, *text;
    } cases[] = {
        {GRAMMAR_REGEX, "([A-Z][a-z]{1,60}, ){1,9}x", "Ab, C"},
        {GRAMMAR_GBNF, "root ::= \"(\" root \")\" | [0-9]{1,40}", "((1"},
        {GRAMMAR_SCHEMA,
         "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \"maxLength\": 90}, \"b\": {\"type\": "
         "\"integer\"}}, \"required\": [\"a\", \"b\"], \"additionalProperties\": false}",
         "{\"a\": \"xyzu, xyzu, xyzu\", \"b\": 12}"},
    };
    struct lexicon *l = lexicon_of_pieces(900, 77);
    uint32_t *mask = xcalloc((size_t)l->n_words, sizeof *mask), *same = xcalloc((size_t)l->n_words, sizeof *same);
    for (size_t i = 0; i < N(cases); i++) {
        struct grammar *g = grammar_open(cases[i].kind, cases[i].source);
        struct machine *m = machine_open(grammar_automaton(g), l), *other = machine_open(grammar_automaton(g), l);
        struct position at, there;
        struct status st;
        bool fits;
        machine_prepare(m, NULL, NULL);
        size_t prepared = m->mask_bytes;
        assert_true(prepared > 0);
        assert_true(machine_start(m, false, &at, &st) && machine_start(other, false, &there, &st));
        for (const char *c = cases[i].text; *c; c++) {
            char forced[2];
            size_t n; // two bytes that have to come are not worth it
            assert_true(machine_forced(m, at, forced, sizeof forced, &n, &st));
            assert_true(machine_mask(m, at, mask, &st) && machine_mask(other, there, same, &st));
            assert_memory_equal(mask, same, (size_t)l->n_words * sizeof *mask);
            if (m->mask_bytes != prepared && n < 2) fail_msg("%s: at '%s'", cases[i].source, c);
            prepared = m->mask_bytes;
            assert_true(machine_advance(m, &at, (struct span){c, 1}, &fits, &st) && fits);
            assert_true(machine_advance(other, &there, (struct span){c, 1}, &fits, &st) && fits);
        }
        machine_prepare(m, NULL, NULL); // once
        machine_drop(m), machine_drop(other);
        grammar_drop(g);
    }
    free(mask), free(same);
    lexicon_drop(l);
}

static bool three_times(const void *context) {
    int *n = (int *)context;
    return ++*n <= 3;
}

static void test_preparing_can_be_stopped(void **state) {
    (void)state;
    struct lexicon *l = lexicon_of_bytes();
    struct grammar *g = grammar_open(GRAMMAR_JSON, "");
    struct machine *m = machine_open(grammar_automaton(g), l), *other = machine_open(grammar_automaton(g), l);
    int n = 0;
    machine_prepare(m, three_times, &n);
    machine_prepare(other, NULL, NULL);
    assert_true(m->mask_bytes > 0 && m->mask_bytes < other->mask_bytes);
    machine_drop(m), machine_drop(other);
    grammar_drop(g);
    lexicon_drop(l);
}

static void *prepare(void *machine) {
    machine_prepare(machine, NULL, NULL);
    return NULL;
}

// Answers go on while masks are made.
static void test_masks_are_made_beside_answers(void **state) {
    (void)state;
    struct lexicon *l = lexicon_of_pieces(900, 77);
    struct grammar *g = grammar_open(GRAMMAR_JSON, "");
    uint32_t *mask = xcalloc((size_t)l->n_words, sizeof *mask);
    for (int round = 0; round < 20; round += CASE_STEP) {
        struct machine *m = machine_open(grammar_automaton(g), l);
        struct position at;
        struct status st;
        pthread_t thread;
        bool fits;
        assert_int_equal(pthread_create(&thread, NULL, prepare, m), 0);
        assert_true(machine_start(m, false, &at, &st));
        for (const char *c = "{\"a\": [1, {\"b\": \"x\"}, -2.5e3]}"; *c; c++) {
            assert_true(machine_mask(m, at, mask, &st));
            assert_true(machine_advance(m, &at, (struct span){c, 1}, &fits, &st) && fits);
        }
        pthread_join(thread, NULL);
        machine_drop(m);
    }
    free(mask);
    grammar_drop(g);
    lexicon_drop(l);
}

// A token at a time or all of it at once: the same position.
static void test_positions_do_not_depend_on_tokens(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [1, {\"b\\n\": \"\\u00e9, é\"}, [[]], -2.5e3]}";
    struct lexicon *l = lexicon_of_bytes();
    struct grammar *g = grammar_open(GRAMMAR_JSON, "");
    struct machine *m = grammar_machine(g, l);
    struct status st;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct position at, other;
        bool fits;
        assert_true(machine_start(m, false, &at, &st));
        assert_true(machine_start(m, false, &other, &st));
        assert_true(machine_advance(m, &at, (struct span){text, cut}, &fits, &st) && fits);
        for (size_t i = 0; i < cut; i++)
            assert_true(machine_advance(m, &other, (struct span){text + i, 1}, &fits, &st) && fits);
        assert_int_equal(at.place, other.place);
        assert_int_equal(at.frame, other.frame);
    }
    machine_drop(m);
    grammar_drop(g);
    lexicon_drop(l);
}

static void test_what_has_to_come_is_known(void **state) {
    (void)state;
    static const struct {
        const char *source, *before, *forced;
    } cases[] = {
        {"root ::= \"abc\" | \"abd\"", "", "ab"},
        {"root ::= \"abc\" | \"abd\"", "abd", ""},
        {"root ::= a \"x\" | a \"y\"\na ::= \"(\" (\"b\" | b) \")\"\nb ::= \"b\" b*", "(", "b"},
        {"root ::= a \"xyz\" [0-9]\na ::= \"(\" (a | \"b\") \")\"", "((b", "))xyz"},
        {"root ::= \"a\"+ \"b\"", "a", ""},
    };
    struct lexicon *l = lexicon_of_bytes();
    for (size_t i = 0; i < N(cases); i++) {
        struct grammar *g = grammar_open(GRAMMAR_GBNF, cases[i].source);
        struct machine *m = grammar_machine(g, l);
        struct position at;
        struct status st;
        char out[8];
        size_t n;
        bool fits;
        assert_true(machine_start(m, false, &at, &st));
        assert_true(machine_advance(m, &at, span_of(cases[i].before), &fits, &st) && fits);
        assert_true(machine_forced(m, at, out, sizeof out, &n, &st));
        assert_int_equal(n, strlen(cases[i].forced));
        assert_memory_equal(out, cases[i].forced, n);
        machine_drop(m);
        grammar_drop(g);
    }
    lexicon_drop(l);
}

// ---- limits ----

static void expect_error(enum grammar_kind kind, const char *text, size_t size, enum status_code code) {
    struct status st = {0};
    assert_null(grammar_compile(kind, text, size, &st));
    assert_int_equal(st.code, code);
    assert_true(*st.text);
}

static char *repeated(const char *before, const char *text, int n, const char *after) {
    const size_t size = strlen(text);
    char *out = xmalloc(strlen(before) + size * (size_t)n + strlen(after) + 1), *at = stpcpy(out, before);
    for (int i = 0; i < n; i++) at = stpcpy(at, text);
    strcpy(at, after);
    return out;
}

static void test_hostile_sources_end_in_an_error(void **state) {
    (void)state;
    static const struct {
        enum grammar_kind kind;
        const char *before, *text;
        int n;
        const char *after;
        enum status_code code;
    } cases[] = {
        {GRAMMAR_GBNF, "root ::= ", "(", 60000, "", STATUS_LIMIT},
        {GRAMMAR_GBNF, "root ::= ", "[", 60000, "", STATUS_FORMAT},
        {GRAMMAR_GBNF, "root ::= ", "\"x\"{8000} ", 100, "", STATUS_LIMIT},
        {GRAMMAR_GBNF, "root ::= ((((\"x\"{1000}){1000}){1000}){1000})", "{1000}", 3, "", STATUS_LIMIT},
        {GRAMMAR_GBNF, "root ::= ", "b\nb ::= ", 30000, "", STATUS_FORMAT},
        {GRAMMAR_GBNF, "root ::= ", "x", 5 << 20, "", STATUS_LIMIT},
        {GRAMMAR_REGEX, "", "(", 60000, "", STATUS_LIMIT},
        {GRAMMAR_REGEX, "", "(a|", 60000, "", STATUS_LIMIT},
        {GRAMMAR_SCHEMA, "", "[", 1000000, "", STATUS_FORMAT},
        {GRAMMAR_SCHEMA, "", "{\"a\":", 200000, "", STATUS_FORMAT},
        {GRAMMAR_SCHEMA, "{\"const\": ", "[", 2000, "", STATUS_FORMAT},
        {GRAMMAR_SCHEMA, "{\"enum\": [0", ",1", 400000, "]}", STATUS_LIMIT},
        {GRAMMAR_CHOICE, "", "[", 1000000, "", STATUS_FORMAT},
        // What would take minutes, if nobody counted.
        {GRAMMAR_REGEX, "", "a", 1000000, "", STATUS_LIMIT},
        {GRAMMAR_REGEX, "(", "ab?|", 20000, "c)((|){8192}){8}", STATUS_LIMIT},
        {GRAMMAR_GBNF, "root ::= (", "\"ab\" | ", 100000, "\"c\"){8192}", STATUS_LIMIT},
        {GRAMMAR_GBNF, "e ::= \"\"\nroot ::= [a-z] (\"a\" | \"b\") ", "e ", 250000, "\"c\"", STATUS_LIMIT},
        {GRAMMAR_CHOICE, "[\"a\"", ",\"a\"", 240000, "]", STATUS_LIMIT},
        {GRAMMAR_SCHEMA, "{\"const\": [0", ",[]", 300000, "]}", STATUS_LIMIT},
        {GRAMMAR_SCHEMA, "{\"$defs\": [{\"$anchor\": \"z\"}", ",{}", 100000,
         "], \"anyOf\": [{\"$ref\": \"#a\"}, {\"$ref\": \"#z\"}]}", STATUS_FORMAT},
    };
    for (size_t i = 0; i < N(cases); i++) {
        char *text = repeated(cases[i].before, cases[i].text, cases[i].n, cases[i].after);
        expect_error(cases[i].kind, text, strlen(text), cases[i].code);
        free(text);
    }
}

// Of objects whose members are all of the next level, of which there are eight: 10⁸ pairs of members to compare.
static char *nested_objects(void) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("{\"oneOf\": [{\"$ref\": \"#/$defs/0\"}, {\"$ref\": \"#/$defs/0\"}], \"$defs\": {", out);
    for (int i = 0; i < 8; i++) {
        fprintf(out, "\"%d\": {\"type\": \"object\", \"properties\": {", i);
        for (int k = 0; k < 10; k++) fprintf(out, "%s\"%d\": {\"$ref\": \"#/$defs/%d\"}", k ? ", " : "", k, i + 1);
        fputs("}, \"required\": [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\"]}, ", out);
    }
    fputs("\"8\": {}}}", out);
    fclose(out);
    return text;
}

static void test_schemas_that_take_too_long_to_compare(void **state) {
    (void)state;
    char *zeros = repeated("{\"enum\": [0", ",0", 20000, "]}"), *ones = repeated("{\"enum\": [1", ",1", 20000, "]}");
    char *const schemas[] = {xasprintf("{\"allOf\": [%s, %s]}", zeros, ones),
                             xasprintf("{\"oneOf\": [%s, %s]}", zeros, ones), nested_objects()};
    for (size_t i = 0; i < N(schemas); i++) {
        expect_error(GRAMMAR_SCHEMA, schemas[i], strlen(schemas[i]), STATUS_LIMIT);
        free(schemas[i]);
    }
    free(zeros), free(ones);
}

// Of what compiles and is ambiguous beyond measure a call fails, and says so.
static void test_ambiguous_grammars_fail_when_they_run(void **state) {
    (void)state;
    static const char source[] =
        "root ::= a* \"z\"\na ::= b \"1\" | b \"2\"\nb ::= c \"3\" | c \"4\"\nc ::= d \"5\" | d \"6\"\n"
        "d ::= e \"7\" | e \"8\"\ne ::= f \"9\" | f \"0\"\nf ::= g \"a\" | g \"b\"\ng ::= h \"c\" | h "
        "\"d\"\nh ::= i \"e\" | i \"f\"\ni ::= j \"g\" | j \"h\"\nj ::= k \"i\" | k \"j\"\nk ::= l \"k\" "
        "| l \"l\"\nl ::= n \"m\" | n \"n\"\nn ::= \"x\" n | \"y\"";
    struct lexicon *l = lexicon_of_bytes();
    struct grammar *g = grammar_open(GRAMMAR_GBNF, source);
    struct machine *m = grammar_machine(g, l);
    struct position at;
    struct status st = {0};
    uint32_t mask[8];
    assert_true(machine_start(m, false, &at, &st));
    assert_false(machine_mask(m, at, mask, &st));
    assert_int_equal(st.code, STATUS_LIMIT);
    assert_non_null(strstr(st.text, "too ambiguous"));
    machine_drop(m);
    grammar_drop(g);
    lexicon_drop(l);
}

// Right recursion takes no memory; brackets take a frame each.
static void test_long_texts_are_read(void **state) {
    (void)state;
    char *list = repeated("", "a", 200000, ""), *nested = repeated("", "[", 5000, "");
    struct grammar *g = grammar_open(GRAMMAR_GBNF, "root ::= \"a\" root | \"\"");
    struct grammar *arrays = grammar_open(GRAMMAR_SCHEMA, "true");
    struct lexicon *l = lexicon_of_bytes();
    struct machine *m[2] = {grammar_machine(g, l), grammar_machine(arrays, l)};
    const char *texts[2] = {list, nested};
    struct status st;
    for (int i = 0; i < 2; i++) {
        struct position at;
        bool fits;
        assert_true(machine_start(m[i], false, &at, &st));
        for (const char *c = texts[i]; *c; c++)
            assert_true(machine_advance(m[i], &at, (struct span){c, 1}, &fits, &st) && fits);
        machine_drop(m[i]);
    }
    grammar_drop(g);
    grammar_drop(arrays);
    lexicon_drop(l);
    free(list);
    free(nested);
}

// From half of its memory on a machine gives way to a new one, and whoever has it goes on.
static void test_a_full_machine_gives_way(void **state) {
    (void)state;
    char *text = repeated("", "abcdefgh", 1000, "-");
    struct grammar *g = grammar_open(GRAMMAR_REGEX, "([a-h]{8000}-){3}");
    struct lexicon *l = lexicon_of_bytes();
    struct machine *m = grammar_machine(g, l), *other;
    struct position at;
    struct status st;
    bool fits, may_end, goes_on;
    assert_true(machine_start(m, false, &at, &st));
    for (int i = 0; i < 3; i++) {
        assert_true(machine_advance(m, &at, span_of(text), &fits, &st) && fits);
        other = grammar_machine(g, l);
        assert_int_equal(other == m, i < 2);
        machine_drop(other);
    }
    assert_true(machine_look(m, at, &may_end, &goes_on, &st) && may_end && !goes_on);
    machine_drop(m);
    grammar_drop(g);
    lexicon_drop(l);
    free(text);
}

static void test_a_grammar_is_compiled_once(void **state) {
    (void)state;
    struct grammar *a = grammar_open(GRAMMAR_REGEX, "once|twice"), *b = grammar_open(GRAMMAR_REGEX, "once|twice");
    struct grammar *c = grammar_open(GRAMMAR_GBNF, "root ::= \"once\"");
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    struct lexicon *l = lexicon_of_bytes(), *other = lexicon_of_bytes();
    struct machine *m = grammar_machine(a, l), *n = grammar_machine(b, l), *o = grammar_machine(a, other);
    assert_ptr_equal(m, n);
    assert_ptr_not_equal(m, o);
    machine_drop(m), machine_drop(n), machine_drop(o);
    lexicon_drop(l), lexicon_drop(other);
    grammar_drop(a), grammar_drop(b), grammar_drop(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gbnf_matches),
        cmocka_unit_test(test_gbnf_errors_say_where),
        cmocka_unit_test(test_regex_matches),
        cmocka_unit_test(test_regex_errors_say_where),
        cmocka_unit_test(test_choices_match),
        cmocka_unit_test(test_masks_say_what_advancing_does),
        cmocka_unit_test(test_masks_are_made_ahead),
        cmocka_unit_test(test_masks_are_made_beside_answers),
        cmocka_unit_test(test_preparing_can_be_stopped),
        cmocka_unit_test(test_positions_do_not_depend_on_tokens),
        cmocka_unit_test(test_what_has_to_come_is_known),
        cmocka_unit_test(test_hostile_sources_end_in_an_error),
        cmocka_unit_test(test_schemas_that_take_too_long_to_compare),
        cmocka_unit_test(test_ambiguous_grammars_fail_when_they_run),
        cmocka_unit_test(test_long_texts_are_read),
        cmocka_unit_test(test_a_full_machine_gives_way),
        cmocka_unit_test(test_a_grammar_is_compiled_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
