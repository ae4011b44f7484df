#include "ui/pane_sizes.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(int id) {
    static const char *const areas[] = {"left", "right", "above"};
    return id < SIZE_LEFT ? panes[id].name : areas[id - SIZE_LEFT];
}

static bool parse_word(struct pane_sizes *sizes, const char *word, size_t size) {
    char name[16];
    int columns, rows, end = 0;
    if (sscanf(word, "%15[a-z]=%4dx%4d%n", name, &columns, &rows, &end) != 3 || (size_t)end != size) return false;
    if (columns < 0 || columns > PANE_SIZE_MOST || rows < 0 || rows > PANE_SIZE_MOST) return false;
    for (int id = PANES_FIRST; id < SIZE_COUNT; id++) {
        if (strcmp(name_of(id), name)) continue;
        sizes->of[id] = (struct pane_size){(int16_t)columns, (int16_t)rows};
        return true;
    }
    return false;
}

bool pane_sizes_parse(struct pane_sizes *sizes, const char *text, const char **bad, size_t *size) {
    struct pane_sizes read = {0};
    for (const char *at = text; *at; at += *size + strspn(at + *size, " ,")) {
        *size = strcspn(at, " ,");
        *bad = at;
        if (*size && !parse_word(&read, at, *size)) return false;
    }
    *sizes = read;
    return true;
}

const char *pane_sizes_format(const struct pane_sizes *sizes, char out[PANE_SIZES_TEXT]) {
    size_t n = 0;
    *out = 0;
    for (int id = PANES_FIRST; id < SIZE_COUNT; id++) {
        const struct pane_size *s = &sizes->of[id];
        if (!s->columns && !s->rows) continue;
        n += (size_t)snprintf(out + n, PANE_SIZES_TEXT - n, "%s%s=%dx%d", n ? " " : "", name_of(id), s->columns,
                              s->rows);
    }
    return out;
}
