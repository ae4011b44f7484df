#include "engine/base/utf8.h"

#include <string.h>

// The length for a lead byte, and the range of valid second bytes (Unicode table 3-7).
static size_t utf8_lead(uint8_t lead, uint8_t *low, uint8_t *high) {
    *low = 0x80, *high = 0xbf;
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) return 2;
    if (lead >= 0xe0 && lead <= 0xef) {
        if (lead == 0xe0) *low = 0xa0;
        if (lead == 0xed) *high = 0x9f;
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        if (lead == 0xf0) *low = 0x90;
        if (lead == 0xf4) *high = 0x8f;
        return 4;
    }
    return 0;
}

size_t utf8_decode(const char *text, size_t size, uint32_t *code) {
    const uint8_t *p = (const uint8_t *)text;
    uint8_t low, high;
    size_t n = utf8_lead(p[0], &low, &high);
    *code = p[0];
    if (n == 1) return 1;
    *code = UTF8_REPLACEMENT;
    if (n == 0) return 1;
    uint32_t value = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (i >= size || p[i] < low || p[i] > high) return i;
        value = value << 6 | (p[i] & 0x3f);
        low = 0x80, high = 0xbf;
    }
    *code = value;
    return n;
}

size_t utf8_encode(uint32_t code, char out[4]) {
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) code = UTF8_REPLACEMENT;
    if (code < 0x80) return out[0] = (char)code, 1;
    if (code < 0x800) return out[0] = (char)(0xc0 | code >> 6), out[1] = (char)(0x80 | (code & 0x3f)), 2;
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

bool utf8_is_hidden(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           (code >= 0xfff9 && code <= 0xfffb) || (code & 0xfffe) == 0xfffe;
}

uint32_t utf8_mark(uint32_t code) {
    if (code < 0x20) return 0x2400 + code;
    if (code == 0x7f) return 0x2421;
    if ((code & 0xfffe) == 0xfffe) return UTF8_REPLACEMENT;
    return utf8_is_hidden(code) ? 0x2426 : 0;
}

size_t utf8_incomplete(const char *text, size_t size) {
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        uint8_t low, high;
        size_t n = utf8_lead((uint8_t)text[size - back], &low, &high);
        if (n == 0) continue; // a continuation byte, or garbage
        uint32_t code;
        return n > back && utf8_decode(text + size - back, back, &code) == back ? back : 0;
    }
    return 0;
}

static size_t utf8_clean(const char *text, size_t size, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += utf8_decode(text + at, size - at, &code);
        n += utf8_encode(code, out + n);
    }
    return n;
}

// Completes the held character byte by byte, then cleans the rest directly from the caller's bytes.
size_t utf8_stream_push(struct utf8_stream *s, const char *bytes, size_t size, char *out) {
    size_t n = 0, at = 0;
    while (s->n_held && at < size) {
        s->held[s->n_held++] = bytes[at++];
        if (utf8_incomplete(s->held, s->n_held) == s->n_held) continue;
        // Either a whole character, or an invalid prefix followed by a byte to read again.
        uint32_t code;
        size_t used = utf8_decode(s->held, s->n_held, &code);
        n += utf8_encode(code, out + n);
        if (used < s->n_held) at--;
        s->n_held = 0;
    }
    size_t held = utf8_incomplete(bytes + at, size - at);
    n += utf8_clean(bytes + at, size - at - held, out + n);
    if (held) memcpy(s->held, bytes + size - held, held), s->n_held = held;
    return n;
}

size_t utf8_stream_finish(struct utf8_stream *s, char *out) {
    size_t n = utf8_clean(s->held, s->n_held, out);
    s->n_held = 0;
    return n;
}
