// Jinja tests, used after `is`.
#include "engine/text/jinja_evaluate.h"

typedef struct jinja_arguments arguments;

// A test without arguments.
#define TEST(name, condition)                                                                                          \
    static struct jinja_value name(struct jinja *j, struct jinja_value v, const arguments *a) {                        \
        (void)j, (void)a;                                                                                              \
        return jinja_boolean(condition);                                                                               \
    }
TEST(test_boolean, v.type == JINJA_BOOLEAN)
TEST(test_callable, v.type == JINJA_MACRO || v.type == JINJA_FUNCTION || v.type == JINJA_UNDEFINED) // as in Jinja2
TEST(test_defined, v.type != JINJA_UNDEFINED)
TEST(test_undefined, v.type == JINJA_UNDEFINED)
TEST(test_none, v.type == JINJA_NONE)
TEST(test_true, v.type == JINJA_BOOLEAN && v.boolean)
TEST(test_false, v.type == JINJA_BOOLEAN && !v.boolean)
TEST(test_string, v.type == JINJA_STRING)
TEST(test_escaped, v.safe)
TEST(test_integer, v.type == JINJA_INTEGER)
TEST(test_float, v.type == JINJA_FLOAT)
TEST(test_number, jinja_is_number(v))
TEST(test_mapping, v.type == JINJA_DICT)
TEST(test_lower, jinja_has_case(j, jinja_to_string(j, v), JINJA_LOWER))
TEST(test_upper, jinja_has_case(j, jinja_to_string(j, v), JINJA_UPPER))
TEST(test_filter, v.type == JINJA_STRING && jinja_filter_find(v.string))
TEST(test_test, v.type == JINJA_STRING && jinja_builtin_find(jinja_tests, v.string))

static bool is_sequence(struct jinja_value v) {
    return v.type == JINJA_UNDEFINED || v.type == JINJA_STRING || v.type == JINJA_LIST || v.type == JINJA_TUPLE ||
           v.type == JINJA_DICT;
}
TEST(test_sequence, is_sequence(v))
TEST(test_iterable, is_sequence(v) || v.type == JINJA_ITERATOR || v.type == JINJA_LOOP)

// A test that compares with another value.
#define RELATION(name, operation)                                                                                      \
    static struct jinja_value name(struct jinja *j, struct jinja_value v, const arguments *a) {                        \
        return jinja_boolean(jinja_relate(j, operation, v, a->values[0]));                                             \
    }
RELATION(test_equal, JINJA_EQUAL)
RELATION(test_not_equal, JINJA_NOT_EQUAL)
RELATION(test_less, JINJA_LESS)
RELATION(test_less_equal, JINJA_LESS_EQUAL)
RELATION(test_greater, JINJA_GREATER)
RELATION(test_greater_equal, JINJA_GREATER_EQUAL)
RELATION(test_in, JINJA_IN)

static struct jinja_value test_sameas(struct jinja *j, struct jinja_value v, const arguments *a) {
    struct jinja_value other = a->values[0];
    bool list = v.type == JINJA_LIST || v.type == JINJA_TUPLE;
    if (v.type != other.type || v.safe != other.safe) return jinja_boolean(false);
    if (list) return jinja_boolean(v.list == other.list);
    return jinja_boolean(v.type == JINJA_DICT ? v.dict == other.dict : jinja_equal(j, v, other));
}

static bool leaves(struct jinja *j, struct jinja_value v, int64_t divisor, int64_t rest) {
    return jinja_equal(j, jinja_operate(j, JINJA_MODULO, v, jinja_integer(divisor)), jinja_integer(rest));
}
static struct jinja_value test_odd(struct jinja *j, struct jinja_value v, const arguments *a) {
    (void)a;
    return jinja_boolean(leaves(j, v, 2, 1));
}
static struct jinja_value test_even(struct jinja *j, struct jinja_value v, const arguments *a) {
    (void)a;
    return jinja_boolean(leaves(j, v, 2, 0));
}
static struct jinja_value test_divisibleby(struct jinja *j, struct jinja_value v, const arguments *a) {
    return jinja_boolean(leaves(j, v, jinja_as_integer(j, a->values[0], "divisor"), 0));
}

const struct jinja_builtin jinja_tests[] = {
    {"!=", "other", 1, test_not_equal},
    {"<", "other", 1, test_less},
    {"<=", "other", 1, test_less_equal},
    {"==", "other", 1, test_equal},
    {">", "other", 1, test_greater},
    {">=", "other", 1, test_greater_equal},
    {"boolean", "", 0, test_boolean},
    {"callable", "", 0, test_callable},
    {"defined", "", 0, test_defined},
    {"divisibleby", "num", 1, test_divisibleby},
    {"eq", "other", 1, test_equal},
    {"equalto", "other", 1, test_equal},
    {"escaped", "", 0, test_escaped},
    {"even", "", 0, test_even},
    {"false", "", 0, test_false},
    {"filter", "", 0, test_filter},
    {"float", "", 0, test_float},
    {"ge", "other", 1, test_greater_equal},
    {"greaterthan", "other", 1, test_greater},
    {"gt", "other", 1, test_greater},
    {"in", "seq", 1, test_in},
    {"integer", "", 0, test_integer},
    {"iterable", "", 0, test_iterable},
    {"le", "other", 1, test_less_equal},
    {"lessthan", "other", 1, test_less},
    {"lower", "", 0, test_lower},
    {"lt", "other", 1, test_less},
    {"mapping", "", 0, test_mapping},
    {"ne", "other", 1, test_not_equal},
    {"none", "", 0, test_none},
    {"number", "", 0, test_number},
    {"odd", "", 0, test_odd},
    {"sameas", "other", 1, test_sameas},
    {"sequence", "", 0, test_sequence},
    {"string", "", 0, test_string},
    {"test", "", 0, test_test},
    {"true", "", 0, test_true},
    {"undefined", "", 0, test_undefined},
    {"upper", "", 0, test_upper},
    {0},
};
