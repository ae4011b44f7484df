#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/utf8.h"
#include "ui/terminal_parts.h"

enum {
    ESCAPE = 0x1b,
    ESCAPE_MS = 50,      // after which a lone ESC is the key
    UNFINISHED_MS = 500, // after which the beginning of a longer sequence is given up
    SEQUENCE_LIMIT = 256,
    STRING_LIMIT = 1 << 20,
    KEPT_CAPACITY = 1 << 20,
    PASTE_LIMIT = 64 << 20, // a longer one comes in parts
};

static const char paste_end[] = "\033[201~";
enum { PASTE_END = sizeof paste_end - 1 };

// ---- the buffer ----

void key_decoder_close(struct key_decoder *d) {
    free(d->bytes);
    *d = (struct key_decoder){0};
}

char *key_decoder_room(struct key_decoder *d, size_t size) {
    if (d->start == d->end && d->capacity > KEPT_CAPACITY) { // a large paste is over
        free(d->bytes);
        d->bytes = NULL;
        d->start = d->end = d->capacity = 0;
    }
    if (d->start && (d->start == d->end || d->start > d->capacity / 2)) {
        memmove(d->bytes, d->bytes + d->start, d->end - d->start);
        d->end -= d->start;
        d->start = 0;
    }
    if (d->end + size > d->capacity) {
        d->capacity = 2 * (d->end + size);
        d->bytes = xrealloc(d->bytes, d->capacity);
    }
    return d->bytes + d->end;
}

void key_decoder_filled(struct key_decoder *d, size_t size) {
    d->end += size;
    if (size) d->arrived = clock_ns();
}

// ESC and one of these may begin something longer.
static bool escape_opens(char c) { return c == ESCAPE || c == '[' || c == 'O' || c == ']' || c == 'P' || c == '_'; }

static int unfinished_ms(const struct key_decoder *d) {
    const char *p = d->bytes + d->start;
    size_t n = d->end - d->start;
    bool key = n == 1 || (n == 2 && escape_opens(p[1]));
    return p[0] == ESCAPE && key ? ESCAPE_MS : UNFINISHED_MS;
}

int key_decoder_timeout(const struct key_decoder *d) {
    if (d->start == d->end || d->pasting) return -1;
    uint64_t waited = (clock_ns() - d->arrived) / 1000000, limit = (uint64_t)unfinished_ms(d);
    return waited >= limit ? 0 : (int)(limit - waited);
}

// ---- one sequence at p[0..n) ----
//
// Each decoder returns the bytes it consumed, 0 when it needs more. out->code stays KEY_NONE for what is swallowed.

static struct key key_plain(enum key_code code, int modifiers, int number) {
    return (struct key){.code = code, .modifiers = modifiers, .number = number};
}

static struct key key_function(int number, bool rxvt) {
    if (number <= 12) return key_plain(KEY_FUNCTION, 0, number);
    int base = number - (rxvt ? 10 : 12);
    return base <= 12 ? key_plain(KEY_FUNCTION, KEY_SHIFT, base) : key_plain(KEY_NONE, 0, 0);
}

struct key key_of_control(uint8_t byte) {
    switch (byte) {
    case '\r': return key_plain(KEY_ENTER, 0, 0);
    case '\t': return key_plain(KEY_TAB, 0, 0);
    case '\b':
    case 0x7f: return key_plain(KEY_BACKSPACE, 0, 0);
    case ESCAPE: return key_plain(KEY_ESCAPE, 0, 0);
    default: return key_plain(KEY_CONTROL, 0, byte >= 1 && byte <= 26 ? 'a' + byte - 1 : '@' + byte);
    }
}

static int modifiers_of(int parameter) {
    int bits = parameter > 0 ? parameter - 1 : 0;
    return bits & (KEY_SHIFT | KEY_ALT | KEY_CTRL);
}

static struct key key_letter(uint8_t final) {
    switch (final) {
    case 'A': return key_plain(KEY_UP, 0, 0);
    case 'B': return key_plain(KEY_DOWN, 0, 0);
    case 'C': return key_plain(KEY_RIGHT, 0, 0);
    case 'D': return key_plain(KEY_LEFT, 0, 0);
    case 'F': return key_plain(KEY_END, 0, 0);
    case 'H': return key_plain(KEY_HOME, 0, 0);
    case 'P':
    case 'Q':
    case 'R':
    case 'S': return key_plain(KEY_FUNCTION, 0, final - 'P' + 1);
    case 'Z': return key_plain(KEY_TAB, KEY_SHIFT, 0);
    default: return key_plain(KEY_NONE, 0, 0);
    }
}

static struct key key_tilde(int number, bool rxvt) {
    // Function keys are numbered with gaps.
    static const uint8_t functions[] = {
        [11] = 1,  [12] = 2,  [13] = 3,  [14] = 4,  [15] = 5,  [17] = 6,  [18] = 7,  [19] = 8,  [20] = 9,  [21] = 10,
        [23] = 11, [24] = 12, [25] = 13, [26] = 14, [28] = 15, [29] = 16, [31] = 17, [32] = 18, [33] = 19, [34] = 20};
    static const uint8_t others[] = {[1] = KEY_HOME,    [2] = KEY_INSERT,    [3] = KEY_DELETE, [4] = KEY_END,
                                     [5] = KEY_PAGE_UP, [6] = KEY_PAGE_DOWN, [7] = KEY_HOME,   [8] = KEY_END};
    if (number > 0 && number < (int)sizeof others) return key_plain(others[number], 0, 0);
    if (number > 0 && number < (int)sizeof functions && functions[number]) return key_function(functions[number], rxvt);
    return key_plain(KEY_NONE, 0, 0);
}

// A key named by its code point (CSI u, and xterm's CSI 27 ; modifiers ; code ~).
static struct key key_point(struct key_decoder *d, int code, int modifiers) {
    struct key k = {0};
    if (code < 0x20 || code == 0x7f) {
        k = key_of_control((uint8_t)code);
    } else if ((modifiers & KEY_CTRL) && code >= '@' && code < 0x7f) {
        uint8_t control = (uint8_t)code & 0x1f;
        k = key_plain(KEY_CONTROL, 0, control >= 1 && control <= 26 ? 'a' + control - 1 : '@' + control);
        modifiers &= ~KEY_CTRL;
    } else if (code < 0xe000 || code > 0xf8ff) { // there lie keys that no character has
        k = key_plain(KEY_TEXT, 0, 0);
        k.size = utf8_encode((uint32_t)code, d->text);
        k.text = d->text;
        modifiers &= ~KEY_SHIFT;
    }
    k.modifiers |= modifiers;
    return k;
}

static struct key key_mouse(int buttons, int x, int y, bool release) {
    struct key k = {.code = KEY_MOUSE, .number = buttons & 3, .x = x - 1, .y = y - 1};
    k.modifiers = (buttons & 4 ? KEY_SHIFT : 0) | (buttons & 8 ? KEY_ALT : 0) | (buttons & 16 ? KEY_CTRL : 0);
    k.action = release ? MOUSE_RELEASE : MOUSE_PRESS;
    if (buttons & 64) {
        k.action = buttons & 1 ? MOUSE_WHEEL_DOWN : MOUSE_WHEEL_UP;
        k.number = 0;
    }
    if (buttons & 32) k.action = MOUSE_DRAG;
    const bool motion = buttons & 32 && (release || buttons & 64 || (buttons & 3) == 3); // with no button held
    bool sideways = (buttons & 64) && (buttons & 2), outside = x < 1 || y < 1;
    return sideways || motion || outside || buttons & 128 ? key_plain(KEY_NONE, 0, 0) : k;
}

struct sequence {
    char leader, final;
    int parameters[4], count;
    int event; // of CSI u: 3 is a release
};

static bool sequence_parse(struct sequence *s, const char *p, size_t n) {
    bool sub = false;
    s->count = 1;
    for (size_t i = 0; i + 1 < n; i++) {
        if (p[i] >= '0' && p[i] <= '9') {
            int *value = sub ? &s->event : &s->parameters[s->count - 1];
            if (*value < 1 << 24) *value = *value * 10 + p[i] - '0';
        } else if (p[i] == ';') {
            if (s->count == 4) return false;
            s->count++;
            sub = false;
            s->event = 0;
        } else if (p[i] == ':') {
            sub = true;
            s->event = 0;
        } else if (i == 0 && p[i] >= '<' && p[i] <= '?') {
            s->leader = p[i];
        } else {
            return false;
        }
    }
    s->final = p[n - 1];
    return true;
}

static struct key key_sequence(struct key_decoder *d, const struct sequence *s) {
    const int *v = s->parameters;
    int modifiers = modifiers_of(v[1]);
    if (s->leader == '<' && s->count == 3 && (s->final == 'M' || s->final == 'm'))
        return key_mouse(v[0], v[1], v[2], s->final == 'm');
    if (s->leader || (s->count > 1 && s->event == 3)) return key_plain(KEY_NONE, 0, 0);
    if (s->final == 'u') return key_point(d, v[0], modifiers);
    if (s->final == '~' && v[0] == 27 && s->count == 3) return key_point(d, v[2], modifiers);
    struct key k = key_plain(KEY_NONE, 0, 0);
    if (s->final == '~') k = key_tilde(v[0], d->rxvt);
    else if (s->final == '$') k = key_tilde(v[0], d->rxvt), modifiers = KEY_SHIFT;
    else if (s->final == '^') k = key_tilde(v[0], d->rxvt), modifiers = KEY_CTRL;
    else if (s->final == '@') k = key_tilde(v[0], d->rxvt), modifiers = KEY_CTRL | KEY_SHIFT;
    else if (s->final >= 'a' && s->final <= 'd') k = key_letter((uint8_t)(s->final - 'a' + 'A')), modifiers = KEY_SHIFT;
    else k = key_letter((uint8_t)s->final);
    if (k.code) k.modifiers |= modifiers;
    return k;
}

// The bytes of CSI up to its end: parameters 0x30–0x3F, intermediates 0x20–0x2F, one final 0x40–0x7E. rxvt ends some
// with '$'. A byte that belongs to no sequence ends it too, and is left.
static size_t sequence_length(const char *p, size_t n, bool *whole) {
    *whole = false;
    for (size_t i = 2; i < n; i++) {
        uint8_t c = (uint8_t)p[i];
        bool rxvt_shift = c == '$' && i > 2 && p[2] >= '0' && p[2] <= '9' && memchr(p + 2, ';', i - 2) == NULL;
        if ((c >= 0x40 && c <= 0x7e) || rxvt_shift) return *whole = true, i + 1;
        if (c < 0x20 || c > 0x7e || i > SEQUENCE_LIMIT) return i;
    }
    return 0;
}

static size_t decode_csi(struct key_decoder *d, const char *p, size_t n, struct key *out) {
    if (n > 2 && p[2] == '[') { // Linux console: F1–F5 are ESC [ [ A–E
        if (n < 4) return 0;
        if (p[3] >= 'A' && p[3] <= 'E') *out = key_plain(KEY_FUNCTION, 0, p[3] - 'A' + 1);
        return 4;
    }
    if (n > 2 && p[2] == 'M') { // the old mouse report
        if (n < 6) return 0;
        const uint8_t *b = (const uint8_t *)p + 3;
        int buttons = b[0] - 32;
        if (buttons >= 0) *out = key_mouse(buttons, b[1] - 32, b[2] - 32, (buttons & 67) == 3);
        return 6;
    }
    bool whole;
    size_t used = sequence_length(p, n, &whole);
    struct sequence s = {0};
    if (!whole || !sequence_parse(&s, p + 2, used - 2)) return used;
    if (s.final == '~' && !s.leader && s.parameters[0] == 200) d->pasting = true, d->searched = 0;
    else *out = key_sequence(d, &s);
    return used;
}

// ESC O: application keys. Some terminals put the modifier between.
static size_t decode_ss3(struct key_decoder *d, const char *p, size_t n, struct key *out) {
    static const char keypad[] = "*+,-./0123456789";
    size_t at = 2;
    int modifiers = 0;
    while (at < n && at < 5 && p[at] >= '0' && p[at] <= '9') modifiers = modifiers * 10 + p[at++] - '0';
    if (at == n) return 0;
    uint8_t c = (uint8_t)p[at];
    if (c < 0x20 || c > 0x7e) return at;
    if (c == 'M') *out = key_plain(KEY_ENTER, 0, 0);
    else if (c >= 'a' && c <= 'd') *out = key_plain(key_letter((uint8_t)(c - 'a' + 'A')).code, KEY_CTRL, 0);
    else if (c >= 'j' && c <= 'y') *out = key_point(d, keypad[c - 'j'], 0);
    else if (c != 'Z') *out = key_letter(c);
    if (out->code) out->modifiers |= modifiers_of(modifiers);
    return at + 1;
}

// Strings that a terminal may answer with (OSC, DCS, APC …) end with BEL or ESC \. Searched once, however they arrive.
static size_t decode_string(struct key_decoder *d, const char *p, size_t n) {
    for (size_t i = d->searched > 2 ? d->searched : 2; i < n; i++) {
        bool end = p[i] == 7 || (p[i] == '\\' && p[i - 1] == ESCAPE);
        if (!end && i < STRING_LIMIT) continue;
        d->searched = 0;
        return i + 1;
    }
    d->searched = n;
    return 0;
}

static bool string_begins(const char *p) {
    switch (p[1]) {
    case ']': return p[2] >= '0' && p[2] <= '9';
    case 'P': return strchr("01!$+|>", p[2]) != NULL && p[2];
    case '_': return p[2] == 'G';
    default: return false;
    }
}

// A run of printable characters; one of them at most with Alt, which does not last.
static size_t decode_text(struct key_decoder *d, const char *p, size_t n, bool single, struct key *out) {
    size_t at = 0;
    while (at < n && (uint8_t)p[at] >= 0x20 && p[at] != 0x7f) {
        uint32_t code;
        if (utf8_incomplete(p + at, n - at > 4 ? 4 : n - at) == n - at) break;
        size_t used = utf8_decode(p + at, n - at, &code);
        bool broken = code == UTF8_REPLACEMENT && !(used == 3 && memcmp(p + at, "\xef\xbf\xbd", 3) == 0);
        if (broken && at) break;
        at += used;
        if (broken) {
            *out = key_plain(KEY_TEXT, 0, 0);
            out->size = utf8_encode(UTF8_REPLACEMENT, d->text);
            out->text = d->text;
            return at;
        }
        if (single) break;
    }
    if (at) *out = (struct key){.code = KEY_TEXT, .text = p, .size = at};
    return at;
}

static size_t decode_one(struct key_decoder *d, const char *p, size_t n, struct key *out);

static size_t decode_escape(struct key_decoder *d, const char *p, size_t n, struct key *out) {
    if (n < 2 || (n == 2 && escape_opens(p[1]))) return 0;
    if (p[1] == '[') return decode_csi(d, p, n, out);
    if (p[1] == 'O') return decode_ss3(d, p, n, out);
    if (string_begins(p)) return decode_string(d, p, n);
    if (p[1] == ESCAPE && p[2] != '[' && p[2] != 'O')
        return *out = key_plain(KEY_ESCAPE, 0, 0), 1; // two, one after the other
    size_t used = (uint8_t)p[1] < 0x20 || p[1] == 0x7f ? decode_one(d, p + 1, n - 1, out)
                                                       : decode_text(d, p + 1, n - 1, true, out);
    if (out->code) out->modifiers |= KEY_ALT;
    return used ? used + 1 : 0;
}

static size_t decode_one(struct key_decoder *d, const char *p, size_t n, struct key *out) {
    if (p[0] == ESCAPE) return decode_escape(d, p, n, out);
    if ((uint8_t)p[0] < 0x20 || p[0] == 0x7f) return *out = key_of_control((uint8_t)p[0]), 1;
    return decode_text(d, p, n, false, out);
}

// Nothing more came: what stands at the start means what it means by itself.
static size_t decode_unfinished(struct key_decoder *d, const char *p, size_t n, struct key *out) {
    d->searched = 0;
    if (p[0] != ESCAPE) { // the beginning of a character
        *out = (struct key){.code = KEY_TEXT, .text = d->text, .size = utf8_encode(UTF8_REPLACEMENT, d->text)};
        return n;
    }
    if (n == 1 || (n == 2 && p[1] == ESCAPE)) return *out = key_plain(KEY_ESCAPE, 0, 0), 1;
    if (n == 2) *out = (struct key){.code = KEY_TEXT, .modifiers = KEY_ALT, .text = p + 1, .size = 1};
    return n;
}

// ---- pastes ----

// Ends of lines become '\n', in place.
static size_t paste_clean(char *text, size_t size) {
    size_t n = 0;
    char previous = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c != '\n' || previous != '\r') text[n++] = c == '\r' ? '\n' : c;
        previous = c;
    }
    return n;
}

static bool decode_paste(struct key_decoder *d, struct key *out) {
    char *p = d->bytes + d->start;
    size_t n = d->end - d->start;
    char *end = d->searched < n ? memmem(p + d->searched, n - d->searched, paste_end, PASTE_END) : NULL;
    d->searched = n >= PASTE_END ? n - PASTE_END + 1 : 0;
    if (!end && n < PASTE_LIMIT) return false;
    size_t size = end ? (size_t)(end - p) : d->searched;
    d->start += size + (end ? PASTE_END : 0);
    d->searched = 0;
    d->pasting = !end;
    *out = (struct key){.code = KEY_PASTE, .text = p, .raw = p};
    out->size = out->raw_size = paste_clean(p, size);
    return true;
}

bool key_decoder_next(struct key_decoder *d, struct key *out) {
    while (d->start < d->end) {
        if (d->pasting) return decode_paste(d, out);
        const char *p = d->bytes + d->start;
        size_t n = d->end - d->start;
        *out = (struct key){0};
        size_t used = decode_one(d, p, n, out);
        if (!used && key_decoder_timeout(d) == 0) used = decode_unfinished(d, p, n, out);
        if (!used) return false;
        d->start += used;
        out->raw = p;
        out->raw_size = used;
        if (out->code) return true;
    }
    return false;
}
