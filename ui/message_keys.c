#include "ui/message_keys.h"

#include <string.h>

enum { GAP = 2, ROOMY = 60 /* columns */ };

#define BOTH (MESSAGE_SELECTED | MESSAGE_IN_TREE)

// In the order in which they are shown, in few words where there is little room. The second key does the same and is
// not shown.
static const struct {
    int places;
    enum ui_command_id command;
    const char *key, *second;
    const char *shown, *ascii; // in place of the key; NULL: as it is called
    const char *label, *brief;
} choices[] = {
    {MESSAGE_SELECTED, COMMAND_SELECT_PREVIOUS, "Up", "k", "↑↓", "Up/Down", "select", ""},
    {MESSAGE_SELECTED, COMMAND_SELECT_NEXT, "Down", "j", "", "", "", ""},
    {MESSAGE_IN_TREE, COMMAND_TREE, "Enter", NULL, NULL, NULL, "go there", "go"},
    {BOTH, COMMAND_EDIT, "e", NULL, NULL, NULL, "edit", "edit"},
    {BOTH, COMMAND_REGENERATE, "r", NULL, NULL, NULL, "answer again", "again"},
    {MESSAGE_SELECTED, COMMAND_VERSION_PREVIOUS, "Left", "h", "←→", "Left/Right", "version", ""},
    {MESSAGE_SELECTED, COMMAND_VERSION_NEXT, "Right", "l", "", "", "", ""},
    {MESSAGE_SELECTED, COMMAND_TREE, "t", NULL, NULL, NULL, "tree", "tree"},
    {BOTH, COMMAND_PRUNE, "Delete", NULL, "Del", "Del", "prune", "prune"},
    {BOTH, COMMAND_COPY, "c", NULL, NULL, NULL, "copy", "copy"},
    {BOTH, COMMAND_COPY_CHAT, "n", NULL, NULL, NULL, "new chat from here", "new chat"},
    {BOTH, COMMAND_NAME, "m", NULL, NULL, NULL, "name", "name"},
    {BOTH, COMMAND_RESTORE, "u", NULL, NULL, NULL, "undo prune", "undo"},
    {MESSAGE_SELECTED, COMMAND_EDIT, "Enter", NULL, "", "", "", ""},
};
enum { CHOICES = sizeof choices / sizeof *choices };

static bool is_key(const char *name, const struct key *k) {
    struct key own;
    return name && key_parse(name, &own) && key_equal(&own, k);
}

int message_keys_command(const struct key *k, enum message_place place) {
    for (int i = 0; i < CHOICES; i++)
        if (choices[i].places & (int)place && (is_key(choices[i].key, k) || is_key(choices[i].second, k)))
            return (int)choices[i].command;
    return -1;
}

void message_keys_draw(struct view_frame *f, struct rect area, enum message_place place) {
    struct canvas *c = f->canvas;
    int x = area.x, y = area.y;
    for (int i = 0; i < CHOICES; i++) {
        const char *label = area.width < ROOMY ? choices[i].brief : choices[i].label;
        const char *name = c->ascii ? choices[i].ascii : choices[i].shown;
        if (!name) name = choices[i].key;
        if (!(choices[i].places & (int)place) || !*name) continue;
        int width = text_width(name, strlen(name)) + (*label != 0) + (int)strlen(label);
        if (x > area.x && x + width > area.x + area.width) x = area.x, y++;
        if (y >= area.y + area.height) return;
        frame_hit(f, (struct rect){x, y, width, 1}, HIT_CHOICE, (int)choices[i].command);
        x += canvas_text(c, area, x, y, view_bold(ROLE_ACCENT), name, strlen(name)) + (*label != 0);
        x += canvas_text(c, area, x, y, view_style(ROLE_DIM), label, strlen(label)) + GAP;
    }
}
