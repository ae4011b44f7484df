#include "ui/message_keys.h"

#include "ui/key_labels.h"

#define BOTH (MESSAGE_SELECTED | MESSAGE_IN_TREE)
#define USES (MESSAGE_SELECTED | MESSAGE_IN_CONTEXT)

// In the order in which they are shown, in few words where there is little room. The second key does the same and is
// not shown.
static const struct {
    int places;
    enum ui_command_id command;
    const char *key, *second;
    const char *shown, *ascii; // in place of the key; NULL: as it is called
    const char *label, *brief;
} choices[] = {
    {MESSAGE_COMPARED, COMMAND_VERSION_PREVIOUS, "Left", "h", "←→", "Left/Right", "answer", ""},
    {MESSAGE_COMPARED, COMMAND_VERSION_NEXT, "Right", "l", "", "", "", ""},
    {MESSAGE_COMPARED, COMMAND_COMPARE, "Enter", NULL, NULL, NULL, "go on with it", "go on"},
    {MESSAGE_COMPARED, COMMAND_STOP, "s", NULL, NULL, NULL, "stop", "stop"},
    {MESSAGE_BLOCK, COMMAND_SELECT_PREVIOUS, "Up", "k", "↑↓", "Up/Down", "select", ""},
    {MESSAGE_BLOCK, COMMAND_SELECT_NEXT, "Down", "j", "", "", "", ""},
    {MESSAGE_BLOCK, COMMAND_BLOCK, "Tab", "Left", NULL, NULL, "whole message", "message"},
    {MESSAGE_BLOCK, COMMAND_SELECT_TEXT, "s", NULL, NULL, NULL, "select text", "text"},
    {MESSAGE_BLOCK, COMMAND_COPY, "c", NULL, NULL, NULL, "copy", "copy"},
    {MESSAGE_BLOCK, COMMAND_SAVE, "w", NULL, NULL, NULL, "save to a file", "save"},
    {MESSAGE_BLOCK, COMMAND_QUOTE, ">", NULL, NULL, NULL, "quote", "quote"},
    {MESSAGE_BLOCK, COMMAND_COLLAPSE, "z", NULL, NULL, NULL, "collapse", "collapse"},
    {MESSAGE_SELECTED, COMMAND_SELECT_PREVIOUS, "Up", "k", "↑↓", "Up/Down", "select", ""},
    {MESSAGE_SELECTED, COMMAND_SELECT_NEXT, "Down", "j", "", "", "", ""},
    {MESSAGE_IN_CONTEXT, COMMAND_CONTEXT, "Enter", NULL, NULL, NULL, "go there", "go"},
    {MESSAGE_IN_TREE, COMMAND_TREE, "Enter", NULL, NULL, NULL, "go there", "go"},
    {MESSAGE_COMPARED, COMMAND_MARK, "Space", NULL, NULL, NULL, "mark", "mark"},
    {MESSAGE_COMPARED, COMMAND_PRUNE, "Delete", NULL, "Del", "Del", "discard", "discard"},
    {MESSAGE_COMPARED, COMMAND_KEEP, "O", NULL, NULL, NULL, "discard the rest", "rest"},
    {MESSAGE_COMPARED, COMMAND_RESTORE, "u", NULL, NULL, NULL, "undo", "undo"},
    {MESSAGE_COMPARED, COMMAND_REGENERATE, "r", NULL, NULL, NULL, "one more", "more"},
    {MESSAGE_COMPARED, COMMAND_COPY, "c", NULL, NULL, NULL, "copy", "copy"},
    {MESSAGE_COMPARED, COMMAND_COPY_CHAT, "n", NULL, NULL, NULL, "new chat", "new chat"},
    {BOTH | MESSAGE_IN_CONTEXT, COMMAND_EDIT, "e", NULL, NULL, NULL, "edit", "edit"},
    {BOTH, COMMAND_REGENERATE, "r", NULL, NULL, NULL, "answer again", "again"},
    {MESSAGE_SELECTED, COMMAND_VERSION_PREVIOUS, "Left", "h", "←→", "Left/Right", "version", ""},
    {MESSAGE_SELECTED, COMMAND_VERSION_NEXT, "Right", "l", "", "", "", ""},
    {MESSAGE_SELECTED, COMMAND_BLOCK, "Tab", NULL, NULL, NULL, "blocks", "blocks"},
    {MESSAGE_SELECTED, COMMAND_SELECT_TEXT, "s", NULL, NULL, NULL, "select text", "text"},
    {MESSAGE_SELECTED, COMMAND_TREE, "t", NULL, NULL, NULL, "tree", "tree"},
    {BOTH, COMMAND_PRUNE, "Delete", NULL, "Del", "Del", "prune", "prune"},
    {BOTH, COMMAND_COPY, "c", NULL, NULL, NULL, "copy", "copy"},
    {BOTH, COMMAND_COPY_CHAT, "n", NULL, NULL, NULL, "new chat", "new chat"},
    {USES, COMMAND_PIN, "p", NULL, NULL, NULL, "pin", "pin"},
    {USES, COMMAND_FOLD, "f", NULL, NULL, NULL, "fold", "fold"},
    {USES, COMMAND_DROP, "d", NULL, NULL, NULL, "drop", "drop"},
    {BOTH, COMMAND_NAME, "m", NULL, NULL, NULL, "name", "name"},
    {BOTH, COMMAND_RESTORE, "u", NULL, NULL, NULL, "undo prune", "undo"},
    {MESSAGE_SELECTED, COMMAND_COMPARE, "v", NULL, NULL, NULL, "compare", "compare"},
    {PANE_IN_FOCUS, COMMAND_FOCUS_PANE, "Tab", NULL, NULL, NULL, "next pane", "next"},
    {PANE_IN_FOCUS, COMMAND_NARROWER, "Left", "h", "←", "Left", "narrower", "narrower"},
    {PANE_IN_FOCUS, COMMAND_WIDER, "Right", "l", "→", "Right", "wider", "wider"},
    {PANE_IN_FOCUS, COMMAND_SHORTER, "Up", "k", "↑", "Up", "shorter", "shorter"},
    {PANE_IN_FOCUS, COMMAND_TALLER, "Down", "j", "↓", "Down", "taller", "taller"},
    {PANE_IN_FOCUS, COMMAND_ZOOM, "Enter", "z", NULL, NULL, "zoom", "zoom"},
    {PANE_IN_FOCUS, COMMAND_RESET_SIZES, "0", NULL, NULL, NULL, "reset sizes", "reset"},
    {MESSAGE_SELECTED, COMMAND_EDIT, "Enter", NULL, "", "", "", ""},
    {MESSAGE_SELECTED, COMMAND_TOKENS, "i", NULL, "", "", "", ""},
    {MESSAGE_SELECTED, COMMAND_SAVE, "w", NULL, "", "", "", ""},
    {MESSAGE_SELECTED, COMMAND_LINKS, "o", NULL, "", "", "", ""},
    {MESSAGE_SELECTED, COMMAND_COLLAPSE, "z", NULL, "", "", "", ""},
    {MESSAGE_SELECTED, COMMAND_QUOTE, ">", NULL, "", "", "", ""},
    {MESSAGE_SELECTED, COMMAND_EDITOR, "E", NULL, "", "", "", ""},
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

static int labels_of(enum message_place place, bool ascii, struct key_label labels[CHOICES]) {
    int count = 0;
    for (int i = 0; i < CHOICES; i++) {
        const char *key = ascii ? choices[i].ascii : choices[i].shown;
        if (!key) key = choices[i].key;
        if (choices[i].places & (int)place && *key)
            labels[count++] = (struct key_label){key, choices[i].label, choices[i].brief, (int)choices[i].command};
    }
    return count;
}

int message_keys_rows(int width, bool ascii, enum message_place place, int most) {
    struct key_label labels[CHOICES];
    return key_labels_rows(labels, labels_of(place, ascii, labels), width, most);
}

void message_keys_draw(struct view_frame *f, struct rect area, enum message_place place) {
    struct key_label labels[CHOICES];
    key_labels_draw(labels, labels_of(place, f->canvas->ascii, labels), f, area);
}
