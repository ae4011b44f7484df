// Names of keys, as the table of commands, the configuration and the manual write them.
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/terminal_parts.h"

static const struct {
    const char *name;
    struct key key;
} key_names[] = {
    {"Enter", {.code = KEY_ENTER}},
    {"Tab", {.code = KEY_TAB}},
    {"Backspace", {.code = KEY_BACKSPACE}},
    {"Escape", {.code = KEY_ESCAPE}},
    {"Esc", {.code = KEY_ESCAPE}},
    {"Up", {.code = KEY_UP}},
    {"Down", {.code = KEY_DOWN}},
    {"Left", {.code = KEY_LEFT}},
    {"Right", {.code = KEY_RIGHT}},
    {"Home", {.code = KEY_HOME}},
    {"End", {.code = KEY_END}},
    {"PgUp", {.code = KEY_PAGE_UP}},
    {"PgDn", {.code = KEY_PAGE_DOWN}},
    {"Insert", {.code = KEY_INSERT}},
    {"Delete", {.code = KEY_DELETE}},
    {"Space", {.code = KEY_TEXT, .text = " ", .size = 1}},
};

static bool name_base(const char *name, struct key *out) {
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof key_names / sizeof *key_names; i++)
        if (strcmp(name, key_names[i].name) == 0) return *out = key_names[i].key, true;
    if (name[0] == 'F' && size >= 2 && size <= 3 && strspn(name + 1, "0123456789") == size - 1) {
        int number = atoi(name + 1);
        *out = (struct key){.code = KEY_FUNCTION, .number = number};
        return number >= 1 && number <= 12 && name[1] != '0';
    }
    uint32_t code;
    if (size == 0 || (uint8_t)name[0] <= 0x20 || name[0] == 0x7f || utf8_decode(name, size, &code) != size)
        return false;
    *out = (struct key){.code = KEY_TEXT, .text = name, .size = size};
    return code != UTF8_REPLACEMENT;
}

// Control with a character is what the terminal sends for it: C-i is Tab.
static bool name_control(struct key *out) {
    uint8_t c = (uint8_t)out->text[0];
    if (c == ' ') c = '@';
    if (out->size != 1 || c < '@' || c == 0x7f) return false;
    *out = key_of_control(c & 0x1f);
    return true;
}

bool key_parse(const char *name, struct key *out) {
    int modifiers = 0;
    *out = (struct key){0};
    while (name[0] && name[1] == '-' && name[2]) {
        const char *letters = "SMC", *letter = strchr(letters, name[0]);
        if (!letter || modifiers & 1 << (letter - letters)) return false;
        modifiers |= 1 << (letter - letters);
        name += 2;
    }
    if (!name_base(name, out)) return false;
    if (out->code == KEY_TEXT && (modifiers & KEY_SHIFT)) return false; // it is another character
    if (out->code == KEY_TEXT && (modifiers & KEY_CTRL)) {
        if (!name_control(out)) return false;
        modifiers &= ~KEY_CTRL;
    }
    out->modifiers = modifiers;
    return true;
}

bool key_equal(const struct key *a, const struct key *b) {
    if (a->code != b->code || a->modifiers != b->modifiers || a->number != b->number) return false;
    return a->code != KEY_TEXT || (a->size == b->size && memcmp(a->text, b->text, a->size) == 0);
}
