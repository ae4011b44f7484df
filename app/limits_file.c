#include "app/limits_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "app/paths.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"

#define FILE_LIMIT (64u << 10)
#define MOST_LINES 32 // the newest

// The processor's name and the engine. The caller frees.
static char *key_of(const char *engine) {
    char line[512], name[256] = "processor";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %255[^\n]", name) == 1) break;
    if (f) fclose(f);
    return xasprintf("%s, %s", name, engine);
}

static char *read_lines(const char *path) {
    size_t size;
    char *text = file_read_regular(path, FILE_LIMIT, &size, NULL);
    return text ? text : xstrdup("");
}

// Where the key of a line begins; NULL when it is no such line.
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

bool limits_file_read(const char *path, const char *engine, struct machine_limits *out) {
    char *text = read_lines(path), *key = key_of(engine), *rest = NULL;
    long long now = time(NULL), at;
    bool found = false;
    for (char *line = strtok_r(text, "\n", &rest); line && !found; line = strtok_r(NULL, "\n", &rest)) {
        struct machine_limits limits = {0};
        const char *owner = parse(line, &at, &limits);
        found = owner && !strcmp(owner, key) && at <= now && now - at < LIMITS_DAYS * 86400LL;
        if (found) *out = limits;
    }
    free(text), free(key);
    return found;
}

void limits_file_write(const char *path, const char *engine, const struct machine_limits *limits) {
    char *text = read_lines(path), *key = key_of(engine), *rest = NULL, *fresh = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&fresh, &size);
    if (!out) panic("no memory for a file of limits");
    fprintf(out, "%lld %.4g %.4g %.4g %s\n", (long long)time(NULL), limits->read_bytes, limits->int8_operations,
            limits->float_operations, key);
    int n = 1;
    for (char *line = strtok_r(text, "\n", &rest); line && n < MOST_LINES; line = strtok_r(NULL, "\n", &rest)) {
        struct machine_limits unused;
        long long at;
        const char *owner = parse(line, &at, &unused);
        if (owner && strcmp(owner, key)) fprintf(out, "%s\n", line), n++;
    }
    struct status ignored;
    if (!fclose(out) && path_make_parents(path, &ignored))
        output_file_replace(path, fresh, size, S_IRUSR | S_IWUSR, &ignored);
    free(fresh), free(text), free(key);
}
