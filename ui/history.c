#include "ui/history.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>

#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "engine/base/text_line.h"

#define HISTORY_MOST          1000        // messages kept
#define HISTORY_FILE_LIMIT    (256 << 20) // bytes; more than twice HISTORY_MOST of the longest
#define HISTORY_MESSAGE_LIMIT (64 << 10)  // bytes; longer ones hold pasted files: this session has them, the file not

static void write_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n <= 0) return; // a history that cannot be saved is no reason to disturb
        bytes += n, size -= (size_t)n;
    }
}

// A file that has grown to twice what is kept is written afresh; where that fails it stays as it is.
static void shorten(const char *path) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return;
    HIST_ENTRY **list = history_list();
    for (int i = 0; list && list[i]; i++) {
        char *line = text_line_escape(list[i]->line);
        fprintf(out, "%s\n", line);
        free(line);
    }
    if (!fclose(out)) output_file_replace(path, text, size, S_IRUSR | S_IWUSR, NULL);
    free(text);
}

void history_load(const char *path) {
    using_history();
    clear_history();
    stifle_history(HISTORY_MOST);
    size_t size, lines = 0;
    char *text = path ? file_read(path, HISTORY_FILE_LIMIT, &size, NULL) : NULL;
    if (!text) return;
    for (char *line = text, *end; line < text + size; line = end + 1, lines++) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end) end = text + size;
        char *message = text_line_unescape((struct span){line, (size_t)(end - line)});
        if (message[0]) add_history(message);
        free(message);
    }
    free(text);
    if (lines > 2 * HISTORY_MOST) shorten(path);
    using_history();
}

struct history_line {
    char *path, *line;
};

static void line_write(void *job) {
    struct history_line *l = job;
    int fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        write_all(fd, l->line, strlen(l->line));
        close(fd);
    }
    free(l->path), free(l->line);
    free(l);
}

void history_append(const char *path, struct worker *worker, const char *message, const char *folded) {
    bool is_long = strlen(message) > HISTORY_MESSAGE_LIMIT;
    const char *listed = is_long ? folded : message;
    HIST_ENTRY *last = history_length ? history_get(history_base + history_length - 1) : NULL;
    bool again = last && strcmp(last->line, listed) == 0;
    if (!again) add_history(listed);
    using_history();
    if (!path || again || is_long) return;
    struct history_line *l = xcalloc(1, sizeof *l);
    char *escaped = text_line_escape(message);
    *l = (struct history_line){xstrdup(path), xasprintf("%s\n", escaped)};
    free(escaped);
    worker_do(worker, line_write, NULL, l);
}
