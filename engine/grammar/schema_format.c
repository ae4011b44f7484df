// Formats of strings, as regular expressions of the whole string: usual spellings, not all.
#include <string.h>

#include "engine/grammar/schema_state.h"

#define FOURTH    "(0[48]|[2468][048]|[13579][26])" // but for 00
#define LEAP_YEAR "([0-9]{2}" FOURTH "|([02468][048]|[13579][26])00)"
#define DATE                                                                                                           \
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])" \
    ")"                                                                                                                \
    "|" LEAP_YEAR "-02-29)"
#define CLOCK       "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?"
#define ZONE        "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define OCTET       "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4        OCTET "(\\." OCTET "){3}"
#define HEX4        "[0-9a-fA-F]{1,4}"
#define SIDES(a, b) "(" HEX4 ":){1," #a "}(:" HEX4 "){1," #b "}" // of the groups that :: stands for
#define IPV6                                                                                                           \
    "(" HEX4 ":){7}" HEX4 "|(" HEX4 ":){1,7}:|(" HEX4 ":){1,6}:" HEX4                                                  \
    "|" SIDES(5, 2) "|" SIDES(4, 3) "|" SIDES(3, 4) "|" SIDES(2, 5) "|" SIDES(1, 6) "|:((:" HEX4 "){1,7}|:)"
#define BASE64     "([a-zA-Z0-9+/]{4})*([a-zA-Z0-9+/]{2}==|[a-zA-Z0-9+/]{3}=)?"
#define LABEL      "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
#define LOCAL_PART "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+"

static const struct {
    const char *name, *regex;
} formats[] = {
    {"date", DATE},
    {"time", CLOCK ZONE},
    {"date-time", DATE "T" CLOCK ZONE},
    {"duration", "P([0-9]+W|[0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"ipvanyaddress", IPV4 "|" IPV6}, // pydantic's
    {"base64", BASE64},
    {"byte", BASE64}, // OpenAPI's
    {"hostname", LABEL "(\\." LABEL "){0,7}"},
    {"email", LOCAL_PART "(\\." LOCAL_PART ")*@" LABEL "(\\." LABEL "){1,7}"},
    {"uri", "[a-zA-Z][a-zA-Z0-9+.-]{0,14}:[a-zA-Z0-9._~:/?#@!$&'()*+,;=%-]+"},
};

bool schema_format_is_note(const char *format) {
    static const char *const notes[] = {"binary", "password", "path", "file-path", "directory-path"};
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (!strcmp(notes[i], format)) return true;
    return false;
}

const char *schema_pattern(const char *pattern) {
    static const char *const same[][2] = {
        {"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$", "^[+-]?(\\d+\\.?\\d*|\\.\\d+)$"}, // pydantic's of a Decimal
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (!strcmp(same[i][0], pattern)) return same[i][1];
    return pattern;
}

const char *schema_format(const char *format) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, format)) return formats[i].regex;
    return NULL;
}
