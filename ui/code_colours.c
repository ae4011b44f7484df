#include "ui/code_colours.h"

#include <ctype.h>
#include <string.h>

enum part { PLAIN, COMMENT, STRING, NUMBER, KEYWORD, TYPE, FUNCTION, NAME, ADDED, REMOVED };

static const struct style styles[] = {
#define CODE(code_role, code_attributes)                                                                               \
    { .role = code_role, .ground = ROLE_CODE_GROUND, .attributes = code_attributes }
    [PLAIN] = CODE(ROLE_TEXT, 0),
    [COMMENT] = CODE(ROLE_CODE_COMMENT, CELL_ITALIC),
    [STRING] = CODE(ROLE_CODE_STRING, 0),
    [NUMBER] = CODE(ROLE_CODE_NUMBER, 0),
    [KEYWORD] = CODE(ROLE_CODE_KEYWORD, CELL_BOLD),
    [TYPE] = CODE(ROLE_CODE_TYPE, 0),
    [FUNCTION] = CODE(ROLE_CODE_FUNCTION, 0),
    [NAME] = CODE(ROLE_CODE_NAME, 0),
    [ADDED] = CODE(ROLE_GOOD, 0),
    [REMOVED] = CODE(ROLE_BAD, 0),
#undef CODE
};

// ---- the languages ----

enum {
    CAPITALS = 1,    // words like Word are types
    ANY_CASE = 2,    // keywords may be in capitals
    HYPHENS = 4,     // words may have hyphens
    VARIABLES = 8,   // $name and ${name}
    ATTRIBUTES = 16, // @name
    DIRECTIVES = 32, // a line may begin with #name
    SECTIONS = 64,   // a line may be [name]
    SPACED = 128,    // comments begin behind a blank only
    TICKS = 256,     // 'a is a name, 'a' a character
    MARKUP = 512,    // text with <tags>
    MARKED_LINES = 1024
};

struct delimited { // may run over lines
    const char *open, *close;
    enum part part;
    bool escapes; // a backslash takes the next character with it
};

#define C_COMMENT                                                                                                      \
    { "/*", "*/", COMMENT, false }
struct code_language {
    const char *names; // between blanks, as all lists of words here
    int is;
    const char *comments[2]; // up to the end of the line
    struct delimited delimited[4];
    const char *quotes; // strings that end on their line
    const char *keys;   // a word or string before one of these is a name
    const char *keywords, *types;
};

static const struct code_language languages[] = {
    {.names = " c h ",
     .is = DIRECTIVES,
     .comments = {"//"},
     .delimited = {C_COMMENT},
     .quotes = "\"'",
     .keywords = " alignas alignof auto break case const constexpr continue default do else enum extern for goto if "
                 "inline register restrict return sizeof static static_assert struct switch typedef typeof union "
                 "volatile while true false nullptr NULL ",
     .types = " bool char double float int long short signed unsigned void size_t ssize_t ptrdiff_t int8_t int16_t "
              "int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t FILE va_list "},
    {.names = " c++ cpp cc cxx hpp hxx cuda cu metal glsl hlsl ",
     .is = DIRECTIVES,
     .comments = {"//"},
     .delimited = {{"R\"(", ")\"", STRING, false}, C_COMMENT},
     .quotes = "\"'",
     .keywords = " alignas alignof auto break case catch class co_await co_return co_yield concept const consteval "
                 "constexpr const_cast continue decltype default delete do dynamic_cast else enum explicit export "
                 "extern final for friend goto if inline mutable namespace new noexcept nullptr operator override "
                 "private protected public reinterpret_cast requires return sizeof static static_assert static_cast "
                 "struct switch template this throw true false try typedef typeid typename union using virtual "
                 "volatile while ",
     .types = " bool char char8_t char16_t char32_t double float int long short signed unsigned void wchar_t size_t "
              "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t string vector map set pair array "
              "optional unique_ptr shared_ptr string_view "},
    {.names = " java groovy ",
     .is = CAPITALS | ATTRIBUTES,
     .comments = {"//"},
     .delimited = {{"\"\"\"", "\"\"\"", STRING, true}, C_COMMENT},
     .quotes = "\"'",
     .keywords = " abstract assert break case catch class continue default do else enum extends final finally for if "
                 "implements import instanceof interface native new package permits private protected public record "
                 "return sealed static super switch synchronized this throw throws transient try var volatile while "
                 "yield true false null ",
     .types = " boolean byte char double float int long short void "},
    {.names = " c# cs csharp ",
     .is = CAPITALS | DIRECTIVES,
     .comments = {"//"},
     .delimited = {{"\"\"\"", "\"\"\"", STRING, false}, C_COMMENT},
     .quotes = "\"'",
     .keywords =
         " abstract as async await base break case catch checked class const continue default delegate do else "
         "enum event explicit extern finally fixed for foreach get global goto if implicit in init interface "
         "internal is lock namespace new operator out override params partial private protected public readonly "
         "record ref required return sealed set sizeof stackalloc static struct switch this throw try typeof "
         "unchecked unsafe using var virtual volatile when where while with yield true false null ",
     .types = " bool byte char decimal double dynamic float int long nint object sbyte short string uint ulong ushort "
              "void "},
    {.names = " javascript js jsx mjs cjs typescript ts tsx node ",
     .is = CAPITALS | ATTRIBUTES,
     .comments = {"//"},
     .delimited = {C_COMMENT, {"`", "`", STRING, true}},
     .quotes = "\"'",
     .keywords = " abstract as async await break case catch class const continue debugger declare default delete do "
                 "else enum export extends finally for from function get if implements import in infer instanceof "
                 "interface is keyof let namespace new of private protected public readonly return satisfies set "
                 "static super switch this throw try type typeof var while with yield true false null undefined NaN ",
     .types = " any bigint boolean never number object string symbol unknown void "},
    {.names = " python py py3 python3 pycon ",
     .is = CAPITALS | ATTRIBUTES,
     .comments = {"#"},
     .delimited = {{"\"\"\"", "\"\"\"", STRING, true}, {"'''", "'''", STRING, true}},
     .quotes = "\"'",
     .keywords =
         " and as assert async await break case class continue def del elif else except finally for from global "
         "if import in is lambda match nonlocal not or pass raise return try while with yield True False None "
         "self cls ",
     .types = " bool bytes complex dict float frozenset int list object set str tuple type "},
    {.names = " rust rs ",
     .is = CAPITALS | TICKS,
     .comments = {"//"},
     .delimited = {C_COMMENT, {"r#\"", "\"#", STRING, false}, {"\"", "\"", STRING, true}},
     .quotes = "'",
     .keywords =
         " as async await break const continue crate dyn else enum extern fn for if impl in let loop macro_rules "
         "match mod move mut pub ref return self Self static struct super trait true false type union unsafe "
         "use where while ",
     .types = " bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize "},
    {.names = " go golang ",
     .comments = {"//"},
     .delimited = {C_COMMENT, {"`", "`", STRING, false}},
     .quotes = "\"'",
     .keywords =
         " break case chan const continue default defer else fallthrough for func go goto if import interface map "
         "package range return select struct switch type var true false nil iota ",
     .types = " any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint "
              "uint8 uint16 uint32 uint64 uintptr "},
    {.names = " ruby rb ",
     .is = CAPITALS | ATTRIBUTES,
     .comments = {"#"},
     .quotes = "\"'`",
     .keywords =
         " alias and begin break case class def defined do else elsif end ensure extend false for if in include "
         "loop module next nil not or private protected public raise redo require require_relative rescue retry "
         "return self super then true undef unless until when while yield attr_accessor attr_reader attr_writer "},
    {.names = " php ",
     .is = CAPITALS | VARIABLES,
     .comments = {"//", "#"},
     .delimited = {C_COMMENT},
     .quotes = "\"'",
     .keywords =
         " abstract and array as break callable case catch class clone const continue declare default do echo "
         "else elseif enum extends final finally fn for foreach function global if implements include instanceof "
         "interface match namespace new null or print private protected public readonly require require_once "
         "return static switch this throw trait true false try use var while yield ",
     .types = " bool float int iterable mixed object string void "},
    {.names = " swift ",
     .is = CAPITALS | ATTRIBUTES,
     .comments = {"//"},
     .delimited = {C_COMMENT, {"\"\"\"", "\"\"\"", STRING, true}},
     .quotes = "\"",
     .keywords =
         " actor as associatedtype async await break case catch class continue default defer deinit do else enum "
         "extension fallthrough false fileprivate for func get guard if import in indirect init inout internal "
         "is let mutating nil open operator override private protocol public repeat rethrows return self Self "
         "set some static struct subscript super switch throw throws true try typealias var weak where while "},
    {.names = " kotlin kt kts scala dart ",
     .is = CAPITALS | ATTRIBUTES,
     .comments = {"//"},
     .delimited = {C_COMMENT, {"\"\"\"", "\"\"\"", STRING, false}},
     .quotes = "\"'",
     .keywords = " abstract as async await break by case catch class companion const continue data def do else enum "
                 "extends final finally for fun get given if implements import in infix init inline interface internal "
                 "is lateinit lazy match new null object open operator override package private protected public "
                 "required return sealed set static super suspend this throw trait true false try type val var vararg "
                 "when where while with yield ",
     .types = " bool double dynamic int num void "},
    {.names = " bash sh shell zsh fish ksh console shellscript shell-session ",
     .is = VARIABLES | SPACED | HYPHENS,
     .comments = {"#"},
     .delimited = {{"'", "'", STRING, false}, {"\"", "\"", STRING, true}},
     .keywords =
         " alias break case continue declare do done elif else esac eval exec exit export fi for function if in "
         "local readonly return select set shift source then trap unset until while sudo cd echo "},
    {.names = " powershell ps1 pwsh ",
     .is = VARIABLES | ANY_CASE | HYPHENS,
     .comments = {"#"},
     .delimited = {{"<#", "#>", COMMENT, false}},
     .quotes = "\"'",
     .keywords =
         " begin break catch class continue data do else elseif end exit filter finally for foreach from function "
         "if in param process return switch throw trap try until using while "},
    {.names = " sql mysql postgresql postgres psql sqlite plsql tsql ",
     .is = ANY_CASE,
     .comments = {"--"},
     .delimited = {C_COMMENT, {"'", "'", STRING, false}},
     .quotes = "\"`",
     .keywords = " add all alter and any as asc begin between by case check column commit constraint create cross "
                 "default delete desc distinct drop else end exists explain false foreign from full group having if in "
                 "index inner insert intersect into is join key left like limit not null offset on or order outer over "
                 "partition primary references replace returning right rollback select set table then transaction "
                 "trigger true union unique update using values view when where window with ",
     .types = " bigint blob boolean bytea char date decimal double float int integer json jsonb numeric real serial "
              "smallint text time timestamp timestamptz uuid varchar "},
    {.names = " html xml svg xhtml vue htm xsl rss plist ",
     .is = MARKUP | HYPHENS,
     .delimited = {{"<!--", "-->", COMMENT, false}},
     .quotes = "\"'"},
    {.names = " css scss less sass ",
     .is = HYPHENS | ATTRIBUTES,
     .comments = {"//"},
     .delimited = {C_COMMENT},
     .quotes = "\"'",
     .keys = ":",
     .keywords = " important inherit initial unset auto none "},
    {.names = " json json5 jsonc jsonl ndjson ",
     .comments = {"//"},
     .delimited = {C_COMMENT},
     .quotes = "\"",
     .keys = ":",
     .keywords = " true false null "},
    {.names = " yaml yml ",
     .is = SPACED | HYPHENS,
     .comments = {"#"},
     .quotes = "\"'",
     .keys = ":",
     .keywords = " true false null yes no on off "},
    {.names = " toml ini cfg conf properties dotenv env editorconfig systemd desktop ",
     .is = SPACED | HYPHENS | SECTIONS,
     .comments = {"#", ";"},
     .delimited = {{"\"\"\"", "\"\"\"", STRING, true}, {"'''", "'''", STRING, false}},
     .quotes = "\"'",
     .keys = "=",
     .keywords = " true false "},
    {.names = " makefile make mk gnumake ",
     .is = SPACED | HYPHENS | VARIABLES,
     .comments = {"#"},
     .quotes = "\"'",
     .keys = ":=+?",
     .keywords = " define else endef endif export ifdef ifeq ifndef ifneq include override "},
    {.names = " dockerfile docker containerfile ",
     .is = SPACED | VARIABLES | HYPHENS,
     .comments = {"#"},
     .quotes = "\"'",
     .keywords = " ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL "
                 "STOPSIGNAL USER VOLUME WORKDIR "},
    {.names = " cmake ",
     .is = VARIABLES | ANY_CASE,
     .comments = {"#"},
     .quotes = "\"",
     .keywords = " else elseif endforeach endfunction endif endmacro endwhile foreach function if macro return set "
                 "while "},
    {.names = " lua luau ",
     .comments = {"--"},
     .delimited = {{"--[[", "]]", COMMENT, false}, {"[[", "]]", STRING, false}},
     .quotes = "\"'",
     .keywords = " and break do else elseif end false for function goto if in local nil not or repeat return self then "
                 "true until while "},
    {.names = " haskell hs elm purescript ",
     .is = CAPITALS | TICKS,
     .comments = {"--"},
     .delimited = {{"{-", "-}", COMMENT, false}},
     .quotes = "\"'",
     .keywords =
         " case class data deriving do else family forall foreign if import in infix infixl infixr instance let "
         "module newtype of qualified then type where "},
    {.names = " ocaml ml fsharp fs f# ",
     .is = CAPITALS | TICKS,
     .delimited = {{"(*", "*)", COMMENT, false}, {"\"", "\"", STRING, true}},
     .comments = {"//"},
     .quotes = "'",
     .keywords = " and as begin class do done downto else end exception external false for fun function functor if in "
                 "include inherit let match member method module mutable new object of open or rec sig struct then to "
                 "true try type use val virtual when while with yield "},
    {.names = " elixir ex exs ",
     .is = CAPITALS | ATTRIBUTES,
     .comments = {"#"},
     .delimited = {{"\"\"\"", "\"\"\"", STRING, true}},
     .quotes = "\"'",
     .keywords = " after alias and case catch cond def defmacro defmodule defp defstruct do else end false fn for if "
                 "import in nil not or quote raise receive require rescue true try unless unquote use when with "},
    {.names = " perl pl pm ",
     .is = VARIABLES | ATTRIBUTES | SPACED,
     .comments = {"#"},
     .quotes = "\"'`",
     .keywords = " and cmp die do else elsif eq for foreach ge gt if last le lt my ne next no not or our package print "
                 "redo require return sub undef unless until use while "},
    {.names = " r julia jl ",
     .comments = {"#"},
     .delimited = {{"#=", "=#", COMMENT, false}, {"\"\"\"", "\"\"\"", STRING, true}},
     .quotes = "\"'",
     .keywords = " TRUE FALSE NULL NA Inf NaN abstract baremodule begin break catch const continue do else elseif end "
                 "export false finally for function global if import in let library local macro module mutable next "
                 "nothing quote repeat return struct true try using while "},
    {.names = " zig ",
     .is = CAPITALS | ATTRIBUTES,
     .comments = {"//"},
     .quotes = "\"'",
     .keywords =
         " align and anyframe asm async await break catch comptime const continue defer else enum errdefer error "
         "export extern fn for if inline noalias null or orelse packed pub resume return struct suspend switch "
         "test true false try undefined union unreachable usingnamespace var volatile while ",
     .types = " bool f16 f32 f64 anytype i8 i16 i32 i64 isize u8 u16 u32 u64 usize void noreturn type "},
    {.names = " diff patch udiff ", .is = MARKED_LINES},
};

static bool has(const char *list, const char *word, size_t size) {
    for (const char *at = list; at && (at = strchr(at, ' ')) && at[1]; at++)
        if (!strncmp(at + 1, word, size) && at[1 + size] == ' ') return true;
    return false;
}

static bool one_of(const char *set, char c) { return set && c && strchr(set, c); }

enum { MOST_WORD = 32 }; // bytes of a word that lists can hold, and a NUL

static size_t lower(char out[MOST_WORD], const char *word, size_t size) {
    if (size >= MOST_WORD) size = 0;
    for (size_t i = 0; i < size; i++) out[i] = (char)tolower((unsigned char)word[i]);
    out[size] = 0;
    return size;
}

const struct code_language *code_language(const char *info, size_t size) {
    char name[MOST_WORD];
    while (size && one_of("{. ", *info)) info++, size--;
    size_t end = 0;
    while (end < size && !one_of(" \t,:}{", info[end])) end++;
    size_t n = lower(name, info, end);
    for (size_t i = 0; n && i < sizeof languages / sizeof *languages; i++)
        if (has(languages[i].names, name, n)) return &languages[i];
    return NULL;
}

// ---- the lexer ----

enum { IN_TAG = 255 };

struct lexer {
    const struct code_language *l;
    struct code_state *state;
    struct flow *f;
    const char *text;
    size_t at, end;
};

static void take(struct lexer *x, size_t to, enum part part) {
    flow_style(x->f, styles[part], to);
    x->at = to;
}

static bool begins(const struct lexer *x, size_t at, const char *with) {
    size_t n = strlen(with);
    return x->end - at >= n && !memcmp(x->text + at, with, n);
}

static char byte(const struct lexer *x, size_t at) { return at < x->end ? x->text[at] : '\n'; }

static bool of_word(const struct lexer *x, size_t at) {
    char c = byte(x, at);
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80) ||
           (c == '-' && x->l->is & HYPHENS && isalnum((unsigned char)byte(x, at + 1)));
}

static size_t line_end(const struct lexer *x) {
    const char *newline = memchr(x->text + x->at, '\n', x->end - x->at);
    return newline ? (size_t)(newline - x->text) : x->end;
}

static bool first_on_line(const struct lexer *x) {
    size_t at = x->at;
    while (at > 0 && x->text[at - 1] == ' ') at--;
    return at == 0 || x->text[at - 1] == '\n';
}

static void take_delimited(struct lexer *x, int which, size_t inside) {
    const struct delimited *d = &x->l->delimited[which];
    size_t at = inside;
    while (at < x->end && !begins(x, at, d->close)) at += d->escapes && x->text[at] == '\\' && at + 1 < x->end ? 2 : 1;
    bool closed = at < x->end;
    x->state->open = closed ? 0 : (uint8_t)(which + 1);
    take(x, closed ? at + strlen(d->close) : x->end, d->part);
}

static bool is_key(const struct lexer *x, size_t at) {
    while (byte(x, at) == ' ') at++;
    char next = byte(x, at + 1);
    return one_of(x->l->keys, byte(x, at)) && next != '/' && next != ':';
}

// A string that ends on this line; false: there is none, the quote stands for itself.
static bool quoted(struct lexer *x, size_t from) {
    char quote = x->text[from];
    if (quote == '\'' && x->l->is & TICKS && byte(x, from + 1) != '\\' && byte(x, from + 2) != '\'') return false;
    size_t at = from + 1;
    while (byte(x, at) != '\n' && byte(x, at) != quote) at += byte(x, at) == '\\' && byte(x, at + 1) != '\n' ? 2 : 1;
    if (byte(x, at) != quote) return false;
    take(x, at + 1, is_key(x, at + 1) ? NAME : STRING);
    return true;
}

static bool is_quote(const struct lexer *x, size_t at) { return one_of(x->l->quotes, byte(x, at)); }

static void number(struct lexer *x) {
    size_t at = x->at;
    bool hexadecimal = tolower((unsigned char)byte(x, at + 1)) == 'x';
    for (;; at++) {
        char c = byte(x, at), next = byte(x, at + 1);
        bool exponent = !hexadecimal && at > x->at && tolower((unsigned char)byte(x, at - 1)) == 'e';
        if (isalnum((unsigned char)c) || c == '_') continue;
        if (isdigit((unsigned char)next) && (c == '.' || ((c == '+' || c == '-') && exponent))) continue;
        break;
    }
    take(x, byte(x, at) == '%' ? at + 1 : at, NUMBER);
}

static enum part part_of(const struct lexer *x, const char *word, size_t size, size_t end) {
    char folded[MOST_WORD];
    if (is_key(x, end)) return NAME;
    const bool any_case = x->l->is & ANY_CASE;
    const size_t n = any_case ? lower(folded, word, size) : size;
    const char *looked_up = any_case ? folded : word;
    if (n && has(x->l->keywords, looked_up, n)) return KEYWORD;
    if (n && has(x->l->types, looked_up, n)) return TYPE;
    if (byte(x, end) == '(') return FUNCTION;
    bool small = false;
    for (size_t i = 0; i < size; i++) small |= islower((unsigned char)word[i]) > 0;
    return x->l->is & CAPITALS && isupper((unsigned char)*word) && small ? TYPE : PLAIN;
}

static void word(struct lexer *x) {
    size_t at = x->at;
    while (of_word(x, at)) at++;
    if (at - x->at <= 2 && is_quote(x, at) && byte(x, at) != '`' && quoted(x, at)) return; // f"…", L'…'
    take(x, at, part_of(x, x->text + x->at, at - x->at, at));
}

// A sign and the word behind it; false: there is no word.
static bool signed_word(struct lexer *x, enum part part) {
    size_t at = x->at + 1;
    if (byte(x, at) == '{') {
        while (byte(x, at) != '}' && byte(x, at) != '\n') at++;
        take(x, byte(x, at) == '}' ? at + 1 : at, part);
        return true;
    }
    while (part == KEYWORD && byte(x, at) == ' ') at++;
    if (!of_word(x, at)) return false;
    while (of_word(x, at)) at++;
    take(x, at, part);
    return true;
}

static bool comment(struct lexer *x) {
    bool spaced = x->at == 0 || isspace((unsigned char)x->text[x->at - 1]);
    if (x->l->is & SPACED && !spaced) return false;
    for (int i = 0; i < 2 && x->l->comments[i]; i++)
        if (begins(x, x->at, x->l->comments[i])) return take(x, line_end(x), COMMENT), true;
    return false;
}

static bool delimited(struct lexer *x) {
    const int most = sizeof x->l->delimited / sizeof *x->l->delimited;
    for (int i = 0; i < most && x->l->delimited[i].open; i++)
        if (begins(x, x->at, x->l->delimited[i].open))
            return take_delimited(x, i, x->at + strlen(x->l->delimited[i].open)), true;
    return false;
}

static void marked_line(struct lexer *x) {
    static const struct {
        const char *begins;
        enum part part;
    } marks[] = {{"+++", NAME}, {"---", NAME}, {"@@", KEYWORD}, {"+", ADDED}, {"-", REMOVED}, {"diff ", NAME}};
    enum part part = PLAIN;
    for (int i = sizeof marks / sizeof *marks; i--;)
        if (begins(x, x->at, marks[i].begins)) part = marks[i].part;
    size_t end = line_end(x);
    take(x, end < x->end ? end + 1 : end, part);
}

// Text between tags is plain; a tag is its name, names of attributes, and strings.
static void markup(struct lexer *x) {
    if (x->state->open != IN_TAG) {
        size_t at = x->at + (byte(x, x->at) == '<');
        bool tag = at > x->at && (isalpha((unsigned char)byte(x, at)) || one_of("/!?", byte(x, at)));
        if (tag)
            for (at++; of_word(x, at) || byte(x, at) == ':';) at++;
        else
            while (at < x->end && x->text[at] != '<') at++;
        x->state->open = tag ? IN_TAG : 0;
        take(x, at, tag ? KEYWORD : PLAIN);
        return;
    }
    if (is_quote(x, x->at) && quoted(x, x->at)) return;
    size_t at = x->at;
    while (of_word(x, at)) at++;
    if (at > x->at) return take(x, at, NAME);
    bool closes = byte(x, at) == '>';
    if (closes) x->state->open = 0;
    take(x, at + 1, closes || byte(x, at) == '/' || byte(x, at) == '?' ? KEYWORD : PLAIN);
}

// What begins with a sign.
static bool sign(struct lexer *x) {
    const int is = x->l->is;
    switch (byte(x, x->at)) {
    case '$': return is & VARIABLES && signed_word(x, NAME);
    case '@': return is & ATTRIBUTES && signed_word(x, NAME);
    case '#': return is & DIRECTIVES && first_on_line(x) && signed_word(x, KEYWORD);
    case '[': return is & SECTIONS && first_on_line(x) ? take(x, line_end(x), TYPE), true : false;
    default: return false;
    }
}

static void step(struct lexer *x) {
    if (x->l->is & MARKED_LINES) return marked_line(x);
    if (x->state->open != IN_TAG && delimited(x)) return;
    if (x->l->is & MARKUP) return markup(x);
    if (comment(x) || (is_quote(x, x->at) && quoted(x, x->at)) || sign(x)) return;
    if (isdigit((unsigned char)byte(x, x->at))) number(x);
    else if (of_word(x, x->at)) word(x);
    else take(x, x->at + 1, PLAIN);
}

void code_colour(const struct code_language *l, struct code_state *state, struct flow *f, size_t from, size_t to) {
    struct lexer x = {.l = l, .state = state, .f = f, .text = f->text, .at = from, .end = to};
    while (x.at < to) {
        if (state->open && state->open != IN_TAG) take_delimited(&x, state->open - 1, x.at);
        else step(&x);
    }
}
