// The public JSON-Schema-Test-Suite as grammars: what is valid can be written, what is not cannot, and what is not
// supported is named.
//
// CONFAB_SCHEMA_SUITE names the suite's folder tests/draft2020-12. Members of objects may have to be in another order
// than in the suite, as a grammar has them in that of the schema.
#include <dirent.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "tests/unit/grammar_text.h"

enum { MOST_MEMBERS = 5 };

struct counts {
    int schemas, unsupported, valid, invalid, wrong;
};

// ---- spelling ----

// 1.0 is the integer 1.
static json_t *canonical(const json_t *value) {
    const char *name;
    json_t *item;
    size_t i;
    if (json_is_real(value)) {
        const double x = json_real_value(value);
        return x > -1e18 && x < 1e18 && x == (double)(long long)x ? json_integer((long long)x) : json_real(x);
    }
    if (json_is_array(value)) {
        json_t *out = json_array();
        json_array_foreach(value, i, item) json_array_append_new(out, canonical(item));
        return out;
    }
    if (!json_is_object(value)) return json_deep_copy(value);
    json_t *out = json_object();
    json_object_foreach((json_t *)value, name, item) json_object_set_new(out, name, canonical(item));
    return out;
}

static bool matches(struct grammar *g, const json_t *value) {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    const bool yes = grammar_matches(g, text);
    free(text);
    return yes;
}

// In any order of its members.
static bool matches_reordered(struct grammar *g, const json_t *value, json_t *before) {
    const char *name;
    json_t *item;
    if (json_object_size(before) == json_object_size(value)) return matches(g, before);
    json_object_foreach((json_t *)value, name, item) {
        if (json_object_get(before, name)) continue;
        json_t *longer = json_copy(before);
        json_object_set(longer, name, item);
        const bool yes = matches_reordered(g, value, longer);
        json_decref(longer);
        if (yes) return true;
    }
    return false;
}

static bool allows(struct grammar *g, const json_t *data) {
    json_t *value = canonical(data);
    bool yes = matches(g, value);
    if (!yes && json_is_object(value) && json_object_size(value) <= MOST_MEMBERS) {
        json_t *none = json_object();
        yes = matches_reordered(g, value, none);
        json_decref(none);
    }
    json_decref(value);
    return yes;
}

// ---- the suite ----

static void check_group(const char *file, const json_t *group, struct counts *n) {
    const char *description = json_string_value(json_object_get(group, "description"));
    char *schema = json_dumps(json_object_get(group, "schema"), JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    struct status st = {0};
    struct grammar *g = grammar_compile(GRAMMAR_SCHEMA, schema, strlen(schema), &st);
    json_t *test;
    size_t i;
    n->schemas++;
    n->unsupported += !g;
    json_array_foreach(json_object_get(group, "tests"), i, test) {
        const bool valid = json_is_true(json_object_get(test, "valid"));
        // Without a grammar: a schema that nothing matches is an error, too.
        if (!g && (!valid || st.code != STATUS_FORMAT)) continue;
        const bool allowed = g && allows(g, json_object_get(test, "data"));
        if (valid) n->valid++;
        else n->invalid++;
        if (allowed == valid) continue;
        n->wrong++;
        print_error("%s: %s: %s: %s, but %s%s\n", file, description,
                    json_string_value(json_object_get(test, "description")), valid ? "valid" : "not valid",
                    allowed ? "allowed" : "not allowed", g ? "" : st.text);
    }
    if (!g && getenv("CONFAB_SCHEMA_SUITE_VERBOSE")) print_message("%s: %s: %s\n", file, description, st.text);
    grammar_drop(g);
    free(schema);
}

// Formats are enforced here, which the suite has for an option; vocabularies other than the standard are not known.
static bool is_left_out(const char *file) { return !strcmp(file, "format.json") || !strcmp(file, "vocabulary.json"); }

static void test_the_suite_holds(void **state) {
    (void)state;
    const char *folder = getenv("CONFAB_SCHEMA_SUITE");
    struct counts n = {0};
    DIR *d = folder ? opendir(folder) : NULL;
    if (!d) {
        print_message("skipped: CONFAB_SCHEMA_SUITE does not name the suite's folder tests/draft2020-12\n");
        skip();
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        const size_t size = strlen(entry->d_name);
        if (size < 5 || strcmp(entry->d_name + size - 5, ".json") || is_left_out(entry->d_name)) continue;
        char *path = xasprintf("%s/%s", folder, entry->d_name);
        json_error_t error;
        json_t *groups = json_load_file(path, JSON_ALLOW_NUL, &error), *group;
        size_t i;
        if (!groups) fail_msg("%s: %s", path, error.text);
        json_array_foreach(groups, i, group) check_group(entry->d_name, group, &n);
        json_decref(groups);
        free(path);
    }
    closedir(d);
    print_message("%d schemas, %d of them not supported; %d valid and %d invalid values\n", n.schemas, n.unsupported,
                  n.valid, n.invalid);
    assert_int_equal(n.wrong, 0);
    assert_true(n.valid > 100 && n.invalid > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_suite_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
