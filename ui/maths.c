#include "ui/maths.h"

#include <ctype.h>
#include <string.h>

#include "engine/base/utf8.h"

enum { DEEPEST = 24 };

static const struct style plain = {0};

// ---- what commands mean ----

enum kind {
    SYMBOL,   // the text; with blanks around it where it has them
    SHOWN,    // its argument
    ACCENT,   // its argument, one character with the text, a combining one, behind it
    FRACTION, // two arguments
    ROOT,
    DOUBLED, // its argument, a letter for a set of numbers
    CURLED,  // its argument, a script letter
    SIZED,   // nothing; a "." behind it is no delimiter
    BEGIN,
    END,
};

struct command {
    const char *name;
    enum kind kind;
    const char *text;
};

static const struct command commands[] = {
    // Greek
    {"alpha", SYMBOL, "α"},
    {"beta", SYMBOL, "β"},
    {"gamma", SYMBOL, "γ"},
    {"delta", SYMBOL, "δ"},
    {"epsilon", SYMBOL, "ϵ"},
    {"varepsilon", SYMBOL, "ε"},
    {"zeta", SYMBOL, "ζ"},
    {"eta", SYMBOL, "η"},
    {"theta", SYMBOL, "θ"},
    {"vartheta", SYMBOL, "ϑ"},
    {"iota", SYMBOL, "ι"},
    {"kappa", SYMBOL, "κ"},
    {"lambda", SYMBOL, "λ"},
    {"mu", SYMBOL, "μ"},
    {"nu", SYMBOL, "ν"},
    {"xi", SYMBOL, "ξ"},
    {"pi", SYMBOL, "π"},
    {"rho", SYMBOL, "ρ"},
    {"sigma", SYMBOL, "σ"},
    {"tau", SYMBOL, "τ"},
    {"upsilon", SYMBOL, "υ"},
    {"phi", SYMBOL, "φ"},
    {"varphi", SYMBOL, "φ"},
    {"chi", SYMBOL, "χ"},
    {"psi", SYMBOL, "ψ"},
    {"omega", SYMBOL, "ω"},
    {"Gamma", SYMBOL, "Γ"},
    {"Delta", SYMBOL, "Δ"},
    {"Theta", SYMBOL, "Θ"},
    {"Lambda", SYMBOL, "Λ"},
    {"Xi", SYMBOL, "Ξ"},
    {"Pi", SYMBOL, "Π"},
    {"Sigma", SYMBOL, "Σ"},
    {"Upsilon", SYMBOL, "Υ"},
    {"Phi", SYMBOL, "Φ"},
    {"Psi", SYMBOL, "Ψ"},
    {"Omega", SYMBOL, "Ω"},
    // relations
    {"le", SYMBOL, " ≤ "},
    {"leq", SYMBOL, " ≤ "},
    {"leqslant", SYMBOL, " ≤ "},
    {"ge", SYMBOL, " ≥ "},
    {"geq", SYMBOL, " ≥ "},
    {"geqslant", SYMBOL, " ≥ "},
    {"lt", SYMBOL, " < "},
    {"gt", SYMBOL, " > "},
    {"ll", SYMBOL, " ≪ "},
    {"gg", SYMBOL, " ≫ "},
    {"ne", SYMBOL, " ≠ "},
    {"neq", SYMBOL, " ≠ "},
    {"equiv", SYMBOL, " ≡ "},
    {"approx", SYMBOL, " ≈ "},
    {"sim", SYMBOL, " ∼ "},
    {"simeq", SYMBOL, " ≃ "},
    {"cong", SYMBOL, " ≅ "},
    {"propto", SYMBOL, " ∝ "},
    {"in", SYMBOL, " ∈ "},
    {"notin", SYMBOL, " ∉ "},
    {"ni", SYMBOL, " ∋ "},
    {"subset", SYMBOL, " ⊂ "},
    {"subseteq", SYMBOL, " ⊆ "},
    {"supset", SYMBOL, " ⊃ "},
    {"supseteq", SYMBOL, " ⊇ "},
    {"mid", SYMBOL, " | "},
    {"nmid", SYMBOL, " ∤ "},
    {"parallel", SYMBOL, " ∥ "},
    {"perp", SYMBOL, " ⊥ "},
    {"models", SYMBOL, " ⊨ "},
    {"vdash", SYMBOL, " ⊢ "},
    {"prec", SYMBOL, " ≺ "},
    {"succ", SYMBOL, " ≻ "},
    {"coloneqq", SYMBOL, " ≔ "},
    // arrows
    {"to", SYMBOL, " → "},
    {"rightarrow", SYMBOL, " → "},
    {"leftarrow", SYMBOL, " ← "},
    {"gets", SYMBOL, " ← "},
    {"leftrightarrow", SYMBOL, " ↔ "},
    {"Rightarrow", SYMBOL, " ⇒ "},
    {"Leftarrow", SYMBOL, " ⇐ "},
    {"Leftrightarrow", SYMBOL, " ⇔ "},
    {"longrightarrow", SYMBOL, " ⟶ "},
    {"implies", SYMBOL, " ⟹ "},
    {"impliedby", SYMBOL, " ⟸ "},
    {"iff", SYMBOL, " ⟺ "},
    {"mapsto", SYMBOL, " ↦ "},
    {"uparrow", SYMBOL, "↑"},
    {"downarrow", SYMBOL, "↓"},
    // operators
    {"pm", SYMBOL, " ± "},
    {"mp", SYMBOL, " ∓ "},
    {"times", SYMBOL, " × "},
    {"div", SYMBOL, " ÷ "},
    {"cdot", SYMBOL, "·"},
    {"ast", SYMBOL, "∗"},
    {"star", SYMBOL, "⋆"},
    {"circ", SYMBOL, "∘"},
    {"bullet", SYMBOL, "•"},
    {"oplus", SYMBOL, " ⊕ "},
    {"otimes", SYMBOL, " ⊗ "},
    {"odot", SYMBOL, " ⊙ "},
    {"cup", SYMBOL, " ∪ "},
    {"cap", SYMBOL, " ∩ "},
    {"setminus", SYMBOL, " ∖ "},
    {"wedge", SYMBOL, " ∧ "},
    {"land", SYMBOL, " ∧ "},
    {"vee", SYMBOL, " ∨ "},
    {"lor", SYMBOL, " ∨ "},
    {"neg", SYMBOL, "¬"},
    {"lnot", SYMBOL, "¬"},
    {"sum", SYMBOL, "∑"},
    {"prod", SYMBOL, "∏"},
    {"coprod", SYMBOL, "∐"},
    {"int", SYMBOL, "∫"},
    {"iint", SYMBOL, "∬"},
    {"iiint", SYMBOL, "∭"},
    {"oint", SYMBOL, "∮"},
    {"bigcup", SYMBOL, "⋃"},
    {"bigcap", SYMBOL, "⋂"},
    {"bigoplus", SYMBOL, "⨁"},
    {"bmod", SYMBOL, " mod "},
    {"mod", SYMBOL, " mod "},
    // other symbols
    {"infty", SYMBOL, "∞"},
    {"partial", SYMBOL, "∂"},
    {"nabla", SYMBOL, "∇"},
    {"forall", SYMBOL, "∀"},
    {"exists", SYMBOL, "∃"},
    {"nexists", SYMBOL, "∄"},
    {"emptyset", SYMBOL, "∅"},
    {"varnothing", SYMBOL, "∅"},
    {"top", SYMBOL, "⊤"},
    {"bot", SYMBOL, "⊥"},
    {"angle", SYMBOL, "∠"},
    {"triangle", SYMBOL, "△"},
    {"square", SYMBOL, "□"},
    {"blacksquare", SYMBOL, "■"},
    {"qed", SYMBOL, "∎"},
    {"therefore", SYMBOL, "∴"},
    {"because", SYMBOL, "∵"},
    {"prime", SYMBOL, "′"},
    {"hbar", SYMBOL, "ℏ"},
    {"ell", SYMBOL, "ℓ"},
    {"Re", SYMBOL, "ℜ"},
    {"Im", SYMBOL, "ℑ"},
    {"aleph", SYMBOL, "ℵ"},
    {"dagger", SYMBOL, "†"},
    {"degree", SYMBOL, "°"},
    {"dots", SYMBOL, "…"},
    {"ldots", SYMBOL, "…"},
    {"cdots", SYMBOL, "⋯"},
    {"vdots", SYMBOL, "⋮"},
    {"ddots", SYMBOL, "⋱"},
    {"langle", SYMBOL, "⟨"},
    {"rangle", SYMBOL, "⟩"},
    {"lfloor", SYMBOL, "⌊"},
    {"rfloor", SYMBOL, "⌋"},
    {"lceil", SYMBOL, "⌈"},
    {"rceil", SYMBOL, "⌉"},
    {"lvert", SYMBOL, "|"},
    {"rvert", SYMBOL, "|"},
    {"vert", SYMBOL, "|"},
    {"lVert", SYMBOL, "‖"},
    {"rVert", SYMBOL, "‖"},
    {"Vert", SYMBOL, "‖"},
    {"|", SYMBOL, "‖"},
    {"{", SYMBOL, "{"},
    {"}", SYMBOL, "}"},
    {"%", SYMBOL, "%"},
    {"$", SYMBOL, "$"},
    {"#", SYMBOL, "#"},
    {"&", SYMBOL, "&"},
    {"_", SYMBOL, "_"},
    {"backslash", SYMBOL, "\\"},
    {"checkmark", SYMBOL, "✓"},
    // functions
    {"sin", SYMBOL, "sin"},
    {"cos", SYMBOL, "cos"},
    {"tan", SYMBOL, "tan"},
    {"cot", SYMBOL, "cot"},
    {"arcsin", SYMBOL, "arcsin"},
    {"arccos", SYMBOL, "arccos"},
    {"arctan", SYMBOL, "arctan"},
    {"sinh", SYMBOL, "sinh"},
    {"cosh", SYMBOL, "cosh"},
    {"tanh", SYMBOL, "tanh"},
    {"exp", SYMBOL, "exp"},
    {"log", SYMBOL, "log"},
    {"ln", SYMBOL, "ln"},
    {"lim", SYMBOL, "lim"},
    {"limsup", SYMBOL, "lim sup"},
    {"liminf", SYMBOL, "lim inf"},
    {"max", SYMBOL, "max"},
    {"min", SYMBOL, "min"},
    {"sup", SYMBOL, "sup"},
    {"inf", SYMBOL, "inf"},
    {"arg", SYMBOL, "arg"},
    {"det", SYMBOL, "det"},
    {"dim", SYMBOL, "dim"},
    {"ker", SYMBOL, "ker"},
    {"gcd", SYMBOL, "gcd"},
    {"deg", SYMBOL, "deg"},
    {"Pr", SYMBOL, "Pr"},
    // blanks
    {",", SYMBOL, " "},
    {":", SYMBOL, " "},
    {";", SYMBOL, " "},
    {"!", SYMBOL, ""},
    {"quad", SYMBOL, "  "},
    {"qquad", SYMBOL, "    "},
    // what only says how its argument looks
    {"text", SHOWN, ""},
    {"textbf", SHOWN, ""},
    {"textit", SHOWN, ""},
    {"textrm", SHOWN, ""},
    {"texttt", SHOWN, ""},
    {"mbox", SHOWN, ""},
    {"mathrm", SHOWN, ""},
    {"mathbf", SHOWN, ""},
    {"mathit", SHOWN, ""},
    {"mathsf", SHOWN, ""},
    {"mathtt", SHOWN, ""},
    {"boldsymbol", SHOWN, ""},
    {"bm", SHOWN, ""},
    {"operatorname", SHOWN, ""},
    {"boxed", SHOWN, ""},
    {"underline", SHOWN, ""},
    {"underbrace", SHOWN, ""},
    {"overbrace", SHOWN, ""},
    {"mathbb", DOUBLED, ""},
    {"mathcal", CURLED, ""},
    {"mathscr", CURLED, ""},
    {"hat", ACCENT, "\u0302"},
    {"widehat", ACCENT, "\u0302"},
    {"tilde", ACCENT, "\u0303"},
    {"widetilde", ACCENT, "\u0303"},
    {"bar", ACCENT, "\u0304"},
    {"overline", ACCENT, "\u0304"},
    {"dot", ACCENT, "\u0307"},
    {"ddot", ACCENT, "\u0308"},
    {"vec", ACCENT, "\u20d7"},
    {"frac", FRACTION, ""},
    {"dfrac", FRACTION, ""},
    {"tfrac", FRACTION, ""},
    {"cfrac", FRACTION, ""},
    {"sqrt", ROOT, ""},
    {"begin", BEGIN, ""},
    {"end", END, ""},
    // sizes
    {"left", SIZED, ""},
    {"right", SIZED, ""},
    {"middle", SIZED, ""},
    {"big", SIZED, ""},
    {"Big", SIZED, ""},
    {"bigg", SIZED, ""},
    {"Bigg", SIZED, ""},
    {"bigl", SIZED, ""},
    {"bigr", SIZED, ""},
    {"Bigl", SIZED, ""},
    {"Bigr", SIZED, ""},
    {"displaystyle", SIZED, ""},
    {"textstyle", SIZED, ""},
    {"limits", SIZED, ""},
    {"nolimits", SIZED, ""},
};

struct pair {
    const char *from, *to;
};

static const struct pair above[] = {
    {"0", "⁰"}, {"1", "¹"}, {"2", "²"}, {"3", "³"}, {"4", "⁴"}, {"5", "⁵"}, {"6", "⁶"}, {"7", "⁷"}, {"8", "⁸"},
    {"9", "⁹"}, {"+", "⁺"}, {"-", "⁻"}, {"−", "⁻"}, {"=", "⁼"}, {"(", "⁽"}, {")", "⁾"}, {"a", "ᵃ"}, {"b", "ᵇ"},
    {"c", "ᶜ"}, {"d", "ᵈ"}, {"e", "ᵉ"}, {"f", "ᶠ"}, {"g", "ᵍ"}, {"h", "ʰ"}, {"i", "ⁱ"}, {"j", "ʲ"}, {"k", "ᵏ"},
    {"l", "ˡ"}, {"m", "ᵐ"}, {"n", "ⁿ"}, {"o", "ᵒ"}, {"p", "ᵖ"}, {"r", "ʳ"}, {"s", "ˢ"}, {"t", "ᵗ"}, {"u", "ᵘ"},
    {"v", "ᵛ"}, {"w", "ʷ"}, {"x", "ˣ"}, {"y", "ʸ"}, {"z", "ᶻ"}, {"A", "ᴬ"}, {"B", "ᴮ"}, {"D", "ᴰ"}, {"E", "ᴱ"},
    {"G", "ᴳ"}, {"I", "ᴵ"}, {"J", "ᴶ"}, {"K", "ᴷ"}, {"L", "ᴸ"}, {"M", "ᴹ"}, {"O", "ᴼ"}, {"P", "ᴾ"}, {"R", "ᴿ"},
    {"U", "ᵁ"}, {"W", "ᵂ"}, {"T", "ᵀ"}, {"H", "ᴴ"}, {"N", "ᴺ"}, {"β", "ᵝ"}, {"γ", "ᵞ"}, {"δ", "ᵟ"}, {"θ", "ᶿ"},
    {"φ", "ᵠ"}, {"χ", "ᵡ"}, {"′", "′"}, {"∘", "°"}, {"°", "°"}, {" ", ""},
};
static const struct pair below[] = {
    {"0", "₀"}, {"1", "₁"}, {"2", "₂"}, {"3", "₃"}, {"4", "₄"}, {"5", "₅"}, {"6", "₆"}, {"7", "₇"},
    {"8", "₈"}, {"9", "₉"}, {"+", "₊"}, {"-", "₋"}, {"−", "₋"}, {"=", "₌"}, {"(", "₍"}, {")", "₎"},
    {"a", "ₐ"}, {"e", "ₑ"}, {"h", "ₕ"}, {"i", "ᵢ"}, {"j", "ⱼ"}, {"k", "ₖ"}, {"l", "ₗ"}, {"m", "ₘ"},
    {"n", "ₙ"}, {"o", "ₒ"}, {"p", "ₚ"}, {"r", "ᵣ"}, {"s", "ₛ"}, {"t", "ₜ"}, {"u", "ᵤ"}, {"v", "ᵥ"},
    {"x", "ₓ"}, {"β", "ᵦ"}, {"γ", "ᵧ"}, {"ρ", "ᵨ"}, {"φ", "ᵩ"}, {"χ", "ᵪ"}, {" ", ""},
};
static const struct pair doubled[] = {{"C", "ℂ"}, {"H", "ℍ"}, {"N", "ℕ"}, {"P", "ℙ"}, {"Q", "ℚ"},
                                      {"R", "ℝ"}, {"Z", "ℤ"}, {"E", "𝔼"}, {"1", "𝟙"}, {"F", "𝔽"}};
static const struct pair curled[] = {{"B", "ℬ"}, {"E", "ℰ"}, {"F", "ℱ"}, {"H", "ℋ"}, {"I", "ℐ"}, {"L", "ℒ"},
                                     {"M", "ℳ"}, {"R", "ℛ"}, {"O", "𝒪"}, {"N", "𝒩"}, {"D", "𝒟"}, {"A", "𝒜"},
                                     {"C", "𝒞"}, {"G", "𝒢"}, {"P", "𝒫"}, {"S", "𝒮"}, {"X", "𝒳"}, {"Y", "𝒴"}};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const struct matrix {
    const char *name, *open, *close;
} matrices[] = {{"pmatrix", "(", ")"},   {"bmatrix", "[", "]"}, {"Bmatrix", "{", "}"},
                {"vmatrix", "|", "|"},   {"Vmatrix", "‖", "‖"}, {"matrix", "", ""},
                {"smallmatrix", "", ""}, {"cases", "{ ", ""},   {"array", "", ""}};

// ---- reading TeX ----

struct tex {
    const char *text;
    size_t at, end;
    bool rows;
    int depth, in_matrix;
};

static void put(struct flow *out, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        bool begins_row = !out->size || out->text[out->size - 1] == '\n';
        if (text[i] == ' ' && (begins_row || out->text[out->size - 1] == ' ')) continue;
        flow_add(out, plain, text + i, 1);
    }
}

static void put_text(struct flow *out, const char *text) { put(out, text, strlen(text)); }

static size_t character_size(const char *text, size_t size) {
    uint32_t code;
    return utf8_decode(text, size, &code);
}

static const char *mapped(const struct pair *pairs, int n, const char *text, size_t size) {
    for (int i = 0; i < n; i++)
        if (strlen(pairs[i].from) == size && !memcmp(pairs[i].from, text, size)) return pairs[i].to;
    return NULL;
}

// All of the text's characters by the table; false, and nothing is added, when one is not in it.
static bool put_mapped(struct flow *out, const struct pair *pairs, int n, const struct flow *from) {
    for (int pass = 0; pass < 2; pass++)
        for (size_t at = 0, size; at < from->size; at += size) {
            size = character_size(from->text + at, from->size - at);
            const char *to = mapped(pairs, n, from->text + at, size);
            if (!to) return false;
            if (pass) flow_add_text(out, plain, to);
        }
    return true;
}

static void skip_blanks(struct tex *t) {
    while (t->at < t->end && isspace((unsigned char)t->text[t->at])) t->at++;
}

static void one(struct tex *t, struct flow *out);

// Up to the '}' that closes the group; all that is left when nothing does.
static void group(struct tex *t, struct flow *out) {
    while (t->at < t->end && t->text[t->at] != '}') one(t, out);
    t->at += t->at < t->end;
}

// The next argument, a group or one character; the caller frees.
static struct flow argument(struct tex *t) {
    struct flow out = {0};
    skip_blanks(t);
    if (t->at >= t->end) return out;
    if (t->text[t->at] == '{') t->at++, group(t, &out);
    else one(t, &out);
    while (out.size && out.text[out.size - 1] == ' ') out.size--;
    return out;
}

static bool compound(const struct flow *f) {
    int open = 0;
    for (size_t i = 0; i < f->size; i++) {
        const char c = f->text[i];
        open += (c == '(') - (c == ')');
        if (!open && strchr(" +-/=,", c)) return true;
        if (!open && f->size - i >= 2 && (!memcmp(f->text + i, "\xc2\xb7", 2) || !memcmp(f->text + i, "\xc3\x97", 2)))
            return true; // · and ×
    }
    return false;
}

static void put_bracketed(struct flow *out, const struct flow *f, bool brackets) {
    if (brackets) put_text(out, "(");
    put(out, f->text, f->size);
    if (brackets) put_text(out, ")");
}

static void script(struct tex *t, struct flow *out, const char *sign, const struct pair *pairs, int n) {
    struct flow f = argument(t);
    while (out->size && out->text[out->size - 1] == ' ') out->size--; // "∑ _i"
    if (f.size && !put_mapped(out, pairs, n, &f)) {
        put_text(out, sign);
        put_bracketed(out, &f, character_size(f.text, f.size) < f.size);
    }
    flow_free(&f);
}

static void fraction(struct tex *t, struct flow *out) {
    struct flow over = argument(t), under = argument(t);
    put_bracketed(out, &over, compound(&over));
    put_text(out, "/");
    put_bracketed(out, &under, compound(&under));
    flow_free(&over), flow_free(&under);
}

static void root(struct tex *t, struct flow *out) {
    skip_blanks(t);
    if (t->at < t->end && t->text[t->at] == '[') {
        struct flow degree = {0};
        t->at++;
        while (t->at < t->end && t->text[t->at] != ']') one(t, &degree);
        t->at += t->at < t->end;
        if (!put_mapped(out, above, COUNT(above), &degree)) put_bracketed(out, &degree, true);
        flow_free(&degree);
    }
    struct flow f = argument(t);
    put_text(out, "√");
    put_bracketed(out, &f, f.size && character_size(f.text, f.size) < f.size);
    flow_free(&f);
}

static void letters(struct tex *t, struct flow *out, const struct pair *pairs, int n) {
    struct flow f = argument(t);
    if (!put_mapped(out, pairs, n, &f)) put(out, f.text, f.size);
    flow_free(&f);
}

static void accent(struct tex *t, struct flow *out, const char *mark) {
    struct flow f = argument(t);
    bool single = f.size && character_size(f.text, f.size) == f.size;
    put(out, f.text, f.size);
    if (single) put_text(out, mark);
    flow_free(&f);
}

static void environment(struct tex *t, struct flow *out, bool begins) {
    struct flow name = argument(t);
    for (int i = 0; i < COUNT(matrices); i++) {
        const struct matrix *m = &matrices[i];
        if (strlen(m->name) != name.size || memcmp(m->name, name.text, name.size)) continue;
        if (begins && !strcmp(m->name, "array")) { // how its columns stand
            struct flow columns = argument(t);
            flow_free(&columns);
        }
        if (begins) skip_blanks(t);
        else
            while (out->size && out->text[out->size - 1] == ' ') out->size--;
        t->in_matrix += begins ? 1 : -(t->in_matrix > 0);
        put_text(out, begins ? m->open : m->close);
    }
    flow_free(&name);
}

static const struct command *command_named(const char *name, size_t size) {
    for (int i = 0; i < COUNT(commands); i++)
        if (strlen(commands[i].name) == size && !memcmp(commands[i].name, name, size)) return &commands[i];
    return NULL;
}

static void new_row(struct tex *t, struct flow *out) {
    while (out->size && out->text[out->size - 1] == ' ') out->size--;
    if (t->in_matrix) put_text(out, "; ");
    else if (t->rows && out->size && out->text[out->size - 1] != '\n') flow_add_text(out, plain, "\n");
    else put_text(out, " ");
    skip_blanks(t);
}

static void command(struct tex *t, struct flow *out) {
    size_t from = ++t->at;
    while (t->at < t->end && isalpha((unsigned char)t->text[t->at])) t->at++;
    if (t->at == from && t->at < t->end) t->at += character_size(t->text + t->at, t->end - t->at);
    const size_t size = t->at - from;
    if (size == 1 && t->text[from] == '\\') return new_row(t, out);
    if (size == 0 || isspace((unsigned char)t->text[from])) return put_text(out, " ");
    const struct command *c = command_named(t->text + from, size);
    if (t->at < t->end && t->text[t->at] == '*') t->at += c && c->kind == SHOWN; // \operatorname*
    if (!c) return put(out, t->text + from - 1, size + 1);
    switch (c->kind) {
    case SYMBOL: return put_text(out, c->text);
    case SHOWN: return letters(t, out, NULL, 0);
    case DOUBLED: return letters(t, out, doubled, COUNT(doubled));
    case CURLED: return letters(t, out, curled, COUNT(curled));
    case ACCENT: return accent(t, out, c->text);
    case FRACTION: return fraction(t, out);
    case ROOT: return root(t, out);
    case BEGIN:
    case END: return environment(t, out, c->kind == BEGIN);
    case SIZED: t->at += t->at < t->end && t->text[t->at] == '.';
    }
}

// One character, command or group.
static void one(struct tex *t, struct flow *out) {
    const char c = t->text[t->at];
    if (t->depth >= DEEPEST) return put(out, t->text + t->at++, 1);
    t->depth++;
    if (c == '\\') command(t, out);
    else if (c == '^') t->at++, script(t, out, "^", above, COUNT(above));
    else if (c == '_') t->at++, script(t, out, "_", below, COUNT(below));
    else if (c == '{') t->at++, group(t, out);
    else if (c == '}') t->at++; // closes nothing
    else if (c == '&') t->at++, put_text(out, t->in_matrix ? " " : "");
    else if (c == '~' || isspace((unsigned char)c)) t->at++, put_text(out, " ");
    else if (c == '\'') t->at++, put_text(out, "′");
    else if (c == '-') t->at++, put_text(out, "−");
    else {
        size_t size = character_size(t->text + t->at, t->end - t->at);
        put(out, t->text + t->at, size);
        t->at += size;
    }
    t->depth--;
}

void maths_add(struct flow *out, const char *tex, size_t size, bool rows) {
    struct tex t = {.text = tex, .end = size, .rows = rows};
    struct flow text = {0};
    while (t.at < t.end) one(&t, &text);
    while (text.size && isspace((unsigned char)text.text[text.size - 1])) text.size--;
    flow_add(out, plain, text.text, text.size);
    flow_free(&text);
}

// ---- formulas in a text ----

static size_t find(const char *text, size_t size, size_t at, const char *what) {
    const size_t n = strlen(what);
    for (; at + n <= size; at++) {
        if (!memcmp(text + at, what, n)) return at;
        if (text[at] == '\n' && at + 1 < size && text[at + 1] == '\n') break; // no formula goes over a blank line
        if (text[at] == '\\') at++;
    }
    return size;
}

// Between two "$": not "$5 and $6", not "$HOME:$PATH".
static bool between_dollars(const char *text, size_t size, size_t at, size_t close) {
    const char first = text[at + 1], last = text[close - 1];
    if (at && (isalnum((unsigned char)text[at - 1]) || text[at - 1] == '\\')) return false;
    if (close == at + 1 || isspace((unsigned char)first) || isspace((unsigned char)last)) return false;
    if (close + 1 < size && isalnum((unsigned char)text[close + 1])) return false;
    bool blanks = false, signs = false;
    for (size_t i = at + 1; i < close; i++) {
        if (text[i] == '\n') return false;
        blanks |= text[i] == ' ';
        signs |= strchr("\\^_{}=+<>", text[i]) != NULL;
    }
    return signs || (!blanks && !isdigit((unsigned char)first));
}

// Code or a quotation: what looked like a formula was none.
static bool holds_blocks(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (text[i] == '`' || (text[i] == '\n' && i + 1 < size && (text[i + 1] == '>' || text[i + 1] == '~')))
            return true;
    return false;
}

struct maths_span maths_find(const char *text, size_t size, size_t at) {
    static const struct {
        const char *open, *close;
        bool display;
    } forms[] = {{"\\(", "\\)", false}, {"\\[", "\\]", true}, {"$$", "$$", true}, {"$", "$", false}};
    for (int i = 0; i < COUNT(forms); i++) {
        const size_t n = strlen(forms[i].open);
        if (size - at < n || memcmp(text + at, forms[i].open, n)) continue;
        const size_t close = find(text, size, at + n, forms[i].close);
        if (close >= size || close == at + n || holds_blocks(text + at, close - at)) break;
        if (n == 1 && !between_dollars(text, size, at, close)) break;
        return (struct maths_span){close + n - at, n, close - at - n, forms[i].display};
    }
    return (struct maths_span){0};
}
