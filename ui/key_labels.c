#include "ui/key_labels.h"

#include <string.h>

enum { GAP = 2 };

static int width_of(const struct key_label *l, bool brief) {
    const char *text = brief ? l->brief : l->text;
    return text_width(l->key, strlen(l->key)) + (*text != 0) + (int)strlen(text);
}

// Where the next one is drawn; in the line below where it does not fit.
static struct rect place_after(struct rect area, struct rect before, int width) {
    struct rect next = {before.x + before.width + GAP, before.y, width, 1};
    if (!before.width) return (struct rect){area.x, area.y, width, 1};
    if (next.x + width > area.x + area.width) next.x = area.x, next.y++;
    return next;
}

int key_labels_rows(const struct key_label *labels, int count, int width, int most) {
    struct rect at = {0};
    for (int i = 0; i < count; i++) at = place_after((struct rect){0, 0, width, 1}, at, width_of(&labels[i], false));
    return at.y + 1 < most ? at.y + 1 : most;
}

void key_labels_draw(const struct key_label *labels, int count, struct view_frame *f, struct rect area) {
    struct canvas *c = f->canvas;
    struct rect at = {0};
    const bool brief = key_labels_rows(labels, count, area.width, area.height + 1) > area.height;
    for (int i = 0; i < count; i++) {
        const struct key_label *l = &labels[i];
        const char *text = brief ? l->brief : l->text;
        at = place_after(area, at, width_of(l, brief));
        if (at.y >= area.y + area.height) return;
        if (l->number >= 0) frame_hit(f, at, HIT_CHOICE, l->number);
        int used = canvas_text(c, area, at.x, at.y, view_bold(ROLE_ACCENT), l->key, strlen(l->key));
        if (*text) canvas_text(c, area, at.x + used + 1, at.y, view_style(ROLE_DIM), text, strlen(text));
    }
}
