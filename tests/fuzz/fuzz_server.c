// Fuzzes requests to the server, over a real socket, with an engine that answers at once: every reply is HTTP, and when
// the client is gone nothing of its request is left.
//
// An input that begins with a digit is the body of a whole request to one of the paths; any other is all that a client
// sends.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/models/model_host.h"
#include "app/server/server_state.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/told_engine.h"

static const char *const paths[] = {
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat",
    "/api/generate",        "/api/show",       "/tokenize",     "/detokenize",  "/v1/messages/count_tokens"};
enum { PATHS = sizeof paths / sizeof *paths, MOST_TURNS = 200 };

static struct settings settings;
static struct server *server;

// ---- seeds ----

#define HEAD(method, path, more) method " " path " HTTP/1.1\r\nHost: localhost\r\n" more "\r\n"
static const char *const seeds[] = {
    "0{\"model\":\"guide\",\"messages\":[{\"role\":\"developer\",\"content\":\"Be "
    "brief\"},{\"role\":\"user\",\"content\":"
    "[{\"type\":\"text\",\"text\":\"Hi "
    "\\u00e9\\ud83d\\ude00\"}]},{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":"
    "\"b\"},{\"role\":\"user\",\"content\":\"c\"}],\"stream\":true,\"stream_options\":{\"include_usage\":true},\"n\":2,"
    "\"stop\":[\"x\",\"y\"],\"seed\":7,\"logprobs\":true,\"top_logprobs\":2,\"tools\":[]}",
    "0{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"temperature\":0.5,\"top_p\":1,\"min-p\":0,\"max_"
    "tokens\":5,"
    "\"response_format\":{\"type\":\"text\"},\"reasoning_effort\":\"none\",\"user\":null,\"n\":1}",
    "1{\"prompt\":\"One\",\"echo\":true,\"max_tokens\":3,\"stream\":true}",
    "1{\"prompt\":[[5,6,7]],\"logprobs\":2,\"n\":3}",
    "2{\"input\":[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Hi\"}]},{"
    "\"type\":"
    "\"reasoning\",\"summary\":[]}],\"instructions\":\"x\",\"reasoning\":{\"effort\":\"none\"},\"text\":{\"format\":{"
    "\"type\":"
    "\"text\"}},\"stream\":true}",
    "3{\"model\":\"guide\",\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"s\"}],\"messages\":[{\"role\":"
    "\"user\","
    "\"content\":\"Hi\"}],\"stop_sequences\":[\"a\"],\"thinking\":{\"type\":\"disabled\"},\"stream\":true}",
    "4{\"model\":\"guide\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"options\":{\"num_predict\":5,"
    "\"seed\":1,"
    "\"stop\":[\"a\"],\"repeat_last_n\":3},\"think\":false,\"format\":\"\",\"stream\":false}",
    "5{\"model\":\"guide\",\"prompt\":\"Hi\",\"system\":\"s\",\"raw\":false,\"options\":{\"temperature\":1}}",
    "6{\"model\":\"guide\",\"name\":\"guide:latest\"}",
    "7{\"content\":\"Hello world\",\"parse_special\":true}",
    "8{\"tokens\":[1,2,3,70,71]}",
    "0{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"response_format\":{\"type\":\"json_schema\",\"json_"
    "schema\":{\"name\":"
    "\"x\",\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[1,\"b\"]}},\"required\":[\"a\"]}}},"
    "\"€€€€€€€€€€€€€€€€€€€€€€€€€€"
    "€€€€€€€€€€€€€€€€€€€€\":1}",
    "9{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"system\":\"b\"}",
    "1{\"prompt\":\"a\",\"guided_regex\":\"[a-z]{2,3}|x+\"}",
    HEAD("GET", "/v1/models", "") HEAD("GET", "/metrics", "Connection: close\r\n"),
    HEAD("GET", "/v1/models/guide", "Origin: http://localhost\r\nAuthorization: Bearer x\r\n"),
    HEAD("OPTIONS", "/api/chat", "Origin: http://localhost\r\nAccess-Control-Request-Headers: a\r\n"),
    HEAD("POST", "/tokenize", "Content-Length: 15\r\nExpect: 100-continue\r\n") "{\"content\":\"a\"}",
    HEAD("POST", "/api/generate",
         "Transfer-Encoding: chunked\r\n") "7\r\n{\"promp\r\n9;x=y\r\nt\":\"Hi\"}\r\n0\r\nA: b\r\n\r\n",
    "GET /health HTTP/1.0\r\nHost: localhost\r\nX:\r\n folded\r\n\r\n",
};

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= sizeof seeds / sizeof *seeds) return NULL;
    *size = strlen(seeds[k]);
    return (uint8_t *)xstrdup(seeds[k]);
}

// ---- the server ----

static struct model_file *open_tiny(const char *path, struct status *st) {
    static void *bytes;
    static size_t size;
    if (!bytes) bytes = tiny_model_bytes((struct tiny_model_options){0}, &size);
    return model_file_open_memory(path ? path : "tiny", bytes, size, NULL, st);
}
static struct model_file *open_header(const char *path, bool text, struct status *st) {
    return (void)text, open_tiny(path, st);
}
static bool measure(const struct model_file *m, const struct engine_params *p, uint64_t available,
                    struct model_memory *out, struct status *st) {
    (void)m, (void)p, (void)available, (void)st;
    *out = (struct model_memory){.total = 1};
    return true;
}
static struct engine *open_engine(struct model_file *m, const struct engine_params *p, struct status *st) {
    return (void)m, (void)p, (void)st, &engine.engine;
}
static const struct model_opener models = {open_tiny, open_header, measure, open_engine};

static void start(void) {
    struct status st = {0};
    setenv("HOME", "/nonexistent", 1), setenv("XDG_DATA_HOME", "/nonexistent", 1);
    settings = settings_default();
    settings.port = 0;
    told_engine_reset();
    struct model_host *host = model_host_open(&settings, &models, &st);
    while (host && model_host_poll(host, &st) != HOST_LOADED) usleep(100);
    server = server_open(
        &(struct server_params){.settings = &settings, .host = host, .opener = &models, .name = "guide"}, &st);
    if (!server) fprintf(stderr, "%s\n", st.text), abort();
}

// ---- the engine ----

static void tell(struct engine_event e, uint64_t request, int answer) {
    e.request = request;
    e.answer = answer;
    told_engine_say(e);
}

// Some tokens for each answer, and its end.
static void answer(uint64_t request) {
    struct engine_event e = {
        .kind = EVENT_TEXT, .token = 70, .probability = 0.5f, .at = 1, .size = 3, .text = "\xe2\x82\xac"};
    for (int i = 0; i < engine.n_answers || !i; i++) {
        e.channel = CHANNEL_THINKING;
        tell(e, request, i);
        e.channel = CHANNEL_ANSWER;
        tell(e, request, i);
        tell((struct engine_event){.kind = EVENT_STATE, .state = REQUEST_FINISHED, .reason = FINISH_END}, request, i);
    }
}

static void turn(uint64_t *answered) {
    server_turn(server, 0);
    while (*answered < engine.n_requests) answer(++*answered);
    engine.n_cancelled = 0;
}

// ---- a client ----

static int dial(void) {
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server_port(server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to)) perror("connect"), abort();
    return fd;
}

static void send_all(int fd, const void *data, size_t size, uint64_t *answered) {
    for (size_t at = 0; at < size;) {
        const ssize_t n = send(fd, (const char *)data + at, size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) at += (size_t)n;
        else if (n < 0 && at) return; // closed before the end
        turn(answered);
        if (n <= 0) at++;
    }
}

static void hear(int fd, size_t *total, uint64_t *answered, int turns) {
    char reply[4096];
    while (turns--) {
        const ssize_t n = recv(fd, reply, sizeof reply, MSG_DONTWAIT);
        if (n > 0 && !*total && (n < 9 || memcmp(reply, "HTTP/1.", 7))) abort();
        *total += n > 0 ? (size_t)n : 0;
        if (!n) return;
        if (n < 0) turn(answered);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!server) start();
    uint64_t answered = engine.n_requests;
    const bool body = size && *data >= '0' && *data < '0' + PATHS;
    const int fd = dial();
    size_t total = 0;
    if (body) {
        char head[256];
        const int n =
            snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                     paths[*data - '0'], size - 1);
        send_all(fd, head, (size_t)n, &answered);
        send_all(fd, data + 1, size - 1, &answered);
    } else {
        send_all(fd, data, size, &answered);
    }
    hear(fd, &total, &answered, body ? MOST_TURNS : 4);
    if (!body) shutdown(fd, SHUT_WR), hear(fd, &total, &answered, 4);
    close(fd);
    for (int i = 0; i < 3 || (i < MOST_TURNS && (server->generations || server->waiting)); i++) turn(&answered);
    if (server->generations || server->n_answers || server->waiting) abort();
    return 0;
}
