// The embedded guide was trained for the tables that the program has now: run `make guide` after a change. And it reads
// of a chat what it was trained to read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/guide.h"
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

// The caller closes g.
static struct span guide_string(struct gguf *g, const char *key) {
    struct status st = {0};
    struct span value;
    size_t size;
    const void *data = guide_data(&size);
    if (!gguf_open_memory(g, "guide", data, size, &st)) fail_msg("%s", st.text);
    if (!gguf_get_string(g, key, GGUF_REQUIRED, &value, &st)) fail_msg("%s", st.text);
    return value;
}

static void test_guide_knows_the_tables(void **state) {
    (void)state;
    struct gguf g;
    struct span trained = guide_string(&g, "guide.tables");
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

static void test_guide_reads_the_last_exchange(void **state) {
    (void)state;
    static const struct {
        const char *said, *read;
    } cases[] = {
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
    struct gguf g;
    struct span template = guide_string(&g, "tokenizer.chat_template");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct status st = {0};
        size_t size;
        char *said = xasprintf("{\"messages\": [%.*s], \"add_generation_prompt\": true}",
                               (int)strlen(cases[i].said) - 1, cases[i].said);
        char *wanted = xasprintf("%s<|im_start|>assistant\n", cases[i].read);
        char *read = template_render(template.data, template.size, said, NULL, &size, &st);
        if (!read) fail_msg("%s", st.text);
        assert_string_equal(read, wanted);
        free(read);
        free(wanted);
        free(said);
    }
    gguf_close(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_guide_knows_the_tables),
                                       cmocka_unit_test(test_guide_reads_the_last_exchange)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
