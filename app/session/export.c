#include "app/session/export.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

enum { NAME_BYTES = 60 }; // of a file's name

static const struct {
    const char *name, *ending;
} formats[] = {
#define X(id, name, ending) [id] = {name, ending},
    EXPORT_FORMATS(X)
#undef X
};

enum export_format export_format_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    int format = 0;
    while (format < EXPORT_FORMAT_COUNT && !(dot && !strcasecmp(dot + 1, formats[format].ending))) format++;
    return (enum export_format)format;
}

const char *export_ending(enum export_format format) { return formats[format].ending; }

// Letters, digits and hyphens; bytes of other alphabets stay.
char *export_file_name(const struct conversation *c, int64_t number, enum export_format format) {
    char name[NAME_BYTES + 1];
    size_t n = 0;
    for (const char *at = export_title(c); *at && n < NAME_BYTES; at++) {
        const bool plain = isalnum((unsigned char)*at) || *at & 0x80;
        if (plain) name[n++] = *at;
        else if (n && name[n - 1] != '-') name[n++] = '-';
    }
    n -= utf8_incomplete(name, n);
    while (n && name[n - 1] == '-') n--;
    name[n] = 0;
    if (!n) strcpy(name, "chat");
    return number ? xasprintf("%06lld-%s.%s", (long long)number, name, export_ending(format))
                  : xasprintf("%s.%s", name, export_ending(format));
}

const char *export_title(const struct conversation *c) { return *c->title ? c->title : "Untitled chat"; }

const char *export_author(const struct message *m) {
    return m->role == MESSAGE_USER ? "You" : m->model ? m->model : "Assistant";
}

const char *export_time(int64_t ms, char out[32]) {
    const time_t seconds = (time_t)(ms / 1000);
    struct tm day;
    out[0] = 0;
    if (ms > 0 && localtime_r(&seconds, &day)) strftime(out, 32, "%Y-%m-%d %H:%M", &day);
    return out;
}

// ---- Markdown ----

// Of a text that ends inside a code block, the length of the fence that closes it, and its character; 0: none is open.
static int open_fence(const char *text, char *mark) {
    int open = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *at = line + strspn(line, " ");
        const char kind[] = {*at, 0};
        const int length = *at == '`' || *at == '~' ? (int)strspn(at, kind) : 0;
        if (length < 3 || at - line > 3) continue;
        if (!open) open = length, *mark = *at;
        else if (*at == *mark && length >= open && strchr("\n", at[length + (int)strspn(at + length, " \r")])) open = 0;
    }
    return open;
}

static void close_fence(FILE *out, const char *text) {
    char mark = 0;
    int open = open_fence(text, &mark);
    if (!open) return;
    while (open--) putc(mark, out);
    fputs("\n\n", out);
}

static void markdown_message(FILE *out, const struct message *m) {
    fprintf(out, "## %s\n\n", export_author(m));
    if (m->thinking_size) fprintf(out, "<details><summary>Thinking</summary>\n\n%s\n\n</details>\n\n", m->thinking);
    if (m->size) fprintf(out, "%s\n\n", m->text), close_fence(out, m->text);
    if (m->state != MESSAGE_COMPLETE && m->note) fprintf(out, "*%s*\n\n", m->note);
}

static void markdown_chat(FILE *out, const struct conversation *c) {
    char made[32];
    fprintf(out, "# %s\n\n", export_title(c));
    if (*export_time(c->created, made)) fprintf(out, "%s\n\n", made);
    for (int m = c->first; m >= 0; m = c->messages[m].chosen) markdown_message(out, &c->messages[m]);
}

// ---- documents ----

void export_begin(FILE *out, enum export_format format, const char *title) {
    if (format == EXPORT_HTML) export_html_begin(out, title);
}

void export_chat(FILE *out, enum export_format format, const struct conversation *c) {
    if (format == EXPORT_HTML) export_html_chat(out, c);
    else if (format == EXPORT_JSON) export_json_chat(out, c);
    else markdown_chat(out, c);
}

void export_end(FILE *out, enum export_format format) {
    if (format == EXPORT_HTML) export_html_end(out);
}

char *export_document(const struct conversation *c, enum export_format format, size_t *size) {
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out) panic("out of memory");
    export_begin(out, format, export_title(c));
    export_chat(out, format, c);
    export_end(out, format);
    fclose(out);
    return text;
}
