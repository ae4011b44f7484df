// Status: the error report of a function.
//
// A function that can fail on input from outside returns bool (true: success) or a pointer (NULL: failure) and fills
// the caller's `struct status`. The text is one line that names the file, the field and the value. Broken invariants
// assert instead; running out of memory in small allocations panics (panic.h).
#ifndef CONFAB_BASE_STATUS_H
#define CONFAB_BASE_STATUS_H

#include <stdbool.h>

enum status_code {
    STATUS_OK,
    STATUS_IO,          // a system call failed
    STATUS_FORMAT,      // malformed input
    STATUS_UNSUPPORTED, // valid but not supported
    STATUS_LIMIT,       // exceeds a limit
    STATUS_MEMORY,
    STATUS_DEVICE,  // a device, or its driver, failed
    STATUS_NUMERIC, // NaN or infinity where a number is needed
    STATUS_CANCELLED,
    STATUS_USAGE, // invalid arguments
};

struct status {
    enum status_code code;
    char text[512]; // one line without newline, valid UTF-8; "" if STATUS_OK
};

// Fills *st (may be NULL) and returns false, so that a function can `return status_fail(st, …)`. Replaces control
// characters and invalid UTF-8, which may come from a file, by '?'.
bool status_fail(struct status *st, enum status_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

// Prepends "prefix: " to the text; returns false.
bool status_prefix(struct status *st, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

#endif
