// A tokenizer over a file in memory, and its ids compared with those that a test expects.
#ifndef CONFAB_TESTS_OPENED_TOKENIZER_H
#define CONFAB_TESTS_OPENED_TOKENIZER_H

#include "engine/text/tokenizer.h"
#include "tests/unit/gguf_writer.h"

struct opened {
    void *bytes;
    struct gguf file;
    struct tokenizer *t;
    struct status status; // why t is NULL
};
struct opened open_bytes(void *bytes, size_t size); // takes them over
struct opened open_writer(struct gguf_writer *w);
void close_opened(struct opened *o);

struct encode_options {
    bool parse_special, no_space_prefix;
    bool normalises; // the text does not come back as it was
};
// Ids of a text, compared with those given; and back.
void check_ids(const struct opened *o, const char *text, struct encode_options options, size_t n,
               const int32_t *expected);
#define CHECK_IDS(o, text, options, ...)                                                                               \
    check_ids(o, text, (struct encode_options)options, sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t),               \
              (const int32_t[]){__VA_ARGS__})
#define PLAIN                                                                                                          \
    { .parse_special = false }
#define PARSED                                                                                                         \
    { .parse_special = true }
#define NO_PREFIX                                                                                                      \
    { .no_space_prefix = true }
#define NORMALISED                                                                                                     \
    { .parse_special = true, .normalises = true }
// Ids of a text, compared with a line of numbers; the line behind it.
const char *check_line_of_ids(const struct tokenizer *t, const char *text, size_t size, const char *line);
// Any bytes come back.
void check_round_trip(const struct opened *o, const char *text, size_t size);
// Any bytes give ids that there are, and can be decoded.
void check_valid(const struct opened *o, const char *text, size_t size);

#endif
