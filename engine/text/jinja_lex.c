#include "engine/text/jinja_lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

enum { NESTING_LIMIT = 256 }; // of brackets

struct lexer {
    struct jinja *j;
    const char *at, *end;
    bool line_starts; // the last token ended with a line end
    struct jinja_token *tokens;
    size_t count, capacity;
};

static size_t left(const struct lexer *l) { return (size_t)(l->end - l->at); }

static bool looking_at(const struct lexer *l, const char *text) {
    size_t size = strlen(text);
    return left(l) >= size && !memcmp(l->at, text, size);
}

// Advances and counts lines.
static void advance(struct lexer *l, size_t size) {
    for (const char *end = l->at + size; l->at < end; l->at++)
        if (*l->at == '\n') l->j->line++;
}

static bool skip(struct lexer *l, const char *text) {
    if (!looking_at(l, text)) return false;
    advance(l, strlen(text));
    return true;
}

static void skip_space(struct lexer *l) {
    while (left(l)) {
        uint32_t code;
        size_t size = utf8_decode(l->at, left(l), &code);
        if (!jinja_is_space(code)) break;
        advance(l, size);
    }
}

static struct jinja_token *add(struct lexer *l, enum jinja_token_kind kind, const char *begin) {
    if (l->count == l->capacity) {
        struct jinja_token *old = l->tokens;
        l->capacity = l->capacity ? 2 * l->capacity : 256;
        l->tokens = jinja_alloc(l->j, l->capacity, sizeof *l->tokens);
        if (old) memcpy(l->tokens, old, l->count * sizeof *old);
    }
    struct jinja_token *t = &l->tokens[l->count++];
    *t = (struct jinja_token){.kind = kind, .line = l->j->line, .text = {begin, NULL, (size_t)(l->at - begin)}};
    return t;
}

// ---- text between tags ----

// Adds the text from `begin` to `end`, before a tag. '-' in the tag removes white space before it. Otherwise, before
// all tags except {{ and unless there is a '+', blanks between the start of the line and the tag are removed.
static void add_data(struct lexer *l, const char *begin, const char *end, bool variable, char sign) {
    struct jinja_string text = {begin, NULL, (size_t)(end - begin)};
    if (sign == '-') text = jinja_strip(l->j, text, NULL, false, true);
    else if (sign != '+' && !variable) {
        const char *newline = text.size ? memrchr(begin, '\n', text.size) : NULL;
        size_t line = newline ? (size_t)(newline + 1 - begin) : 0;
        struct jinja_string last = jinja_substring(text, line, text.size);
        if ((line || l->line_starts) && !jinja_strip(l->j, last, NULL, false, true).size) text.size = line;
    }
    if (text.size) add(l, JINJA_TOKEN_DATA, begin)->text = text;
}

static char read_sign(struct lexer *l) {
    if (!left(l) || (*l->at != '-' && *l->at != '+')) return 0;
    return *l->at++;
}

// Skips the end of a tag, `text`, if it is there. "-" before it also skips white space after it; otherwise `trims`
// skips one line end. `plus`: "+" before it is allowed and keeps that line end.
static bool skip_mark_end(struct lexer *l, const char *text, bool plus, bool trims) {
    const char *start = l->at;
    char sign = looking_at(l, "-") || (plus && looking_at(l, "+")) ? *l->at++ : 0;
    if (!skip(l, text)) {
        l->at = start;
        return false;
    }
    if (sign == '-') skip_space(l);
    else if (!sign && trims) skip(l, "\n");
    l->line_starts = l->at[-1] == '\n';
    return true;
}

static void skip_comment(struct lexer *l) {
    int line = l->j->line;
    while (left(l)) {
        if (skip_mark_end(l, "#}", true, true)) return;
        advance(l, 1);
    }
    l->j->line = line;
    jinja_fail(l->j, STATUS_FORMAT, "unterminated comment");
}

// After "{%" and its sign: skips "raw %}" and returns true if it is there.
static bool skip_raw(struct lexer *l, const char *word) {
    const char *start = l->at;
    int line = l->j->line;
    skip_space(l);
    if (skip(l, word)) {
        skip_space(l);
        bool ends = !strcmp(word, "endraw");
        if (skip_mark_end(l, "%}", ends, ends)) return true;
    }
    l->at = start;
    l->j->line = line;
    return false;
}

static void read_raw(struct lexer *l) {
    const char *begin = l->at;
    for (; left(l); advance(l, 1)) {
        const char *end = l->at;
        if (!skip(l, "{%")) continue;
        char sign = read_sign(l);
        const char *inside = l->at;
        bool starts = l->line_starts;
        if (skip_raw(l, "endraw")) {
            bool after = l->line_starts;
            l->line_starts = starts;
            add_data(l, begin, end, false, sign);
            l->line_starts = after;
            return;
        }
        l->at = inside - 1;
    }
    jinja_fail(l->j, STATUS_FORMAT, "unterminated raw block");
}

// ---- inside tags ----

static bool is_name_start(char c) { return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80; }
static bool is_name_part(char c) { return is_name_start(c) || isdigit((unsigned char)c); }

static int escape_digits(char letter) { return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0; }

static uint32_t read_code(struct lexer *l, const char *digits, int count, const char *end) {
    char text[9] = {0};
    for (int i = 0; i < count; i++) {
        if (digits + i >= end || !isxdigit((unsigned char)digits[i]))
            jinja_fail(l->j, STATUS_FORMAT, "\\%c in a string needs %d hexadecimal digits", digits[-1], count);
        text[i] = digits[i];
    }
    return (uint32_t)strtoul(text, NULL, 16);
}

// Reads an escape at p, after the backslash; returns the position after it.
static const char *read_escape(struct lexer *l, const char *p, const char *end, struct jinja_builder *b) {
    static const char letters[] = "abfnrtv\\'\"", codes[] = "\a\b\f\n\r\t\v\\'\"";
    const char *letter = memchr(letters, *p, sizeof letters - 1);
    if (letter) return jinja_append_code(l->j, b, (uint8_t)codes[letter - letters], false), p + 1;
    if (*p == '\n') return p + 1;
    int digits = escape_digits(*p);
    if (digits) return jinja_append_code(l->j, b, read_code(l, p + 1, digits, end), false), p + 1 + digits;
    uint32_t code = 0;
    const char *octal = p;
    while (octal < end && octal < p + 3 && *octal >= '0' && *octal <= '7') code = code * 8 + (uint32_t)(*octal++ - '0');
    if (octal > p) return jinja_append_code(l->j, b, code, false), octal;
    jinja_append_text(l->j, b, "\\");
    return p;
}

static void read_string(struct lexer *l) {
    const char *start = l->at, quote = *start, *p = start + 1;
    struct jinja_builder b = {0};
    for (const char *plain = p;; plain = p) {
        while (p < l->end && *p != quote && *p != '\\') p++;
        jinja_append(l->j, &b, (struct jinja_string){plain, NULL, (size_t)(p - plain)});
        if (p >= l->end || (*p == '\\' && p + 1 == l->end)) jinja_fail(l->j, STATUS_FORMAT, "unterminated string");
        if (*p == quote) break;
        p = read_escape(l, p + 1, l->end, &b);
    }
    advance(l, (size_t)(p + 1 - start));
    add(l, JINJA_TOKEN_LITERAL, start)->literal = jinja_text(jinja_built(&b));
}

static const char *skip_digits(const struct lexer *l, const char *p) {
    while (p < l->end && (isalnum((unsigned char)*p) || *p == '_')) p++;
    return p;
}

// The end of a number at l->at; sets *is_float if it has a fraction or an exponent. x.0.1 is two indices.
static const char *number_end(const struct lexer *l, bool *is_float) {
    const char *p = l->at;
    bool plain = l->count && jinja_string_is(l->tokens[l->count - 1].text, ".");
    bool prefixed = left(l) > 1 && *p == '0' && strchr("xXoObB", p[1]) && p[1];
    *is_float = false;
    if (prefixed) return skip_digits(l, p);
    while (p < l->end && (isdigit((unsigned char)*p) || *p == '_')) p++;
    if (plain) return p;
    if (p + 1 < l->end && *p == '.' && isdigit((unsigned char)p[1])) {
        *is_float = true;
        for (p++; p < l->end && (isdigit((unsigned char)*p) || *p == '_');) p++;
    }
    const char *e = p;
    if (e < l->end && (*e == 'e' || *e == 'E') && ++e < l->end && (*e == '+' || *e == '-')) e++;
    if (e > p && e < l->end && isdigit((unsigned char)*e)) {
        *is_float = true;
        for (p = e; p < l->end && (isdigit((unsigned char)*p) || *p == '_');) p++;
    }
    return p;
}

static void read_number(struct lexer *l) {
    bool is_float;
    char text[64], *rest;
    const char *start = l->at, *end = number_end(l, &is_float);
    size_t n = 0;
    for (const char *p = start; p < end && n + 1 < sizeof text; p++)
        if (*p != '_') text[n++] = *p;
    text[n] = 0;
    l->at = end;
    struct jinja_token *t = add(l, JINJA_TOKEN_LITERAL, start);
    char kind = n > 1 && text[0] == '0' ? (char)tolower((unsigned char)text[1]) : 0;
    int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    errno = 0;
    if (is_float) t->literal = jinja_number(strtod(text, &rest));
    else t->literal = jinja_integer(strtoll(base == 10 ? text : text + 2, &rest, base));
    if (*rest || rest == text || (!is_float && errno) || n + 1 == sizeof text)
        jinja_fail(l->j, STATUS_FORMAT, "invalid number %.80s…", text);
}

static bool read_operator(struct lexer *l, int *nesting) {
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const char *start = l->at;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!skip(l, operators[i])) continue;
        *nesting += strchr("[({", *start) != NULL;
        *nesting -= strchr("])}", *start) != NULL;
        if (*nesting < 0) jinja_fail(l->j, STATUS_FORMAT, "unexpected '%c'", *start);
        if (*nesting > NESTING_LIMIT)
            jinja_fail(l->j, STATUS_LIMIT, "brackets are nested too deep (maximum %d)", NESTING_LIMIT);
        add(l, JINJA_TOKEN_OPERATOR, start);
        return true;
    }
    return false;
}

// Reads the tokens up to the end of the tag.
static void read_inside(struct lexer *l, bool block) {
    int nesting = 0, line = l->j->line;
    for (;;) {
        skip_space(l);
        const char *start = l->at;
        if (!left(l)) {
            l->j->line = line;
            jinja_fail(l->j, STATUS_FORMAT, "unterminated '%s'", block ? "{%" : "{{");
        }
        if (!nesting && skip_mark_end(l, block ? "%}" : "}}", block, block)) {
            add(l, block ? JINJA_TOKEN_BLOCK_END : JINJA_TOKEN_VARIABLE_END, start);
            return;
        }
        if (isdigit((unsigned char)*start)) read_number(l);
        else if (is_name_start(*start)) {
            while (left(l) && is_name_part(*l->at)) l->at++;
            add(l, JINJA_TOKEN_NAME, start);
        } else if (*start == '\'' || *start == '"') read_string(l);
        else if (!read_operator(l, &nesting)) jinja_fail(l->j, STATUS_FORMAT, "unexpected character '%c'", *start);
    }
}

// ---- the whole ----

// Normalises line ends to "\n" and removes one at the end of the template.
static struct span normalise(struct jinja *j, struct span source) {
    char *text = jinja_alloc(j, source.size + 1, 1);
    size_t n = 0;
    for (size_t i = 0; i < source.size; i++) {
        bool pair = source.data[i] == '\r' && i + 1 < source.size && source.data[i + 1] == '\n';
        text[n++] = source.data[i] == '\r' ? '\n' : source.data[i];
        i += pair;
    }
    if (n && text[n - 1] == '\n') n--;
    return (struct span){text, n};
}

static void read_mark(struct lexer *l, const char *text_begin) {
    const char *mark = l->at;
    char kind = mark[1];
    l->at += 2;
    char sign = read_sign(l);
    add_data(l, text_begin, mark, kind == '{', sign);
    l->line_starts = false;
    if (kind == '#') {
        skip_comment(l);
    } else if (kind == '%' && skip_raw(l, "raw")) {
        read_raw(l);
    } else {
        add(l, kind == '%' ? JINJA_TOKEN_BLOCK_BEGIN : JINJA_TOKEN_VARIABLE_BEGIN, mark);
        read_inside(l, kind == '%');
    }
}

const struct jinja_token *jinja_lex(struct jinja *j, struct span source) {
    struct span text = normalise(j, source);
    struct lexer l = {.j = j, .at = text.data, .end = text.data + text.size, .line_starts = true};
    const char *begin = l.at;
    j->line = 1;
    while (left(&l)) {
        if (left(&l) > 1 && *l.at == '{' && strchr("{%#", l.at[1]) && l.at[1]) {
            read_mark(&l, begin);
            begin = l.at;
        } else {
            advance(&l, 1);
        }
    }
    if (l.at > begin) add(&l, JINJA_TOKEN_DATA, begin);
    add(&l, JINJA_TOKEN_END, l.at);
    return l.tokens;
}
