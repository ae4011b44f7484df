#include "engine/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/system.h"
#include "engine/base/utf8.h"

static _Atomic(enum log_level) maximum_level = LOG_LEVEL_INFO;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct log_entry entries[LOG_RING]; // entry n at n % LOG_RING
    uint64_t count, written;            // entries so far; entries the writer has taken or missed
    bool closing;
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

// Only the writer thread uses the file.
static struct {
    pthread_t thread;
    bool running;
    char *path;
    int fd;
    uint64_t missing;  // entries lost since the last one written
    uint64_t retry_at; // after a failure; 0: none
} file = {.fd = -1};

const char *log_level_name(enum log_level level) {
    static const char *const names[LOG_LEVEL_COUNT] = {"off", "error", "warning", "info", "debug"};
    return names[level];
}

void log_set_level(enum log_level maximum) { maximum_level = maximum; }

// ---- the ring ----

static void clean_line(const char *text, char *out, size_t room) {
    size_t size = strlen(text), n = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        char character[4];
        at += utf8_decode(text + at, size - at, &code);
        if (code == '\n' || code == '\t') code = ' ';
        size_t length = utf8_encode(utf8_is_hidden(code) ? '?' : code, character);
        if (n + length >= room) break;
        memcpy(out + n, character, length);
        n += length;
    }
    out[n] = '\0';
}

void log_write(enum log_level level, const char *module, const char *format, ...) {
    if (level > maximum_level) return;
    struct log_entry e = {.level = level};
    char text[2 * sizeof e.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    clean_line(text, e.text, sizeof e.text);
    snprintf(e.module, sizeof e.module, "%s", module);

    pthread_mutex_lock(&ring.lock);
    e.number = ring.count++;
    e.at = clock_wall_ns();
    ring.entries[e.number % LOG_RING] = e;
    pthread_cond_signal(&ring.more);
    pthread_mutex_unlock(&ring.lock);
}

uint64_t log_count(void) {
    pthread_mutex_lock(&ring.lock);
    uint64_t count = ring.count;
    pthread_mutex_unlock(&ring.lock);
    return count;
}

// The oldest entry in the ring; call with the lock held.
static uint64_t oldest(void) { return ring.count > LOG_RING ? ring.count - LOG_RING : 0; }

size_t log_read(uint64_t from, struct log_entry *out, size_t maximum) {
    size_t n = 0;
    pthread_mutex_lock(&ring.lock);
    if (from < oldest()) from = oldest();
    while (n < maximum && from < ring.count) out[n++] = ring.entries[from++ % LOG_RING];
    pthread_mutex_unlock(&ring.lock);
    return n;
}

size_t log_format(const struct log_entry *e, char out[LOG_LINE]) {
    time_t seconds = (time_t)(e->at / 1000000000);
    struct tm local;
    char when[24] = "";
    if (localtime_r(&seconds, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    int n = snprintf(out, LOG_LINE, "%s.%03d %-7s %-7s %s", when, (int)(e->at / 1000000 % 1000),
                     log_level_name(e->level), e->module, e->text);
    return n < LOG_LINE ? (size_t)n : LOG_LINE - 1;
}

enum log_level log_line_level(const char *line) {
    static const size_t before = sizeof "2026-11-26 23:10:00.123";
    for (int level = LOG_LEVEL_ERROR; strlen(line) > before && level < LOG_LEVEL_COUNT; level++) {
        const char *name = log_level_name((enum log_level)level);
        const size_t size = strlen(name);
        if (!strncmp(line + before, name, size) && line[before + size] == ' ') return (enum log_level)level;
    }
    return LOG_LEVEL_OFF;
}

// ---- the file ----

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static void file_leave(void) {
    if (file.fd >= 0) close(file.fd);
    file.fd = -1;
}

// Renames PATH.1 to PATH.2 and PATH to PATH.1; only one of several programs does it.
static void file_rotate(void) {
    struct stat own, named;
    if (flock(file.fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return;
    char *first = xasprintf("%s.1", file.path), *second = xasprintf("%s.2", file.path);
    if (!fstat(file.fd, &own) && !stat(file.path, &named) && same_file(&own, &named)) {
        rename(first, second);
        rename(file.path, first);
    }
    free(first);
    free(second);
    file_leave();
}

static bool file_ready(void) {
    struct stat own, named;
    if (file.fd >= 0 && (fstat(file.fd, &own) || stat(file.path, &named) || !same_file(&own, &named))) file_leave();
    if (file.fd >= 0 && own.st_size >= LOG_FILE_BYTES) file_rotate();
    if (file.fd >= 0) return true;
    path_make_parents(file.path, NULL);
    file.fd = open(file.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK,
                   0600); // fails for a pipe without a reader
    if (file.fd >= 0 && !fstat(file.fd, &own) && S_ISREG(own.st_mode)) return true;
    if (file.fd >= 0) errno = EINVAL;
    int error = errno;
    file_leave();
    errno = error;
    return false;
}

static bool file_put(const char *text, size_t size) {
    ssize_t n = write(file.fd, text, size); // one write per line, so that programs do not mix lines
    if (n >= 0 && (size_t)n < size) errno = ENOSPC;
    return n >= 0 && (size_t)n == size;
}

static void file_add(const struct log_entry *e) {
    char line[LOG_LINE + 1];
    bool done = false;
    file.missing++;
    if (file.retry_at && clock_ns() < file.retry_at) return;
    if (file_ready()) {
        done = true;
        if (file.missing > 1) {
            size_t n = (size_t)snprintf(line, sizeof line, "(%llu entries are missing here)\n",
                                        (unsigned long long)file.missing - 1);
            done = file_put(line, n);
        }
        size_t n = log_format(e, line);
        line[n++] = '\n';
        done = done && file_put(line, n);
    }
    int error = errno;
    bool known = file.retry_at;
    file.retry_at = done ? 0 : clock_ns() + 1000000000;
    if (done) file.missing = 0;
    else if (!known) log_warning("log", "%s: cannot write: %s", file.path, strerror(error));
}

static void *write_file(void *unused) {
    (void)unused;
    pthread_mutex_lock(&ring.lock);
    for (;;) {
        while (ring.written == ring.count && !ring.closing) pthread_cond_wait(&ring.more, &ring.lock);
        if (ring.written == ring.count) break;
        if (ring.written < oldest()) {
            file.missing += oldest() - ring.written;
            ring.written = oldest();
        }
        struct log_entry e = ring.entries[ring.written++ % LOG_RING];
        pthread_mutex_unlock(&ring.lock);
        file_add(&e);
        pthread_mutex_lock(&ring.lock);
    }
    pthread_mutex_unlock(&ring.lock);
    return NULL;
}

void log_open(const char *path) {
    log_close();
    file.path = xstrdup(path);
    struct status st = {0};
    file.running = system_start_thread(&file.thread, write_file, NULL, &st);
    if (!file.running) log_warning("log", "%s: cannot write: %s", path, st.text);
}

void log_close(void) {
    if (file.running) {
        pthread_mutex_lock(&ring.lock);
        ring.closing = true;
        pthread_cond_signal(&ring.more);
        pthread_mutex_unlock(&ring.lock);
        pthread_join(file.thread, NULL);
    }
    file_leave();
    free(file.path);
    file.path = NULL;
    file.running = ring.closing = false;
    file.missing = file.retry_at = 0;
}
