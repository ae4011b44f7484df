// JSON schemas: which texts match, and what is refused.
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

#define N(a) (sizeof(a) / sizeof *(a))

static void test_types_and_texts(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"true",
         {"1", "-0.5e-3", "\"a\"", "null", "[1, [], {}]", "{\"a\": true}", "{ }", "[\n  1,\n  2\n]"},
         {"", "01", "1.", "nul", "[1,]", "{\"a\"}", "{a:1}", "'a'", "1 ", " 1", "\"\t\"", "+1", ".5"}},
        {"{\"type\": \"string\"}",
         {"\"\"", "\"é\\\"\\\\\\/\\n\\u00e9\"", "\"\\ud83d\\ude00\"", "\"😀\""},
         {"\"", "\"\\x\"", "\"\\u12\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\\u0000\"", "\"\n\"", "\"\x80\"", "1"}},
        {"{\"type\": [\"integer\", \"null\"]}", {"0", "-12", "null"}, {"1.5", "1e3", "-", "\"\""}},
        {"{\"type\": \"object\"}", {"{}", "{\"a\":1,\"b\":[]}"}, {"[]", "1"}},
    };
    check_grammar_cases(GRAMMAR_SCHEMA, cases, N(cases));
    static const struct grammar_case any = {
        "", {"{}", "{\"a\": {\"b\": [null]}}", "{\"a\":\"}\"}"}, {"[]", "1", "{", "{}x", "{}{}"}};
    check_grammar_cases(GRAMMAR_JSON, &any, 1);
}

// Schemas as zod, zod-to-json-schema and pydantic make them.
static void test_what_generators_write(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"type\": \"integer\", \"minimum\": "
         "-9007199254740991, \"maximum\": 9007199254740991}",
         {"0", "-9007199254740991", "9007199254740991", "42"},
         {"9007199254740992", "-9007199254740992", "10000000000000000", "1.5"}},
        {"{\"type\": \"integer\", \"minimum\": -9223372036854775808, \"maximum\": 9223372036854775807}",
         {"9223372036854775807", "-1"},
         {"9223372036854775808", "10000000000000000000"}},
        {"{\"type\": \"string\", \"format\": \"date\", \"pattern\": \"^(?:\\\\d{4}-(?:0[1-9]|1[02])-\\\\d\\\\d)$\"}",
         {"\"2026-12-27\""},
         {"\"2026-13-27\"", "\"\""}},
        {"{\"type\": \"string\", \"format\": \"cuid\", \"pattern\": \"^[cC][0-9a-z]{6,}$\"}",
         {"\"c123456\""},
         {"\"c1\""}},
        {"{\"type\": \"string\", \"format\": \"uri\", \"minLength\": 1, \"maxLength\": 50, \"title\": \"Url\"}",
         {"\"https://example.org/a?b=c\""},
         {"\"https://example.org/01234567890123456789012345678901234567890123456789\"", "\"\""}},
        {"{\"type\": \"string\", \"format\": \"binary\", \"maxLength\": 3}", {"\"\"", "\"é x\""}, {"\"abcd\""}},
        {"{\"type\": \"string\", \"pattern\": \"^(?!^[-+.]*$)[+-]?0*\\\\d*\\\\.?\\\\d*$\"}",
         {"\"1\"", "\"-0.5\"", "\"+.5\"", "\"007.\""},
         {"\"\"", "\"-\"", "\".\"", "\"1.2.3\""}},
        {"{\"type\": \"object\", \"propertyNames\": {\"type\": \"string\", \"enum\": [\"a\", \"b\", \"c\"]}, "
         "\"additionalProperties\": {\"type\": \"number\"}, \"required\": [\"a\", \"b\"]}",
         {"{\"a\":1,\"b\":2.5}", "{\"a\":1,\"b\":2,\"c\":3}"},
         {"{\"a\":1}", "{\"a\":1,\"b\":2,\"d\":3}", "{\"a\":1,\"b\":\"x\"}"}},
        {"{\"type\": \"object\", \"patternProperties\": {\"^a\": {\"type\": \"integer\"}}}",
         {"{}", "{\"a\":1,\"ab\":2}"},
         {"{\"a\":\"x\"}"}},
        {"{\"type\": \"object\", \"properties\": {\"o\": {\"anyOf\": [{\"$ref\": \"#/$defs/O\"}, {\"type\": "
         "\"null\"}], "
         "\"default\": null}}, \"title\": \"T\", \"$defs\": {\"O\": {\"type\": \"object\", \"properties\": {\"k\": "
         "{\"const\": "
         "\"x\", \"title\": \"K\", \"type\": \"string\"}}, \"required\": [\"k\"]}}}",
         {"{}", "{\"o\":null}", "{\"o\":{\"k\":\"x\"}}"},
         {"{\"o\":1}", "{\"o\":{\"k\":\"y\"}}"}},
        {"{\"type\": \"integer\", \"minimum\": -9007199254740991, \"maximum\": 9007199254740991, \"multipleOf\": 5}",
         {"0", "-15", "100", "999999999999995"},
         {"7", "-0", "05", "1000000000000000000", "1.5"}},
        {"{\"type\": \"integer\", \"exclusiveMinimum\": 0, \"maximum\": 9007199254740991, \"multipleOf\": 7}",
         {"7", "700"},
         {"0", "-7", "8"}},
        {"{\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/C\"}, \"uniqueItems\": true, \"$defs\": {\"C\": "
         "{\"enum\": "
         "[\"red\", \"blue\", 3], \"title\": \"C\"}}}",
         {"[]", "[\"red\"]", "[\"blue\", 3]", "[3,\"red\",\"blue\"]"},
         {"[\"red\",\"red\"]", "[3,\"blue\",3]", "[4]", "[3,]", "[,3]"}},
        {"{\"type\": \"array\", \"items\": {\"type\": \"string\", \"enum\": [\"a\", \"b\", \"c\"]}, \"uniqueItems\": "
         "true, "
         "\"minItems\": 1, \"maxItems\": 2}",
         {"[\"a\"]", "[\"c\",\"a\"]"},
         {"[]", "[\"a\",\"b\",\"c\"]", "[\"b\",\"b\"]"}},
        {"{\"type\": \"string\", \"format\": \"base64\"}", {"\"\"", "\"YWI=\"", "\"YWJj\""}, {"\"YWI\"", "\"=\""}},
    };
    check_grammar_cases(GRAMMAR_SCHEMA, cases, N(cases));
}

static void test_objects(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": {}, \"c\": {\"const\": 1}}, "
         "\"required\": [\"b\"], \"additionalProperties\": false}",
         {"{\"b\":null}", "{\"a\": 1, \"b\": 2}", "{\"a\":1,\"b\":2,\"c\":1}", "{\"b\": \"x\", \"c\": 1}"},
         {"{}", "{\"a\":1}", "{\"b\":1,\"a\":1}", "{\"a\":\"x\",\"b\":1}", "{\"b\":1,\"c\":2}", "{\"b\":1,\"d\":1}",
          "{\"b\":1,}", "{,\"b\":1}", "{\"b\":1\"c\":1}"}},
        {"{\"type\": \"object\", \"properties\": {\"foo\": {\"type\": \"integer\"}, \"fó\\n\": false}}",
         {"{}", "{\"foo\":1}", "{\"fo\":\"x\",\"fooo\":\"y\",\"é\":1,\"\":2}", "{\"fò\":1}", "{\"fó\":1}"},
         {"{\"foo\":\"x\"}", "{\"x\":1,\"foo\":\"x\"}", "{\"f\\u006fo\":\"x\"}", "{\"fó\\n\":1}"}},
        {"{\"type\": \"object\", \"additionalProperties\": {\"type\": \"integer\"}, \"minProperties\": 1, "
         "\"maxProperties\": 2}",
         {"{\"a\":1}", "{\"a\":1, \"b\":2}"},
         {"{}", "{\"a\":\"\"}", "{\"a\":1,\"b\":2,\"c\":3}"}},
        {"{\"type\": \"object\", \"patternProperties\": {\"^x_\": {\"type\": \"integer\"}}, \"additionalProperties\": "
         "false}",
         {"{}", "{\"x_a\":1,\"x_\":2}"},
         {"{\"y\":1}", "{\"x_a\":\"\"}"}},
        {"{\"type\": \"object\", \"required\": [\"a\"]}",
         {"{\"a\":1,\"b\":2}"},
         {"{}", "{\"b\":2}", "{\"b\":2,\"a\":1}"}},
        {"{\"properties\": {\"a\": {\"type\": \"null\"}}, \"maxProperties\": 0}",
         {"{}", "{ }", "[1]"},
         {"{\"a\":null}"}},
    };
    check_grammar_cases(GRAMMAR_SCHEMA, cases, N(cases) - 1);
}

static void test_arrays(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"{\"type\": \"array\", \"items\": {\"type\": \"integer\"}}",
         {"[]", "[1]", "[1, 2,3]", "[ ]"},
         {"[1,\"a\"]", "[,]", "[1 2]", "{}"}},
        {"{\"type\": \"array\", \"items\": {\"type\": \"null\"}, \"minItems\": 2, \"maxItems\": 3}",
         {"[null,null]", "[null, null, null]"},
         {"[]", "[null]", "[null,null,null,null]"}},
        {"{\"type\": \"array\", \"prefixItems\": [{\"const\": 1}, {\"const\": 2}], \"items\": {\"const\": 3}}",
         {"[]", "[1]", "[1,2]", "[1,2,3,3]"},
         {"[2]", "[1,3]", "[1,2,2]"}},
        {"{\"type\": \"array\", \"prefixItems\": [{\"const\": 1}, {\"const\": 2}], \"items\": false, \"minItems\": 1}",
         {"[1]", "[1,2]"},
         {"[]", "[1,2,3]"}},
        {"{\"type\": \"array\", \"prefixItems\": [{\"const\": 1}], \"minItems\": 3}",
         {"[1,2,3]", "[1,null,{},4]"},
         {"[1]", "[1,2]", "[2,2,2]"}},
        {"{\"type\": \"array\", \"prefixItems\": [{}, {}], \"maxItems\": 1}", {"[]", "[1]"}, {"[1,2]"}},
        {"{\"type\": \"array\", \"maxItems\": 0}", {"[]"}, {"[1]"}},
        {"{\"type\": \"array\", \"items\": [{\"const\": 1}], \"additionalItems\": {\"const\": 2}}",
         {"[1,2,2]"},
         {"[1,1]"}},
    };
    check_grammar_cases(GRAMMAR_SCHEMA, cases, N(cases));
}

static void test_strings(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"{\"type\": \"string\", \"minLength\": 2, \"maxLength\": 3}",
         {"\"ab\"", "\"éèê\"", "\"\\n\\u00e9\"", "\"\\ud83d\\ude00x\""},
         {"\"a\"", "\"\"", "\"abcd\"", "\"é\""}},
        {"{\"type\": \"string\", \"pattern\": \"^a.[\\\"\\\\\\\\\\n]$\"}",
         {"\"ax\\\"\"", "\"aé\\\\\"", "\"a\\\\\\n\""},
         {"\"a\\n\\n\"", "\"ax\\\"x\"", "\"ax\"", "\"xax\\\"\""}},
        {"{\"type\": \"string\", \"pattern\": \"b|^c$\"}",
         {"\"b\"", "\"xxbyy\"", "\"c\"", "\"\\\"b\\n\""},
         {"\"\"", "\"cc\"", "\"x\""}},
        {"{\"type\": \"string\", \"pattern\": \"^[a-z\\\"]+$\", \"minLength\": 2, \"maxLength\": 3}",
         {"\"ab\"", "\"a\\\"c\""},
         {"\"a\"", "\"abcd\"", "\"A\""}},
        {"{\"type\": \"string\", \"pattern\": \"^a(b|cd)?$\", \"maxLength\": 3}", {"\"a\"", "\"acd\""}, {"\"ac\""}},
        {"{\"type\": \"string\", \"format\": \"date\"}",
         {"\"2024-02-29\"", "\"1999-12-31\""},
         {"\"2023-02-29\"", "\"2023-04-31\"", "\"2023-13-01\"", "\"23-01-01\"", "\"1900-02-29\""}},
        {"{\"type\": \"string\", \"format\": \"date-time\"}",
         {"\"2024-02-29T23:59:59Z\"", "\"2024-01-01T00:00:00.123+02:00\""},
         {"\"2024-02-29\"", "\"2024-02-29T24:00:00Z\"", "\"2024-02-29T23:59:59\""}},
        {"{\"type\": \"string\", \"format\": \"ipv4\"}",
         {"\"127.0.0.1\""},
         {"\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""}},
        {"{\"type\": \"string\", \"format\": \"ipv6\"}",
         {"\"::1\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::\""},
         {"\"1:2\"", "\":::1\""}},
        {"{\"type\": \"string\", \"format\": \"uuid\"}",
         {"\"2EB8AA08-AA98-11EA-B4AA-73B441D16380\""},
         {"\"2eb8aa08-aa98-11ea-b4aa-73b441d1638\""}},
        {"{\"type\": \"string\", \"format\": \"email\"}", {"\"a.b@c.org\""}, {"\"a\"", "\".a@c.org\"", "\"a@\""}},
    };
    check_grammar_cases(GRAMMAR_SCHEMA, cases, N(cases));
}

static void test_numbers(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"{\"type\": \"integer\", \"minimum\": -12, \"maximum\": 105}",
         {"-12", "-9", "-1", "0", "7", "99", "100", "105"},
         {"-13", "-20", "106", "200", "1000", "-0", "1.0", "007"}},
        {"{\"type\": \"integer\", \"exclusiveMinimum\": 9}", {"10", "11", "99999"}, {"9", "8", "0", "-10"}},
        {"{\"type\": \"integer\", \"maximum\": -3.5}", {"-4", "-10", "-777"}, {"-3", "0", "4"}},
        {"{\"type\": \"number\", \"minimum\": -1.5, \"exclusiveMaximum\": 12.25}",
         {"-1.5", "-1", "-1.499", "0", "0.0", "12", "12.2", "12.2499", "9.99", "11"},
         {"-1.51", "-2", "12.25", "12.250", "12.3", "13", "100", "1e1", "12."}},
        {"{\"type\": \"number\", \"minimum\": 0.2, \"maximum\": 0.85}",
         {"0.2", "0.20", "0.5", "0.85", "0.850", "0.8"},
         {"0", "0.19", "0.851", "0.9", "1", "0.1"}},
        {"{\"type\": \"number\", \"exclusiveMinimum\": 0, \"maximum\": 1}",
         {"0.001", "1", "1.0", "0.5"},
         {"0", "0.0", "1.01", "-1", "2"}},
        {"{\"type\": \"number\", \"exclusiveMinimum\": 0, \"exclusiveMaximum\": 0.5}",
         {"0.1", "0.49", "0.01"},
         {"0", "0.0", "0.5", "0.50", "0.51", "1"}},
        {"{\"type\": \"number\", \"minimum\": 2, \"maximum\": 2}", {"2", "2.0"}, {"2.1", "1", "-2"}},
        {"{\"type\": \"number\", \"minimum\": 3, \"maximum\": 2}", {NULL}, {NULL}},
        {"{\"type\": \"integer\", \"multipleOf\": 7}", {"0", "7", "14", "-21", "700"}, {"1", "15", "70.0", "-"}},
        {"{\"type\": \"number\", \"multipleOf\": 0.01}", {"0.1", "-3.25", "4"}, {"0.001", "1e2"}},
        {"{\"type\": \"number\", \"minimum\": 1, \"exclusiveMinimum\": true}", {"1.1", "2"}, {"1", "1.0"}},
        {"{\"type\": \"number\", \"minimum\": 9223372036854775807}",
         {"9223372036854775807.5", "9223372036854775808", "9300000000000000000", "10000000000000000000.5"},
         {"9223372036854775806", "9223372036854775806.5", "-9223372036854775808", "0"}},
        {"{\"type\": \"integer\", \"exclusiveMinimum\": 9223372036854775807}",
         {"9223372036854775808", "10000000000000000000"},
         {"9223372036854775807", "-1"}},
    };
    check_grammar_cases(GRAMMAR_SCHEMA, cases, 8);
    check_grammar_cases(GRAMMAR_SCHEMA, cases + 9, N(cases) - 9);
}

static void test_combinations(void **state) {
    (void)state;
    static const struct grammar_case cases[] = {
        {"{\"enum\": [1, \"a\", null, [1, {\"b\": 2}], 2.5]}",
         {"1", "\"a\"", "null", "[1, {\"b\": 2}]", "[1,{\"b\":2}]", "2.5"},
         {"2", "\"b\"", "[1]", "2.50"}},
        {"{\"enum\": [1, \"a\", \"abc\", 7], \"type\": [\"string\", \"integer\"], \"maxLength\": 2, \"minimum\": 2}",
         {"\"a\"", "7"},
         {"1", "\"abc\""}},
        {"{\"const\": {\"a\": 1}}", {"{\"a\": 1}", "{\"a\":1}"}, {"{}", "{\"a\":2}"}},
        {"{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"integer\", \"minimum\": 5}], \"maximum\": 7}",
         {"\"x\"", "5", "7"},
         {"4", "8", "null"}},
        {"{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}", {"\"\"", "null"}, {"1"}},
        {"{\"oneOf\": [{\"properties\": {\"k\": {\"const\": \"a\"}}, \"required\": [\"k\"], \"type\": \"object\"}, "
         "{\"properties\": {\"k\": {\"enum\": [\"b\", \"c\"]}, \"n\": {\"type\": \"integer\"}}, \"required\": [\"k\", "
         "\"n\"], \"type\": \"object\"}]}",
         {"{\"k\":\"a\"}", "{\"k\":\"c\",\"n\":1}"},
         {"{\"k\":\"b\"}", "{\"k\":\"d\"}", "{\"k\":\"c\",\"n\":\"\"}"}},
        {"{\"allOf\": [{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}}, {\"properties\": "
         "{\"a\": "
         "{\"minimum\": 3}, \"b\": {\"type\": \"null\"}}, \"required\": [\"a\"]}]}",
         {"{\"a\":3}", "{\"a\":4,\"b\":null}", "{\"a\":5,\"c\":1}"},
         {"{}", "{\"a\":2}", "{\"a\":\"\"}", "{\"a\":3,\"b\":1}"}},
        {"{\"allOf\": [{\"properties\": {\"a\": {}}, \"additionalProperties\": false}, {\"properties\": {\"b\": {}}}], "
         "\"type\": \"object\"}",
         {"{}", "{\"a\":1}"},
         {"{\"b\":1}", "{\"c\":1}"}},
        {"{\"$ref\": \"#/$defs/node\", \"$defs\": {\"node\": {\"type\": \"object\", \"properties\": {\"v\": {\"type\": "
         "\"integer\"}, \"next\": {\"anyOf\": [{\"$ref\": \"#/$defs/node\"}, {\"type\": \"null\"}]}}, \"required\": "
         "[\"v\", "
         "\"next\"], \"additionalProperties\": false}}}",
         {"{\"v\":1,\"next\":null}", "{\"v\": 1, \"next\": {\"v\": 2, \"next\": {\"v\": 3, \"next\": null}}}"},
         {"{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2}}", "{\"v\":1,\"next\":{\"v\":\"\",\"next\":null}}"}},
        {"{\"items\": {\"$ref\": \"#\"}, \"type\": \"array\"}", {"[]", "[[],[[]]]"}, {"[1]"}},
        {"{\"properties\": {\"a/b~c\": {\"const\": 1}, \"d\": {\"$ref\": \"#/properties/a~1b~0c\"}}, \"type\": "
         "\"object\"}",
         {"{\"d\":1}"},
         {"{\"d\":2}"}},
        {"{\"$defs\": {\"x\": {\"$anchor\": \"here\", \"type\": \"null\"}}, \"$ref\": \"#here\"}", {"null"}, {"1"}},
        {"{\"not\": {\"type\": [\"object\", \"number\", \"string\"]}}",
         {"null", "[1]", "true"},
         {"1", "\"\"", "{}", "1.5"}},
        {"{\"type\": \"object\", \"propertyNames\": {\"enum\": [\"a\", \"b\"]}, \"additionalProperties\": {\"type\": "
         "\"integer\"}}",
         {"{}", "{\"a\":1,\"b\":2}"},
         {"{\"c\":1}", "{\"a\":\"\"}"}},
        {"{\"type\": \"object\", \"properties\": {\"a\": {}, \"b\": {}, \"c\": {}}, \"propertyNames\": {\"type\": "
         "\"string\"}, "
         "\"dependentRequired\": {\"a\": [\"b\"]}, \"dependentSchemas\": {\"c\": {\"properties\": {\"b\": {\"const\": "
         "1}}}}, "
         "\"additionalProperties\": false}",
         {"{}", "{\"b\":2}", "{\"a\":1,\"b\":2}", "{\"b\":1,\"c\":3}", "{\"c\":3}"},
         {"{\"a\":1}", "{\"b\":2,\"c\":3}", "{\"a\":1,\"c\":3}"}},
        {"{\"oneOf\": [{\"type\": \"object\", \"properties\": {\"k\": {\"const\": \"a\"}}}, {\"type\": \"object\", "
         "\"properties\": {\"k\": {\"const\": \"b\"}}}], \"discriminator\": {\"propertyName\": \"k\"}}",
         {"{\"k\":\"a\"}", "{\"k\":\"b\",\"n\":1}"},
         {"{}", "{\"k\":\"c\"}"}},
        {"{\"title\": \"t\", \"x-other\": 1, \"default\": 3, \"type\": \"boolean\"}", {"true", "false"}, {"1"}},
    };
    check_grammar_cases(GRAMMAR_SCHEMA, cases, N(cases));
}

static void test_what_is_refused_is_named(void **state) {
    (void)state;
    static const struct grammar_error errors[] = {
        {"{\"type\": 1}", "type: expected the name of a type, or a list of them"},
        {"{\"properties\": {\"a\": {\"not\": {\"minimum\": 1}}}}",
         "/properties/a: 'not' is not supported but for a type"},
        {"{\"not\": {\"type\": \"integer\"}}", "'not' is not supported for integers alone"},
        {"{\"items\": {\"contains\": {}}}", "/items: 'contains' is not supported"},
        {"{\"if\": {}, \"then\": {}}", "'if' is not supported"},
        {"{\"uniqueItems\": true}", "'uniqueItems' is supported for up to 8 values of an enum"},
        {"{\"uniqueItems\": true, \"items\": {\"enum\": [1, 1.0]}}",
         "'uniqueItems' is supported for up to 8 values of an enum"},
        {"{\"uniqueItems\": true, \"items\": {\"type\": \"string\", \"enum\": [\"a\", 1]}}",
         "'uniqueItems' is supported for up to 8 values of an enum"},
        {"{\"format\": \"colour\"}", "format 'colour' is not supported"},
        {"{\"type\": \"string\", \"pattern\": \"(?=x)\"}",
         "pattern: line 1, column 3: groups that look ahead or back, or change flags, are not supported"},
        {"{\"type\": \"string\", \"pattern\": \"x\", \"maxLength\": 3}",
         "this pattern with minLength or maxLength is not supported"},
        {"{\"properties\": {\"a\": {}}, \"propertyNames\": {\"maxLength\": 3}}",
         "'propertyNames' beside properties is not supported"},
        {"{\"maxLength\": 100000}", "maxLength: 100000 is too large (maximum 8192)"},
        {"{\"maxLength\": -1}", "maxLength: expected a number of at least 0"},
        {"{\"$ref\": \"#/$defs/x\"}", "$ref: '#/$defs/x' is not in the schema"},
        {"{\"$ref\": \"http://example.com/x\"}",
         "$ref: 'http://example.com/x': references to other documents are not supported"},
        {"{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}",
         "oneOf: a value may match both schema 0 and 1; anyOf would allow it"},
        {"{\"anyOf\": []}", "anyOf: expected an array of schemas"},
        {"{\"anyOf\": [{\"$ref\": \"#\"}]}", "the grammar matches no text"},
        {"{\"anyOf\": [{\"$ref\": \"#\"}, {\"type\": \"null\"}]}",
         "rule 'the schema' begins with itself (left recursion)"},
        {"{\"type\": \"integer\", \"anyOf\": [{\"$ref\": \"#\"}, {\"minimum\": 5}]}",
         "the schema contains itself as one of its alternatives"},
        {"{\"enum\": [[1, 1]], \"uniqueItems\": true}", "'uniqueItems' beside enum or const is not supported"},
        {"{\"minimum\": 3, \"maximum\": 2, \"type\": \"number\"}", "the grammar matches no text"},
        {"{\"minimum\": \"3\"}", "minimum: expected a number"},
        {"{\"properties\": {\"a\": 1}}", "/properties/a: expected a schema, that is an object, true or false"},
        {"{\"required\": [\"a\"], \"additionalProperties\": false, \"type\": \"object\"}",
         "the grammar matches no text"},
        {"false", "the schema allows nothing"},
        {"{\"a\": 1, \"a\": 2}", "line 1, column 12: duplicate object key near '\"a\"'"},
        {"{", "line 1, column 1: string or '}' expected near end of file"},
        {"3", "expected a schema, that is an object, true or false"},
    };
    check_grammar_errors(GRAMMAR_SCHEMA, errors, N(errors));
}

// A schema that multiplies by itself ends in an error, and soon.
static void test_schemas_that_multiply_are_refused(void **state) {
    (void)state;
    size_t size;
    char *text;
    FILE *f = open_memstream(&text, &size);
    fprintf(f, "{\"allOf\": [");
    for (int i = 0; i < 40; i++)
        fprintf(f, "%s{\"anyOf\": [{\"minimum\": %d}, {\"maximum\": %d}, {\"multipleOf\": %d}]}", i ? "," : "", i, i,
                i + 1);
    fprintf(f, "]}");
    fclose(f);
    struct status st = {0};
    assert_null(grammar_compile(GRAMMAR_SCHEMA, text, size, &st));
    assert_int_not_equal(st.code, STATUS_OK);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_texts),
        cmocka_unit_test(test_what_generators_write),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_what_is_refused_is_named),
        cmocka_unit_test(test_schemas_that_multiply_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
