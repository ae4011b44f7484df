#include "app/session/title.h"

#include <string.h>
#include <strings.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

enum { MOST_BYTES = 80, LINE_BYTES = 200 };

static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

static bool ends(const char *text, const char *with) {
    const size_t size = strlen(text), n = strlen(with);
    return size >= n && !strcmp(text + size - n, with);
}

static void cut(char *text, size_t before, size_t behind) {
    const size_t size = strlen(text) - before - behind;
    memmove(text, text + before, size);
    text[size] = 0;
}

// Characters that a terminal must not get become blanks, and there is one blank at most between words.
static void read_line(const char *text, size_t size, char out[LINE_BYTES]) {
    size_t n = 0;
    for (size_t at = 0; at < size && n < LINE_BYTES - 5;) {
        uint32_t code;
        const size_t used = utf8_decode(text + at, size - at, &code);
        const bool blank = code <= ' ' || code == UTF8_REPLACEMENT || utf8_mark(code);
        if (!blank) memcpy(out + n, text + at, used), n += used;
        else if (n && out[n - 1] != ' ') out[n++] = ' ';
        at += used;
    }
    out[n] = 0;
    if (n && out[n - 1] == ' ') out[n - 1] = 0;
}

static bool cut_beginning(char *line) {
    static const char *const beginnings[] = {"# ", "## ", "### ", "- ", "* ", "> ", " "};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (begins(line, beginnings[i])) return cut(line, strlen(beginnings[i]), 0), true;
    if (strncasecmp(line, "title:", 6)) return false;
    cut(line, 6, 0);
    return true;
}

// What stands around all of it, and not around a part.
static bool cut_pair(char *line) {
    static const char *const pairs[][2] = {{"**", "**"}, {"*", "*"},   {"__", "__"}, {"_", "_"},
                                           {"`", "`"},   {"\"", "\""}, {"'", "'"},   {"“", "”"},
                                           {"„", "“"},   {"‘", "’"},   {"«", "»"},   {"「", "」"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const size_t before = strlen(pairs[i][0]), behind = strlen(pairs[i][1]);
        if (strlen(line) < before + behind || !begins(line, pairs[i][0]) || !ends(line, pairs[i][1])) continue;
        const char *closing = strstr(line + before, pairs[i][1]);
        if (closing + behind != line + strlen(line)) continue;
        cut(line, before, behind);
        return true;
    }
    return false;
}

static bool cut_end(char *line) {
    const size_t size = strlen(line);
    const bool stop = size > 1 && line[size - 1] == '.' && line[size - 2] != '.';
    if (stop || (size && line[size - 1] == ' ')) line[size - 1] = 0;
    return line[0] && strlen(line) < size;
}

char *title_of_answer(const char *text, size_t size, bool whole) {
    for (size_t at = 0; at < size;) {
        char line[LINE_BYTES];
        const char *newline = memchr(text + at, '\n', size - at);
        const size_t end = newline ? (size_t)(newline - text) : size;
        if (!newline && !whole) return NULL;
        read_line(text + at, end - at, line);
        while (cut_beginning(line) || cut_pair(line) || cut_end(line)) continue;
        if (*line && *line != '<' && strlen(line) <= MOST_BYTES && !ends(line, ":")) return xstrdup(line);
        at = end + 1;
    }
    return NULL;
}
