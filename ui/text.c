#include <string.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "ui/canvas.h"

enum {
    MARK_HIDDEN = 0x2426, // as utf8_mark's
    ZERO_WIDTH_JOINER = 0x200d,
    EMOJI_VARIANT = 0xfe0f,
    KEYCAP = 0x20e3,
    BLACK_FLAG = 0x1f3f4,
};

static bool code_is_tag(uint32_t c) { return c >= 0xe0000 && c < 0xe0080; }

// 0 when `c` may be drawn, otherwise the mark that stands for it.
static uint32_t code_mark(uint32_t c) { return code_is_tag(c) ? MARK_HIDDEN : utf8_mark(c); }

static int code_width(uint32_t c) {
    int class = utf8proc_get_property((utf8proc_int32_t)c)->boundclass;
    if (class == UTF8PROC_BOUNDCLASS_V || class == UTF8PROC_BOUNDCLASS_T) return 0; // they complete the syllable before
    if (class == UTF8PROC_BOUNDCLASS_SPACINGMARK) return 1; // where a terminal joins it, a blank follows
    return c == 0xad ? 0 : utf8proc_charwidth((utf8proc_int32_t)c);
}

static bool code_is_pictograph(uint32_t c) {
    return utf8proc_get_property((utf8proc_int32_t)c)->boundclass == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}

static bool code_is_flag_half(uint32_t c) { return c >= 0x1f1e6 && c <= 0x1f1ff; }

// A letter joined to the one before by a sign between them, as in Hindi since Unicode 15.1: terminals draw both in columns
// of their own.
static bool is_joined_letter(utf8proc_int32_t before, utf8proc_int32_t c) {
    return utf8proc_get_property(c)->boundclass == UTF8PROC_BOUNDCLASS_OTHER &&
           utf8proc_get_property(before)->boundclass != UTF8PROC_BOUNDCLASS_PREPEND;
}

struct cluster {
    uint32_t codes[CELL_CODES];
    int count, width;
    bool cut; // there were more codes than fit
};

static void cluster_add(struct cluster *k, uint32_t code) {
    uint32_t first = k->codes[0];
    if (code == EMOJI_VARIANT && code_is_pictograph(first)) k->width = 2;
    else if (code == KEYCAP || (code_is_flag_half(code) && code_is_flag_half(first))) k->width = 2;
    else k->width += code_width(code);
    if (k->width > 2) k->width = 2;
    if (code_is_tag(code) && first != BLACK_FLAG) return; // an invisible message otherwise
    if (k->count < CELL_CODES) k->codes[k->count++] = code;
    else k->cut = true;
}

// A cluster that lost its end must not be left waiting for it.
static void cluster_trim(struct cluster *k) {
    while (k->cut && k->count > 1 &&
           (k->codes[k->count - 1] == ZERO_WIDTH_JOINER || code_is_tag(k->codes[k->count - 1])))
        k->codes[--k->count] = 0;
}

static struct cluster cluster_begin(uint32_t code) {
    struct cluster k = {.codes = {code}, .count = 1, .width = code_width(code)};
    int class = utf8proc_get_property((utf8proc_int32_t)code)->boundclass;
    int category = utf8proc_category((utf8proc_int32_t)code);
    bool mark = class == UTF8PROC_BOUNDCLASS_SPACINGMARK || class == UTF8PROC_BOUNDCLASS_V ||
                class == UTF8PROC_BOUNDCLASS_T || category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME;
    if (mark && !(code >= 0xfe00 && code <= EMOJI_VARIANT)) // a mark with nothing to sit on
        k = (struct cluster){.codes = {' ', code}, .count = 2, .width = 1 + k.width};
    return k;
}

// What borders, gauges and maps are made of; alone it is one column wide.
static bool is_box(uint32_t code) { return code >= 0x2500 && code < 0x25a0; }

// Most of what is drawn.
static bool is_plain(const char *text, size_t size) {
    return text[0] >= ' ' && text[0] < 0x7f && (size == 1 || (unsigned char)text[1] < 0x80);
}

size_t text_glyph(const char *text, size_t size, uint32_t codes[CELL_CODES], int *width) {
    uint32_t code;
    if (is_plain(text, size)) {
        memset(codes, 0, CELL_CODES * sizeof *codes);
        codes[0] = (uint32_t)text[0];
        *width = 1;
        return 1;
    }
    size_t at = utf8_decode(text, size, &code);
    uint32_t mark = code_mark(code);
    struct cluster k = {0};
    if (code == '\n') {
        // The end of a line: nothing is drawn.
    } else if (mark) {
        k = (struct cluster){.codes = {code == '\t' ? ' ' : mark}, .width = 1};
    } else if (is_box(code) && (at == size || (unsigned char)text[at] < 0x80)) {
        k = (struct cluster){.codes = {code}, .width = 1};
    } else {
        k = cluster_begin(code);
        for (utf8proc_int32_t state = 0, previous = (utf8proc_int32_t)code; at < size;) {
            size_t n = utf8_decode(text + at, size - at, &code);
            if (utf8proc_grapheme_break_stateful(previous, (utf8proc_int32_t)code, &state)) break;
            if (is_joined_letter(previous, (utf8proc_int32_t)code)) break;
            cluster_add(&k, code);
            previous = (utf8proc_int32_t)code;
            at += n;
        }
        cluster_trim(&k);
    }
    for (int i = 0; i < CELL_CODES; i++) codes[i] = k.codes[i];
    *width = k.width;
    return at;
}

size_t text_cluster(const char *text, size_t size, int *width) {
    uint32_t codes[CELL_CODES];
    return text_glyph(text, size, codes, width);
}

size_t text_fit(const char *text, size_t size, int columns, int *width) {
    size_t at = 0;
    int used = 0, w;
    while (at < size) {
        size_t n = text_cluster(text + at, size - at, &w);
        if (used + w > columns) break;
        used += w;
        at += n;
    }
    if (width) *width = used;
    return at;
}

int text_width(const char *text, size_t size) {
    int used = 0, w;
    for (size_t at = 0; at < size; used += w) at += text_cluster(text + at, size - at, &w);
    return used;
}
