// Themes: parsing and its complaints, fallback, gradients, the built-in themes' contrast, and users' own.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/temporary_folder.h"
#include "ui/theme.h"

static struct theme parsed(const char *text) {
    struct theme t;
    struct status st = {0};
    if (!theme_parse(&t, "test", text, strlen(text), &st)) fail_msg("%s", st.text);
    return t;
}

static void assert_colour(struct theme_colour c, unsigned value) {
    assert_false(c.own);
    assert_int_equal((unsigned)c.red << 16 | (unsigned)c.green << 8 | c.blue, value);
}

static void test_roles_fall_back(void **state) {
    (void)state;
    struct theme t = parsed(
        "# comment\n\n  text = \"#102030\"\r\naccent=\"#AABBCC\"\ndecode = \"#000000\"\ndecode.end = \"#ffffff\"");
    assert_colour(t.colours[ROLE_TEXT], 0x102030);
    assert_colour(t.colours[ROLE_QUOTE], 0x102030); // quote → dim → text
    assert_colour(t.colours[ROLE_LINK], 0xaabbcc);
    assert_true(t.colours[ROLE_CODE_GROUND].own);
    assert_string_equal(t.name, "test");
    assert_colour(t.gradients[ROLE_PREFILL][100], 0xffffff); // a gradient is inherited whole
    assert_colour(t.gradients[ROLE_TEXT][57], 0x102030);     // without an end it is flat
}

static void test_gradients_rise_evenly(void **state) {
    (void)state;
    struct theme t =
        parsed("decode = \"#103018\"\ndecode.end = \"#c0ffd0\"\nkv.free = \"\"\nkv.free.end = \"#ffffff\"\n");
    assert_colour(t.gradients[ROLE_DECODE][0], 0x103018);
    assert_colour(t.gradients[ROLE_DECODE][100], 0xc0ffd0);
    for (int i = 1; i < THEME_STEPS; i++) {
        struct theme_colour a = t.gradients[ROLE_DECODE][i - 1], b = t.gradients[ROLE_DECODE][i];
        assert_true(b.red >= a.red && b.green >= a.green && b.blue >= a.blue);
        assert_true(b.green - a.green <= 5);
    }
    assert_true(t.gradients[ROLE_KV_FREE][60].own); // the terminal's own colour cannot be mixed
}

static void test_complaints_name_the_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } samples[] = {{"text = \"#112233\"\ntxet = \"#112233\"", "line 2: no such role: txet"},
                   {"text = #112233", "line 1: text: not a colour: #112233"},
                   {"text = \"#11223\"", "#11223"},
                   {"text = \"#11223g\"", "not a colour"},
                   {"\n\ntext", "line 3: no '='"},
                   {"text.end.end = \"#112233\"", "text.end"},
                   {".end = \"#112233\"", "no such role"},
                   {"text = \"#112233\" junk", "junk"},
                   {"text = \"", "not a colour"},
                   {"\033[31m = \"\"", "no such role"}};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        struct theme t = {.name = "untouched"};
        struct status st = {0};
        assert_false(theme_parse(&t, "bad", samples[i].text, strlen(samples[i].text), &st));
        if (!strstr(st.text, samples[i].part)) fail_msg("'%s' does not say '%s'", st.text, samples[i].part);
        assert_non_null(strstr(st.text, "theme bad"));
        assert_null(strchr(st.text, 033));
        assert_string_equal(t.name, "untouched");
    }
    struct theme t;
    static const char with_nul[] = "text\0= \"\"\n";
    assert_false(theme_parse(&t, "nul", with_nul, sizeof with_nul - 1, NULL));
}

// ---- the built-in themes ----

static double luminance(struct theme_colour c) {
    double sum = 0, weights[] = {0.2126, 0.7152, 0.0722};
    uint8_t channels[] = {c.red, c.green, c.blue};
    for (int i = 0; i < 3; i++) {
        double v = channels[i] / 255.0;
        sum += weights[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(struct theme_colour a, struct theme_colour b) {
    double x = luminance(a), y = luminance(b);
    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

// Roles of boxes, graphs, bars and pages: no text is drawn in them, so WCAG's 3 for graphics is enough, all along their
// gradients.
static bool is_drawing(enum theme_role role) {
    return role == ROLE_BORDER || role == ROLE_BORDER_ACTIVE || (role >= ROLE_DECODE && role <= ROLE_ROOF);
}

static void check_on_ground(const struct theme *t, enum theme_role role, double text_least) {
    for (int i = 0; i < (is_drawing(role) ? THEME_STEPS : 1); i++) {
        double ratio = contrast(t->gradients[role][i], t->colours[ROLE_GROUND]);
        if (ratio < (is_drawing(role) ? 3 : text_least))
            fail_msg("%s: role %d, step %d, has a contrast of %.2f", t->name, role, i, ratio);
    }
}

static void test_built_in_themes_can_be_read(void **state) {
    (void)state;
    int n = 0;
    assert_string_equal(theme_list(0), THEME_DEFAULT);
    for (const char *name; (name = theme_list(n)); n++) {
        struct theme t;
        struct status st = {0};
        if (!theme_load(&t, name, &st)) fail_msg("%s", st.text);
        assert_string_equal(t.name, name);
        if (t.colours[ROLE_GROUND].own) continue;
        double least = strcmp(name, "high-contrast") == 0 ? 7 : 4.5;
        for (enum theme_role role = 0; role < ROLE_COUNT; role++)
            if (role != ROLE_GROUND && role != ROLE_SELECTED && role != ROLE_SELECTED_GROUND &&
                role != ROLE_CODE_GROUND)
                check_on_ground(&t, role, least);
        assert_true(contrast(t.colours[ROLE_SELECTED], t.colours[ROLE_SELECTED_GROUND]) >= least);
        static const enum theme_role on_code[] = {ROLE_CODE, ROLE_TEXT, ROLE_DIM, ROLE_GOOD, ROLE_BAD};
        for (size_t i = 0; i < sizeof on_code / sizeof *on_code; i++)
            assert_true(contrast(t.colours[on_code[i]], t.colours[ROLE_CODE_GROUND]) >= least);
        for (enum theme_role role = ROLE_CODE_COMMENT; role <= ROLE_CODE_NAME; role++)
            if (contrast(t.colours[role], t.colours[ROLE_CODE_GROUND]) < least)
                fail_msg("%s: role %d has a contrast of %.2f on code", t.name, role,
                         contrast(t.colours[role], t.colours[ROLE_CODE_GROUND]));
    }
    assert_true(n >= 5);
    static const char *const wanted[] = {"confab-light", "high-contrast", "mono"};
    for (int i = 0; i < 3; i++) {
        struct theme t;
        assert_true(theme_load(&t, wanted[i], NULL));
    }
}

// ---- users' own ----

static char folder[] = "/tmp/confab-theme-XXXXXX";

static void theme_write(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/confab/themes", folder);
    temporary_folder_write(path, name, text);
}

static int folder_make(void **state) {
    (void)state;
    char path[256];
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/confab", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/confab/themes", folder);
    mkdir(path, 0700);
    return setenv("XDG_CONFIG_HOME", folder, 1);
}

static int folder_remove(void **state) {
    (void)state;
    static const char *const files[] = {"mine.theme",         "a-first.theme", "broken.theme",
                                        "confab-light.theme", "notes.txt",     "bad name.theme"};
    char path[256];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/confab/themes/%s", folder, files[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/confab/themes", folder);
    rmdir(path);
    snprintf(path, sizeof path, "%s/confab", folder);
    rmdir(path);
    return rmdir(folder);
}

static int list_index(const char *name) {
    const char *listed;
    for (int i = 0; (listed = theme_list(i)); i++)
        if (strcmp(listed, name) == 0) return i;
    return -1;
}

static void test_user_themes(void **state) {
    (void)state;
    struct theme t;
    struct status st = {0};
    theme_write("mine.theme", "text = \"#123456\"\n");
    theme_write("a-first.theme", "");
    theme_write("notes.txt", "");
    theme_write("bad name.theme", "");
    theme_write("confab-light.theme", "text = \"#654321\"\n");
    theme_write("broken.theme", "text = \"#12\"\n");
    assert_true(theme_load(&t, "mine", &st));
    assert_colour(t.colours[ROLE_STRONG], 0x123456);
    assert_true(theme_load(&t, "confab-light", &st)); // a user's comes before a built-in one
    assert_colour(t.colours[ROLE_TEXT], 0x654321);
    assert_true(list_index("a-first") > list_index("mono") && list_index("mine") > list_index("a-first"));
    assert_int_equal(list_index("bad name"), -1);
    assert_int_equal(list_index("notes"), -1);
}

static void test_a_bad_theme_leaves_the_default(void **state) {
    (void)state;
    static const char *const names[] = {"broken", "no-such-theme", "../themes/mine", "", ".mine"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct theme t;
        struct status st = {0};
        assert_false(theme_load(&t, names[i], &st));
        assert_string_equal(t.name, THEME_DEFAULT);
        assert_true(st.code != STATUS_OK && st.text[0]);
        if (i == 0) assert_non_null(strstr(st.text, "themes/broken.theme: theme broken, line 1"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles_fall_back),
        cmocka_unit_test(test_gradients_rise_evenly),
        cmocka_unit_test(test_complaints_name_the_line),
        cmocka_unit_test(test_built_in_themes_can_be_read),
        cmocka_unit_test(test_user_themes),
        cmocka_unit_test(test_a_bad_theme_leaves_the_default),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
