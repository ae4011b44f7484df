// Log: one line per event, in a ring and, once log_open has named one, in a file.
//
// Any thread may log and never waits for the disk: entries are copied to the ring, and the log's own thread writes the
// file. If that thread falls behind by a whole ring, or the file cannot be written, the file notes how many entries are
// missing. The file is rotated at LOG_FILE_BYTES; two older ones are kept, PATH.1 and PATH.2. Several programs may
// write to one file.
#ifndef CONFAB_BASE_LOG_H
#define CONFAB_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#define LOG_ENTRY_CHOICES "error|warning|info|debug"
#define LOG_LEVEL_CHOICES "off|" LOG_ENTRY_CHOICES // names of enum log_level, in order
enum log_level {
    LOG_LEVEL_OFF, // not used by entries
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_COUNT
};
const char *log_level_name(enum log_level level); // "warning"

enum { LOG_RING = 512, LOG_FILE_BYTES = 1 << 20, LOG_FILES_OLD = 2, LOG_LINE = 576 };

struct log_entry {
    uint64_t number; // from 0
    uint64_t at;     // ns since 1970
    enum log_level level;
    char module[12]; // source: "engine", "model", "chat" …
    char text[512];  // one line, valid UTF-8 without control characters
};

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
void log_write(enum log_level level, const char *module, const char *format, ...) __attribute__((format(printf, 3, 4)));

void log_set_level(enum log_level maximum); // entries of higher levels are dropped; initially LOG_LEVEL_INFO

// Starts writing entries, including those already in the ring, to the file. Failures are logged in the ring and
// retried.
void log_open(const char *path);
void log_close(void); // writes remaining entries; the ring stays

uint64_t log_count(void); // number of entries so far, which is the number of the next one
// Copies entries from this number on, oldest first, to out [maximum]; skips those no longer in the ring.
size_t log_read(uint64_t from, struct log_entry *out, size_t maximum);
// "2026-11-26 23:10:00.123 warning engine  text", in local time. Returns the length.
size_t log_format(const struct log_entry *e, char out[LOG_LINE]);
enum log_level log_line_level(const char *line); // of such a line; LOG_LEVEL_OFF: it is none

#endif
