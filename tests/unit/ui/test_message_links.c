#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ui/message_links.h"

static void check(const char *text, int count, const char *const expected[][2]) {
    struct message_link *links;
    assert_int_equal(message_links_find(text, strlen(text), &links), count);
    for (int i = 0; i < count; i++) {
        assert_string_equal(links[i].text, expected[i][0]);
        assert_string_equal(links[i].address, expected[i][1]);
    }
    message_links_free(links, count);
}

static void test_links_are_found_with_their_addresses(void **state) {
    (void)state;
    check("see [the *docs*](https://a.org/x \"title\") and https://b.org", 2,
          (const char *const[][2]){{"the docs", "https://a.org/x"}, {"https://b.org", "https://b.org"}});
    check("[one][1]\n\n[1]: https://c.org\n", 1, (const char *const[][2]){{"one", "https://c.org"}});
    check("As [two] says[^n].\n\n[^n]: See [x](http://x.y).\n[Two]: <http://c.org> \"T\"\n[three]: http://unused.org\n",
          3, (const char *const[][2]){{"two", "http://c.org"}, {"x", "http://x.y"}, {"three", "http://unused.org"}});
    check("- a [two\nlines](http://d.org)", 1, (const char *const[][2]){{"two lines", "http://d.org"}});
}

static void test_images_are_among_them(void **state) {
    (void)state;
    check("![A cat](cat.png) and ![][1]\n\n[1]: http://a.b/x.png", 2,
          (const char *const[][2]){{"image: A cat", "cat.png"}, {"image: ", "http://a.b/x.png"}});
    check("[![build](badge.svg) state](http://ci.x)", 2,
          (const char *const[][2]){{"image: build", "badge.svg"}, {"image: build state", "http://ci.x"}});
}

static void test_what_is_no_link_is_none(void **state) {
    (void)state;
    check("", 0, NULL);
    check("`https://a.org` [a](", 0, NULL);
    check("```\n[a](https://a.org)\n```", 0, NULL);
    check("[a](b", 0, NULL);
    check("[a]()", 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links_are_found_with_their_addresses),
        cmocka_unit_test(test_images_are_among_them),
        cmocka_unit_test(test_what_is_no_link_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
