// Numbers: within bounds, digit by digit, and multiples.
//
// A bounded number has no exponent. Its magnitude is an integer part and a fraction, which are compared with those of
// the bounds: a part that lies strictly between leaves the rest free, one that is equal leaves it to the next digit.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/schema_state.h"

#define LARGEST_BOUND     9223372036854775807.0 // 2⁶³: what a long long holds is below
#define SMALLEST_BOUND    1e-9
#define LARGEST_MULTIPLES 999999999999999.0 // MULTIPLE_DIGITS
enum { DIGITS = 40, LARGEST_MULTIPLE = 1000, LARGEST_BOUNDED_MULTIPLE = 100, MULTIPLE_DIGITS = 15, MOST_PLACES = 12 };

struct decimal { // of a magnitude
    long long whole;
    char fraction[DIGITS]; // without zeros at the end
    bool excluded;         // as a bound
};

struct range {
    struct rules *rules;
    bool integers;
    struct decimal low, high;
    bool open; // there is no high
};

// ---- pieces ----

static const struct expression *digit_between(struct rules *r, char low, char high) {
    if (low > high) return expression_nothing(r);
    struct code_range range = {(uint8_t)low, (uint8_t)high};
    return expression_set(r, &(struct code_set){&range, 1, 1});
}

static const struct expression *any_digits(struct rules *r, int least, int most) {
    return expression_repeat(r, digit_between(r, '0', '9'), least, most);
}

static const struct expression *empty(struct rules *r) { return expression_sequence(r, &(struct expression_list){0}); }

static const struct expression *digit(struct rules *r, char c) { return digit_between(r, c, c); }

// ---- integers: texts of digits of one length ----

static const struct expression *at_least(struct rules *r, const char *low) {
    if (!*low) return empty(r);
    const int rest = (int)strlen(low + 1);
    return EXPRESSION_CHOICE_OF(
        r, EXPRESSION_SEQUENCE_OF(r, digit(r, *low), at_least(r, low + 1)),
        EXPRESSION_SEQUENCE_OF(r, digit_between(r, (char)(*low + 1), '9'), any_digits(r, rest, rest)));
}

static const struct expression *at_most(struct rules *r, const char *high) {
    if (!*high) return empty(r);
    const int rest = (int)strlen(high + 1);
    return EXPRESSION_CHOICE_OF(
        r, EXPRESSION_SEQUENCE_OF(r, digit(r, *high), at_most(r, high + 1)),
        EXPRESSION_SEQUENCE_OF(r, digit_between(r, '0', (char)(*high - 1)), any_digits(r, rest, rest)));
}

static const struct expression *between(struct rules *r, const char *low, const char *high) {
    if (!*low) return empty(r);
    if (*low == *high) return EXPRESSION_SEQUENCE_OF(r, digit(r, *low), between(r, low + 1, high + 1));
    const int rest = (int)strlen(low + 1);
    return EXPRESSION_CHOICE_OF(
        r, EXPRESSION_SEQUENCE_OF(r, digit(r, *low), at_least(r, low + 1)),
        EXPRESSION_SEQUENCE_OF(r, digit_between(r, (char)(*low + 1), (char)(*high - 1)), any_digits(r, rest, rest)),
        EXPRESSION_SEQUENCE_OF(r, digit(r, *high), at_most(r, high + 1)));
}

// Integers from low to high, or from low on.
static const struct expression *integers(struct rules *r, unsigned long long low, long long high, bool open) {
    struct expression_list list = {0};
    if (!open && (high < 0 || low > (unsigned long long)high)) return expression_nothing(r);
    char first[DIGITS], last[DIGITS], from[DIGITS], to[DIGITS];
    snprintf(first, sizeof first, "%llu", low);
    snprintf(last, sizeof last, "%lld", high);
    const int shortest = (int)strlen(first), longest = open ? shortest : (int)strlen(last);
    for (int n = shortest; n <= longest; n++) {
        snprintf(from, sizeof from, "1%0*d", n - 1, 0);
        from[n] = 0; // for n = 1 the zero is one too many
        memset(to, '9', (size_t)n);
        to[n] = 0;
        expression_list_add(r, &list, between(r, n == shortest ? first : from, !open && n == longest ? last : to));
    }
    if (open)
        expression_list_add(
            r, &list, EXPRESSION_SEQUENCE_OF(r, digit_between(r, '1', '9'), any_digits(r, longest, RULES_UNLIMITED)));
    return expression_choice(r, &list);
}

// ---- fractions: digits behind the point, of any length ----

static const struct expression *zeros(struct rules *r) {
    return expression_repeat(r, digit(r, '0'), 0, RULES_UNLIMITED);
}

static const struct expression *some(struct rules *r) { return any_digits(r, 0, RULES_UNLIMITED); }

// More than zero.
static const struct expression *above_zero(struct rules *r) {
    return EXPRESSION_SEQUENCE_OF(r, zeros(r), digit_between(r, '1', '9'), some(r));
}

static const struct expression *fraction_above(struct rules *r, const char *low, bool excluded) {
    if (!*low) return excluded ? above_zero(r) : some(r);
    return EXPRESSION_CHOICE_OF(r, EXPRESSION_SEQUENCE_OF(r, digit_between(r, (char)(*low + 1), '9'), some(r)),
                                EXPRESSION_SEQUENCE_OF(r, digit(r, *low), fraction_above(r, low + 1, excluded)));
}

// What may follow digits that are those of the bound so far.
static const struct expression *fraction_rest_below(struct rules *r, const char *high, bool excluded) {
    if (!*high) return excluded ? expression_nothing(r) : zeros(r);
    return EXPRESSION_CHOICE_OF(r, empty(r),
                                EXPRESSION_SEQUENCE_OF(r, digit_between(r, '0', (char)(*high - 1)), some(r)),
                                EXPRESSION_SEQUENCE_OF(r, digit(r, *high), fraction_rest_below(r, high + 1, excluded)));
}

// Between two fractions of the same integer part; `ends`: digits may be over here as far as `low` goes.
static const struct expression *fraction_between(struct rules *r, const struct decimal *low, const char *a,
                                                 const struct decimal *high, const char *b, bool ends) {
    struct expression_list list = {0};
    if (!*b) { // a is at its end, too
        if (low->excluded || high->excluded) return expression_nothing(r);
        return ends ? zeros(r) : EXPRESSION_SEQUENCE_OF(r, digit(r, '0'), zeros(r));
    }
    const char first = *a ? *a : '0', *rest = *a ? a + 1 : a;
    if (ends && !*a && !low->excluded) expression_list_add(r, &list, empty(r));
    if (first == *b) {
        const struct expression *next = fraction_between(r, low, rest, high, b + 1, true);
        expression_list_add(r, &list, EXPRESSION_SEQUENCE_OF(r, digit(r, first), next));
        return expression_choice(r, &list);
    }
    const struct expression *above = EXPRESSION_SEQUENCE_OF(r, digit(r, first), fraction_above(r, rest, low->excluded));
    expression_list_add(r, &list, above);
    expression_list_add(r, &list,
                        EXPRESSION_SEQUENCE_OF(r, digit_between(r, (char)(first + 1), (char)(*b - 1)), some(r)));
    expression_list_add(r, &list,
                        EXPRESSION_SEQUENCE_OF(r, digit(r, *b), fraction_rest_below(r, b + 1, high->excluded)));
    return expression_choice(r, &list);
}

static const struct expression *pointed(struct rules *r, const struct expression *digits) {
    return EXPRESSION_SEQUENCE_OF(r, expression_literal(r, "."), digits);
}

static const struct expression *any_fraction(struct rules *r) {
    return expression_optional(r, pointed(r, any_digits(r, 1, RULES_UNLIMITED)));
}

static const struct expression *whole(struct rules *r, long long value, const struct expression *fraction) {
    char text[DIGITS];
    snprintf(text, sizeof text, "%lld", value);
    return EXPRESSION_SEQUENCE_OF(r, expression_literal(r, text), fraction);
}

static const struct expression *low_fraction(const struct range *g) {
    struct rules *r = g->rules;
    if (!*g->low.fraction && !g->low.excluded) return any_fraction(r);
    return pointed(r, fraction_above(r, g->low.fraction, g->low.excluded));
}

static const struct expression *high_fraction(const struct range *g) {
    struct rules *r = g->rules;
    const struct decimal *high = &g->high;
    if (!*high->fraction)
        return high->excluded ? expression_nothing(r)
                              : expression_optional(r, pointed(r, EXPRESSION_SEQUENCE_OF(r, digit(r, '0'), zeros(r))));
    const struct expression *below =
        EXPRESSION_CHOICE_OF(r, EXPRESSION_SEQUENCE_OF(r, digit_between(r, '0', (char)(*high->fraction - 1)), some(r)),
                             EXPRESSION_SEQUENCE_OF(r, digit(r, *high->fraction),
                                                    fraction_rest_below(r, high->fraction + 1, high->excluded)));
    return expression_optional(r, pointed(r, below));
}

static const struct expression *same_whole(const struct range *g) {
    struct rules *r = g->rules;
    const struct expression *digits = fraction_between(r, &g->low, g->low.fraction, &g->high, g->high.fraction, false);
    const bool plain = !*g->low.fraction && !g->low.excluded && (*g->high.fraction || !g->high.excluded);
    const struct expression *fraction = pointed(r, digits);
    return whole(r, g->low.whole, plain ? expression_optional(r, fraction) : fraction);
}

static int compare(const struct decimal *a, const struct decimal *b) {
    if (a->whole != b->whole) return a->whole < b->whole ? -1 : 1;
    return strcmp(a->fraction, b->fraction);
}

// Magnitudes in a range.
static const struct expression *magnitudes(const struct range *g) {
    struct rules *r = g->rules;
    const long long high = g->high.whole;
    const unsigned long long low = (unsigned long long)g->low.whole; // low + 1 may be 2⁶³
    if (!g->open && compare(&g->low, &g->high) > 0) return expression_nothing(r);
    if (g->integers) {
        const bool above = *g->low.fraction || g->low.excluded, below = !*g->high.fraction && g->high.excluded;
        return integers(r, low + above, high - below, g->open);
    }
    if (!g->open && g->low.whole == high) return same_whole(g);
    struct expression_list list = {0};
    expression_list_add(r, &list, whole(r, g->low.whole, low_fraction(g)));
    const struct expression *inner = integers(r, low + 1, high - 1, g->open);
    expression_list_add(r, &list, EXPRESSION_SEQUENCE_OF(r, inner, any_fraction(r)));
    if (!g->open) expression_list_add(r, &list, whole(r, high, high_fraction(g)));
    return expression_choice(r, &list);
}

// ---- both signs ----

// The magnitude of a bound; its shortest digits that mean the same.
static struct decimal decimal_of(double value, bool excluded) {
    struct decimal d = {.excluded = excluded};
    char text[64];
    value = fabs(value);
    for (int places = 0; places < 20; places++) {
        snprintf(text, sizeof text, "%.*f", places, value);
        if (strtod(text, NULL) == value) break;
    }
    const char *point = strchr(text, '.');
    d.whole = strtoll(text, NULL, 10);
    snprintf(d.fraction, sizeof d.fraction, "%.30s", point ? point + 1 : "");
    return d;
}

static const struct expression *bounded(struct schema *s, const struct shape *shape) {
    struct rules *r = s->rules;
    const struct bound *least = &shape->least, *most = &shape->most;
    struct range range = {.rules = r, .integers = !(shape->types & TYPE_FRACTION)};
    struct expression_list list = {0};
    if (!most->given || most->value >= 0) {
        const bool above = least->given && least->value >= 0;
        range.low = above ? decimal_of(least->value, least->excluded) : (struct decimal){0};
        range.open = !most->given;
        range.high = most->given ? decimal_of(most->value, most->excluded) : (struct decimal){0};
        expression_list_add(r, &list, magnitudes(&range));
    }
    if (!least->given || least->value < 0) {
        const bool below = most->given && most->value < 0;
        range.low = below ? decimal_of(most->value, most->excluded) : (struct decimal){.excluded = true}; // no −0
        range.open = !least->given;
        range.high = least->given ? decimal_of(least->value, least->excluded) : (struct decimal){0};
        expression_list_add(r, &list, EXPRESSION_SEQUENCE_OF(r, expression_literal(r, "-"), magnitudes(&range)));
    }
    return expression_choice(r, &list);
}

// ---- multiples ----

// What may follow digits with a remainder: nothing if that is 0; or further digits, where `next` is the first of the
// rules for each remainder with them. −1: none may.
static const struct expression *multiple_rest(struct rules *r, int n, int remainder, int next) {
    struct expression_list list = {0};
    if (!remainder) expression_list_add(r, &list, empty(r));
    for (int d = 0; d < 10 && next >= 0; d++) {
        const struct expression *rest = expression_rule(r, next + (remainder * 10 + d) % n);
        expression_list_add(r, &list, EXPRESSION_SEQUENCE_OF(r, digit(r, (char)('0' + d)), rest));
    }
    return expression_choice(r, &list);
}

// Magnitudes above 0: a rule for each remainder of the digits so far, and for how many more may come: any number of
// them, or up to `most` in all.
static const struct expression *multiples(struct schema *s, int n, int most) {
    struct rules *r = s->rules;
    const int first = r->n, layers = most == RULES_UNLIMITED ? 1 : most;
    for (int i = 0; i < n * layers; i++)
        if (rules_add(r, span_of("multiple"), s->st) < 0) return NULL;
    for (int i = 0; i < n * layers; i++)
        r->rules[first + i].body = multiple_rest(r, n, i % n,
                                                 most == RULES_UNLIMITED ? first
                                                 : i < n                 ? -1
                                                                         : first + (i / n - 1) * n);
    struct expression_list list = {0};
    for (int d = 1; d < 10; d++) {
        const struct expression *rest = expression_rule(r, first + (layers - 1) * n + d % n);
        expression_list_add(r, &list, EXPRESSION_SEQUENCE_OF(r, digit(r, (char)('0' + d)), rest));
    }
    return expression_choice(r, &list);
}

// Between bounds as generators write them: 0, or beyond all numbers of so many digits that are told.
static const struct expression *integer_multiples(struct schema *s, const struct shape *shape, int n) {
    struct rules *r = s->rules;
    const struct bound *least = &shape->least, *most = &shape->most;
    const bool positive = least->given && least->value == 0, bounded = most->given || (least->given && !positive);
    if (bounded && n > LARGEST_BOUNDED_MULTIPLE) return NULL;
    if ((most->given && most->value < LARGEST_MULTIPLES) ||
        (least->given && !positive && least->value > -LARGEST_MULTIPLES))
        return NULL;
    const struct expression *above = multiples(s, n, bounded ? MULTIPLE_DIGITS : RULES_UNLIMITED);
    if (!above) return NULL;
    if (!positive) above = EXPRESSION_SEQUENCE_OF(r, expression_optional(r, expression_literal(r, "-")), above);
    return positive && least->excluded ? above : EXPRESSION_CHOICE_OF(r, expression_literal(r, "0"), above);
}

static const struct expression *make_multiples(struct schema *s, const json_t *where, const struct shape *shape) {
    struct rules *r = s->rules;
    const double multiple = shape->multiple;
    const bool has_bounds = shape->least.given || shape->most.given;
    if (multiple == floor(multiple) && multiple <= LARGEST_MULTIPLE) {
        struct shape own = *shape;
        own.types &= ~(unsigned)TYPE_FRACTION;
        own.multiple = 0;
        if (multiple == 1) return schema_number(s, where, &own);
        const struct expression *e = integer_multiples(s, shape, (int)multiple);
        if (!e) goto unsupported;
        return e;
    }
    for (int places = 1; places <= MOST_PLACES && !has_bounds; places++) {
        if (multiple != strtod((char[]){'1', 'e', '-', (char)('0' + places / 10), (char)('0' + places % 10), 0}, NULL))
            continue;
        const struct expression *fraction = pointed(r, any_digits(r, 1, places));
        if (!(shape->types & TYPE_FRACTION)) fraction = empty(r);
        return EXPRESSION_SEQUENCE_OF(r, json_text_integer(r), expression_optional(r, fraction));
    }
unsupported:
    schema_fail(s, where, STATUS_UNSUPPORTED, "multipleOf %g%s is not supported", multiple,
                has_bounds ? " with a minimum or maximum" : "");
    return NULL;
}

static bool is_near(const struct bound *b) {
    const double size = fabs(b->value);
    return !b->given || size == 0 || (size <= LARGEST_BOUND && size >= SMALLEST_BOUND);
}

const struct expression *schema_number(struct schema *s, const json_t *where, const struct shape *shape) {
    struct rules *r = s->rules;
    if (shape->multiple > 0) return make_multiples(s, where, shape);
    if (!is_near(&shape->least) || !is_near(&shape->most))
        return schema_fail(s, where, STATUS_UNSUPPORTED,
                           "bounds beyond %.0e or closer to 0 than %.0e are not supported", LARGEST_BOUND,
                           SMALLEST_BOUND),
               NULL;
    if (shape->least.given || shape->most.given) return bounded(s, shape);
    return shape->types & TYPE_FRACTION ? json_text_number(r) : json_text_integer(r);
}
