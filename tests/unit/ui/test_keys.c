// The key decoder against every way of splitting its input; names of keys; the default keys of the commands.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/unit/xorshift.h"
#include "ui/keys.h"
#include "ui/terminal_parts.h"

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n) { return xorshift_below(&random_state, n); }

static void decoder_feed(struct key_decoder *d, const char *bytes, size_t size) {
    memcpy(key_decoder_room(d, size), bytes, size);
    key_decoder_filled(d, size);
}

// A key in words, for comparison.
static char *key_describe(const struct key *k) {
    if (k->code == KEY_MOUSE)
        return xasprintf("mouse %d %d at %d,%d m%d", k->action, k->number, k->x, k->y, k->modifiers);
    return xasprintf("%d m%d n%d [%.*s]", k->code, k->modifiers, k->number, (int)k->size, k->text ? k->text : "");
}

static const struct {
    const char *bytes, *name;
} key_samples[] = {
    {"\r", "Enter"},
    {"\t", "Tab"},
    {"\033[Z", "Shift+Tab"},
    {"\x7f", "Backspace"},
    {"\b", "Backspace"},
    {"\033\r", "Alt+Enter"},
    {"\x10", "Ctrl+P"},
    {"\x1a", "Ctrl+Z"},
    {"\x1f", "Ctrl+_"},
    {"\033[A", "Up"},
    {"\033OA", "Up"},
    {"\033[1;3A", "Alt+Up"},
    {"\033[1;2C", "Shift+Right"},
    {"\033[1;5H", "Ctrl+Home"},
    {"\033[1;5F", "Ctrl+End"},
    {"\033[5~", "PgUp"},
    {"\033[6;5~", "Ctrl+PgDn"},
    {"\033[3~", "Delete"},
    {"\033[2~", "Insert"},
    {"\033OP", "F1"},
    {"\033[11~", "F1"},
    {"\033[[A", "F1"},
    {"\033[15~", "F5"},
    {"\033[15;2~", "Shift+F5"},
    {"\033[1;2P", "Shift+F1"},
    {"\033[24~", "F12"},
    {"\033[31~", "Shift+F5"},
    {"\033[7~", "Home"},
    {"\033[8~", "End"},
    {"\033[5$", "Shift+PgUp"},
    {"\033[5^", "Ctrl+PgUp"},
    {"\033[a", "Shift+Up"},
    {"\033Oa", "Ctrl+Up"},
    {"\033\033[A", "Alt+Up"},
    {"\0331", "Alt+1"},
    {"\033x", "Alt+X"},
    {"\033X", "Alt+Shift+X"},
    {"\033X", "shift+ALT+x"},
    {"\x10", "ctrl+p"},
    {"\033\x7f", "Alt+Backspace"},
    {"\033[13;2u", "Shift+Enter"},
    {"\033[112;5u", "Ctrl+P"},
    {"\033[27;5;112~", "Ctrl+P"},
    {"\033[13;3u", "Alt+Enter"},
    {"\033[97;3u", "Alt+A"},
    {"\033OM", "Enter"},
    {"\033Ok", "+"},
    {"\033[1;4D", "Shift+Alt+Left"},
    {"x", "x"},
    {" ", "Space"},
    {"é", "é"},
    {"\033é", "Alt+é"},
    {"\033O2P", "Shift+F1"},
};
enum { KEY_SAMPLES = sizeof key_samples / sizeof *key_samples };

static void test_keys_by_name(void **state) {
    (void)state;
    for (int i = 0; i < KEY_SAMPLES; i++) {
        struct key want, got;
        struct key_decoder d = {0};
        assert_true(key_parse(key_samples[i].name, &want));
        decoder_feed(&d, key_samples[i].bytes, strlen(key_samples[i].bytes));
        if (!key_decoder_next(&d, &got) || !key_equal(&got, &want))
            fail_msg("%s is not %s", key_samples[i].bytes + 1, key_samples[i].name);
        assert_int_equal(got.raw_size, strlen(key_samples[i].bytes));
        assert_false(key_decoder_next(&d, &got));
        key_decoder_close(&d);
    }
}

static void test_default_keys_parse_and_do_not_collide(void **state) {
    (void)state;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        struct key a, b;
        for (int j = 0; j < i; j++) assert_string_not_equal(ui_commands[i].name, ui_commands[j].name);
        if (!*ui_commands[i].key) continue;
        if (!key_parse(ui_commands[i].key, &a))
            fail_msg("%s: no such key: %s", ui_commands[i].name, ui_commands[i].key);
        for (int j = 0; j < i; j++)
            if (*ui_commands[j].key && key_parse(ui_commands[j].key, &b) && key_equal(&a, &b))
                fail_msg("%s and %s both want %s", ui_commands[i].name, ui_commands[j].name, ui_commands[i].key);
    }
}

static void test_names_that_are_no_keys(void **state) {
    (void)state;
    static const char *const names[] = {"",        "F0",     "F13",  "F01",    "Ctrl+", "Ctrl+Ctrl+P", "Hyper+P", "C-p",
                                        "Shift+a", "Ctrl+é", "Entr", "Ctrl+1", "\033",  "F1x",         "^P"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct key k;
        if (key_parse(names[i], &k)) fail_msg("'%s' was taken for a key", names[i]);
    }
}

static void test_names_are_written_one_way(void **state) {
    (void)state;
    static const char *const names[][2] = {{"ctrl+n", "Ctrl+N"}, {"shift+ctrl+alt+up", "Ctrl+Alt+Shift+Up"},
                                           {"alt+r", "Alt+R"},   {"alt+shift+r", "Alt+Shift+R"},
                                           {"escape", "Esc"},    {"f12", "F12"},
                                           {"alt++", "Alt++"},   {"ctrl+@", "Ctrl+Space"},
                                           {"ctrl+i", "Tab"},    {"é", "é"}};
    char name[KEY_NAME];
    struct key k, again;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(key_parse(names[i][0], &k));
        assert_string_equal(key_format(&k, name), names[i][1]);
    }
    for (int i = 0; i < KEY_SAMPLES; i++) {
        assert_true(key_parse(key_samples[i].name, &k));
        assert_true(key_parse(key_format(&k, name), &again) && key_equal(&k, &again));
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (key_parse(ui_commands[i].key, &k)) assert_string_equal(key_format(&k, name), ui_commands[i].key);
}

// ---- a person's own keys ----

static bool bind(struct status *st, const char *const *lines) {
    int count = 0;
    while (lines[count]) count++;
    *st = (struct status){0};
    return keys_bind(lines, count, st);
}
#define BIND(st, ...) bind(st, (const char *const[]){__VA_ARGS__, NULL})

static void test_own_keys_take_the_place_of_the_tables(void **state) {
    (void)state;
    struct status st;
    char name[KEY_NAME];
    assert_true(BIND(&st, "stop alt+x", "  copy\tCtrl+B ", "quit none"));
    assert_string_equal(keys_name(COMMAND_STOP), "Alt+X");
    assert_string_equal(keys_name(COMMAND_COPY), "Ctrl+B");
    assert_string_equal(keys_name(COMMAND_QUIT), "");
    assert_string_equal(keys_name(COMMAND_HELP), "F1");
    assert_string_equal(keys_short_name(COMMAND_COPY, name), "^B");
    assert_string_equal(keys_short_name(COMMAND_STOP, name), "Alt+X");
    assert_true(BIND(&st, "stop F6", "copy F5")); // an exchange is no conflict
    assert_string_equal(keys_name(COMMAND_STOP), "F6");
    assert_true(BIND(&st, "boxes Alt+B", "stop Alt+X", "stop Alt+Y"));
    assert_string_equal(keys_name(COMMAND_PANES), "Alt+B");
    assert_string_equal(keys_name(COMMAND_STOP), "Alt+Y"); // the last line counts
    assert_true(BIND(&st, "delete F7")); // taken from the table's command
    assert_string_equal(keys_name(COMMAND_DELETE), "F7");
    assert_string_equal(keys_name(COMMAND_KNOB_RESET), "");
    assert_true(keys_bind(NULL, 0, &st));
    assert_string_equal(keys_name(COMMAND_QUIT), "Ctrl+Q");
}

static void test_keys_that_cannot_be_bound_are_named_in_one_message(void **state) {
    (void)state;
    struct status st;
    assert_false(BIND(&st, "jump F5", "copy Hyper+X", "stop x", "theme Esc", "rename Alt+X"));
    assert_string_equal(st.text, "keys: no command 'jump', 'Hyper+X' is not a key, x cannot be bound, Esc cannot be "
                                 "bound");
    assert_string_equal(keys_name(COMMAND_STOP), "F5");
    assert_string_equal(keys_name(COMMAND_RENAME), "Alt+X"); // what is right counts
    // Of two lines the later one gives way; what it would go back to may be taken.
    assert_false(BIND(&st, "stop Alt+X", "copy Alt+X", "theme F6"));
    assert_string_equal(st.text, "keys: Alt+X is both stop and copy");
    assert_string_equal(keys_name(COMMAND_STOP), "Alt+X");
    assert_string_equal(keys_name(COMMAND_COPY), "");
    assert_string_equal(keys_name(COMMAND_THEME), "F6");
    assert_false(BIND(&st, ""));
    assert_false(BIND(&st, "stop"));
    assert_string_equal(st.text, "keys: '' is not a key");
    assert_true(keys_bind(NULL, 0, &st));
}

// Everything decoded from `bytes`, fed in pieces of at most `piece` bytes (0: random), in words.
static char *decode_all(const char *bytes, size_t size, size_t piece) {
    struct key_decoder d = {0};
    char *words = xstrdup("");
    for (size_t at = 0; at < size;) {
        size_t n = piece ? piece : 1 + random_below(7);
        if (n > size - at) n = size - at;
        decoder_feed(&d, bytes + at, n);
        at += n;
        for (struct key k; key_decoder_next(&d, &k);) {
            char *word = k.code == KEY_TEXT ? xasprintf("%.*s", (int)k.size, k.text) : key_describe(&k),
                 *longer = xasprintf("%s%s", words, word);
            free(word);
            free(words);
            words = longer;
        }
    }
    key_decoder_close(&d);
    return words;
}

static void test_any_split_gives_the_same_keys(void **state) {
    (void)state;
    static const char bytes[] = "héllo\033[1;3A日本\033[<0;12;5M\033[<0;12;5m\033[<65;1;1M\r\033[200~one\r\ntwo\033["
                                "A\033[201~x\033]10;rgb:0/0/0\033\\y"
                                "\033P1+r5463\033\\z\033[?1;2c\033[>41;354;0c\033[12;99;1;1;1;1t\033OP\033["
                                "999zq\xff\xfe!\033[I\033[15;2~\033[M !!";
    clock_freeze(1000000000);
    char *whole = decode_all(bytes, sizeof bytes - 1, sizeof bytes);
    for (int i = 0; i < 300; i++) {
        char *split = decode_all(bytes, sizeof bytes - 1, i < 30 ? (size_t)i + 1 : 0);
        assert_string_equal(split, whole);
        free(split);
    }
    assert_non_null(strstr(whole, "[one\ntwo\033[A]"));
    assert_null(strstr(whole, "rgb"));
    free(whole);
    clock_freeze(0);
}

static void test_time_decides_what_is_unfinished(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        enum key_code code;
        int modifiers;
        unsigned after; // milliseconds
    } samples[] = {{"\033", KEY_ESCAPE, 0, 50}, {"\033[", KEY_TEXT, KEY_ALT, 50}, {"\033O", KEY_TEXT, KEY_ALT, 50},
                   {"\xc3", KEY_TEXT, 0, 500},  {"\033[1;", KEY_NONE, 0, 500},    {"\033]0;x", KEY_NONE, 0, 500}};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        struct key_decoder d = {0};
        struct key k;
        clock_freeze(1000000000);
        decoder_feed(&d, samples[i].bytes, strlen(samples[i].bytes));
        assert_false(key_decoder_next(&d, &k));
        assert_int_equal(key_decoder_timeout(&d), samples[i].after);
        clock_freeze(1000000000 + samples[i].after * 1000000ull);
        assert_int_equal(key_decoder_timeout(&d), 0);
        assert_int_equal(key_decoder_next(&d, &k), samples[i].code != KEY_NONE);
        if (samples[i].code) assert_int_equal(k.code, samples[i].code);
        if (samples[i].code) assert_int_equal(k.modifiers, samples[i].modifiers);
        assert_int_equal(key_decoder_timeout(&d), -1);
        key_decoder_close(&d);
    }
    clock_freeze(0);
}

static void test_random_bytes_never_hang(void **state) {
    (void)state;
    struct key_decoder d = {0};
    uint64_t now = 1;
    for (int i = 0; i < 20000; i++) {
        static const char alphabet[] = "\033\033[[O<;;$^~~0123456789MmuAZ]P\\\a\xc3\xa9\xf0\xffq\r";
        char bytes[16];
        size_t n = 1 + random_below(sizeof bytes);
        for (size_t k = 0; k < n; k++) bytes[k] = alphabet[random_below(sizeof alphabet - 1)];
        clock_freeze(now += random_below(100000000));
        decoder_feed(&d, bytes, n);
        for (struct key k; key_decoder_next(&d, &k);) {
            assert_int_not_equal(k.code, KEY_NONE);
            assert_true(k.code != KEY_TEXT || k.size > 0);
        }
    }
    clock_freeze(now + 2000000000);
    for (struct key k; key_decoder_next(&d, &k);) {
    }
    assert_true(d.pasting || d.start == d.end);
    key_decoder_close(&d);
    clock_freeze(0);
}

static void test_large_paste(void **state) {
    (void)state;
    enum { PASTE = 3 << 20, PIECE = 1000 };
    char *text = xmalloc(PASTE);
    for (size_t i = 0; i < PASTE; i++) text[i] = i % 61 == 60 ? '\r' : i % 7 == 6 ? 033 : 'a';
    struct key_decoder d = {0};
    struct key k;
    decoder_feed(&d, "\033[200~", 6);
    assert_false(key_decoder_next(&d, &k));
    for (size_t at = 0; at < PASTE; at += PIECE) {
        decoder_feed(&d, text + at, PASTE - at < PIECE ? PASTE - at : PIECE);
        assert_false(key_decoder_next(&d, &k));
        assert_int_equal(key_decoder_timeout(&d), -1);
    }
    decoder_feed(&d, "\033[201~!", 7);
    assert_true(key_decoder_next(&d, &k));
    assert_int_equal(k.code, KEY_PASTE);
    assert_int_equal(k.size, PASTE);
    for (size_t i = 0; i < PASTE; i++) assert_int_equal(k.text[i], text[i] == '\r' ? '\n' : text[i]);
    assert_true(key_decoder_next(&d, &k));
    assert_int_equal(k.text[0], '!');
    key_decoder_close(&d);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_by_name),
        cmocka_unit_test(test_default_keys_parse_and_do_not_collide),
        cmocka_unit_test(test_names_that_are_no_keys),
        cmocka_unit_test(test_names_are_written_one_way),
        cmocka_unit_test(test_own_keys_take_the_place_of_the_tables),
        cmocka_unit_test(test_keys_that_cannot_be_bound_are_named_in_one_message),
        cmocka_unit_test(test_any_split_gives_the_same_keys),
        cmocka_unit_test(test_time_decides_what_is_unfinished),
        cmocka_unit_test(test_random_bytes_never_hang),
        cmocka_unit_test(test_large_paste),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
