// What is in a block of Markdown: text in its styles, links and images with their addresses, marks of footnotes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/markdown_parts.h"

static struct style current_style(const struct block *b) {
    struct style s = b->base;
    if (b->strong) s.attributes |= CELL_BOLD, s.role = s.role == ROLE_TEXT ? ROLE_STRONG : s.role;
    if (b->emphasis) s.attributes |= CELL_ITALIC;
    if (b->strike) s.attributes |= CELL_STRIKE;
    if (b->link) s.role = ROLE_LINK, s.attributes |= CELL_UNDERLINE;
    if (b->code) s.role = ROLE_CODE, s.ground = ROLE_CODE_GROUND;
    return s;
}

static int *span_depth(struct block *b, MD_SPANTYPE type) {
    switch (type) {
    case MD_SPAN_EM: return &b->emphasis;
    case MD_SPAN_STRONG: return &b->strong;
    case MD_SPAN_DEL: return &b->strike;
    case MD_SPAN_CODE: return &b->code;
    case MD_SPAN_A: return &b->link;
    default: return &b->image;
    }
}

// The address of a link or an image, and the definition that it came from.
struct target {
    const char *address;
    size_t size;
    struct reference *reference; // NULL: it stands in the text
};

static struct target target_of(const struct block *b, MD_SPANTYPE type, const void *detail) {
    const MD_ATTRIBUTE *a =
        type == MD_SPAN_A ? &((const MD_SPAN_A_DETAIL *)detail)->href : &((const MD_SPAN_IMG_DETAIL *)detail)->src;
    const struct references *r = &b->markdown->references;
    struct reference *reference = references_find(r, a->text, a->size);
    if (!reference) return (struct target){a->text, a->size, NULL};
    return (struct target){r->text + reference->content, reference->content_size, reference};
}

static bool is_note(const struct target *t) { return t->reference && t->reference->note; }

int markdown_span_enter(MD_SPANTYPE type, void *detail, void *user) {
    struct block *b = user;
    if (type == MD_SPAN_A || type == MD_SPAN_IMG) {
        const struct target t = target_of(b, type, detail);
        if (is_note(&t)) {
            b->mark = MARK_BEGINS;
            if (type == MD_SPAN_IMG) flow_add_text(&b->flow, current_style(b), "!"); // "so![^1]"
            return 0;
        }
        if (!b->link && !b->image) b->link_start = b->flow.size;
        if (type == MD_SPAN_IMG && !b->image)
            flow_add_text(&b->flow, markdown_dim, b->markdown->ascii ? "[image] " : "▣ ");
    }
    ++*span_depth(b, type);
    return 0;
}

// Whether the text of a link is its address, as people write it.
static bool shows_address(const char *text, size_t size, const struct target *t) {
    static const char *const left_out[] = {"", "http://", "https://", "mailto:"};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        size_t n = strlen(left_out[i]);
        if (t->size == n + size && !memcmp(t->address, left_out[i], n) && !memcmp(t->address + n, text, size))
            return true;
    }
    return false;
}

// The address stands behind the text of a link, unless it is the text. Of an image that is in it, only its kind.
static void add_address(struct block *b, const struct target *t) {
    size_t shown = b->flow.size - b->link_start, size = t->size;
    if (size == 0) return;
    if (shown && shows_address(b->flow.text + b->link_start, shown, t)) return;
    const char *data = size > 5 && !memcmp(t->address, "data:", 5) ? memchr(t->address, ',', size) : NULL;
    if (data) size = (size_t)(data - t->address);
    flow_add_text(&b->flow, markdown_dim, shown && b->flow.text[b->flow.size - 1] != ' ' ? " (" : "(");
    flow_add(&b->flow, markdown_dim, t->address, size);
    flow_add_text(&b->flow, markdown_dim, !data ? ")" : b->markdown->ascii ? ",...)" : ",…)");
}

int markdown_span_leave(MD_SPANTYPE type, void *detail, void *user) {
    struct block *b = user;
    const bool leads = type == MD_SPAN_A || type == MD_SPAN_IMG;
    const struct target t = leads ? target_of(b, type, detail) : (struct target){0};
    if (is_note(&t)) {
        char mark[16];
        references_use(&b->markdown->references, t.reference, b->chunk);
        snprintf(mark, sizeof mark, "[%d]", t.reference->number);
        flow_add_text(&b->flow, (struct style){.role = ROLE_LINK, .ground = ROLE_GROUND}, mark);
        b->mark = MARK_NONE;
        return 0;
    }
    --*span_depth(b, type);
    if (!leads || b->image || (type == MD_SPAN_IMG && b->link)) return 0;
    add_address(b, &t);
    if (t.reference) references_use(&b->markdown->references, t.reference, b->chunk);
    return 0;
}

static void add_entity(struct block *b, const char *text, size_t size) {
    static const struct {
        const char *name;
        uint32_t code;
    } named[] = {
        {"&amp;", '&'},       {"&lt;", '<'},    {"&gt;", '>'},       {"&quot;", '"'},
        {"&apos;", '\''},     {"&nbsp;", 0xa0}, {"&mdash;", 0x2014}, {"&ndash;", 0x2013},
        {"&hellip;", 0x2026}, {"&copy;", 0xa9}, {"&times;", 0xd7},
    };
    char bytes[4];
    uint32_t code = 0;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strlen(named[i].name) == size && memcmp(named[i].name, text, size) == 0) code = named[i].code;
    if (size > 3 && text[1] == '#') {
        bool hexadecimal = text[2] == 'x' || text[2] == 'X';
        code = (uint32_t)strtoul(text + (hexadecimal ? 3 : 2), NULL, hexadecimal ? 16 : 10);
        if (code == 0) code = UTF8_REPLACEMENT;
    }
    if (code) flow_add(&b->flow, current_style(b), bytes, utf8_encode(code, bytes));
    else flow_add(&b->flow, current_style(b), text, size);
}

int markdown_span_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user) {
    struct block *b = user;
    if (b->mark == MARK_BEGINS) b->mark = size && *text == '^' ? MARK_HIDES : MARK_SHOWS;
    if (b->mark == MARK_HIDES) return 0;
    switch (type) {
    case MD_TEXT_NULLCHAR: flow_add_text(&b->flow, current_style(b), "\xef\xbf\xbd"); break;
    case MD_TEXT_BR:
    case MD_TEXT_SOFTBR: flow_add_text(&b->flow, current_style(b), "\n"); break; // models mean their lines
    case MD_TEXT_ENTITY: add_entity(b, text, size); break;
    default: flow_add(&b->flow, current_style(b), text, size); break;
    }
    return 0;
}
