// Cleaned text, token ids and units.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/base/clean.h"
#include "app/base/units.h"
#include "app/commands/ids.h"

static void assert_clean(const char *text, const char *expected) {
    char out[256];
    size_t n = clean_text(text, strlen(text), out);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(out, expected, n);
}

static void test_control_characters_are_replaced(void **state) {
    (void)state;
    assert_clean("plain\n\ttext \xe6\xbc\xa2 \xf0\x9f\x98\x80", "plain\n\ttext \xe6\xbc\xa2 \xf0\x9f\x98\x80");
    assert_clean("\x1b[2J", "\xe2\x90\x9b[2J"); // ESC becomes its symbol
    assert_clean("a\rb\x07\x7f", "a\xe2\x90\x8d"
                                 "b\xe2\x90\x87\xe2\x90\xa1");
    assert_clean("\xc2\x9b"
                 "31m",
                 "\xe2\x90\xa6"
                 "31m"); // C1 CSI
    assert_clean("\xe2\x80\xae"
                 "abc",
                 "\xe2\x90\xa6"
                 "abc"); // right-to-left override
    assert_clean("a\xe2\x80\x8d"
                 "b",
                 "a\xe2\x80\x8d"
                 "b");                                    // joiners stay
    assert_clean("\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd"); // invalid bytes
}

static void test_every_byte_pair_is_cleaned(void **state) {
    (void)state;
    for (int pair = 0; pair < 65536; pair++) {
        char in[2] = {(char)(pair >> 8), (char)pair}, out[16];
        size_t n = clean_text(in, 2, out);
        assert_true(n <= 6);
        for (size_t i = 0; i < n; i++) {
            unsigned char c = (unsigned char)out[i];
            assert_true(c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t');
        }
    }
}

static int32_t *read_text(const char *text, size_t size, size_t *count, struct status *st) {
    char path[] = "/tmp/confab-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), size);
    close(fd);
    int32_t *ids = ids_read(path, count, st);
    unlink(path);
    return ids;
}

static void test_ids_are_read(void **state) {
    (void)state;
    struct status st = {0};
    size_t count;
    int32_t *ids = read_text(" 1 22\n333\t0 2147483647\r\n", 24, &count, &st);
    const int32_t expected[] = {1, 22, 333, 0, 2147483647};
    assert_non_null(ids);
    assert_int_equal(count, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    free(ids);
    ids = read_text("7", 1, &count, &st);
    assert_non_null(ids);
    assert_int_equal(count, 1);
    assert_int_equal(ids[0], 7);
    free(ids);
}

static void test_invalid_ids_are_reported(void **state) {
    (void)state;
    static const char *const wrong[] = {"1 x 2", "1 -2", "1,2", "99999999999999999999", "2147483648", "0x10"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct status st = {0};
        size_t count;
        assert_null(read_text(wrong[i], strlen(wrong[i]), &count, &st));
        assert_non_null(strstr(st.text, "is not a token id"));
    }
    struct status st = {0};
    size_t count;
    assert_null(read_text("1\0002", 3, &count, &st));
    assert_null(ids_read("/nonexistent", &count, &st));
    assert_non_null(strstr(st.text, "/nonexistent"));
}

static void test_units(void **state) {
    (void)state;
    char out[32];
    assert_string_equal(units_bytes(0, out), "0 B");
    assert_string_equal(units_bytes(1023, out), "1023 B");
    assert_string_equal(units_bytes(1536, out), "1.50 KiB");
    assert_string_equal(units_bytes(637.0 * 1024 * 1024, out), "637 MiB");
    assert_string_equal(units_count(999, out), "999");
    assert_string_equal(units_count(1.1e9, out), "1.10 B");
    assert_string_equal(units_count(2.06e12, out), "2.06 T");
    assert_string_equal(units_whole(0, out), "0");
    assert_string_equal(units_whole(999, out), "999");
    assert_string_equal(units_whole(1000, out), "1,000");
    assert_string_equal(units_whole(18446744073709551615u, out), "18,446,744,073,709,551,615");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_characters_are_replaced),
        cmocka_unit_test(test_every_byte_pair_is_cleaned),
        cmocka_unit_test(test_ids_are_read),
        cmocka_unit_test(test_invalid_ids_are_reported),
        cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
