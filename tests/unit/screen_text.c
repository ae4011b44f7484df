#include "screen_text.h"

#include <stdlib.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

static size_t row_text(const struct canvas *c, int y, char *out) {
    size_t n = 0, end = 0;
    for (int x = 0; x < c->width; x++) {
        const struct cell *cell = &c->cells[y * c->width + x];
        for (int i = 0; i < CELL_CODES && cell->codes[i]; i++) n += utf8_encode(cell->codes[i], out + n);
        if (cell->codes[0] && cell->codes[0] != ' ') end = n;
    }
    out[end] = '\n';
    return end + 1;
}

char *canvas_as_text(const struct canvas *c) {
    char *out = xmalloc((size_t)c->height * ((size_t)c->width * CELL_CODES * 4 + 1) + 1);
    size_t n = 0;
    for (int y = 0; y < c->height; y++) n += row_text(c, y, out + n);
    out[n] = 0;
    return out;
}

char *lines_as_text(const struct lines *l, int width) {
    struct canvas c;
    canvas_open(&c, width, (int)l->n_rows);
    for (size_t i = 0; i < l->n_rows; i++)
        lines_draw(l, i, &c, (struct rect){0, 0, c.width, c.height}, 0, (int)i, width);
    char *text = canvas_as_text(&c);
    canvas_close(&c);
    return text;
}
