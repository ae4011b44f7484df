// Fuzzes the bodies of requests: each is answered, either with 200 or with a status that blames the client and an error
// in its API's form; nothing of it is left.
//
// The first byte is a digit, the path it goes to; behind it stands the body. Changes are made to the JSON value itself,
// so that most of them reach the fields.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_server.h"
#include "tests/unit/xorshift.h"

static const struct {
    const char *path;
    const struct field *fields; // NULL: a few of its own
} paths[] = {
    {"/v1/chat/completions", openai_chat_fields},
    {"/v1/completions", openai_completions_fields},
    {"/v1/responses", openai_responses_fields},
    {"/v1/messages", anthropic_fields},
    {"/api/chat", ollama_chat_fields},
    {"/api/generate", ollama_generate_fields},
    {"/api/show", NULL},
    {"/tokenize", NULL},
    {"/detokenize", NULL},
    {"/v1/messages/count_tokens", anthropic_fields},
};
enum { PATHS = sizeof paths / sizeof *paths };

static size_t path_of(uint8_t digit) { return (uint8_t)(digit - '0') % PATHS; }

// ---- seeds ----

// With ' for ", as all JSON here.
static const char *const seeds[] = {
    "0{'model': 'guide', 'messages': [{'role': 'developer', 'content': 'Be brief'}, {'role': 'user', 'content': "
    "[{'type': 'text', 'text': 'Hi \\u00e9\\ud83d\\ude00'}]}, {'role': 'assistant', 'content': 'a', "
    "'reasoning_content': 'b'}, {'role': 'user', 'content': 'c'}], 'stream': true, "
    "'stream_options': {'include_usage': true}, 'n': 2, 'stop': ['x', 'y'], 'seed': 7, 'logprobs': true, "
    "'top_logprobs': 2, 'tools': []}",
    "0{'messages': [{'role': 'user', 'content': 'Hi'}], 'temperature': 0.5, 'top_p': 1, 'min-p': 0, 'max_tokens': 5, "
    "'response_format': {'type': 'text'}, 'reasoning_effort': 'none', 'user': null, 'n': 1}",
    "0{'messages': [{'role': 'user', 'content': 'a'}], 'response_format': {'type': 'json_schema', 'json_schema': "
    "{'name': 'x', 'schema': {'type': 'object', 'properties': {'a': {'enum': [1, 'b']}}, 'required': ['a']}}}}",
    "0{'messages': [{'role': 'user', 'content': 'a'}], 'guided_choice': ['yes', 'no'], 'logit_bias': {'99999999': 1}}",
    "1{'prompt': 'One', 'echo': true, 'max_tokens': 3, 'stream': true}",
    "1{'prompt': [[5, 6, 7]], 'logprobs': 2, 'n': 3}",
    "1{'prompt': ['a', [5, 6], 'b'], 'n': 2, 'best_of': 2}",
    "1{'prompt': 'a', 'guided_regex': '[a-z]{2,3}|x+'}",
    "1{'prompt': 'a', 'grammar': 'root ::= [0-9] | [(] root [)]', 'json_schema': null}",
    "2{'input': [{'type': 'message', 'role': 'user', 'content': [{'type': 'input_text', 'text': 'Hi'}]}, "
    "{'type': 'reasoning', 'summary': []}], 'instructions': 'x', 'reasoning': {'effort': 'none'}, 'text': "
    "{'format': {'type': 'json_schema', 'name': 'x', 'schema': {'type': 'array', 'items': {'type': 'integer'}}}}, "
    "'stream': true}",
    "3{'model': 'guide', 'max_tokens': 9, 'system': [{'type': 'text', 'text': 's'}], 'messages': [{'role': 'user', "
    "'content': 'Hi'}], 'stop_sequences': ['a'], 'thinking': {'type': 'disabled'}, 'stream': true}",
    "4{'model': 'guide', 'messages': [{'role': 'user', 'content': 'Hi'}], 'options': {'num_predict': 5, 'seed': 1, "
    "'stop': ['a'], 'repeat_last_n': 3}, 'think': false, 'format': '', 'stream': false}",
    "4{'messages': [{'role': 'user', 'content': 'Hi'}], 'format': {'type': 'object'}}",
    "5{'model': 'guide', 'prompt': 'Hi', 'system': 's', 'raw': false, 'keep_alive': '1h30.5m', 'options': {'num_ctx': "
    "400, 'temperature': 1}}",
    "6{'model': 'guide', 'name': 'guide:latest'}",
    "7{'content': 'Hello world', 'parse_special': true}",
    "8{'tokens': [1, 2, 3, 70, 71]}",
    "9{'messages': [{'role': 'user', 'content': 'a'}], 'system': 'b'}",
};

static char *json_from(const char *text) {
    char *json = xstrdup(text);
    for (char *c = json; *c; c++) *c = *c == '\'' ? '"' : *c;
    return json;
}

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= sizeof seeds / sizeof *seeds) return NULL;
    char *seed = json_from(seeds[k]);
    *size = strlen(seed);
    return (uint8_t *)seed;
}

// ---- changes ----

static uint64_t random_state;
static size_t below(size_t n) { return xorshift_below(&random_state, (uint32_t)n); }

// Names of fields within fields.
static const char *const inner[] = {"type",     "schema",  "json_schema", "format", "effort",        "text",
                                    "role",     "content", "num_predict", "stop",   "include_usage", "a",
                                    "thinking", ""};

static json_t *values; // that fields are given
static void make_values(void) {
    char *text =
        json_from("[null, true, false, 0, -1, 1, 2, 65, 0.5, 1e308, -1e-308, 4294967296, 16777217, 9223372036854775807,"
                  "'', 'none', 'high', 'text', 'json', 'json_object', 'json_schema', 'guide', 'other', 'user',"
                  "'../../etc/passwd', '\\u0007\\u202e', '((((((((', [], {}, [[]], [1, 2], ['a', 'b'], [null],"
                  "{'type': 'text', 'text': 'a'}, {'type': 'enabled'}, {'$ref': '#'},"
                  "{'role': 'assistant', 'content': null}]");
    values = json_loads(text, 0, NULL);
    free(text);
}

static json_t *any_value(void) {
    if (!below(16)) return json_sprintf("%0*d", (int)below(5000), 0);
    return json_deep_copy(json_array_get(values, below(json_array_size(values))));
}

static const char *any_field(const struct field *fields) {
    size_t n = 0;
    while (fields[n].name) n++;
    const struct field *f = &fields[below(n)];
    return f->kind == FIELD_TABLE ? any_field(f->table) : f->name;
}

// One that the API has, or has within another field, or a long one that nobody has.
static void any_name(size_t path, char out[512]) {
    *out = 0;
    if (paths[path].fields && below(3)) {
        snprintf(out, 512, "%s", any_field(paths[path].fields));
    } else if (below(4)) {
        snprintf(out, 512, "%s", inner[below(sizeof inner / sizeof *inner)]);
    } else {
        memset(out, 'x', 3), out[below(3)] = 0;
        for (size_t i = below(150); i > 0; i--) strcat(out, "\xe2\x82\xac");
    }
}

static void *any_member(json_t *object) { // NULL: there is none
    const size_t size = json_object_size(object);
    void *at = json_object_iter(object);
    for (size_t i = size ? below(size) : 0; i > 0; i--) at = json_object_iter_next(object, at);
    return at;
}

static void change_object(json_t *object, size_t path) {
    char name[512];
    void *at = any_member(object);
    any_name(path, name);
    switch (below(4)) {
    case 0: json_object_set_new(object, name, any_value()); break;
    case 1:
        if (at) json_object_set_new(object, json_object_iter_key(at), any_value());
        break;
    case 2:
        if (at) json_object_set_new(object, name, json_deep_copy(json_object_iter_value(at)));
        break;
    default:
        if (at) json_object_del(object, json_object_iter_key(at));
    }
}

static void change_array(json_t *array) {
    const size_t size = json_array_size(array), at = size ? below(size) : 0;
    switch (below(4)) {
    case 0: json_array_append_new(array, any_value()); break;
    case 1: json_array_set_new(array, at, any_value()); break;
    case 2: json_array_insert_new(array, at, json_deep_copy(json_array_get(array, at))); break;
    default: json_array_remove(array, at);
    }
}

// A list or object of the value, of any depth.
static json_t *any_container(json_t *at) {
    while (below(3)) {
        const size_t size = json_array_size(at);
        json_t *child = size ? json_array_get(at, below(size)) : json_object_iter_value(any_member(at));
        if (!json_is_array(child) && !json_is_object(child)) break;
        at = child;
    }
    return at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    random_state = ((uint64_t)seed << 32) + 1;
    json_t *value = size > 1 ? json_loadb((const char *)data + 1, size - 1, JSON_DECODE_ANY, NULL) : NULL;
    json_t *at = any_container(value);
    if (json_is_object(at)) change_object(at, path_of(*data));
    else if (json_is_array(at)) change_array(at);
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    const size_t n = text ? strlen(text) : 0;
    if (n && n < room) memcpy(data + 1, text, n), size = n + 1;
    if (!below(16)) *data = (uint8_t)('0' + below(PATHS)); // the same to another API
    free(text);
    json_decref(value);
    return size;
}

// ---- requests ----

static void check_refusal(void) {
    const char *body = strstr(heard, "\r\n\r\n");
    json_t *object = body ? json_loads(body + 4, 0, NULL) : NULL;
    if (!json_object_get(object, "error")) abort();
    json_decref(object);
}

static void check_reply(int status) {
    if (status >= 400 && status < 500) check_refusal();
    else if (status != 200) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    make_values();
    start_fuzzed_server();
    atexit(stop_fuzzed_server);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char head[256];
    if (!size) return 0;
    const int fd = dial();
    const int n = snprintf(head, sizeof head,
                           "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                           paths[path_of(*data)].path, size - 1);
    if (!send_all(fd, head, (size_t)n) || !send_all(fd, data + 1, size - 1)) abort();
    check_reply(hear_reply(fd));
    close(fd);
    settle();
    return 0;
}
