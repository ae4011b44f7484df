#include "ui/view.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/keys.h"

#define PAD_WIDTH 24

void frame_hit(struct view_frame *f, struct rect area, enum hit_kind kind, int number) {
    if (f->n_hits < VIEW_HITS && area.width > 0 && area.height > 0)
        f->hits[f->n_hits++] = (struct hit){.area = area, .pane = f->pane, .kind = kind, .number = number};
}

const struct hit *frame_find(const struct view_frame *f, int x, int y) {
    for (int i = f->n_hits - 1; i >= 0; i--)
        if (rect_holds(f->hits[i].area, x, y)) return &f->hits[i];
    return NULL;
}

const struct view_chat *view_chat(const struct screen_view *v) {
    return v->current >= 0 && v->current < v->n_chats ? &v->chats[v->current] : NULL;
}

uint64_t view_chat_id(const struct screen_view *v) {
    const struct view_chat *chat = view_chat(v);
    return chat ? chat->id : 0;
}

const char *view_author(const struct screen_view *v, enum view_role role, const char *author) {
    if (role == VIEW_USER) return "You";
    return author ? author : v->model_short ? v->model_short : "Model";
}

struct style view_style(enum theme_role role) {
    return (struct style){.role = (uint8_t)role, .ground = ROLE_GROUND};
}

struct style view_bold(enum theme_role role) {
    return (struct style){.role = (uint8_t)role, .ground = ROLE_GROUND, .attributes = CELL_BOLD};
}

void view_box(struct view_frame *f, struct rect box, enum pane_id pane, int digit, const char *title,
              const char *note) {
    const bool focus = f->focus == pane;
    canvas_box(f->canvas, box, digit, title, note, focus ? ROLE_BORDER_ACTIVE : ROLE_BORDER);
    if (focus) canvas_symbol(f->canvas, box, box.x + 1, box.y, view_bold(ROLE_BORDER_ACTIVE), "▸", '>');
}

struct style view_chosen(struct view_frame *f, struct rect line) {
    const struct style chosen = {ROLE_SELECTED, ROLE_SELECTED_GROUND, CELL_BOLD, 0};
    canvas_fill(f->canvas, line, chosen, ' ');
    return chosen;
}

struct rect view_inside(struct rect box) {
    struct rect inside = rect_inside(box);
    if (inside.width > 12) inside.x++, inside.width -= 2;
    return inside;
}

struct rect view_pane(struct view_frame *f, struct rect box, enum pane_id pane, const char *title) {
    const char *key = keys_name(COMMAND_TOGGLE(pane));
    int digit = strlen(key) == 5 && !strncmp(key, "Alt+", 4) ? key[4] - '0' : 0; // with any other key: none is raised
    if (!title) title = panes[pane].title;
    view_box(f, box, pane, digit, title, NULL);
    const int width = text_width(title, strlen(title)) + 2;
    frame_hit(f, (struct rect){box.x + 1, box.y, width < box.width ? width : box.width - 1, 1}, HIT_COMMAND,
              COMMAND_TOGGLE(pane));
    return view_inside(box);
}

struct rect view_padded(struct rect r) {
    if (r.width >= PAD_WIDTH) r.x++, r.width -= 2;
    return r;
}

struct rect view_over(struct view_frame *f, struct rect area, struct view_size size, enum pane_id pane,
                      const char *note) {
    int most = area.height * 4 / 5;
    if (most > size.most) most = size.most;
    if (most < 10) most = area.height;
    int width = size.width < area.width ? size.width : area.width, height = size.height < most ? size.height : most;
    struct rect box = {area.x + (area.width - width) / 2, area.y + (area.height - height) / 3, width, height};
    canvas_fill(f->canvas, box, view_style(ROLE_TEXT), ' ');
    f->n_hits = 0;
    f->cursor_x = f->cursor_y = -1;
    canvas_box(f->canvas, box, 0, panes[pane].title, note, ROLE_BORDER_ACTIVE);
    return box;
}

struct rect view_over_inside(struct rect box) {
    struct rect in = rect_inside(box);
    if (in.width > 20) in.x++, in.width -= 2;
    return in;
}

int view_figure(struct view_frame *f, struct rect clip, int x, int y, const char *label, enum theme_role role,
                const char *value) {
    int start = x;
    x += canvas_text(f->canvas, clip, x, y, view_style(ROLE_DIM), label, strlen(label)) + 1;
    x += canvas_text(f->canvas, clip, x, y, view_style(role), value, strlen(value));
    return x - start;
}

void view_figure_right(struct view_frame *f, struct rect clip, int from, int y, const char *label, enum theme_role role,
                       const char *value) {
    int width = text_width(label, strlen(label)) + 1 + text_width(value, strlen(value));
    int x = clip.x + clip.width - width;
    if (x >= from) view_figure(f, clip, x, y, label, role, value);
}

void view_token(struct view_frame *f, struct rect clip, struct style style, const char *text) {
    int x = clip.x;
    for (size_t at = 0, size = strlen(text), n; at < size; at += n) {
        int width;
        n = text_cluster(text + at, size - at, &width);
        if (text[at] == ' ') canvas_symbol(f->canvas, clip, x++, clip.y, style, "·", '_');
        else if (text[at] == '\n') canvas_symbol(f->canvas, clip, x++, clip.y, style, "↵", '$');
        else if (text[at] == '\t') canvas_symbol(f->canvas, clip, x++, clip.y, style, "→", '>');
        else x += canvas_text(f->canvas, clip, x, clip.y, style, text + at, n);
    }
}

const char *view_words(const char *text, size_t size, char out[VIEW_WORDS]) {
    size_t n = 0;
    for (size_t i = 0; i < size && n + 1 < VIEW_WORDS; i++) {
        bool blank = strchr(" \t\r\n", text[i]);
        if (!blank) out[n++] = text[i];
        else if (n && out[n - 1] != ' ') out[n++] = ' ';
    }
    n -= utf8_incomplete(out, n);
    out[n] = 0;
    return out;
}

const char *view_number(long long n, char out[VIEW_NUMBER]) {
    char digits[VIEW_NUMBER];
    if (n < 0) return strcpy(out, "-");
    int length = snprintf(digits, sizeof digits, "%lld", n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

const char *view_rate(double per_second, char out[VIEW_NUMBER]) {
    if (!metric_known(per_second)) snprintf(out, VIEW_NUMBER, "-");
    else if (per_second <= 0) snprintf(out, VIEW_NUMBER, "0");
    else if (per_second < 99.95) snprintf(out, VIEW_NUMBER, "%.1f", per_second);
    else if (per_second < 9999.5) snprintf(out, VIEW_NUMBER, "%.0f", per_second);
    else snprintf(out, VIEW_NUMBER, "%.1fk", per_second / 1000);
    return out;
}

const char *view_seconds(double seconds, char out[VIEW_NUMBER]) {
    if (!(seconds > 0)) snprintf(out, VIEW_NUMBER, "-");
    else if (seconds < 0.00995) snprintf(out, VIEW_NUMBER, "%.1f ms", seconds * 1000);
    else if (seconds < 0.9995) snprintf(out, VIEW_NUMBER, "%.0f ms", seconds * 1000);
    else if (seconds < 9.995) snprintf(out, VIEW_NUMBER, "%.2f s", seconds);
    else if (seconds < 99.95) snprintf(out, VIEW_NUMBER, "%.1f s", seconds);
    else snprintf(out, VIEW_NUMBER, "%.0f s", seconds);
    return out;
}

const char *view_bytes(double bytes, char out[VIEW_NUMBER]) {
    if (!metric_known(bytes)) return strcpy(out, "-");
    double mib = bytes / (1 << 20);
    snprintf(out, VIEW_NUMBER, mib < 1000 ? "%.0f MiB" : "%.1f GiB", mib < 1000 ? mib : mib / 1024);
    return out;
}
