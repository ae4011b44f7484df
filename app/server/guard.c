#include "app/server/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/base/reader.h"

#define KEYS_LIMIT (1u << 20)

// ---- hosts ----

static bool is_port(const char *text) { return !*text || (*text == ':' && !text[1 + strspn(text + 1, "0123456789")]); }

// "localhost:8080", "[::1]", "10.0.0.1:80": the name, without brackets and port; empty: the host is none of these.
static struct span host_name(const char *host) {
    const bool bracket = *host == '[';
    const char *name = host + bracket, *end = name + strcspn(name, bracket ? "]" : ":");
    const bool good = (!bracket || *end) && is_port(end + bracket);
    return (struct span){name, good ? (size_t)(end - name) : 0};
}

static bool names(struct span name, const char *allowed) {
    return name.size && strlen(allowed) == name.size && !strncasecmp(name.data, allowed, name.size);
}

static bool is_address(struct span name) {
    unsigned char address[sizeof(struct in6_addr)];
    char text[INET6_ADDRSTRLEN] = "";
    if (name.size >= sizeof text) return false;
    memcpy(text, name.data, name.size);
    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static bool is_own(struct span name) {
    static const char *const own[] = {"localhost", "127.0.0.1", "::1"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (names(name, own[i])) return true;
    return false;
}

// An address is no name that somebody else could have given this machine.
bool guard_allows_host(const struct guard *g, const char *host) {
    const struct span name = host_name(host);
    if (is_own(name) || names(name, g->host) || (g->open && is_address(name))) return true;
    for (int i = 0; i < g->hosts->count; i++)
        if (names(name, g->hosts->texts[i])) return true;
    return false;
}

bool guard_allows_origin(const struct guard *g, const char *origin, const char *host) {
    const char *slashes = strstr(origin, "://");
    if (slashes && !strcasecmp(slashes + 3, host)) return true;
    for (int i = 0; i < g->origins->count; i++)
        if (!strcmp(g->origins->texts[i], "*") || !strcasecmp(g->origins->texts[i], origin)) return true;
    return false;
}

// ---- keys ----

// Takes as long for a wrong key as for the right one.
static bool same(const char *given, const char *key) {
    const size_t size = strlen(key), n = strlen(given);
    unsigned char differs = size != n;
    for (size_t i = 0; i < n; i++) differs |= (unsigned char)(given[i] ^ key[size ? i % size : 0]);
    return !differs;
}

bool guard_allows_key(const struct guard *g, const char *authorization, const char *key) {
    static const char bearer[] = "Bearer ";
    if (!g->keys.count) return true;
    if (authorization && !strncasecmp(authorization, bearer, sizeof bearer - 1))
        key = authorization + sizeof bearer - 1;
    bool known = false;
    for (int i = 0; i < g->keys.count; i++) known |= same(key ? key : "", g->keys.texts[i]);
    return known;
}

static bool is_private(const char *path, struct status *st) {
    struct stat file;
    if (stat(path, &file)) return status_fail(st, STATUS_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(file.st_mode)) return status_fail(st, STATUS_IO, "%s: not a regular file", path);
    if (file.st_uid == geteuid() && !(file.st_mode & 077)) return true;
    return status_fail(st, STATUS_USAGE, "%s: others can read the keys (use chmod 600)", path);
}

bool guard_open(struct guard *g, const char *keys_path, struct status *st) {
    size_t size;
    char *rest = NULL;
    if (!keys_path) return true;
    char *text = is_private(keys_path, st) ? file_read_regular(keys_path, KEYS_LIMIT, &size, st) : NULL;
    if (!text) return false;
    for (char *line = strtok_r(text, " \t\r\n", &rest); line; line = strtok_r(NULL, " \t\r\n", &rest))
        text_list_insert(&g->keys, g->keys.count, line);
    explicit_bzero(text, size);
    free(text);
    return g->keys.count || status_fail(st, STATUS_FORMAT, "%s: no keys (one on each line)", keys_path);
}

void guard_close(struct guard *g) {
    for (int i = 0; i < g->keys.count; i++) explicit_bzero(g->keys.texts[i], strlen(g->keys.texts[i]));
    text_list_clear(&g->keys);
}
