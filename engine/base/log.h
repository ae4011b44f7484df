// Log: what happens, one line an event. The newest lines are in a ring, for whoever shows them; once a file is named, all
// are also written to it.
//
// Any thread may write an entry and never waits for a disk: an entry is copied into the ring, and a thread of the log's
// own writes the file. When that one falls so far behind that the ring goes round, or the file cannot be written, the
// file says how many entries it lacks. The file is cut over at LOG_FILE_BYTES; two older ones are kept, PATH.1 and
// PATH.2. Several programs may write one file.
#ifndef CONFAB_BASE_LOG_H
#define CONFAB_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#define LOG_LEVEL_CHOICES "off|error|warning|info|debug" // of enum log_level, in its order
enum log_level {
    LOG_LEVEL_OFF, // no entry has it
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_COUNT
};
const char *log_level_name(enum log_level level); // "warning"

enum { LOG_RING = 512, LOG_FILE_BYTES = 1 << 20, LOG_FILES_OLD = 2, LOG_LINE = 576 };

struct log_entry {
    uint64_t number; // counts up from 0
    uint64_t at;     // ns since 1970
    enum log_level level;
    char module[12]; // who says so: "engine", "model", "chat" …
    char text[512];  // one line, valid UTF-8 with nothing that acts on a terminal
};

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
void log_write(enum log_level level, const char *module, const char *format, ...) __attribute__((format(printf, 3, 4)));

void log_set_level(enum log_level most); // entries of higher levels are dropped; LOG_LEVEL_INFO at first

// From here on entries, also those that are in the ring already, go to the file too. One that cannot be written is named
// in the ring, and tried again.
void log_open(const char *path);
void log_close(void); // writes what is left; the ring stays

uint64_t log_count(void); // entries that there were so far: the number of the next one
// Copies entries from this number on, oldest first, into out [most]; those that have left the ring are skipped.
size_t log_read(uint64_t from, struct log_entry *out, size_t most);
// "2026-11-26 23:10:00.123 warning engine  text", local time. Returns its length.
size_t log_format(const struct log_entry *e, char out[LOG_LINE]);

#endif
