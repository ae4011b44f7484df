// Fuzzes grammars: a byte that says which kind, then the source. What compiles is held to: a text of tokens that the
// masks allow grows, and each of them fits.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/grammar/grammar.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/grammar_text.h"

enum { STEPS = 24 };

static const char *const seeds[] = {
    "0",
    "1{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\", \"minimum\": -12.5, \"maximum\": 99}, "
    "\"b\": "
    "{\"enum\": [1, \"x\", null]}}, \"required\": [\"a\"], \"additionalProperties\": false}",
    "1{\"$defs\": {\"n\": {\"type\": \"array\", \"prefixItems\": [{\"const\": {\"k\": [1.5]}}], \"items\": {\"$ref\": "
    "\"#/$defs/n\"}, \"maxItems\": 3}}, \"anyOf\": [{\"$ref\": \"#/$defs/n\"}, {\"type\": [\"null\", \"string\"]}]}",
    "1{\"type\": \"string\", \"pattern\": \"^[a-z\\\"]{2,}é?$\", \"maxLength\": 9}",
    "1{\"oneOf\": [{\"type\": \"number\", \"exclusiveMinimum\": 0, \"maximum\": 0.75}, {\"type\": \"string\", "
    "\"format\": "
    "\"date-time\"}], \"allOf\": [{\"not\": {\"type\": \"null\"}}]}",
    "1{\"type\": \"object\", \"properties\": {\"foo\": {}, \"fob\": false}, \"dependentRequired\": {\"foo\": "
    "[\"bar\"]}, "
    "\"propertyNames\": {\"type\": \"string\"}, \"minProperties\": 1}",
    "2^(a|b[^c-e\\\\d]*)+?(?:x{2,5}|\\\\u00e9\\\\w)\\\\.$",
    "3root ::= item (\",\" item)* # c\nitem ::= \"(\" root \")\" | [a-z0-9]{1,3} | \"\\x41\" .?\n",
    "3root ::= a \"x\" | b\na ::= \"y\" a | \"\"\nb ::= (a | \"z\")+\n",
    "4[\"yes\", \"no\", \"\\u00e9 \\n\"]",
};

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= sizeof seeds / sizeof *seeds) return NULL;
    *size = strlen(seeds[k]);
    return (uint8_t *)xstrdup(seeds[k]);
}

// The next token that is allowed, from one on that depends on the step; −1: none.
static int32_t choose(const uint32_t *mask, int n, int step) {
    for (int i = 0; i < n; i++) {
        const int32_t token = (step * 131 + 7 + i) % n;
        if (mask[token / 32] >> token % 32 & 1) return token;
    }
    return -1;
}

static void walk(struct machine *m) {
    const struct lexicon *l = machine_lexicon(m);
    uint32_t *mask = xcalloc((size_t)l->n_words, sizeof *mask);
    struct position at;
    struct status st = {0};
    bool fits = true, may_end, goes_on;
    if (!machine_start(m, false, &at, &st)) abort();
    for (int i = 0; i < STEPS; i++) {
        if (!machine_mask(m, at, mask, &st) || !machine_look(m, at, &may_end, &goes_on, &st)) break;
        struct position forced = at;
        char bytes[16];
        size_t n;
        if (!machine_forced(m, at, bytes, sizeof bytes, &n, &st)) break;
        if (!machine_advance(m, &forced, (struct span){bytes, n}, &fits, &st)) break;
        if (!fits) abort();
        const int32_t token = choose(mask, l->n_tokens, i);
        if (token < 0 && !may_end) abort();
        if (token < 0) break;
        if (!machine_advance(m, &at, l->texts[token], &fits, &st)) break;
        if (!fits) abort();
    }
    if (st.code != STATUS_OK && st.code != STATUS_LIMIT) abort();
    free(mask);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct lexicon *lexicon;
    if (!lexicon) lexicon = lexicon_of_pieces(600, 5);
    if (!size) return 0;
    char *text = exact_copy(data + 1, size - 1);
    struct status st = {0};
    struct grammar *g =
        grammar_compile((enum grammar_kind)((uint8_t)(*data - '0') % GRAMMAR_KIND_COUNT), text, size - 1, &st);
    if (!g && (st.code == STATUS_OK || !*st.text)) abort();
    if (g) {
        struct machine *m = grammar_machine(g, lexicon);
        walk(m);
        machine_drop(m);
        grammar_drop(g);
    }
    free(text);
    return 0;
}
