// The embedded guide was trained for the tables that the program has now: run `make guide` after a change.
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_guide_knows_the_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
