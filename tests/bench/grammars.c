// grammars VOCABULARY.gguf: what holding answers to grammars costs, over the tokens of a real vocabulary.
//
// For each grammar a text that it matches is read token by token: the time to compile it, and the mean and the longest
// time of a token, that is to find out what may come next and to go on, when it is read for the first time and again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/format/gguf.h"
#include "engine/grammar/grammar.h"
#include "engine/text/tokenizer.h"

#define PERSON                                                                                                         \
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 60}, \"email\": {\"type\": "   \
    "\"string\", \"format\": \"email\"}, \"age\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 150}, "              \
    "\"about\": {\"type\": \"string\"}, \"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"maxItems\": "  \
    "8}, \"address\": {\"type\": \"object\", \"properties\": {\"street\": {\"type\": \"string\"}, \"city\": {\"enum\": "    \
    "[\"Oslo\", \"Bergen\", \"Trondheim\"]}, \"zip\": {\"type\": \"string\", \"pattern\": \"^[0-9]{4}$\"}}, \"required\": " \
    "[\"street\", \"city\"], \"additionalProperties\": false}, \"friends\": {\"type\": \"array\", \"items\": {\"$ref\": "   \
    "\"#\"}}}, \"required\": [\"name\", \"age\"], \"additionalProperties\": false}"
#define ANSWER                                                                                                         \
    "{\"name\": \"Ingrid Solberg-Haugen\", \"email\": \"ingrid.sol@example.org\", \"age\": 42, \"about\": \"She builds "    \
    "wooden boats on the west coast, writes about them, and says: \\\"Never trust a calm fjord.\\\" Its water is 8 °C.\", " \
    "\"tags\": [\"boats\", \"writing\", \"café\"], \"address\": {\"street\": \"Nygårdsgaten 5\", \"city\": \"Bergen\", "    \
    "\"zip\": \"5015\"}, \"friends\": [{\"name\": \"Ola\", \"age\": 7, \"friends\": []}, {\n    \"name\": \"Kari\",\n    "  \
    "\"age\": 9\n  }]}"

static const struct {
    const char *name;
    enum grammar_kind kind;
    const char *source, *text;
} cases[] = {
    {"schema", GRAMMAR_SCHEMA, PERSON, ANSWER},
    {"any JSON object", GRAMMAR_JSON, "", ANSWER},
    {"long string", GRAMMAR_SCHEMA, "{\"type\": \"string\", \"maxLength\": 2000}",
     "\"Once upon a time there was a little boat, and in it sat a girl who wanted to see the whole wide world. She rowed "
     "out of the fjord, past the skerries and the lighthouse, and never once looked back at the red houses.\""},
    {"words", GRAMMAR_GBNF, "root ::= word (\" \" word)* \".\"\nword ::= [a-zA-Z]+",
     "Once upon a time there was a little boat and in it sat a girl who wanted to see the whole wide world."},
    {"arithmetic", GRAMMAR_GBNF,
     "root ::= sum\nsum ::= product ([-+] product)*\nproduct ::= term ([*/] term)*\nterm ::= [0-9]+ | \"(\" sum \")\"",
     "(12+34)*(5-(6/7+8)*9)-1024*(3)+((((1))))"},
    {"regex", GRAMMAR_REGEX, "([A-Z][a-z]+, ){1,20}(and )?[A-Z][a-z]+\\.", "Anna, Bjarne, Cecilie, David, and Eva."},
};

struct times {
    double mean, most; // µs
};

static struct times read_text(struct machine *m, const struct token_list *ids) {
    uint32_t *mask = xcalloc((size_t)machine_lexicon(m)->n_words, sizeof *mask);
    struct position at;
    struct status st;
    struct times t = {0};
    bool fits, may_end, goes_on;
    if (!machine_start(m, false, &at, &st)) panic("%s", st.text);
    for (size_t i = 0; i < ids->count; i++) {
        const uint64_t start = clock_ns();
        if (!machine_mask(m, at, mask, &st)) panic("%s", st.text);
        const struct span text = machine_lexicon(m)->texts[ids->ids[i]];
        if (!machine_advance(m, &at, text, &fits, &st)) panic("%s", st.text);
        if (!machine_look(m, at, &may_end, &goes_on, &st)) panic("%s", st.text);
        const double took = (double)(clock_ns() - start) / 1000;
        if (!fits || !(mask[ids->ids[i] / 32] >> ids->ids[i] % 32 & 1))
            panic("token %zu '%.*s' is not allowed", i, (int)text.size, text.data);
        t.mean += took / (double)ids->count;
        if (took > t.most) t.most = took;
    }
    if (!may_end) panic("the text is not complete");
    free(mask);
    return t;
}

static void measure(int i, const struct tokenizer *tokenizer, struct lexicon *l) {
    struct token_list ids = {0};
    struct status st;
    const struct tokenizer_part part = {.text = cases[i].text, .size = strlen(cases[i].text)};
    tokenizer_encode_parts(tokenizer, &part, 1, true, &ids);
    const uint64_t start = clock_ns();
    struct grammar *g = grammar_compile(cases[i].kind, cases[i].source, strlen(cases[i].source), &st);
    if (!g) panic("%s: %s", cases[i].name, st.text);
    const double compiled = (double)(clock_ns() - start) / 1e6;
    struct machine *m = grammar_machine(g, l);
    const struct times first = read_text(m, &ids), again = read_text(m, &ids);
    printf("%-16s %6zu %9.2f %9.1f %9.1f %9.1f %9.1f\n", cases[i].name, ids.count, compiled, first.mean, first.most,
           again.mean, again.most);
    machine_drop(m);
    grammar_drop(g);
    free(ids.ids);
}

int main(int argc, char **argv) {
    struct gguf file;
    struct status st;
    if (argc != 2) panic("usage: grammars VOCABULARY.gguf");
    if (!gguf_open(&file, argv[1], &st)) panic("%s", st.text);
    struct tokenizer *t = tokenizer_open(&file, &st);
    if (!t) panic("%s", st.text);
    const int n = tokenizer_count(t);
    struct span *texts = xcalloc((size_t)n, sizeof *texts);
    for (int i = 0; i < n; i++) texts[i] = tokenizer_piece(t, i, false);
    const uint64_t start = clock_ns();
    struct lexicon *l = lexicon_open(texts, n);
    printf("%d tokens, sorted in %.0f ms\n\n", n, (double)(clock_ns() - start) / 1e6);
    printf("%-16s %6s %9s %9s %9s %9s %9s\n", "grammar", "tokens", "compiled", "first", "longest", "again", "longest");
    printf("%-16s %6s %9s %9s %9s %9s %9s\n", "", "", "ms", "µs/token", "µs", "µs/token", "µs");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) measure((int)i, t, l);
    lexicon_drop(l);
    free(texts);
    tokenizer_close(t);
    gguf_close(&file);
}
