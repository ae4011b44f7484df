// Names of keys, as they are written everywhere: `Ctrl+N`, `Alt+Up`, `Shift+F5`. What people type may be of any case.
#include <ctype.h>
#include <stdio.h>
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
    {"Esc", {.code = KEY_ESCAPE}}, // of a key with two names the first one is shown
    {"Escape", {.code = KEY_ESCAPE}},
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
        if (strcasecmp(name, key_names[i].name) == 0) return *out = key_names[i].key, true;
    if (toupper((unsigned char)name[0]) == 'F' && size >= 2 && size <= 3 &&
        strspn(name + 1, "0123456789") == size - 1) {
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

static const struct {
    const char *name;
    int bit;
} modifier_names[] = {{"Ctrl", KEY_CTRL}, {"Alt", KEY_ALT}, {"Shift", KEY_SHIFT}};
enum { MODIFIERS = sizeof modifier_names / sizeof *modifier_names };

// Control with a character is what the terminal sends for it: Ctrl+I is Tab.
static bool name_control(struct key *out) {
    int c = toupper((unsigned char)out->text[0]);
    if (c == ' ') c = '@';
    if (out->size != 1 || c < '@' || c > '_') return false;
    *out = key_of_control(c & 0x1f);
    return true;
}

// Alt with a letter is the small one, as the keyboard sends it without Shift.
static bool name_alt_letter(struct key *out, bool shift) {
    static const char letters[2][27] = {"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"};
    if (out->size != 1 || !isalpha((unsigned char)out->text[0])) return false;
    out->text = &letters[shift][tolower((unsigned char)out->text[0]) - 'a'];
    return true;
}

// The modifier that the name begins with; −1: none.
static int modifier_at(const char *name) {
    for (int m = 0; m < MODIFIERS; m++) {
        size_t size = strlen(modifier_names[m].name);
        if (strncasecmp(name, modifier_names[m].name, size) == 0 && name[size] == '+' && name[size + 1]) return m;
    }
    return -1;
}

bool key_parse(const char *name, struct key *out) {
    int modifiers = 0;
    *out = (struct key){0};
    for (int m; (m = modifier_at(name)) >= 0; name += strlen(modifier_names[m].name) + 1) {
        if (modifiers & modifier_names[m].bit) return false;
        modifiers |= modifier_names[m].bit;
    }
    if (!name_base(name, out)) return false;
    if (out->code == KEY_TEXT && (modifiers & KEY_CTRL)) {
        if (!name_control(out)) return false;
        modifiers &= ~KEY_CTRL;
    } else if (out->code == KEY_TEXT && (modifiers & KEY_ALT) && name_alt_letter(out, modifiers & KEY_SHIFT)) {
        modifiers &= ~KEY_SHIFT;
    }
    if (out->code == KEY_TEXT && (modifiers & KEY_SHIFT)) return false; // it is another character
    out->modifiers = modifiers;
    return true;
}

static void base_name(const struct key *k, bool alt, char out[KEY_NAME]) {
    for (size_t i = 0; i < sizeof key_names / sizeof *key_names; i++) {
        const struct key *named = &key_names[i].key;
        bool same =
            k->code == KEY_TEXT ? named->size == k->size && !memcmp(named->text, k->text, k->size) : !named->size;
        if (named->code == k->code && same) {
            snprintf(out, KEY_NAME, "%s", key_names[i].name);
            return;
        }
    }
    int c = k->size ? (unsigned char)k->text[0] : 0;
    if (k->code == KEY_FUNCTION) snprintf(out, KEY_NAME, "F%d", k->number);
    else if (k->code == KEY_CONTROL && k->number == '@') snprintf(out, KEY_NAME, "Space");
    else if (k->code == KEY_CONTROL) snprintf(out, KEY_NAME, "%c", toupper(k->number));
    else if (alt && k->size == 1 && islower(c)) snprintf(out, KEY_NAME, "%c", toupper(c));
    else snprintf(out, KEY_NAME, "%.*s", (int)k->size, k->text ? k->text : "");
}

const char *key_format(const struct key *k, char out[KEY_NAME]) {
    bool alt = k->modifiers & KEY_ALT;
    bool capital = alt && k->code == KEY_TEXT && k->size == 1 && isupper((unsigned char)k->text[0]);
    int modifiers = k->modifiers | (k->code == KEY_CONTROL ? KEY_CTRL : 0) | (capital ? KEY_SHIFT : 0);
    char base[KEY_NAME];
    size_t n = 0;
    for (int m = 0; m < MODIFIERS; m++)
        if (modifiers & modifier_names[m].bit)
            n += (size_t)snprintf(out + n, KEY_NAME - n, "%s+", modifier_names[m].name);
    base_name(k, alt, base);
    snprintf(out + n, KEY_NAME - n, "%.*s", (int)(KEY_NAME - n) - 1, base);
    return out;
}

bool key_equal(const struct key *a, const struct key *b) {
    if (a->code != b->code || a->modifiers != b->modifiers || a->number != b->number) return false;
    return a->code != KEY_TEXT || (a->size == b->size && memcmp(a->text, b->text, a->size) == 0);
}
