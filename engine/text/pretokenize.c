#include "engine/text/pretokenize.h"

#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"

// The patterns that the scanner below stands for, with L letters, N numbers, S white space, O all others:
//   gpt-2      's|'t|'re|'ve|'m|'ll|'d | ?L+ | ?N+ | ?O+ | S+(?!\S) | S+
//   llama-bpe  the same suffixes in any case | [^\r\nLN]?L+ | N{1,3} | ?O+[\r\n]* | S*[\r\n]+ | S+(?!\S) | S+
//   qwen2      as llama-bpe, with a single N
// A name that says nothing means the scheme that byte-level BPE began with.
static const struct pretokenizer pretokenizers[] = {
    {.names = {"gpt-2", "gpt2", "default", "", "phi-2", "olmo", "mellum"}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "lfm2"},
     .any_lead = true,
     .any_case = true,
     .digits = 3,
     .line_ends = true,
     .whole_pieces = true,
     .adds_bos = true},
    {.names = {"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"},
     .any_lead = true,
     .any_case = true,
     .digits = 1,
     .line_ends = true},
};

const struct pretokenizer *pretokenizer_find(struct span name) {
    for (size_t i = 0; i < sizeof pretokenizers / sizeof *pretokenizers; i++)
        for (const char *const *known = pretokenizers[i].names; *known; known++)
            if (span_equals(name, *known)) return &pretokenizers[i];
    return NULL;
}

enum character_class { CLASS_END, CLASS_LETTER, CLASS_NUMBER, CLASS_SPACE, CLASS_OTHER };

struct character {
    uint32_t code;
    enum character_class class;
    size_t size; // bytes; 0 at the end
};

static enum character_class ascii_class(uint32_t code) {
    if ((code | 0x20) - 'a' < 26) return CLASS_LETTER;
    if (code - '0' < 10) return CLASS_NUMBER;
    return code == ' ' || code - '\t' < 5 ? CLASS_SPACE : CLASS_OTHER;
}

static enum character_class unicode_class(uint32_t code) {
    if (code == 0x85) return CLASS_SPACE; // next line: white space, though of the category of controls
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CLASS_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CLASS_NUMBER;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return CLASS_SPACE;
    default: return CLASS_OTHER;
    }
}

struct scan {
    const char *text;
    size_t size;
};

static struct character character_at(struct scan s, size_t at) {
    if (at >= s.size) return (struct character){.class = CLASS_END};
    struct character c;
    c.size = utf8_decode(s.text + at, s.size - at, &c.code);
    c.class = c.code < 0x80 ? ascii_class(c.code) : unicode_class(c.code);
    return c;
}

// Where a run of at most `most` characters of a class ends; 0: any number of them.
static size_t run_end(struct scan s, size_t at, enum character_class class, int most) {
    struct character c;
    for (int n = 0; (!most || n < most) && (c = character_at(s, at)).class == class; at += c.size) n += most > 0;
    return at;
}

static bool is_line_end(uint32_t code) { return code == '\r' || code == '\n'; }

static size_t symbols_end(const struct pretokenizer *p, struct scan s, size_t at) {
    at = run_end(s, at, CLASS_OTHER, 0);
    while (p->line_ends && at < s.size && is_line_end((uint8_t)s.text[at])) at++;
    return at;
}

// 's 't 're 've 'm 'll 'd: their length, 0 when the text does not begin with one.
static size_t suffix_size(const struct pretokenizer *p, struct scan s) {
    static const char *const suffixes[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i]);
        if (s.size < 1 + n) continue;
        if (!(p->any_case ? strncasecmp : strncmp)(s.text + 1, suffixes[i], n)) return 1 + n;
    }
    return 0;
}

// White space up to its last line end, where that counts; else all of it but the last character, which may lead
// what follows; else all of it.
static size_t space_end(const struct pretokenizer *p, struct scan s) {
    size_t end = 0, last = 0, line_end = 0;
    for (struct character c; (c = character_at(s, end)).class == CLASS_SPACE;) {
        last = end;
        end += c.size;
        if (is_line_end(c.code)) line_end = end;
    }
    if (p->line_ends && line_end) return line_end;
    return end < s.size && last ? last : end;
}

static bool may_lead_letters(const struct pretokenizer *p, struct character c) {
    if (!p->any_lead) return c.code == ' ';
    return c.class != CLASS_NUMBER && !is_line_end(c.code);
}

size_t pretokenize_next(const struct pretokenizer *p, const char *text, size_t size) {
    struct scan s = {text, size};
    struct character first = character_at(s, 0), second = character_at(s, first.size);
    size_t suffix = first.code == '\'' ? suffix_size(p, s) : 0;
    if (suffix) return suffix;

    if (first.class == CLASS_LETTER) return run_end(s, 0, CLASS_LETTER, 0);
    if (second.class == CLASS_LETTER && may_lead_letters(p, first)) return run_end(s, first.size, CLASS_LETTER, 0);

    if (first.class == CLASS_NUMBER) return run_end(s, 0, CLASS_NUMBER, p->digits);
    if (second.class == CLASS_NUMBER && first.code == ' ' && !p->digits) return run_end(s, first.size, CLASS_NUMBER, 0);

    if (first.class == CLASS_OTHER) return symbols_end(p, s, 0);
    if (second.class == CLASS_OTHER && first.code == ' ') return symbols_end(p, s, first.size);
    return space_end(p, s);
}
