#include "app/models/models_used.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/reader.h"

#define FILE_NAME  "models-used"
#define FILE_LIMIT (8u << 20)
#define MAX_USES   64
#define MAX_LINES  512 // then the file is rewritten

// Folders may be named with "/" or "/." behind them, as shells complete them: their names are before that.
static void cut_end(char *path) {
    size_t size = strlen(path);
    while (size > 1 && (path[size - 1] == '/' || (path[size - 1] == '.' && path[size - 2] == '/'))) size--;
    path[size] = 0;
}

static int newest_first(const void *a, const void *b) {
    const struct model_use *x = a, *y = b;
    return (x->at < y->at) - (x->at > y->at);
}

static struct model_use *find(struct model_use *uses, int count, const char *path) {
    for (int i = 0; i < count; i++)
        if (!strcmp(uses[i].path, path)) return &uses[i];
    return NULL;
}

// Parses lines "SECONDS PATH", skipping others.
static struct model_use *parse(char *text, int *count, int *lines) {
    struct model_use *uses = xcalloc(MAX_LINES, sizeof *uses);
    char *rest = NULL;
    *count = *lines = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *path;
        long long at = strtoll(line, &path, 10);
        ++*lines;
        if (at <= 0 || path[0] != ' ' || path[1] != '/') continue;
        cut_end(++path);
        struct model_use *known = find(uses, *count, path);
        if (known) known->at = at > known->at ? at : known->at;
        else if (*count < MAX_LINES) uses[(*count)++] = (struct model_use){at, xstrdup(path)};
    }
    qsort(uses, (size_t)*count, sizeof *uses, newest_first);
    while (*count > MAX_USES) free(uses[--*count].path);
    return uses;
}

static struct model_use *read_uses(const char *file, int *count, int *lines) {
    size_t size;
    char *text = file && !access(file, R_OK) ? file_read(file, FILE_LIMIT, &size, NULL) : NULL;
    struct model_use *uses = parse(text ? text : (char[]){""}, count, lines);
    free(text);
    return uses;
}

struct model_use *models_used(int *count) {
    int lines;
    char *file = path_data(FILE_NAME);
    struct model_use *uses = read_uses(file, count, &lines);
    free(file);
    return uses;
}

void models_used_free(struct model_use *uses, int count) {
    for (int i = 0; i < count; i++) free(uses[i].path);
    free(uses);
}

// Oldest first.
static void rewrite(const char *file, const struct model_use *uses, int count) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return;
    for (int i = count; i > 0; i--) fprintf(out, "%lld %s\n", (long long)uses[i - 1].at, uses[i - 1].path);
    struct status ignored;
    if (!fclose(out)) output_file_replace(file, text, size, S_IRUSR | S_IWUSR, &ignored);
    free(text);
}

void models_used_add(const char *path) {
    char *file = path_data(FILE_NAME), *absolute = path_absolute(path);
    if (file && *absolute == '/' && !strchr(absolute, '\n') && path_make_parents(file, NULL)) {
        cut_end(absolute);
        int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        char *line = xasprintf("%lld %s\n", (long long)time(NULL), absolute);
        ssize_t ignored = fd >= 0 ? write(fd, line, strlen(line)) : 0;
        (void)ignored;
        if (fd >= 0) close(fd);
        free(line);
        int count, lines;
        struct model_use *uses = read_uses(file, &count, &lines);
        if (lines >= MAX_LINES) rewrite(file, uses, count);
        models_used_free(uses, count);
    }
    free(absolute), free(file);
}
