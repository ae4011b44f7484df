#include "app/base/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/reader.h"
#include "engine/base/text_line.h"

#define CONFIG_LIMIT (1 << 20)

static int line_setting(const struct text_line *l) {
    char *key = span_copy(l->key);
    int id = setting_find(key);
    free(key);
    return id >= 0 && setting_table[id].places & IN_FILE ? id : -1;
}

static bool line_apply(struct settings *s, const struct text_line *l, struct status *st) {
    if (!l->assignment)
        return status_fail(st, STATUS_FORMAT, "expected 'key = value', got '%.*s'", (int)l->key.size, l->key.data);
    int id = line_setting(l);
    if (id < 0) return status_fail(st, STATUS_FORMAT, "unknown setting '%.*s'", (int)l->key.size, l->key.data);
    char *value = text_line_unescape(l->value);
    bool done = setting_parse(s, id, value, st);
    free(value);
    return done;
}

// Returns the file's text, "" if there is no file, NULL on failure. The caller frees.
static char *config_read(const char *path, size_t *size, struct status *st) {
    struct stat info;
    *size = 0;
    if (stat(path, &info)) {
        if (errno == ENOENT || errno == ENOTDIR) return xstrdup("");
        status_fail(st, STATUS_IO, "%s: %s", path, strerror(errno));
        return NULL;
    }
    if (!info.st_size) return xstrdup("");
    return file_read(path, CONFIG_LIMIT, size, st);
}

void config_load(struct settings *s, const char *path, config_warning *warn, void *context) {
    struct status st = {0};
    size_t size;
    char *text = config_read(path, &size, &st);
    if (!text) {
        warn(context, st.text);
        return;
    }
    int number = 0;
    for (const char *line = text, *end = text + size; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        struct text_line l = text_line_split((struct span){line, (size_t)(stop - line)});
        if (!l.blank && !line_apply(s, &l, &st)) {
            status_prefix(&st, "%s:%d", path, number + 1);
            warn(context, st.text);
        }
        line = stop + 1;
    }
    free(text);
}

// ---- saving ----

// Returns the text with the last line that sets `id` replaced, or with a line added. The caller frees.
static char *config_edit(const char *text, size_t *size, int id, const char *value) {
    const char *end = text + *size, *found = end, *found_end = end;
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        struct text_line l = text_line_split((struct span){line, (size_t)(stop - line)});
        if (!l.blank && l.assignment && line_setting(&l) == id) found = line, found_end = stop;
        line = stop + 1;
    }
    bool added = found == end, open_line = *size && end[-1] != '\n';
    char *line =
        xasprintf("%s%s = %s%s", added && open_line ? "\n" : "", setting_table[id].key, value, added ? "\n" : "");
    size_t before = (size_t)(found - text), inside = strlen(line), after = (size_t)(end - found_end);
    char *out = xmalloc(before + inside + after + 1);
    memcpy(out, text, before);
    memcpy(out + before, line, inside);
    memcpy(out + before + inside, found_end, after);
    *size = before + inside + after;
    free(line);
    return out;
}

static void write_setting(FILE *out, int id, const char *text) {
    char *escaped = text_line_escape(text);
    fprintf(out, "%s = %s\n", setting_table[id].key, escaped);
    free(escaped);
}

// The place of a line's value in the list, of those that no line had before; −1: it is not there any more.
static int kept_at(const struct text_line *l, const struct text_list *list, const bool *kept) {
    char *value = text_line_unescape(l->value);
    int at = 0;
    while (at < list->count && (kept[at] || strcmp(list->texts[at], value))) at++;
    free(value);
    return at < list->count ? at : -1;
}

// Returns the text without the lines that set what is not in the list any more, and with lines for what is new. The
// caller frees.
static char *config_edit_list(const char *text, size_t *size, int id, const struct text_list *list) {
    const char *end = text + *size;
    bool *kept = xcalloc((size_t)list->count + 1, sizeof *kept);
    char *edited = NULL;
    FILE *out = open_memstream(&edited, size);
    if (!out) panic("out of memory");
    for (const char *line = text, *stop; line < end; line = stop) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        stop = newline ? newline + 1 : end;
        struct text_line l = text_line_split((struct span){line, (size_t)((newline ? newline : end) - line)});
        const bool ours = !l.blank && l.assignment && line_setting(&l) == id;
        const int at = ours ? kept_at(&l, list, kept) : -1;
        if (at >= 0) kept[at] = true;
        if (ours && at < 0) continue;
        fwrite(line, 1, (size_t)(stop - line), out);
        if (!newline) fputc('\n', out);
    }
    for (int i = 0; i < list->count; i++)
        if (!kept[i]) write_setting(out, id, list->texts[i]);
    fclose(out);
    free(kept);
    return edited;
}

bool config_save(const struct settings *s, int id, const char *path, struct status *st) {
    if (!path_make_parents(path, st)) return false;
    char *real = realpath(path, NULL); // keep symbolic links
    const char *target = real ? real : path;
    struct stat old;
    mode_t permissions = stat(target, &old) ? S_IRUSR | S_IWUSR : old.st_mode & 07777;
    size_t size;
    char *text = config_read(target, &size, st);
    bool done = false;
    if (text) {
        const struct text_list *list = setting_texts(s, id);
        char *value = setting_format(s, id), *escaped = text_line_escape(value);
        char *edited = list ? config_edit_list(text, &size, id, list) : config_edit(text, &size, id, escaped);
        done = output_file_replace(target, edited, size, permissions, st);
        free(edited), free(escaped), free(value);
    }
    free(text);
    free(real);
    return done;
}

// ---- settings of a conversation ----

static char *add_line(char *lines, int id, const char *value) {
    char *escaped = text_line_escape(value);
    char *longer = xasprintf("%s%s = %s\n", lines, setting_table[id].key, escaped);
    free(escaped), free(lines);
    return longer;
}

// A list of texts begins with an empty one, which clears the list when it is read.
char *config_write_conversation(const struct settings *s) {
    char *lines = xstrdup("");
    for (int id = 0; id < SETTING_COUNT; id++) {
        if (!(setting_table[id].places & OF_CONVERSATION)) continue;
        const struct text_list *texts = setting_texts(s, id);
        char *value = texts ? xstrdup("") : setting_format(s, id);
        lines = add_line(lines, id, value);
        for (int i = 0; texts && i < texts->count; i++) lines = add_line(lines, id, texts->texts[i]);
        free(value);
    }
    return lines;
}

// Unlike in the file, spaces at the ends of a value belong to it.
void config_read_conversation(struct settings *s, const char *lines) {
    for (size_t size; *lines; lines += size + (lines[size] == '\n')) {
        size = strcspn(lines, "\n");
        const char *equals = memmem(lines, size, " = ", 3), *value = equals ? equals + 3 : NULL;
        if (!equals) continue;
        struct text_line l = {.assignment = true,
                              .key = {lines, (size_t)(equals - lines)},
                              .value = {value, (size_t)(lines + size - value)}};
        int id = line_setting(&l);
        if (id >= 0 && setting_table[id].places & OF_CONVERSATION) line_apply(s, &l, NULL);
    }
}
