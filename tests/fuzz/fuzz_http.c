// Fuzzes all that a client sends on one connection, over a real socket: what comes back is HTTP, nothing of it is left
// when the client is gone, and others are still answered.
//
// The first byte says how the client sends, and how it leaves.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_server.h"

enum { OTHERS = 16 }; // inputs between two requests of another client

// ---- seeds ----

#define HEAD(method, path, more) method " " path " HTTP/1.1\r\nHost: localhost\r\n" more "\r\n"
#define GET(path)                HEAD("GET", path, "")
#define POST(path, size, body)   HEAD("POST", path, "Content-Type: application/json\r\nContent-Length: " size "\r\n") body
#define CHUNKED(path, body)      HEAD("POST", path, "Transfer-Encoding: chunked\r\n") body
#define HELLO                    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"

static const char *const seeds[] = {
    "0" GET("/v1/models") HEAD("GET", "/metrics", "Connection: close\r\n"),
    "1" HEAD("GET", "/v1/models/guide", "Origin: http://localhost\r\nAuthorization: Bearer x\r\n"),
    "2" HEAD("OPTIONS", "/api/chat", "Origin: http://localhost\r\nAccess-Control-Request-Headers: a\r\n"),
    "3" HEAD("POST", "/tokenize", "Content-Length: 15\r\nExpect: 100-continue\r\n") "{\"content\":\"a\"}",
    "4" CHUNKED("/api/generate", "7\r\n{\"promp\r\n9;x=\"y\"\r\nt\":\"Hi\"}\r\n0\r\nA: b\r\n\r\n"),
    "5GET /health HTTP/1.0\r\nHost: localhost\r\nX:\r\n folded\r\n\r\n",
    "6" POST("/v1/chat/completions", "45", HELLO "}") GET("/health") GET("/nowhere?a=%20b&c"),
    "7" POST("/v1/chat/completions", "59", HELLO ",\"stream\":true}") GET("/props"),
    "8" POST("/v1/completions", "29", "{\"prompt\":\"a\",\"max_tokens\":3}") GET("/api/tags"),
    "9" POST("/v1/responses", "14", "{\"input\":\"Hi\"}") POST("/v1/embeddings", "2", "{}"),
    "0" POST("/v1/messages", "61", HELLO ",\"max_tokens\":9,}") GET("/api/version"),
    "1" POST("/v1/messages", "61", HELLO ",\"max_tokens\":9 }") GET("/api/ps"),
    "2" POST("/api/chat", "45", HELLO "}") HEAD("HEAD", "/", ""),
    "3" POST("/api/show", "17", "{\"model\":\"guide\"}") HEAD("DELETE", "/api/delete", ""),
    "4" CHUNKED("/detokenize", "10\r\n{\"tokens\":[5,70]\r\n1\r\n}\r\n0\r\n\r\n") GET("/%2e%2e/%00"),
    "5" HEAD("GET", "/health", "Host: evil.example\r\nOrigin: null\r\n")
        HEAD("POST", "/api/pull", "Content-Length: 3\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n") "{}\r\n",
};

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= sizeof seeds / sizeof *seeds) return NULL;
    *size = strlen(seeds[k]);
    return (uint8_t *)xstrdup(seeds[k]);
}

// ---- clients ----

static void check_reply(size_t size) {
    if (size && (size < 12 || memcmp(heard, "HTTP/1.", 7) || heard[9] < '1' || heard[9] > '5')) abort();
}

// In one piece, or in several.
static void send_pieces(int fd, const uint8_t *data, size_t size, size_t piece) {
    for (size_t at = 0; at < size; at += piece)
        if (!send_all(fd, data + at, size - at < piece ? size - at : piece)) return;
}

static void leave(int fd, uint8_t how) {
    size_t size;
    const struct linger at_once = {.l_onoff = 1};
    if (how & 4) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (how & 8) shutdown(fd, SHUT_WR);
    if (!(how & 4)) hear_turns(fd, &size, 4, 0), check_reply(size);
    close(fd);
}

static void ask_as_another(void) {
    static const char request[] = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                  "Content-Length: 45\r\n\r\n" HELLO "}";
    const int fd = dial();
    if (!send_all(fd, request, sizeof request - 1) || hear_reply(fd) != 200) abort();
    close(fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    start_fuzzed_server();
    atexit(stop_fuzzed_server);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const size_t pieces[] = {SIZE_MAX / 2, 37, 200, 9};
    static int until_others;
    if (!size) return 0;
    const int fd = dial();
    send_pieces(fd, data + 1, size - 1, pieces[*data & 3]);
    size_t n = 0;
    if (!(*data & 16)) hear_turns(fd, &n, 8, 0), check_reply(n);
    leave(fd, *data);
    settle();
    if (until_others-- == 0) ask_as_another(), until_others = OTHERS;
    return 0;
}
