#include "ui/layout.h"

#include "ui/clamp.h"

enum {
    CHAT_WIDTH = 40,    // of the chat beside other panes, at least
    CHAT_HEIGHT = 8,    // and below them
    READING_WIDTH = 84, // what the chat gets before panes at its sides get more than they need: 80 columns of text
    LEFT_WIDTH = 20,
    LEFT_WIDTH_ROOMY = 28, // what the panes at the left have before there are others at the right
    LEFT_WIDTH_MOST = 32,
    RIGHT_WIDTH = 30,
    RIGHT_WIDTH_ROOMY = 32,
    RIGHT_WIDTH_MOST = 48,
    STACK_WIDTH = 24, // of all panes below each other
    STACK_WIDTH_FAIR = 28,
    STACK_WIDTH_MOST = 40,
    ABOVE_WIDTH = 24, // of each pane above the chat
    SMALL_WIDTH = 60, // of the screen; below these the chat does without its border
    SMALL_HEIGHT = 15,
    SAMPLING_HEIGHT = 5, // of the screen; below it the sampling line goes
};

static int larger(int a, int b) { return a > b ? a : b; }

// ---- which panes have room ----

static uint32_t at_side(enum pane_side side) {
    uint32_t set = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) set |= (uint32_t)(panes[p].side == side) << p;
    return set;
}

static int column_height(uint32_t set) {
    int height = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) height += set >> p & 1 ? panes[p].rows : 0;
    return height;
}

static int row_height(uint32_t set) {
    int height = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) height = larger(height, set >> p & 1 ? panes[p].rows : 0);
    return height;
}

static int count_of(uint32_t set) {
    int count = 0;
    for (; set; set &= set - 1) count++;
    return count;
}

enum { ROWS = PANES_END };
// Shares the panes out to rows of about as many each; returns how many rows.
static int rows_of(uint32_t set, int width, uint32_t rows[ROWS]) {
    const int count = count_of(set), most = clamp(width / ABOVE_WIDTH, 1, count);
    const int n = (count + most - 1) / most;
    for (int row = 0; row < n; row++) rows[row] = 0;
    for (int p = PANES_FIRST, i = 0; p < PANES_END; p++)
        if (set >> p & 1) rows[i++ * n / count] |= 1u << p;
    return n;
}

static int rows_height(const uint32_t *rows, int n) {
    int height = 0;
    for (int i = 0; i < n; i++) height += row_height(rows[i]);
    return height;
}

enum form { FORM_SIDES, FORM_STACK, FORM_ABOVE, FORM_NONE }; // NONE: there is no room for all of them

struct plan {
    enum form form;
    uint32_t set;
    int width, height; // of the screen, without the sampling line
};

static bool sides_fit(const struct plan *p, int least_left, int least_right, int chat) {
    const uint32_t left = p->set & at_side(PANE_LEFT), right = p->set & at_side(PANE_RIGHT);
    return (left ? least_left : 0) + (right ? least_right : 0) + chat <= p->width &&
           larger(column_height(left), column_height(right)) <= p->height;
}

static bool at_both_sides(uint32_t set) { return set & at_side(PANE_LEFT) && set & at_side(PANE_RIGHT); }

static enum form form_of(const struct plan *p, enum pane_arrangement arrangement) {
    uint32_t rows[ROWS];
    if (arrangement == ARRANGE_TALL && p->set) {
        const int least = rows_height(rows, rows_of(p->set, p->width, rows));
        return p->width >= LEFT_WIDTH && least + CHAT_HEIGHT <= p->height ? FORM_ABOVE : FORM_NONE;
    }
    const bool both = at_both_sides(p->set);
    if (sides_fit(p, both ? LEFT_WIDTH_ROOMY : LEFT_WIDTH, both ? RIGHT_WIDTH_ROOMY : RIGHT_WIDTH,
                  both     ? READING_WIDTH
                  : p->set ? CHAT_WIDTH
                           : 0))
        return FORM_SIDES;
    if (arrangement == ARRANGE_WIDE && sides_fit(p, LEFT_WIDTH, RIGHT_WIDTH, CHAT_WIDTH)) return FORM_SIDES;
    return both && STACK_WIDTH + CHAT_WIDTH <= p->width && column_height(p->set) <= p->height ? FORM_STACK : FORM_NONE;
}

// 0: none is left.
static int first_to_drop(uint32_t set) {
    int found = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++)
        if (set >> p & 1 && (!found || panes[p].rank > panes[found].rank)) found = p;
    return found;
}

// ---- their places ----

static int given(const struct layout_params *p, int id, bool across) {
    if (!p->sizes) return 0;
    return across ? p->sizes->of[id].columns : p->sizes->of[id].rows;
}

// Below each other, or beside each other (`across`): each gets what it needs at least, then what is given it, and those
// that nobody has given a size share the rest by their weights.
static void layout_strip(struct layout *l, const struct layout_params *params, uint32_t set, struct rect area,
                         bool across) {
    int least[PANES_END] = {0}, weights = 0, last = 0, spare = across ? area.width : area.height;
    const int count = count_of(set);
    for (int p = PANES_FIRST; p < PANES_END; p++) {
        if (!(set >> p & 1)) continue;
        last = p;
        least[p] = across ? area.width / (2 * count) : panes[p].rows;
        spare -= least[p];
        if (!given(params, p, across)) weights += across ? 1 : panes[p].weight;
    }
    for (int p = PANES_FIRST; p < PANES_END; p++) {
        const int more = set >> p & 1 ? clamp(given(params, p, across) - least[p], 0, spare) : 0;
        least[p] += more, spare -= more;
    }
    for (int p = PANES_FIRST; p < PANES_END; p++) {
        if (!(set >> p & 1)) continue;
        const int weight = given(params, p, across) ? 0 : across ? 1 : panes[p].weight;
        const int more = weight ? spare * weight / weights : p == last ? spare : 0;
        const int size = least[p] + more;
        spare -= more, weights -= weight;
        l->panes[p] = (struct rect){area.x, area.y, across ? size : area.width, across ? area.height : size};
        if (across) area.x += size;
        else area.y += size;
    }
}

static void layout_above(struct layout *l, const struct layout_params *params, uint32_t set, struct rect area) {
    uint32_t rows[ROWS];
    const int n = rows_of(set, area.width, rows);
    int spare = area.height - rows_height(rows, n);
    for (int i = 0; i < n; i++) {
        const int more = spare / (n - i), height = row_height(rows[i]) + more;
        spare -= more;
        layout_strip(l, params, rows[i], (struct rect){area.x, area.y, area.width, height}, true);
        area.y += height;
    }
}

static void layout_chat(struct layout *l, struct rect box, bool border, int composer_lines) {
    struct rect in = border ? rect_inside(box) : box;
    l->panes[PANE_CHAT] = box;
    int rule = in.height >= 3;
    int composer = clamp(composer_lines, 1, in.height / 3 > 1 ? in.height / 3 : 1);
    int transcript = in.height - rule - composer;
    if (transcript < 0) transcript = 0;
    l->transcript = (struct rect){in.x, in.y, in.width, transcript};
    l->rule = (struct rect){in.x, in.y + transcript, in.width, rule};
    l->composer = (struct rect){in.x, in.y + transcript + rule, in.width, in.height - transcript - rule};
}

// False: there is no room for it.
static bool layout_zoomed(struct layout *l, const struct layout_params *p, int body) {
    const enum pane_id pane = p->zoomed;
    const int composer = clamp(p->composer_lines, 1, larger(body / 3, 1)), height = body - composer - 1;
    if (pane == PANE_CHAT || height < panes[pane].rows || p->width < LEFT_WIDTH) return false;
    l->panes[pane] = (struct rect){0, 0, p->width, height};
    l->panes[PANE_CHAT] = (struct rect){0, height, p->width, body - height};
    l->transcript = (struct rect){0, height, p->width, 0};
    l->rule = (struct rect){0, height, p->width, 1};
    l->composer = (struct rect){0, height + 1, p->width, composer};
    return true;
}

// Of the panes at the left and the right, or of all in one column at the left. One side does not follow when the other
// is given a width, as long as there is room.
static void find_widths(const struct plan *plan, const struct layout_params *p, int *left, int *right) {
    const bool stack = plan->form == FORM_STACK, at_left = plan->set & at_side(PANE_LEFT),
               at_right = !stack && plan->set & at_side(PANE_RIGHT);
    const int width = plan->width, least = stack ? STACK_WIDTH : LEFT_WIDTH;
    const int given_left = given(p, SIZE_LEFT, true), given_right = given(p, SIZE_RIGHT, true);
    const int fair_stack = clamp(width * 3 / 10, STACK_WIDTH, STACK_WIDTH_FAIR);
    if (stack) *left = clamp(larger(width - READING_WIDTH, fair_stack), STACK_WIDTH, STACK_WIDTH_MOST);
    else *left = clamp(at_right ? width / 5 : width - READING_WIDTH, LEFT_WIDTH, LEFT_WIDTH_MOST);
    if (!at_left) *left = 0;
    const int fair_right = clamp(width * 2 / 7, RIGHT_WIDTH, RIGHT_WIDTH_ROOMY);
    const int spare = larger(width - *left - fair_right - READING_WIDTH, 0);
    *right = at_right ? clamp(fair_right + spare * 2 / 5, RIGHT_WIDTH, RIGHT_WIDTH_MOST) : 0;
    if (at_left && given_left) *left = clamp(given_left, least, width - CHAT_WIDTH - (at_right ? STACK_WIDTH : 0));
    if (at_right) *right = clamp(given_right ? given_right : *right, STACK_WIDTH, width - CHAT_WIDTH - *left);
}

static struct rect layout_panes(struct layout *l, const struct layout_params *p, const struct plan *plan) {
    const uint32_t set = plan->set, right_ones = plan->form == FORM_STACK ? 0 : set & at_side(PANE_RIGHT);
    const int width = plan->width, height = plan->height;
    int left, right;
    if (plan->form == FORM_ABOVE) {
        uint32_t rows[ROWS];
        const int least = rows_height(rows, rows_of(set, width, rows)), wanted = given(p, SIZE_ABOVE, false);
        const int above = clamp(wanted ? wanted : height / 3, least, height - CHAT_HEIGHT);
        layout_above(l, p, set, (struct rect){0, 0, width, above});
        l->above = true;
        return (struct rect){0, above, width, height - above};
    }
    find_widths(plan, p, &left, &right);
    layout_strip(l, p, set & ~right_ones, (struct rect){0, 0, left, height}, false);
    layout_strip(l, p, right_ones, (struct rect){width - right, 0, right, height}, false);
    return (struct rect){left, 0, width - left - right, height};
}

struct layout layout_make(const struct layout_params *p) {
    struct layout l = {0};
    if (p->width < 1 || p->height < 1) return l;
    const int sampling = p->height >= SAMPLING_HEIGHT, body = p->height - sampling;
    const bool border = p->width >= SMALL_WIDTH && p->height >= SMALL_HEIGHT;
    struct plan plan = {.set = p->wanted & PANES_BESIDE, .width = p->width, .height = body};
    l.sampling = (struct rect){0, body, p->width, sampling};
    if (layout_zoomed(&l, p, body)) return l;
    while (plan.form = form_of(&plan, p->arrangement), plan.form == FORM_NONE && plan.set)
        plan.set &= ~(1u << first_to_drop(plan.set));
    layout_chat(&l, layout_panes(&l, p, &plan), border, p->composer_lines);
    return l;
}

struct layout layout_read(int width, int height) {
    const struct rect all = {0, 0, width, height};
    return (struct layout){.panes = {[PANE_CHAT] = all}, .transcript = all, .bare = true};
}

uint32_t layout_default_panes(int width, int height, enum pane_arrangement arrangement) {
    struct layout_params params = {.width = width, .height = height, .arrangement = arrangement, .composer_lines = 1};
    uint32_t set = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) set |= (uint32_t)!panes[p].unasked << p;
    if (arrangement == ARRANGE_TALL) return set; // one more would make the others narrower
    for (int p = PANES_FIRST; p < PANES_END; p++) {
        params.wanted = set | 1u << p;
        if (layout_make(&params).panes[p].height >= panes[p].unasked) set |= 1u << p;
    }
    return set;
}

// ---- their borders ----

static bool beside(struct rect a, struct rect b) {
    return a.width && b.width && a.x + a.width == b.x && a.y < b.y + b.height && b.y < a.y + a.height;
}

static bool below(struct rect a, struct rect b) {
    return a.width && b.width && a.y + a.height == b.y && a.x < b.x + b.width && b.x < a.x + a.width;
}

static bool edge_between(const struct layout *l, int before, int after, struct layout_edge *out) {
    const struct rect a = l->panes[before], b = l->panes[after];
    *out = (struct layout_edge){.before = (enum pane_id)before, .after = (enum pane_id)after, .across = beside(a, b)};
    out->at = out->across ? b.x : b.y;
    // Rows of panes above the chat share its height evenly.
    return out->across || (below(a, b) && (!l->above || after == PANE_CHAT));
}

bool layout_edge_at(const struct layout *l, int x, int y, struct layout_edge *out) {
    for (int a = 0; a < PANES_END; a++)
        for (int b = 0; b < PANES_END; b++) {
            if (!edge_between(l, a, b, out)) continue;
            const int back_x = out->across, back_y = !out->across; // either border of the two
            if ((rect_holds(l->panes[a], x, y) && rect_holds(l->panes[b], x + back_x, y + back_y)) ||
                (rect_holds(l->panes[b], x, y) && rect_holds(l->panes[a], x - back_x, y - back_y)))
                return true;
        }
    return false;
}

bool layout_edge_of(const struct layout *l, enum pane_id pane, bool across, struct layout_edge *out) {
    if (l->above && !across) pane = PANE_CHAT; // they grow and shrink together
    for (int other = 0; other < PANES_END; other++)
        if (edge_between(l, (int)pane, other, out) && out->across == across) return true;
    for (int other = 0; other < PANES_END; other++)
        if (edge_between(l, other, (int)pane, out) && out->across == across) return true;
    return false;
}

void layout_edge_move(const struct layout *l, const struct layout_edge *edge, int to, struct pane_sizes *sizes) {
    const struct rect a = l->panes[edge->before], b = l->panes[edge->after];
    const int start = edge->across ? a.x : a.y, end = edge->across ? b.x + b.width : b.y + b.height;
    const int16_t before = (int16_t)clamp(to - start, 1, PANE_SIZE_MOST),
                  after = (int16_t)clamp(end - to, 1, PANE_SIZE_MOST);
    if (edge->after == PANE_CHAT && edge->across) sizes->of[SIZE_LEFT].columns = before;
    else if (edge->after == PANE_CHAT) sizes->of[SIZE_ABOVE].rows = (int16_t)clamp(to, 1, PANE_SIZE_MOST);
    else if (edge->before == PANE_CHAT) sizes->of[SIZE_RIGHT].columns = after;
    else if (edge->across) sizes->of[edge->before].columns = before, sizes->of[edge->after].columns = after;
    else sizes->of[edge->before].rows = before, sizes->of[edge->after].rows = after;
}
