// One chunk of Markdown to rows: md4c's events drive a small layout machine.
//
// Containers (quotations, list items) stand on a stack and prefix every row; leaf blocks (paragraphs, headings, code,
// tables) collect their text in a flow and are laid out when they end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/markdown_parts.h"

#define LEAST_COLUMNS 6  // what containers leave for the text
#define MAX_COLUMNS   64 // a table with more is shown as it was written

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
        else if (c->fresh) (line ? lines_run : lines_sign)(l, column, markdown_dim, c->marker, size);
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

void markdown_block_wrap(struct block *b) {
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

static void rule(struct block *b, int columns) {
    struct lines *l = &b->markdown->lines;
    struct style style = {.role = ROLE_BORDER, .ground = ROLE_GROUND};
    lines_repeat(l, begin_row(b, false), style, b->markdown->ascii ? "-" : "─", columns);
}

void markdown_block_rule(struct block *b, int columns) {
    close_gap(b);
    rule(b, columns);
    end_leaf(b);
}

static void end_heading(struct block *b) {
    int widest = text_width(b->flow.text, b->flow.size), columns = text_columns(b);
    bool underlined = b->heading <= 1 && b->flow.size;
    markdown_block_wrap(b);
    if (underlined) rule(b, widest < columns ? widest : columns);
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
    if (!shown) flow_add_text(&b->flow, markdown_dim, c.marker); // no room to hang it: it stands in the text
}

static void end_item(struct block *b) {
    markdown_block_wrap(b);
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

int markdown_block_enter(MD_BLOCKTYPE type, void *detail, void *user) {
    struct block *b = user;
    if (type < MD_BLOCK_THEAD) markdown_block_wrap(b); // the text of a tight list item before a list in it
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

int markdown_block_leave(MD_BLOCKTYPE type, void *detail, void *user) {
    struct block *b = user;
    switch (type) {
    case MD_BLOCK_QUOTE:
        b->n_containers--;
        end_leaf(b);
        break;
    case MD_BLOCK_UL:
    case MD_BLOCK_OL: end_list(b); break;
    case MD_BLOCK_LI: end_item(b); break;
    case MD_BLOCK_HR: markdown_block_rule(b, text_columns(b)); break;
    case MD_BLOCK_H: end_heading(b); break;
    case MD_BLOCK_CODE: end_code(b, ((MD_BLOCK_CODE_DETAIL *)detail)->fence_char); break;
    case MD_BLOCK_P: markdown_block_wrap(b); break;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD: markdown_table_end_cell(&b->table, b->flow.size, alignment(detail)); break;
    case MD_BLOCK_TABLE: return b->gave_up = !end_table(b);
    default: break;
    }
    return 0;
}
