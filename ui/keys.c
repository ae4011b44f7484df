#include "ui/keys.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// The person's own keys, by command.
static struct own_key {
    int line; // that binds it or takes its key, from 1 on; 0: the table's key counts
    char name[KEY_NAME];
} own[COMMAND_COUNT];

const char *keys_name(enum ui_command_id id) { return own[id].line ? own[id].name : ui_commands[id].key; }

const char *keys_short_name(enum ui_command_id id, char out[KEY_NAME]) {
    struct key k;
    bool control = key_parse(keys_name(id), &k) && k.code == KEY_CONTROL && !k.modifiers;
    if (control) snprintf(out, KEY_NAME, "^%c", toupper(k.number));
    else snprintf(out, KEY_NAME, "%s", keys_name(id));
    return out;
}

static void __attribute__((format(printf, 2, 3))) complain(struct status *st, const char *format, ...) {
    struct status more;
    va_list args;
    va_start(args, format);
    vsnprintf(more.text, sizeof more.text, format, args);
    va_end(args);
    bool first = !st->code;
    size_t used = first ? 0 : strlen(st->text);
    st->code = STATUS_USAGE;
    snprintf(st->text + used, sizeof st->text - used, "%s%.400s", first ? "keys: " : ", ", more.text);
}

static void bind_line(const char *line, int number, struct status *st) {
    line += strspn(line, " \t");
    size_t size = strcspn(line, " \t"), end = strlen(line);
    const char *key = line + size + strspn(line + size, " \t");
    while (end && strchr(" \t", line[end - 1])) end--;
    int shown = size < 40 ? (int)size : 40, command = ui_command_find(line, size);
    char name[KEY_NAME] = "";
    struct key k = {0};
    if (key < line + end) snprintf(name, sizeof name, "%.*s", (int)(line + end - key), key);
    bool none = !strcmp(name, "none");
    if (command < 0) {
        complain(st, "no command '%.*s'", shown, line);
    } else if (!none && !key_parse(name, &k)) {
        complain(st, "'%s' is not a key", name);
    } else if (k.code == KEY_ESCAPE || (k.code == KEY_TEXT && !k.modifiers)) {
        complain(st, "%s cannot be bound", name); // it closes, or is typed
    } else {
        own[command].line = number;
        if (none) own[command].name[0] = 0;
        else key_format(&k, own[command].name);
    }
}

// A command that an earlier line gives this one's key; −1: none.
static int rival_of(int command) {
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (own[c].line && own[c].line < own[command].line && *own[c].name && !strcmp(own[c].name, own[command].name))
            return c;
    return -1;
}

// Of two lines that want one key the later one gives way.
static void settle_lines(struct status *st) {
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const int rival = rival_of(c);
        if (rival < 0) continue;
        complain(st, "%s is both %s and %s", own[c].name, ui_commands[rival].name, ui_commands[c].name);
        own[c].line = 0;
    }
}

// A key of the table that a line gives to another command is taken from its own.
static void take_from_table(void) {
    for (int c = 0; c < COMMAND_COUNT; c++) {
        if (!own[c].line || !*own[c].name) continue;
        for (int other = 0; other < COMMAND_COUNT; other++)
            if (!own[other].line && !strcmp(own[c].name, ui_commands[other].key))
                own[other] = (struct own_key){.line = own[c].line};
    }
}

bool keys_bind(const char *const *lines, int count, struct status *st) {
    struct status problem = {0};
    memset(own, 0, sizeof own);
    for (int i = 0; i < count; i++) bind_line(lines[i], i + 1, &problem);
    settle_lines(&problem);
    take_from_table();
    if (!problem.code) return true;
    return status_fail(st, STATUS_USAGE, "%s", problem.text);
}
