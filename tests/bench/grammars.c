// grammars VOCABULARY.gguf: what holding answers to grammars costs, over the tokens of a real vocabulary.
//
// For each grammar a text that it matches is read token by token: the time to compile it, and the mean and the longest
// time of a token, that is to find out what may come next and to go on, when it is read for the first time, for the
// first time after the machine was prepared, and again. Then how long sources take that are made to take long.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/panic.h"
#include "engine/format/gguf.h"
#include "engine/grammar/grammar.h"
#include "engine/text/tokenizer.h"

#define PERSON                                                                                                         \
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 60}, \"email\": "         \
    "{\"type\": "                                                                                                      \
    "\"string\", \"format\": \"email\"}, \"age\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 150}, "         \
    "\"about\": {\"type\": \"string\"}, \"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, "           \
    "\"maxItems\": "                                                                                                   \
    "8}, \"address\": {\"type\": \"object\", \"properties\": {\"street\": {\"type\": \"string\"}, \"city\": "          \
    "{\"enum\": "                                                                                                      \
    "[\"Oslo\", \"Bergen\", \"Trondheim\"]}, \"zip\": {\"type\": \"string\", \"pattern\": \"^[0-9]{4}$\"}}, "          \
    "\"required\": "                                                                                                   \
    "[\"street\", \"city\"], \"additionalProperties\": false}, \"friends\": {\"type\": \"array\", \"items\": "         \
    "{\"$ref\": "                                                                                                      \
    "\"#\"}}}, \"required\": [\"name\", \"age\"], \"additionalProperties\": false}"
#define ANSWER                                                                                                         \
    "{\"name\": \"Ingrid Solberg-Haugen\", \"email\": \"ingrid.sol@example.org\", \"age\": 42, \"about\": \"She "      \
    "builds "                                                                                                          \
    "wooden boats on the west coast, writes about them, and says: \\\"Never trust a calm fjord.\\\" Its water is 8 "   \
    "°C.\", "                                                                                                         \
    "\"tags\": [\"boats\", \"writing\", \"café\"], \"address\": {\"street\": \"Nygårdsgaten 5\", \"city\": "         \
    "\"Bergen\", "                                                                                                     \
    "\"zip\": \"5015\"}, \"friends\": [{\"name\": \"Ola\", \"age\": 7, \"friends\": []}, {\n    \"name\": "            \
    "\"Kari\",\n    "                                                                                                  \
    "\"age\": 9\n  }]}"

static const struct {
    const char *name;
    enum grammar_kind kind;
    const char *source, *text;
} cases[] = {
    {"schema", GRAMMAR_SCHEMA, PERSON, ANSWER},
    {"any JSON object", GRAMMAR_JSON, "", ANSWER},
    {"long string", GRAMMAR_SCHEMA, "{\"type\": \"string\", \"maxLength\": 2000}",
     "\"Once upon a time there was a little boat, and in it sat a girl who wanted to see the whole wide world. She "
     "rowed "
     "out of the fjord, past the skerries and the lighthouse, and never once looked back at the red houses.\""},
    {"words", GRAMMAR_GBNF, "root ::= word (\" \" word)* \".\"\nword ::= [a-zA-Z]+",
     "Once upon a time there was a little boat and in it sat a girl who wanted to see the whole wide world."},
    {"arithmetic", GRAMMAR_GBNF,
     "root ::= sum\nsum ::= product ([-+] product)*\nproduct ::= term ([*/] term)*\nterm ::= [0-9]+ | \"(\" sum \")\"",
     "(12+34)*(5-(6/7+8)*9)-1024*(3)+((((1))))"},
    {"regex", GRAMMAR_REGEX, "([A-Z][a-z]+, ){1,20}(and )?[A-Z][a-z]+\\.", "Anna, Bjarne, Cecilie, David, and Eva."},
};

// Of the processor, for this thread: others who compute do not count.
static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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
        const uint64_t start = thread_ns();
        if (!machine_mask(m, at, mask, &st)) panic("%s", st.text);
        const struct span text = machine_lexicon(m)->texts[ids->ids[i]];
        if (!machine_advance(m, &at, text, &fits, &st)) panic("%s", st.text);
        if (!machine_look(m, at, &may_end, &goes_on, &st)) panic("%s", st.text);
        const double took = (double)(thread_ns() - start) / 1000;
        if (!fits || !(mask[ids->ids[i] / 32] >> ids->ids[i] % 32 & 1))
            panic("token %zu '%.*s' is not allowed", i, (int)text.size, text.data);
        t.mean += took / (double)ids->count;
        if (took > t.most) t.most = took;
    }
    if (!may_end) panic("the text is not complete");
    free(mask);
    return t;
}

static double ms_since(uint64_t start) { return (double)(thread_ns() - start) / 1e6; }

static void measure(int i, const struct tokenizer *tokenizer, struct lexicon *l) {
    struct token_list ids = {0};
    struct status st;
    const struct tokenizer_part part = {.text = cases[i].text, .size = strlen(cases[i].text)};
    tokenizer_encode_parts(tokenizer, &part, 1, true, &ids);
    uint64_t start = thread_ns();
    struct grammar *g = grammar_compile(cases[i].kind, cases[i].source, strlen(cases[i].source), &st);
    if (!g) panic("%s: %s", cases[i].name, st.text);
    const double compiled = ms_since(start);
    const struct automaton *a = grammar_automaton(g);
    struct machine *m = machine_open(a, l), *other = machine_open(a, l);
    const struct times first = read_text(m, &ids);
    start = thread_ns();
    machine_prepare(other, NULL, NULL);
    const double prepared = ms_since(start);
    const struct times ready = read_text(other, &ids), again = read_text(other, &ids);
    printf("%-16s %6zu %8.2f %8.1f %8.1f %8.2f %8.1f %8.1f %8.1f %8.1f\n", cases[i].name, ids.count, compiled,
           first.mean, first.most, prepared, ready.mean, ready.most, again.mean, again.most);
    machine_drop(m), machine_drop(other);
    grammar_drop(g);
    free(ids.ids);
}

// ---- sources that take long ----

static const struct {
    const char *name;
    enum grammar_kind kind;
    const char *before, *text, *after;
    int n; // times `text` stands there; %d in it: which of them
} hostile[] = {
    {"letters", GRAMMAR_REGEX, "", "a", "", 1000000},
    {"classes", GRAMMAR_REGEX, "", "[^a]", "", 200000},
    {"one class", GRAMMAR_REGEX, "[", "a", "]", 1000000},
    {"alternatives", GRAMMAR_REGEX, "(", "a|", "b)", 500000},
    {"repeated", GRAMMAR_REGEX, "(((a{64}){64}){64}", "b", ")", 1},
    {"optional", GRAMMAR_REGEX, "", "a?", "", 2000},
    {"empty ways", GRAMMAR_REGEX, "(", "ab?|", "c)((|){8192}){8}", 20000},
    {"same texts", GRAMMAR_GBNF, "root ::= (", "\"ab\" | ", "\"c\"){8192}", 100000},
    {"long chain", GRAMMAR_GBNF, "e ::= \"\"\nroot ::= (\"a\" | \"b\") ", "e ", "", 250000},
    {"rules", GRAMMAR_GBNF, "root ::= r0\n", "r%d ::= \"a\" r%d | \"b\"\n", "r19998 ::= \"c\"", 19998},
    {"choices", GRAMMAR_CHOICE, "[", "\"%d\",", "\"\"]", 100000},
    {"long choices", GRAMMAR_CHOICE, "[\"x\"", ",\"0123456789012345678901234567890123456789%d\"", "]", 20000},
    {"enum", GRAMMAR_SCHEMA, "{\"enum\": [0", ",%d", "]}", 60000},
    {"properties", GRAMMAR_SCHEMA, "{\"properties\": {", "\"p%d\": {\"pattern\": \"a+b\"},", "\"\": {}}}", 1999},
    {"anchors", GRAMMAR_SCHEMA, "{\"anyOf\": [", "{\"$ref\": \"#x%d\"},",
     "{}], \"$defs\": {\"a\": {\"$anchor\": \"x0\"}}}", 40000},
    {"patterns", GRAMMAR_SCHEMA,
     "{\"$defs\": {\"a\": {\"pattern\": \"(a[bc]*d){9}(a[bc]*d){9}(a[bc]*d){9}(a[bc]*d){9}\"}}, \"anyOf\": [",
     "{\"allOf\": [{\"$ref\": \"#/$defs/a\"}, {\"minimum\": %d}]},", "{}]}", 15000},
    {"nested values", GRAMMAR_SCHEMA, "{\"const\": [", "[0, \"%d\", {\"a\": 1}],", "0]}", 40000},
    {"spaces", GRAMMAR_SCHEMA, "", " ", "1", 1000000},
    {"numbers", GRAMMAR_SCHEMA, "{\"anyOf\": [", "{\"minimum\": -%d.25, \"maximum\": 99999999.5},", "{}]}", 15000},
    {"lengths", GRAMMAR_SCHEMA, "{\"anyOf\": [", "{\"type\": \"string\", \"maxLength\": 1%d},", "{}]}", 5000},
};

static void compile_hostile(int i) {
    char *text;
    size_t size;
    struct status st = {.text = "compiled"};
    FILE *out = open_memstream(&text, &size);
    fputs(hostile[i].before, out);
    for (int k = 0; k < hostile[i].n; k++) {
        for (const char *c = hostile[i].text; *c; c++) {
            if (c[0] != '%') fputc(*c, out);
            else c++, fprintf(out, "%d", k);
        }
    }
    fputs(hostile[i].after, out);
    fclose(out);
    const uint64_t start = thread_ns();
    struct grammar *g = grammar_compile(hostile[i].kind, text, size, &st);
    printf("%-16s %8zu %8.1f  %.60s\n", hostile[i].name, size, ms_since(start), st.text);
    grammar_drop(g);
    free(text);
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
    const uint64_t start = thread_ns();
    struct lexicon *l = lexicon_open(texts, n);
    printf("%d tokens, sorted in %.0f ms\n\n", n, (double)(thread_ns() - start) / 1e6);
    printf("%-16s %6s %8s %8s %8s %8s %8s %8s %8s %8s\n", "grammar", "tokens", "compiled", "first", "longest",
           "prepared", "first", "longest", "again", "longest");
    printf("%-16s %6s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "", "ms", "us/token", "us", "ms", "us/token", "us",
           "us/token", "us");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) measure((int)i, t, l);
    printf("\n%-16s %8s %8s\n", "hostile source", "bytes", "ms");
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) compile_hostile((int)i);
    lexicon_drop(l);
    free(texts);
    tokenizer_close(t);
    gguf_close(&file);
}
