// The embedded guide was trained for the tables that the program has now: run `make guide` after a change. And its chat
// template has it read of a chat what it was trained to read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/guide/guide.h"
#include "engine/base/panic.h"
#include "engine/engine.h"
#include "engine/format/gguf.h"

// FNV-1a of `confab help --json` without the version's line, as corpus.py computes it.
static uint64_t tables_digest(void) {
    const char *program = getenv("CONFAB");
    char *command = xasprintf("'%s' help --json", program ? program : "./confab"), line[4096];
    FILE *tables = popen(command, "r");
    assert_non_null(tables);
    uint64_t digest = 0xcbf29ce484222325;
    size_t bytes = 0;
    while (fgets(line, sizeof line, tables)) {
        if (strstr(line, "\"version\"")) continue;
        for (const char *c = line; *c; c++, bytes++) digest = (digest ^ (uint8_t)*c) * 0x100000001b3;
    }
    assert_int_equal(pclose(tables), 0);
    assert_true(bytes > 10000);
    free(command);
    return digest;
}

static void test_guide_knows_the_tables(void **state) {
    (void)state;
    struct gguf g;
    struct status st = {0};
    struct span trained;
    size_t size;
    const void *data = guide_data(&size);
    if (!gguf_open_memory(&g, "guide", data, size, &st)) fail_msg("%s", st.text);
    if (!gguf_get_string(&g, "guide.tables", GGUF_REQUIRED, &trained, &st)) fail_msg("%s", st.text);
    char now[17];
    snprintf(now, sizeof now, "%016llx", (unsigned long long)tables_digest());
    if (!span_equals(trained, now))
        fail_msg("keys, commands, options or defaults changed since the guide was trained: run `make guide`");
    gguf_close(&g);
}

#define SAID(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"},"
#define READ(role, text) "<|im_start|>" role "\n" text "<|im_end|>"
#define TEN(text)        text text text text text text text text text text
#define LONG             TEN(TEN("abc"))
#define UNSURE           "I am not sure that I understood. It may be one of these:"

struct reading {
    const char *said, *read;
};

static void check_readings(const struct reading *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct status st = {0};
        size_t size;
        char *said = xasprintf("{\"messages\": [%.*s], \"add_generation_prompt\": true}",
                               (int)strlen(cases[i].said) - 1, cases[i].said);
        char *wanted = xasprintf("%s<|im_start|>assistant\n", cases[i].read);
        struct template_input in = {.name = "guide",
                                    .text = guide_template(),
                                    .size = strlen(guide_template()),
                                    .context_name = "context",
                                    .context = said,
                                    .context_size = strlen(said)};
        char *read = template_render(&in, &size, &st);
        if (!read) fail_msg("%s", st.text);
        assert_string_equal(read, wanted);
        free(read);
        free(wanted);
        free(said);
    }
}

static void test_guide_reads_the_last_exchange(void **state) {
    (void)state;
    static const struct reading cases[] = {
        {SAID("user", "a"), READ("user", "a")},
        {SAID("system", "s") SAID("user", "a"), READ("system", "s") READ("user", "a")},
        {SAID("user", "a") SAID("assistant", "b") SAID("user", "c"),
         READ("user", "a") READ("assistant", "b") READ("user", "c")},
        {SAID("system", "s") SAID("user", "a") SAID("assistant", "b") SAID("user", "c") SAID("assistant", "d")
             SAID("user", "e"),
         READ("system", "s") READ("user", "c") READ("assistant", "d") READ("user", "e")},
        {SAID("user", LONG) SAID("assistant", "b") SAID("user", "c"), READ("user", "c")},
        {SAID("user", "a") SAID("assistant", UNSURE "\\n1. b") SAID("user", "c"), READ("user", "c")},
    };
    check_readings(cases, sizeof cases / sizeof *cases);
}

static void test_guide_reads_no_capitals(void **state) {
    (void)state;
    static const struct reading cases[] = {
        {SAID("system", "Be KIND") SAID("user", "HOW DO I QUIT?"), READ("system", "Be KIND") READ("user", "how do i quit?")},
        {SAID("user", "Is it F5?") SAID("assistant", "Yes: F5") SAID("user", "Q4_K"),
         READ("user", "is it f5?") READ("assistant", "Yes: F5") READ("user", "q4_k")},
        {SAID("user", "ÄÖ 日本"), READ("user", "äö 日本")},
    };
    check_readings(cases, sizeof cases / sizeof *cases);
}

static void test_guide_is_asked_nothing(void **state) {
    (void)state;
    static const struct reading cases[] = {
        {SAID("user", "?"), READ("user", "what can you do?")},
        {SAID("user", " 1\\n!…"), READ("user", "what can you do?")},
        {SAID("user", "3 x"), READ("user", "3 x")},
        {SAID("user", "日"), READ("user", "日")},
    };
    check_readings(cases, sizeof cases / sizeof *cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_guide_knows_the_tables),
                                       cmocka_unit_test(test_guide_reads_the_last_exchange),
                                       cmocka_unit_test(test_guide_reads_no_capitals),
                                       cmocka_unit_test(test_guide_is_asked_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
