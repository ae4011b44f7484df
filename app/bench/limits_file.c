#include "app/bench/limits_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/processor.h"
#include "engine/base/reader.h"

#define FILE_LIMIT (64u << 10)
#define MAX_LINES  32 // the newest are kept

// "PROCESSOR, ENGINE". The caller frees.
static char *key_of(const char *engine) {
    char name[256];
    return xasprintf("%s, %s", processor_name(name, sizeof name) ? name : "processor", engine);
}

static char *read_lines(const char *path) {
    size_t size;
    char *text = file_read_regular(path, FILE_LIMIT, &size, NULL);
    return text ? text : xstrdup("");
}

// Returns where the key of a line begins, NULL if the line is invalid.
static const char *parse(const char *line, long long *at, struct machine_limits *out) {
    int used = 0;
    double bytes, integers, floats;
    if (sscanf(line, "%lld %lf %lf %lf %n", at, &bytes, &integers, &floats, &used) != 4 || !used) return NULL;
    if (!isfinite(bytes) || !isfinite(integers) || !isfinite(floats)) return NULL;
    if (bytes <= 0 || integers < 0 || floats < 0) return NULL;
    out->read_bytes = bytes;
    out->int8_operations = integers;
    out->float_operations = floats;
    return line + used;
}

// Whether the line has this key and has not expired.
static bool counts(const char *line, const char *key, long long now, long long *at, struct machine_limits *out) {
    const char *owner = parse(line, at, out);
    return owner && !strcmp(owner, key) && *at <= now && now - *at < LIMITS_DAYS * 86400LL;
}

bool limits_file_read(const char *path, const char *engine, struct machine_limits *out, long long *age) {
    char *text = read_lines(path), *key = key_of(engine), *rest = NULL;
    long long now = time(NULL), at, latest = 0;
    struct machine_limits best = {0};
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct machine_limits limits = {0};
        if (!counts(line, key, now, &at, &limits)) continue;
        machine_limits_raise(&best, &limits);
        if (at > latest) latest = at;
    }
    free(text), free(key);
    if (best.read_bytes <= 0) return false;
    *out = best;
    *age = now - latest;
    return true;
}

static bool exceeds(const struct machine_limits *a, const struct machine_limits *b) {
    return a->read_bytes > b->read_bytes || a->int8_operations > b->int8_operations ||
           a->float_operations > b->float_operations;
}

// Lines of other keys stay, and those of the same key with a higher rate.
static bool stays(const char *line, const char *key, long long now, const struct machine_limits *fresh) {
    struct machine_limits limits = {0};
    long long at;
    const char *owner = parse(line, &at, &limits);
    if (owner && strcmp(owner, key)) return true;
    return counts(line, key, now, &at, &limits) && exceeds(&limits, fresh);
}

void limits_file_add(const char *path, const char *engine, const struct machine_limits *limits, bool instead) {
    static const struct machine_limits infinite = {
        .read_bytes = HUGE_VAL, .int8_operations = HUGE_VAL, .float_operations = HUGE_VAL};
    char *text = read_lines(path), *key = key_of(engine), *rest = NULL, *fresh = NULL;
    long long now = time(NULL);
    size_t size = 0;
    FILE *out = open_memstream(&fresh, &size);
    if (!out) panic("out of memory");
    fprintf(out, "%lld %.4g %.4g %.4g %s\n", now, limits->read_bytes, limits->int8_operations, limits->float_operations,
            key);
    int n = 1;
    for (char *line = strtok_r(text, "\n", &rest); line && n < MAX_LINES; line = strtok_r(NULL, "\n", &rest))
        if (stays(line, key, now, instead ? &infinite : limits)) fprintf(out, "%s\n", line), n++;
    struct status ignored;
    if (!fclose(out) && path_make_parents(path, &ignored))
        output_file_replace(path, fresh, size, S_IRUSR | S_IWUSR, &ignored);
    free(fresh), free(text), free(key);
}
