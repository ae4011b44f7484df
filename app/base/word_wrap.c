#include "app/base/word_wrap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "ui/canvas.h"

int word_wrap_columns(FILE *out) {
    struct winsize size = {0};
    const char *term = getenv("TERM");
    if (!term || !strcmp(term, "dumb") || !isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size)) return 0;
    return size.ws_col;
}

enum { FENCE = 3 };

// Whether the line is in a code block; its fences are.
static bool is_code(struct word_wrap *w, char c) {
    bool fence = !w->text && (w->marks ? c == w->mark : c == '`' || c == '~');
    if (fence) w->mark = c, w->marks++;
    else if (c != ' ') w->text = true;
    return w->code || w->marks >= FENCE;
}

// A code block ends at a fence of the same kind.
static void end_line(struct word_wrap *w, FILE *out) {
    putc('\n', out);
    if (w->marks >= FENCE && !w->code) w->code = w->mark;
    else if (w->marks >= FENCE && w->code == w->mark) w->code = 0;
    *w = (struct word_wrap){.columns = w->columns, .code = w->code};
}

static void end_word(struct word_wrap *w) {
    w->size = 0;
    w->width = 0;
}

static void add_blank(struct word_wrap *w, FILE *out, char blank) {
    int width = blank == '\t' ? 8 - w->column % 8 : 1;
    end_word(w);
    if (w->column + width >= w->columns) return; // the line ends here
    putc(blank, out);
    w->column += width;
}

// The last column stays free: terminals differ in where they put the cursor after it.
static void break_line(struct word_wrap *w, FILE *out) {
    bool whole = w->size && w->width < w->column;
    if (whole) fprintf(out, "\033[%dD\033[K", w->width);
    putc('\n', out);
    if (whole) fwrite(w->word, 1, w->size, out);
    else end_word(w);
    w->column = w->width;
}

// Chinese and Japanese have no spaces between words: a line may break before any wide character, except before closing
// punctuation and modifier letters, and after opening punctuation.
static bool breaks_before(struct word_wrap *w, const char *cluster, size_t size, int width) {
    uint32_t code;
    utf8_decode(cluster, size, &code);
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    bool opened = w->opens;
    w->opens = kind == UTF8PROC_CATEGORY_PS || kind == UTF8PROC_CATEGORY_PI;
    return width > 1 && !opened && kind != UTF8PROC_CATEGORY_PE && kind != UTF8PROC_CATEGORY_PF &&
           kind != UTF8PROC_CATEGORY_PO && kind != UTF8PROC_CATEGORY_LM;
}

static void add_to_word(struct word_wrap *w, FILE *out, const char *cluster, size_t size, int width) {
    if (breaks_before(w, cluster, size, width)) end_word(w);
    if (w->column + width >= w->columns) break_line(w, out);
    fwrite(cluster, 1, size, out);
    w->column += width;
    if (w->size + size > sizeof w->word) { // too long for a word
        end_word(w);
        return;
    }
    memcpy(w->word + w->size, cluster, size);
    w->size += size;
    w->width += width;
}

void word_wrap_write(struct word_wrap *w, FILE *out, const char *text, size_t size) {
    size_t n;
    for (size_t at = 0; at < size; at += n) {
        int width;
        n = text_cluster(text + at, size - at, &width);
        if (text[at] == '\n') end_line(w, out);
        else if (is_code(w, text[at]) || !w->columns) fwrite(text + at, 1, n, out);
        else if (text[at] == ' ' || text[at] == '\t') add_blank(w, out, text[at]);
        else add_to_word(w, out, text + at, n, width);
    }
}
