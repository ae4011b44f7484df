// serve_load [OPTIONS] PORT: clients of a server on this machine, each of which asks for one completion after the
// other, with made-up prompts that are the same in every run, and reads its stream. Prints on one line how fast tokens
// came, and how long the first one and each next one took. Works with any server that has OpenAI's /v1/completions,
// takes token ids as a prompt, and knows ignore_eos.
//
//   -c N       clients (1)
//   -n N       requests in all (10)
//   -p LOW     prompt tokens, at least (20)
//   -P HIGH    and at most (600)
//   -k N       tokens that all prompts begin with, before those (0)
//   -a N       tokens of an answer (64)
//   -x N       percent of the requests that are cancelled: half of them soon, the others amid their answers (0)
//   -v N       size of the vocabulary (32000)
//   -s N       seed of the prompts (1)
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/server/bytes.h"
#include "engine/base/clock.h"

enum {
    MOST_CLIENTS = 512,
    FIRST_ID = 260, // behind special tokens and bytes
    SOON_MS = 200,
    SILENCE_MS = 600 * 1000, // after which a server has failed
};

// ---- what is measured ----

struct samples {
    double *seconds;
    int n, capacity;
};

static void add(struct samples *s, double seconds) {
    if (s->n == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 1024;
        s->seconds = xrealloc(s->seconds, (size_t)s->capacity * sizeof *s->seconds);
    }
    s->seconds[s->n++] = seconds;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const struct samples *s, int percent) { // of sorted ones
    return s->n ? s->seconds[(s->n * percent + 99) / 100 - 1] : 0;
}

static void print(const char *name, struct samples *s) {
    if (s->n) qsort(s->seconds, (size_t)s->n, sizeof *s->seconds, compare);
    printf(" %s_p50 %.4f %s_p99 %.4f %s_most %.4f", name, percentile(s, 50), name, percentile(s, 99), name,
           percentile(s, 100));
}

// ---- requests ----

struct options {
    int port, clients, requests, low, high, common, answer, cancelled, vocabulary;
    uint64_t seed;
};

enum part { IN_HEAD, IN_SIZE, IN_DATA }; // of a reply

struct client {
    int fd; // −1: none
    struct bytes request;
    size_t sent;
    enum part part;
    bool ok, chunked, done;
    char head[256];       // a line of the head, or of a chunk's size
    size_t n_head, chunk; // chunk: bytes left
    struct bytes line;    // of data
    double asked, last;   // last: token
    int n_pieces;
    int leaves_after; // pieces; −1: never
    double leaves_at; // 0: never
    int n_tokens, n_prompt, n_cached;
};

struct load {
    struct options o;
    struct client clients[MOST_CLIENTS];
    int n_begun, n_ended, n_cancelled, n_failed;
    long n_tokens, n_prompt, n_cached;
    struct samples first, next;
};

static uint32_t draw(uint64_t *random, uint32_t n) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*random >> 33) % n);
}

static void add_text(struct bytes *b, const char *text) { bytes_add(b, text, strlen(text)); }

static void add_ids(struct bytes *b, uint64_t random, int n, int vocabulary, bool first) {
    char id[16];
    for (int i = 0; i < n; i++, first = false) {
        snprintf(id, sizeof id, first ? "%u" : ",%u", FIRST_ID + draw(&random, (uint32_t)(vocabulary - FIRST_ID)));
        add_text(b, id);
    }
}

static void write_request(const struct options *o, int number, uint64_t *random, struct bytes *out) {
    const int n = o->low + (int)draw(random, (uint32_t)(o->high - o->low + 1));
    char *body = NULL, head[192];
    struct bytes ids = {0};
    add_ids(&ids, o->seed, o->common, o->vocabulary, true);
    add_ids(&ids, *random, n, o->vocabulary, !o->common);
    bytes_add(&ids, "", 1);
    body = xasprintf("{\"prompt\":[%s],\"max_tokens\":%d,\"ignore_eos\":true,\"temperature\":0.8,\"top_k\":40,"
                     "\"top_p\":0.95,\"min_p\":0.05,\"seed\":%d,\"stream\":true,"
                     "\"stream_options\":{\"include_usage\":true}}",
                     ids.data, o->answer, 1 + number);
    snprintf(head, sizeof head,
             "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             strlen(body));
    out->size = 0;
    add_text(out, head);
    add_text(out, body);
    bytes_free(&ids);
    free(body);
}

static void dial(struct client *c, int port) {
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&to, sizeof to))
        panic("port %d: %s", port, strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
}

// The next one of all; none are left: the client rests.
static void begin(struct load *l, struct client *c) {
    const struct options *o = &l->o;
    const int number = l->n_begun;
    const struct bytes request = c->request, line = c->line;
    *c = (struct client){.fd = -1, .request = request, .line = line, .leaves_after = -1};
    c->line.size = 0;
    if (number == o->requests) return;
    uint64_t random = o->seed * 1000003u + (uint64_t)number;
    l->n_begun++;
    write_request(o, number, &random, &c->request);
    dial(c, o->port);
    c->asked = clock_seconds();
    if (draw(&random, 100) >= (uint32_t)o->cancelled) return;
    if (draw(&random, 2)) c->leaves_at = c->asked + draw(&random, SOON_MS) * 1e-3;
    else c->leaves_after = 1 + (int)draw(&random, (uint32_t)o->answer);
}

static void end(struct load *l, struct client *c, bool left) {
    close(c->fd);
    l->n_ended++;
    l->n_cancelled += left;
    if (!left && !c->done && !l->n_failed++)
        fprintf(stderr, "serve_load: failed: %.*s\n", c->line.size < 500 ? (int)c->line.size : 500,
                c->line.size ? c->line.data : "");
    l->n_tokens += c->done ? c->n_tokens : c->n_pieces;
    l->n_prompt += c->n_prompt;
    l->n_cached += c->n_cached;
    begin(l, c);
}

// ---- replies ----

static void note_piece(struct load *l, struct client *c) {
    const double now = clock_seconds();
    add(c->n_pieces++ ? &l->next : &l->first, now - c->last);
    c->last = now;
}

static void read_count(const char *line, const char *name, int *out) {
    const char *at = strstr(line, name);
    if (at) *out = atoi(at + strlen(name));
}

static void take_line(struct load *l, struct client *c, const char *line) {
    static const char text[] = "\"text\":\"";
    const char *at = strstr(line, text);
    if (!strcmp(line, "data: [DONE]")) c->done = c->ok;
    if (!c->n_pieces) c->last = c->asked;
    if (at && at[strlen(text)] != '"') note_piece(l, c);
    read_count(line, "\"completion_tokens\":", &c->n_tokens);
    read_count(line, "\"prompt_tokens\":", &c->n_prompt);
    read_count(line, "\"cached_tokens\":", &c->n_cached);
}

static void take_data(struct load *l, struct client *c, char byte) {
    if (byte != '\n') {
        bytes_add(&c->line, &byte, 1);
    } else if (c->line.size) {
        bytes_add(&c->line, "", 1);
        take_line(l, c, c->line.data);
        c->line.size = 0;
    }
    if (c->chunked && !--c->chunk) c->part = IN_SIZE;
}

static void take_head(struct client *c) {
    if (c->part == IN_SIZE && *c->head) c->chunk = strtoul(c->head, NULL, 16), c->part = IN_DATA;
    if (c->part != IN_HEAD) return;
    if (!strncmp(c->head, "HTTP/1.1 200", 12)) c->ok = true;
    if (!strcasecmp(c->head, "Transfer-Encoding: chunked")) c->chunked = true;
    if (!*c->head) c->part = c->chunked ? IN_SIZE : IN_DATA;
}

static void take_byte(struct load *l, struct client *c, char byte) {
    if (c->part == IN_DATA) {
        take_data(l, c, byte);
    } else if (byte == '\n') {
        c->head[c->n_head] = 0;
        c->n_head = 0;
        take_head(c);
    } else if (byte != '\r' && c->n_head < sizeof c->head - 1) {
        c->head[c->n_head++] = byte;
    }
}

// ---- the loop ----

static bool wants_to_leave(const struct client *c) {
    return (c->leaves_after >= 0 && c->n_pieces >= c->leaves_after) ||
           (c->leaves_at > 0 && clock_seconds() >= c->leaves_at);
}

static void receive(struct load *l, struct client *c) {
    char data[16384];
    const ssize_t n = recv(c->fd, data, sizeof data, 0);
    for (ssize_t i = 0; i < n; i++) take_byte(l, c, data[i]);
    if (c->done || !n || (n < 0 && errno != EAGAIN && errno != EINTR)) end(l, c, false);
}

static void send_rest(struct load *l, struct client *c) {
    const ssize_t n = send(c->fd, c->request.data + c->sent, c->request.size - c->sent, MSG_NOSIGNAL);
    if (n > 0) c->sent += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR) end(l, c, false);
}

static void turn(struct load *l) {
    struct pollfd fds[MOST_CLIENTS];
    int timeout = SILENCE_MS;
    for (int i = 0; i < l->o.clients; i++) {
        const struct client *c = &l->clients[i];
        fds[i] = (struct pollfd){.fd = c->fd, .events = c->sent < c->request.size ? POLLIN | POLLOUT : POLLIN};
        if (c->fd >= 0 && c->leaves_at > 0 && timeout > SOON_MS) timeout = 10;
    }
    if (!poll(fds, (nfds_t)l->o.clients, timeout) && timeout == SILENCE_MS) panic("the server is silent");
    for (int i = 0; i < l->o.clients; i++) {
        struct client *c = &l->clients[i];
        if (c->fd >= 0 && wants_to_leave(c)) end(l, c, true);
        else if (fds[i].revents & POLLOUT) send_rest(l, c);
        else if (fds[i].revents) receive(l, c);
    }
}

static void run(struct load *l) {
    const double start = clock_seconds();
    for (int i = 0; i < l->o.clients; i++) begin(l, &l->clients[i]);
    while (l->n_ended < l->o.requests) turn(l);
    const double seconds = clock_seconds() - start;
    printf("clients %d requests %d seconds %.2f tokens %ld tokens_per_second %.2f", l->o.clients, l->o.requests,
           seconds, l->n_tokens, (double)l->n_tokens / seconds);
    print("first", &l->first);
    print("next", &l->next);
    printf(" prompt %ld cached %ld cancelled %d failed %d\n", l->n_prompt, l->n_cached, l->n_cancelled, l->n_failed);
}

static bool read_options(struct options *o, int argc, char **argv) {
    *o = (struct options){
        .clients = 1, .requests = 10, .low = 20, .high = 600, .answer = 64, .vocabulary = 32000, .seed = 1};
    for (int c; (c = getopt(argc, argv, "c:n:p:P:k:a:x:v:s:")) != -1;) {
        const int n = optarg ? atoi(optarg) : 0;
        switch (c) {
        case 'c': o->clients = n; break;
        case 'n': o->requests = n; break;
        case 'p': o->low = n; break;
        case 'P': o->high = n; break;
        case 'k': o->common = n; break;
        case 'a': o->answer = n; break;
        case 'x': o->cancelled = n; break;
        case 'v': o->vocabulary = n; break;
        case 's': o->seed = (uint64_t)n; break;
        default: return false;
        }
    }
    o->port = optind == argc - 1 ? atoi(argv[optind]) : 0;
    return o->port > 0 && o->port < 65536 && o->clients > 0 && o->clients <= MOST_CLIENTS && o->requests > 0 &&
           o->low > 0 && o->high >= o->low && o->common >= 0 && o->answer > 0 && o->vocabulary > FIRST_ID;
}

int main(int argc, char **argv) {
    struct load *l = xcalloc(1, sizeof *l);
    if (!read_options(&l->o, argc, argv)) {
        fprintf(stderr, "usage: serve_load [-c CLIENTS] [-n REQUESTS] [-p LOW] [-P HIGH] [-k COMMON] [-a ANSWER] "
                        "[-x CANCELLED] [-v VOCABULARY] [-s SEED] PORT\n");
        return 2;
    }
    run(l);
    const bool failed = l->n_failed;
    for (int i = 0; i < l->o.clients; i++) bytes_free(&l->clients[i].request), bytes_free(&l->clients[i].line);
    free(l->first.seconds), free(l->next.seconds);
    free(l);
    return failed;
}
