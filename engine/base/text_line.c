#include "engine/base/text_line.h"

#include "engine/base/panic.h"

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static struct span trim(struct span s) {
    while (s.size && is_blank(s.data[0])) s.data++, s.size--;
    while (s.size && is_blank(s.data[s.size - 1])) s.size--;
    return s;
}

struct text_line text_line_split(struct span line) {
    line = trim(line);
    const char *equals = line.size ? memchr(line.data, '=', line.size) : NULL;
    size_t before = equals ? (size_t)(equals - line.data) : line.size;
    return (struct text_line){
        .blank = !line.size || line.data[0] == '#',
        .assignment = equals,
        .key = trim((struct span){line.data, before}),
        .value = equals ? trim((struct span){equals + 1, line.size - before - 1}) : (struct span){0},
    };
}

char *text_line_escape(const char *text) {
    char *out = xmalloc(2 * strlen(text) + 1);
    size_t n = 0;
    for (; *text; text++) {
        if (*text == '\n' || *text == '\\') out[n++] = '\\';
        out[n++] = *text == '\n' ? 'n' : *text;
    }
    out[n] = 0;
    return out;
}

char *text_line_unescape(struct span line) {
    char *out = xmalloc(line.size + 1);
    size_t n = 0;
    for (size_t i = 0; i < line.size; i++) {
        bool escape =
            line.data[i] == '\\' && i + 1 < line.size && (line.data[i + 1] == 'n' || line.data[i + 1] == '\\');
        if (escape) i++;
        out[n++] = escape && line.data[i] == 'n' ? '\n' : line.data[i];
    }
    out[n] = 0;
    return out;
}
