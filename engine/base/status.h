// Status: how a fallible function reports what went wrong.
//
// A function that can fail on outside input returns bool (true = done) or a pointer (NULL = failed) and fills the
// `struct status` its caller passes. The text is one line that names the file, the field and the value. A broken
// invariant of our own asserts instead; exhausted memory in small allocations panics (panic.h).
#ifndef CONFAB_BASE_STATUS_H
#define CONFAB_BASE_STATUS_H

#include <stdbool.h>

enum status_code {
    STATUS_OK,
    STATUS_IO,          // the system refused to read or write
    STATUS_FORMAT,      // malformed input
    STATUS_UNSUPPORTED, // sound, but nothing we can work with
    STATUS_LIMIT,       // beyond a bound of ours
    STATUS_MEMORY,
    STATUS_NUMERIC, // a number that is none, where one is needed
    STATUS_CANCELLED,
    STATUS_USAGE, // asked for in a way that makes no sense
};

struct status {
    enum status_code code;
    char text[512]; // one line, no newline, valid UTF-8; "" when code is STATUS_OK
};

// Fills *st (which may be NULL) and returns false, so that a failing function can `return status_fail(st, …)`.
// Control bytes that a hostile file put into an argument are replaced by '?'.
bool status_fail(struct status *st, enum status_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

// Puts "prefix: " before the text of a failed status; returns false.
bool status_prefix(struct status *st, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

#endif
