// One chunk of Markdown to rows: md4c's events drive a small layout machine.
//
// Containers (quotations, list items) stand on a stack and prefix every row; leaf blocks (paragraphs, headings, code,
// tables) collect their text in a flow and are laid out when they end.
#include <md4c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/markdown.h"
#include "ui/markdown_table.h"

#define MAX_CONTAINERS 32 // deeper ones add no more indentation
#define LEAST_COLUMNS  6  // what containers leave for the text
#define MAX_COLUMNS    64 // a table with more is shown as it was written
#define NOTES_RULE     20 // columns of the line above the footnotes

struct container {
    bool item;           // of a list; else a quotation
    bool fresh;          // no row has shown its marker yet
    bool tight, ordered; // of its list
    char marker[24];
    int columns;
};

struct list {
    bool ordered, tight;
    unsigned next; // number
    char delimiter;
    int depth;
};

struct code {
    char fence; // 0: indented
    size_t n_lines;
    struct lines_mark before_last, end; // rows before its last line, and behind it
    struct code_state last, behind;     // the same of its colours
};

struct block {
    struct markdown *markdown;
    struct container containers[MAX_CONTAINERS];
    struct list lists[MAX_CONTAINERS];
    int n_containers, n_lists; // counted beyond the maximum, kept up to it
    struct flow flow;
    struct style base; // of the leaf block's text
    int strong, emphasis, strike, code, link, image;
    size_t link_start;
    enum { MARK_NONE, MARK_BEGINS, MARK_HIDES, MARK_SHOWS } mark; // of a footnote, and whether its text is its name
    size_t chunk;                                                 // where it begins in the source
    bool gap;                                                     // a blank row is due before the next block
    unsigned heading;
    struct flow label; // of a fence: the language and what else stands there
    const struct code_language *language;
    struct markdown_table table;
    bool gave_up; // the chunk cannot be shown as what it is
    unsigned n_codes;
    struct code last_code;
};

static const struct style style_dim = {.role = ROLE_DIM, .ground = ROLE_GROUND};

static int kept(int n) { return n < MAX_CONTAINERS ? n : MAX_CONTAINERS; }

static struct list *innermost(struct block *b) { return b->n_lists ? &b->lists[kept(b->n_lists) - 1] : NULL; }

// ---- rows and their prefixes ----

static bool fits(const struct block *b, int column, int columns) {
    return column + columns + LEAST_COLUMNS <= b->markdown->width;
}

// Begins a row and draws what stands before its text; returns the column of the text. line: a line of text begins with
// it, to which the markers of lists belong, or as many blanks.
static int begin_row(struct block *b, bool line) {
    static const char blanks[] = "                ";
    struct lines *l = &b->markdown->lines;
    int column = 0;
    b->markdown->rows_laid_out++;
    lines_row(l);
    for (int i = 0; i < kept(b->n_containers); i++) {
        struct container *c = &b->containers[i];
        const size_t size = strlen(c->marker);
        if (!fits(b, column, c->columns)) continue;
        if (!c->item)
            lines_repeat(l, column, (struct style){.role = ROLE_QUOTE, .ground = ROLE_GROUND},
                         b->markdown->ascii ? "|" : "▎", 1);
        else if (c->fresh) (line ? lines_run : lines_sign)(l, column, style_dim, c->marker, size);
        else if (line) lines_text(l, blanks, (size_t)c->columns);
        c->fresh = false;
        column += c->columns;
    }
    return column;
}

static void empty_line(struct block *b, bool marked) {
    begin_row(b, marked);
    lines_text(&b->markdown->lines, "\n", 1);
}

static int text_column(const struct block *b) {
    int column = 0;
    for (int i = 0; i < kept(b->n_containers); i++)
        if (fits(b, column, b->containers[i].columns)) column += b->containers[i].columns;
    return column;
}

static int text_columns(const struct block *b) {
    int column = text_column(b);
    return b->markdown->width > column ? b->markdown->width - column : 1;
}

// The blank row between two blocks; quotations that have begun go on through it.
static void close_gap(struct block *b) {
    if (!b->gap) return;
    b->gap = false;
    int n = b->n_containers;
    for (b->n_containers = 0; b->n_containers < kept(n) && !b->containers[b->n_containers].fresh;) b->n_containers++;
    empty_line(b, false);
    b->n_containers = n;
}

static void end_leaf(struct block *b) {
    flow_clear(&b->flow);
    struct list *list = innermost(b);
    b->gap = !list || !list->tight;
}

// ---- leaf blocks ----

static void wrap_flow(struct block *b) {
    if (b->flow.size == 0) return;
    close_gap(b);
    int columns = text_columns(b);
    bool begins = true;
    for (size_t at = 0, end; at < b->flow.size;) {
        size_t next = flow_break(b->flow.text, b->flow.size, at, columns, &end);
        lines_flow(&b->markdown->lines, begin_row(b, begins), &b->flow, at, end);
        lines_end(&b->markdown->lines, &b->flow, end, next, b->flow.size);
        begins = next > end && b->flow.text[next - 1] == '\n';
        at = next;
    }
    end_leaf(b);
}

static void rule(struct block *b, int columns, enum theme_role role) {
    struct lines *l = &b->markdown->lines;
    struct style style = {.role = (uint8_t)role, .ground = ROLE_GROUND};
    lines_repeat(l, begin_row(b, false), style, b->markdown->ascii ? "-" : "─", columns);
}

static void end_heading(struct block *b) {
    int widest = text_width(b->flow.text, b->flow.size), columns = text_columns(b);
    bool underlined = b->heading <= 1 && b->flow.size;
    wrap_flow(b);
    if (underlined) rule(b, widest < columns ? widest : columns, ROLE_BORDER);
    b->gap = true;
}

// A line of a code block goes on below, further in, when it is too long. Its label is none of its text.
static void code_line(struct block *b, const struct flow *f, size_t from, size_t to) {
    struct lines *l = &b->markdown->lines;
    int columns = text_columns(b) > 3 ? text_columns(b) - 2 : 1, indent = 0;
    while (from + (size_t)indent < to && f->text[from + (size_t)indent] == ' ') indent++;
    indent = indent + 2 < columns / 2 ? indent + 2 : columns > 8 ? 2 : 0;
    size_t at = from;
    do {
        int column = begin_row(b, false), further = at > from ? indent : 0;
        size_t end = to, next = to;
        lines_fill(l, column, ROLE_CODE_GROUND);
        if (at < to) next = flow_break(f->text, to, at, columns - further, &end);
        if (f == &b->label) {
            lines_sign(l, column + 1 + further, f->pieces[0].style, f->text + at, end - at);
        } else {
            lines_flow(l, column + 1 + further, f, at, end);
            lines_end(l, f, end, next, to);
        }
        at = next;
    } while (at < to);
}

// The lines of the open fence that are final take the place of what was laid out before them once more.
static void take_final(struct block *b) {
    lines_cut(&b->markdown->lines, b->markdown->open.rows);
    for (int i = 0; i < kept(b->n_containers); i++) b->containers[i].fresh = false;
}

// Colours the code, which goes on from `state`; its last line begins at `last`.
static void colour(struct block *b, struct code_state state, size_t last, struct code *code) {
    code->last = code->behind = state;
    if (!b->language) return;
    flow_restyle(&b->flow);
    code_colour(b->language, &code->last, &b->flow, 0, last);
    code->behind = code->last;
    code_colour(b->language, &code->behind, &b->flow, last, b->flow.size);
}

static void end_code(struct block *b, char fence) {
    struct lines *l = &b->markdown->lines;
    close_gap(b);
    if (b->label.size) code_line(b, &b->label, 0, b->label.size);
    bool goes_on = ++b->n_codes == b->markdown->open.code;
    if (goes_on) take_final(b);
    b->last_code = (struct code){.fence = fence, .before_last = lines_mark(l)};
    size_t size = b->flow.size, whole = size && b->flow.text[size - 1] == '\n' ? size - 1 : size, last = whole;
    while (last > 0 && b->flow.text[last - 1] != '\n') last--;
    colour(b, goes_on ? b->markdown->open.state : (struct code_state){0}, last, &b->last_code);
    for (size_t at = 0; at <= whole && (size || !goes_on);) {
        const char *newline = at < whole ? memchr(b->flow.text + at, '\n', whole - at) : NULL;
        size_t end = newline ? (size_t)(newline - b->flow.text) : whole;
        b->last_code.before_last = lines_mark(l);
        code_line(b, &b->flow, at, end);
        b->last_code.n_lines += size > 0;
        at = end + 1;
    }
    b->last_code.end = lines_mark(l);
    end_leaf(b);
}

static bool end_table(struct block *b) {
    struct markdown_table_layout layout;
    if (!markdown_table_measure(&b->table, &b->flow, text_columns(b), &layout)) return false;
    close_gap(b);
    const size_t first = b->markdown->lines.n_rows;
    size_t head = 0;
    for (size_t row = 0; row < b->table.n_rows; row++) {
        for (bool more = true; more;) {
            int column = begin_row(b, false);
            more =
                markdown_table_row(&b->table, &layout, &b->flow, row, &b->markdown->lines, column, b->markdown->ascii);
        }
        if (row == 0) head = b->markdown->lines.n_rows - first;
        bool last = row + 1 == b->table.n_rows;
        if (row == 0 || (layout.wrapped && !last))
            markdown_table_rule(&layout, &b->markdown->lines, begin_row(b, false), b->markdown->ascii);
    }
    lines_table(&b->markdown->lines, first, head);
    end_leaf(b);
    return true;
}

// ---- md4c's events ----

static struct style current_style(const struct block *b) {
    struct style s = b->base;
    if (b->strong) s.attributes |= CELL_BOLD, s.role = s.role == ROLE_TEXT ? ROLE_STRONG : s.role;
    if (b->emphasis) s.attributes |= CELL_ITALIC;
    if (b->strike) s.attributes |= CELL_STRIKE;
    if (b->link) s.role = ROLE_LINK, s.attributes |= CELL_UNDERLINE;
    if (b->code) s.role = ROLE_CODE, s.ground = ROLE_CODE_GROUND;
    return s;
}

static struct style text_style(const struct block *b) {
    struct style s = {.role = ROLE_TEXT, .ground = ROLE_GROUND};
    for (int i = 0; i < kept(b->n_containers); i++)
        if (!b->containers[i].item) s.role = ROLE_QUOTE;
    return s;
}

static void push_container(struct block *b, struct container c) {
    c.fresh = true;
    if (b->n_containers < MAX_CONTAINERS) b->containers[b->n_containers] = c;
    b->n_containers++;
}

static void begin_list(struct block *b, struct list list) {
    struct list *outer = innermost(b);
    list.depth = b->n_lists;
    if (outer && outer->tight) b->gap = false;
    if (b->n_lists < MAX_CONTAINERS) b->lists[b->n_lists] = list;
    b->n_lists++;
}

// Numbers go on where the list of the chunk before ended, as they would in one document.
static void begin_ordered(struct block *b, const MD_BLOCK_OL_DETAIL *d) {
    struct markdown *m = b->markdown;
    bool goes_on = b->n_containers == 0 && m->ordered_next && m->ordered_delimiter == d->mark_delimiter;
    begin_list(b, (struct list){.ordered = true,
                                .tight = d->is_tight,
                                .next = goes_on ? m->ordered_next : d->start,
                                .delimiter = d->mark_delimiter});
}

static void end_list(struct block *b) {
    struct list list = *innermost(b);
    b->n_lists--;
    if (b->n_containers == 0) {
        b->markdown->ordered_next = list.ordered ? list.next : 0;
        b->markdown->ordered_delimiter = list.delimiter;
    }
    struct list *outer = innermost(b);
    b->gap = !outer || !outer->tight;
}

static void begin_item(struct block *b, const MD_BLOCK_LI_DETAIL *d) {
    static const char *const bullets[2][3] = {{"•", "◦", "▪"}, {"*", "-", "+"}};
    struct list *list = innermost(b);
    struct container c = {.item = true};
    static const char *const boxes[2][2] = {{"☐ ", "☑ "}, {"[ ] ", "[x] "}};
    const char *box = d->is_task ? boxes[b->markdown->ascii][d->task_mark != ' '] : "";
    if (list->ordered) snprintf(c.marker, sizeof c.marker, "%u%c %s", list->next++, list->delimiter, box);
    else if (*box) snprintf(c.marker, sizeof c.marker, "%s", box);
    else snprintf(c.marker, sizeof c.marker, "%s ", bullets[b->markdown->ascii][list->depth % 3]);
    c.columns = text_width(c.marker, strlen(c.marker));
    bool shown = b->n_containers < MAX_CONTAINERS && fits(b, text_column(b), c.columns);
    push_container(b, c);
    b->base = text_style(b);
    if (!shown) flow_add_text(&b->flow, style_dim, c.marker); // no room to hang it: it stands in the text
}

static void end_item(struct block *b) {
    wrap_flow(b);
    const bool nothing = b->containers[kept(b->n_containers) - 1].fresh && b->n_containers <= MAX_CONTAINERS;
    if (nothing) close_gap(b), empty_line(b, true);
    b->n_containers--;
    b->gap = !innermost(b)->tight;
}

static void begin_code(struct block *b, const MD_BLOCK_CODE_DETAIL *d) {
    struct style label = {.role = ROLE_DIM, .ground = ROLE_CODE_GROUND, .attributes = CELL_ITALIC};
    flow_clear(&b->label);
    b->language = code_language(d->info.text, d->info.size);
    if (d->info.size) flow_add(&b->label, label, d->info.text, d->info.size);
    b->base = (struct style){.role = ROLE_CODE, .ground = ROLE_CODE_GROUND};
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *user) {
    struct block *b = user;
    if (type < MD_BLOCK_THEAD) wrap_flow(b); // the text of a tight list item before a list in it
    if (b->n_containers == 0 && type != MD_BLOCK_OL && type != MD_BLOCK_DOC) b->markdown->ordered_next = 0;
    b->base = text_style(b);
    switch (type) {
    case MD_BLOCK_QUOTE:
        push_container(b, (struct container){.columns = 2});
        b->base = text_style(b);
        break;
    case MD_BLOCK_UL: begin_list(b, (struct list){.tight = ((MD_BLOCK_UL_DETAIL *)detail)->is_tight}); break;
    case MD_BLOCK_OL: begin_ordered(b, detail); break;
    case MD_BLOCK_LI: begin_item(b, detail); break;
    case MD_BLOCK_H:
        b->heading = ((MD_BLOCK_H_DETAIL *)detail)->level;
        b->base = (struct style){.role = ROLE_HEADING,
                                 .ground = ROLE_GROUND,
                                 .attributes = b->heading > 2 ? CELL_BOLD | CELL_ITALIC : CELL_BOLD};
        break;
    case MD_BLOCK_CODE: begin_code(b, detail); break;
    case MD_BLOCK_TABLE:
        if (((MD_BLOCK_TABLE_DETAIL *)detail)->col_count > MAX_COLUMNS) return b->gave_up = true;
        markdown_table_clear(&b->table);
        break;
    case MD_BLOCK_TR: markdown_table_begin_row(&b->table); break;
    case MD_BLOCK_TH:
        b->base = (struct style){.role = ROLE_STRONG, .ground = ROLE_GROUND, .attributes = CELL_BOLD};
        break;
    default: break;
    }
    return 0;
}

static enum table_align alignment(const MD_BLOCK_TD_DETAIL *d) {
    return d->align == MD_ALIGN_RIGHT ? TABLE_RIGHT : d->align == MD_ALIGN_CENTER ? TABLE_CENTRE : TABLE_LEFT;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *user) {
    struct block *b = user;
    switch (type) {
    case MD_BLOCK_QUOTE:
        b->n_containers--;
        end_leaf(b);
        break;
    case MD_BLOCK_UL:
    case MD_BLOCK_OL: end_list(b); break;
    case MD_BLOCK_LI: end_item(b); break;
    case MD_BLOCK_HR:
        close_gap(b);
        rule(b, text_columns(b), ROLE_BORDER);
        end_leaf(b);
        break;
    case MD_BLOCK_H: end_heading(b); break;
    case MD_BLOCK_CODE: end_code(b, ((MD_BLOCK_CODE_DETAIL *)detail)->fence_char); break;
    case MD_BLOCK_P: wrap_flow(b); break;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD: markdown_table_end_cell(&b->table, b->flow.size, alignment(detail)); break;
    case MD_BLOCK_TABLE: return b->gave_up = !end_table(b);
    default: break;
    }
    return 0;
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

static int enter_span(MD_SPANTYPE type, void *detail, void *user) {
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
            flow_add_text(&b->flow, style_dim, b->markdown->ascii ? "[image] " : "▣ ");
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
    flow_add_text(&b->flow, style_dim, shown && b->flow.text[b->flow.size - 1] != ' ' ? " (" : "(");
    flow_add(&b->flow, style_dim, t->address, size);
    flow_add_text(&b->flow, style_dim, !data ? ")" : b->markdown->ascii ? ",...)" : ",…)");
}

static int leave_span(MD_SPANTYPE type, void *detail, void *user) {
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

static int add_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user) {
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

// ---- the chunk ----

static void plain(struct block *b, const char *text, size_t size) {
    b->n_containers = b->n_lists = 0;
    flow_clear(&b->flow);
    flow_add(&b->flow, (struct style){.role = ROLE_TEXT, .ground = ROLE_GROUND}, text, size);
    while (b->flow.size && b->flow.text[b->flow.size - 1] == '\n') b->flow.size--;
    wrap_flow(b);
}

// `source` has been prepared. False: md4c or its callbacks gave up.
static bool parse(struct block *b, const struct flow *source) {
    static const MD_PARSER parser = {
        .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEURLAUTOLINKS |
                 MD_FLAG_NOHTML,
        .enter_block = enter_block,
        .leave_block = leave_block,
        .enter_span = enter_span,
        .leave_span = leave_span,
        .text = add_text,
    };
    b->markdown->chunks_laid_out++;
    b->markdown->bytes_parsed += source->size;
    return md_parse(source->text, (MD_SIZE)source->size, &parser, b) == 0 && !b->gave_up;
}

static void block_free(struct block *b) {
    markdown_table_free(&b->table);
    flow_free(&b->label);
    flow_free(&b->flow);
}

// The definitions, and behind them this part of the source.
static void prepare(struct flow *out, const struct markdown *m, struct markdown_prepare part) {
    struct markdown_fence fence = {0};
    part.references = &m->references;
    part.formulas = !m->ascii;
    references_add(part.references, out, m->references.text + part.from, part.to - part.from);
    markdown_prepare(out, &part, &fence);
}

// Parses what was prepared; where that fails, text[0..size) is shown as it is.
static void layout(struct block *b, const struct flow *source, const char *text, size_t size) {
    const struct lines_mark start = lines_mark(&b->markdown->lines);
    const bool gap = b->gap;
    if (parse(b, source)) return;
    lines_cut(&b->markdown->lines, start);
    b->gap = gap;
    b->last_code = (struct code){0};
    plain(b, text, size);
}

// Whatever was made of the chunk before is forgotten.
static struct block block_begin(struct markdown *m, const struct markdown_start *start) {
    references_forget_users(&m->references, start->at);
    m->ordered_next = start->ordered_next, m->ordered_delimiter = start->ordered_delimiter;
    return (struct block){.markdown = m, .chunk = start->at};
}

// Returns what the last block of code is, when the chunk ends in it.
static struct code layout_whole(struct markdown *m, const struct markdown_start *start, size_t end, unsigned *n_codes) {
    struct block b = block_begin(m, start);
    struct flow source = {0};
    b.gap = m->lines.n_rows > 0 && !start->joined;
    prepare(&source, m, (struct markdown_prepare){.from = start->at, .to = end, .table = start->table});
    layout(&b, &source, m->references.text + start->at, end - start->at);
    flow_free(&source);
    block_free(&b);
    *n_codes = b.n_codes;
    return b.last_code;
}

void markdown_block(struct markdown *m, const struct markdown_start *start, size_t end) {
    unsigned n_codes;
    layout_whole(m, start, end, &n_codes);
}

// ---- a chunk that ends in an open fence ----

static size_t count_lines(const char *text, size_t size) {
    size_t n = size && text[size - 1] != '\n';
    for (size_t i = 0; i < size; i++) n += text[i] == '\n';
    return n;
}

// Lines of the fence that are complete are final when md4c too takes all `n_lines` behind `from` for its code.
static void open_settle(struct markdown *m, const char *text, size_t size, struct markdown_open open, size_t from,
                        const struct code *code) {
    struct lines_mark end = lines_mark(&m->lines);
    bool agreed = code->fence == open.fence.character && code->n_lines == count_lines(text + from, size - from) &&
                  code->end.n_rows == end.n_rows;
    open.done = size;
    while (open.done > from && text[open.done - 1] != '\n') open.done--;
    open.rows = open.done == size ? code->end : code->before_last;
    open.state = open.done == size ? code->behind : code->last;
    m->open = agreed && open.done > open.head ? open : (struct markdown_open){0};
}

// What precedes the code is laid out once more, for md4c to be in the same place, and thrown away: see take_final.
static bool open_goes_on(struct markdown *m, const struct markdown_start *start, size_t end) {
    struct markdown_open open = m->open;
    struct block b = block_begin(m, start);
    struct flow source = {0};
    struct markdown_prepare code = {
        .references = &m->references, .from = start->at + open.done, .to = end, .table = MARKDOWN_NO_TABLE};
    lines_cut(&m->lines, open.rows);
    prepare(&source, m,
            (struct markdown_prepare){.from = start->at, .to = start->at + open.head, .table = start->table});
    markdown_prepare(&source, &code, &open.fence);
    bool same = parse(&b, &source) && b.n_codes == open.code;
    if (same) open_settle(m, m->references.text + start->at, end - start->at, m->open, open.done, &b.last_code);
    flow_free(&source);
    block_free(&b);
    return same && m->open.done;
}

void markdown_open_block(struct markdown *m, const struct markdown_start *start, size_t end,
                         struct markdown_fence fence, size_t head) {
    if (m->open.done && m->open.head == head && open_goes_on(m, start, end)) return;
    struct markdown_open open = {.fence = fence, .head = head};
    lines_cut(&m->lines, start->rows);
    m->open = (struct markdown_open){0};
    struct code code = layout_whole(m, start, end, &open.code);
    open_settle(m, m->references.text + start->at, end - start->at, open, head, &code);
}

// ---- footnotes ----

// As an item of an ordered list, so that its lines hang below each other.
static void add_note(struct flow *out, int number, const char *text, size_t size) {
    char marker[16];
    const int columns = snprintf(marker, sizeof marker, "%d. ", number);
    flow_add_text(out, style_dim, marker);
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        const size_t end = newline ? (size_t)(newline + 1 - text) : size;
        for (int i = 0; at && i < columns; i++) flow_add_text(out, style_dim, " ");
        while (out->column <= columns && at < end && text[at] == ' ') at++;
        flow_add(out, style_dim, text + at, end - at);
        at = end;
    }
    flow_add(out, style_dim, "", 1), out->size--, out->column--;
}

static void layout_note(struct markdown *m, const struct reference *note, struct flow *text, struct flow *source) {
    struct block b = {.markdown = m, .chunk = REFERENCES_NOTE};
    struct markdown_fence fence = {0};
    const struct markdown_prepare part = {.references = &m->references,
                                          .from = note->content,
                                          .to = note->content + note->content_size,
                                          .table = MARKDOWN_NO_TABLE,
                                          .formulas = !m->ascii};
    flow_clear(text), flow_clear(source);
    markdown_prepare(text, &part, &fence);
    references_add(part.references, source, text->text, text->size);
    add_note(source, note->number, text->text, text->size);
    m->ordered_next = 0;
    layout(&b, source, m->references.text + part.from, note->content_size);
    block_free(&b);
}

void markdown_notes(struct markdown *m) {
    const struct reference *note = references_note(&m->references, 1);
    struct flow text = {0}, source = {0};
    if (note) {
        struct block b = {.markdown = m, .gap = m->lines.n_rows > 0};
        close_gap(&b);
        rule(&b, m->width < NOTES_RULE ? m->width : NOTES_RULE, ROLE_BORDER);
    }
    for (int number = 1; (note = references_note(&m->references, number)); number++)
        layout_note(m, note, &text, &source);
    flow_free(&text);
    flow_free(&source);
}
