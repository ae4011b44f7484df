// Jinja operators: Python's arithmetic and comparisons.
#include <math.h>

#include "engine/text/jinja_evaluate.h"

static _Noreturn void fail_types(struct jinja *j, enum jinja_operation operation, struct jinja_value a,
                                 struct jinja_value b) {
    if (a.type == JINJA_UNDEFINED) jinja_fail_undefined(j, a);
    if (b.type == JINJA_UNDEFINED) jinja_fail_undefined(j, b);
    if (operation == JINJA_ADD && a.type == JINJA_STRING)
        jinja_fail(j, STATUS_FORMAT, "can only concatenate str (not \"%s\") to str", jinja_type_name(b));
    jinja_fail(j, STATUS_FORMAT, "unsupported operand type(s) for %s: '%s' and '%s'", jinja_operation_text(operation),
               jinja_type_name(a), jinja_type_name(b));
}

static _Noreturn void fail_overflow(struct jinja *j) { jinja_fail(j, STATUS_LIMIT, "integer exceeds 64 bits"); }
static _Noreturn void fail_zero(struct jinja *j) { jinja_fail(j, STATUS_FORMAT, "division by zero"); }

// ---- numbers ----

static struct jinja_value integer_power(struct jinja *j, int64_t base, int64_t exponent) {
    int64_t power = 1;
    for (; exponent; exponent >>= 1) {
        if ((exponent & 1) && __builtin_mul_overflow(power, base, &power)) fail_overflow(j);
        if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) fail_overflow(j);
    }
    return jinja_integer(power);
}

// Floor division; the remainder has the sign of the divisor.
static struct jinja_value floor_divide(struct jinja *j, int64_t a, int64_t b, bool rest) {
    if (!b) fail_zero(j);
    if (b == -1) {
        int64_t negative;
        if (rest) return jinja_integer(0);
        if (__builtin_sub_overflow((int64_t)0, a, &negative)) fail_overflow(j);
        return jinja_integer(negative);
    }
    int64_t quotient = a / b, left = a % b;
    bool down = left && (left < 0) != (b < 0);
    return jinja_integer(rest ? left + (down ? b : 0) : quotient - down);
}

static struct jinja_value operate_integers(struct jinja *j, enum jinja_operation operation, int64_t a, int64_t b) {
    int64_t result = 0;
    bool overflow = false;
    switch (operation) {
    case JINJA_ADD: overflow = __builtin_add_overflow(a, b, &result); break;
    case JINJA_SUBTRACT: overflow = __builtin_sub_overflow(a, b, &result); break;
    case JINJA_MULTIPLY: overflow = __builtin_mul_overflow(a, b, &result); break;
    case JINJA_FLOOR_DIVIDE: return floor_divide(j, a, b, false);
    case JINJA_MODULO: return floor_divide(j, a, b, true);
    default: return integer_power(j, a, b);
    }
    if (overflow) fail_overflow(j);
    return jinja_integer(result);
}

static double float_modulo(double a, double b) {
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static struct jinja_value operate_floats(struct jinja *j, enum jinja_operation operation, double a, double b) {
    bool divides = operation == JINJA_DIVIDE || operation == JINJA_FLOOR_DIVIDE || operation == JINJA_MODULO;
    if ((divides && b == 0) || (operation == JINJA_POWER && a == 0 && b < 0)) fail_zero(j);
    switch (operation) {
    case JINJA_ADD: return jinja_number(a + b);
    case JINJA_SUBTRACT: return jinja_number(a - b);
    case JINJA_MULTIPLY: return jinja_number(a * b);
    case JINJA_DIVIDE: return jinja_number(a / b);
    case JINJA_FLOOR_DIVIDE: return jinja_number(floor(a / b));
    case JINJA_MODULO: return jinja_number(float_modulo(a, b));
    default: return jinja_number(pow(a, b));
    }
}

static struct jinja_value operate_numbers(struct jinja *j, enum jinja_operation operation, struct jinja_value a,
                                          struct jinja_value b) {
    bool floats = a.type == JINJA_FLOAT || b.type == JINJA_FLOAT || operation == JINJA_DIVIDE;
    if (floats || (operation == JINJA_POWER && jinja_as_integer(j, b, "exponent") < 0))
        return operate_floats(j, operation, jinja_as_double(a), jinja_as_double(b));
    return operate_integers(j, operation, jinja_as_integer(j, a, "number"), jinja_as_integer(j, b, "number"));
}

// ---- texts and lists ----

static bool is_list(struct jinja_value v) { return v.type == JINJA_LIST || v.type == JINJA_TUPLE; }

static struct jinja_value add(struct jinja *j, struct jinja_value a, struct jinja_value b) {
    if (a.type == JINJA_STRING) {
        const bool safe = a.safe || b.safe;
        struct jinja_builder text = {0};
        jinja_append(j, &text, safe ? jinja_escape(j, a) : a.string);
        jinja_append(j, &text, safe ? jinja_escape(j, b) : b.string);
        return safe ? jinja_safe(jinja_built(&text)) : jinja_text(jinja_built(&text));
    }
    struct jinja_list *list = jinja_list(j, a.list->count + b.list->count);
    jinja_spend(j, list->capacity / 4);
    for (size_t i = 0; i < a.list->count; i++) jinja_push(j, list, a.list->items[i]);
    for (size_t i = 0; i < b.list->count; i++) jinja_push(j, list, b.list->items[i]);
    return jinja_sequence(a.type, list);
}

static struct jinja_value repeat(struct jinja *j, struct jinja_value v, int64_t times) {
    size_t unit = v.type == JINJA_STRING ? v.string.size : v.list->count;
    if (times <= 0 || !unit) times = 0;
    if (v.type == JINJA_STRING) {
        struct jinja_builder text = {0};
        for (int64_t i = 0; i < times; i++) jinja_spend(j, 1), jinja_append(j, &text, v.string);
        return jinja_text_like(v, jinja_built(&text));
    }
    struct jinja_list *list = jinja_list(j, 0);
    for (int64_t i = 0; i < times; i++)
        for (size_t at = 0; at < unit; at++) jinja_spend(j, 1), jinja_push(j, list, v.list->items[at]);
    return jinja_sequence(v.type, list);
}

static bool is_repeat(struct jinja_value a, struct jinja_value b) {
    return (a.type == JINJA_STRING || is_list(a)) && (b.type == JINJA_INTEGER || b.type == JINJA_BOOLEAN);
}

struct jinja_value jinja_operate(struct jinja *j, enum jinja_operation operation, struct jinja_value a,
                                 struct jinja_value b) {
    if (jinja_is_number(a) && jinja_is_number(b)) return operate_numbers(j, operation, a, b);
    if (operation == JINJA_ADD && a.type == b.type && (a.type == JINJA_STRING || is_list(a))) return add(j, a, b);
    if (operation == JINJA_MULTIPLY && is_repeat(a, b)) return repeat(j, a, jinja_as_integer(j, b, "count"));
    if (operation == JINJA_MULTIPLY && is_repeat(b, a)) return repeat(j, b, jinja_as_integer(j, a, "count"));
    if (operation == JINJA_MODULO && a.type == JINJA_STRING) return jinja_percent_format(j, a, b);
    fail_types(j, operation, a, b);
}

bool jinja_relate(struct jinja *j, enum jinja_operation operation, struct jinja_value a, struct jinja_value b) {
    const char *sign = jinja_operation_text(operation);
    switch (operation) {
    case JINJA_EQUAL: return jinja_equal(j, a, b);
    case JINJA_NOT_EQUAL: return !jinja_equal(j, a, b);
    case JINJA_IN: return jinja_contains(j, b, a);
    case JINJA_NOT_IN: return !jinja_contains(j, b, a);
    case JINJA_LESS: return jinja_compare(j, a, b, sign) < 0;
    case JINJA_LESS_EQUAL: return jinja_compare(j, a, b, sign) <= 0;
    case JINJA_GREATER: return jinja_compare(j, a, b, sign) > 0;
    default: return jinja_compare(j, a, b, sign) >= 0;
    }
}
