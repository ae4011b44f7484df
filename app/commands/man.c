#include "app/commands/man.h"

#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "engine/base/reader.h"
#include "ui/commands.h"

#define TEMPLATE_LIMIT (1 << 20)

// Escapes text for roff: hyphens as minus signs, backslashes, and a leading '.' or '\''.
static void man_text(FILE *out, const char *text) {
    if (*text == '.' || *text == '\'') fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '-') fputs("\\-", out);
        else if (*text == '\\') fputs("\\e", out);
        else fputc(*text, out);
    }
}

static void man_option(FILE *out, const struct setting_info *info) {
    fputs(".TP\n.B ", out);
    if (info->letter) fprintf(out, "\\-%c, ", info->letter);
    fputs("\\-\\-", out);
    man_text(out, info->key);
    if (info->argument) fprintf(out, " \\fI%s\\fR", info->argument);
    fputc('\n', out);
    man_text(out, info->help);
    fputs(".\n", out);
}

static void man_commands(FILE *out) {
    for (int i = 0; i < n_commands; i++) {
        const struct command *c = &commands[i];
        fprintf(out, ".SS confab %s[options]%s%s\n", i ? c->name : "", *c->arguments ? " " : "", c->arguments);
        man_text(out, c->summary);
        fputs(".\n", out);
        man_text(out, c->details);
        for (int id = 0; id < SETTING_COUNT; id++)
            if (setting_table[id].places & c->place) man_option(out, &setting_table[id]);
    }
}

static const char *kind_text(enum setting_kind kind) {
    switch (kind) {
    case SETTING_FLAG: return "yes or no";
    case SETTING_INT: return "a whole number";
    case SETTING_REAL:
    case SETTING_KNOB: return "a number";
    case SETTING_TEXT: return "text";
    case SETTING_TEXTS: return "text, may be given several times";
    case SETTING_CHOICE: break; // the choices are listed instead
    case SETTING_PANES: return "digits or names, or none";
    }
    return "";
}

static void man_settings(FILE *out) {
    struct settings initial = settings_default();
    initial.knobs_set = ~0u;
    for (int id = 0; id < SETTING_COUNT; id++) {
        const struct setting_info *info = &setting_table[id];
        if (!(info->places & IN_FILE)) continue;
        char *value = setting_format(&initial, id);
        fputs(".TP\n.B ", out);
        man_text(out, info->key);
        fprintf(out, " \\fR(%s", info->kind == SETTING_CHOICE ? info->argument : kind_text(info->kind));
        if (info->high > info->low) {
            char range[64];
            snprintf(range, sizeof range, " from %.10g to %.10g", info->low, info->high);
            man_text(out, range);
        }
        if (info->kind == SETTING_KNOB) fprintf(out, "; %s unless set here or by the model", value);
        else if (*value) fprintf(out, "; %s unless set", value);
        fputs(")\n", out);
        man_text(out, info->help);
        fputs(".\n", out);
        free(value);
    }
}

static void man_keys(FILE *out) {
    for (int i = 0; i < COMMAND_COUNT; i++) { // at the first key of each group, print the whole group
        const char *group = ui_commands[i].group;
        bool seen = false;
        for (int j = 0; j < i; j++) seen |= !strcmp(ui_commands[j].group, group);
        if (seen) continue;
        fprintf(out, ".SS %s\n", group);
        for (int j = i; j < COMMAND_COUNT; j++) {
            const struct ui_command_info *k = &ui_commands[j];
            if (strcmp(k->group, group)) continue;
            fputs(".TP\n.B ", out);
            man_text(out, *k->key ? k->key : "(no key)");
            fputs(" \\fR", out);
            man_text(out, k->name);
            fputc('\n', out);
            man_text(out, k->help);
            fputs(".\n", out);
        }
    }
}

static bool man_table(FILE *out, const char *line, size_t size) {
    static const struct {
        const char *mark;
        void (*write)(FILE *out);
    } tables[] = {{"@commands@", man_commands}, {"@settings@", man_settings}, {"@keys@", man_keys}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (!span_equals((struct span){line, size}, tables[i].mark)) continue;
        tables[i].write(out);
        return true;
    }
    return false;
}

bool man_write(FILE *out, const char *template_path, struct status *st) {
    size_t size;
    char *text = file_read(template_path, TEMPLATE_LIMIT, &size, st);
    if (!text) return false;
    for (const char *line = text, *end = text + size; line < end;) {
        size_t length = strcspn(line, "\n");
        if (!man_table(out, line, length)) fprintf(out, "%.*s\n", (int)length, line);
        line += length + 1;
    }
    free(text);
    return true;
}
