#include "app/commands/man.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/server/figures.h"
#include "engine/base/reader.h"
#include "ui/commands.h"
#include "ui/theme.h"

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

// A table's help or summary as a sentence.
static void man_sentence(FILE *out, const char *text) {
    const char first[] = {(char)toupper((unsigned char)*text), 0};
    man_text(out, first);
    man_text(out, text + (*text != 0));
    fputs(".\n", out);
}

static void man_option(FILE *out, int id) {
    const struct setting_info *info = &setting_table[id];
    char *help = setting_help(id);
    fputs(".TP\n.B ", out);
    if (info->letter) fprintf(out, "\\-%c, ", info->letter);
    fputs("\\-\\-", out);
    man_text(out, info->key);
    if (info->argument) fprintf(out, " \\fI%s\\fR", info->argument);
    fputc('\n', out);
    man_sentence(out, help);
    free(help);
}

static void man_commands(FILE *out) {
    for (int i = 0; i < n_commands; i++) {
        const struct command *c = &commands[i];
        fprintf(out, ".SS confab%s%s [options]%s%s\n", i ? " " : "", i ? c->name : "", *c->arguments ? " " : "",
                c->arguments);
        man_sentence(out, c->summary);
        man_text(out, c->details);
        for (int id = 0; id < SETTING_COUNT; id++)
            if (setting_table[id].places & c->place) man_option(out, id);
    }
}

static const char *kind_text(enum setting_kind kind) {
    switch (kind) {
    case SETTING_FLAG: return "yes or no";
    case SETTING_INT: return "integer";
    case SETTING_AUTO: return "integer or auto";
    case SETTING_BYTES: return "size or off";
    case SETTING_REAL:
    case SETTING_KNOB: return "number";
    case SETTING_TEXT: return "text";
    case SETTING_TEXTS: return "text, repeatable";
    case SETTING_CHOICE: break; // the choices are listed instead
    case SETTING_PANES: return "digits or names, or none";
    case SETTING_SIZES: return "words NAME=COLUMNSxROWS";
    }
    return "";
}

static void man_settings(FILE *out) {
    for (int id = 0; id < SETTING_COUNT; id++) {
        const struct setting_info *info = &setting_table[id];
        if (!(info->places & IN_FILE)) continue;
        char *initial = setting_default_text(id);
        fputs(".TP\n.B ", out);
        man_text(out, info->key);
        fprintf(out, " \\fR(%s", info->kind == SETTING_CHOICE ? info->argument : kind_text(info->kind));
        if (info->high > info->low && info->kind != SETTING_BYTES) {
            char range[64];
            snprintf(range, sizeof range, ", %.10g to %.10g", info->low, info->high);
            man_text(out, range);
        }
        fprintf(out, "%s%s)\n", *initial ? ", default " : "", initial);
        man_sentence(out, info->help);
        free(initial);
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
            man_sentence(out, k->help);
        }
    }
}

static void man_roles(FILE *out) {
    static const char *const roles[][2] = {
#define X(id, key, parent, help) {key, help},
        THEME_ROLES(X)
#undef X
    };
    for (int i = 0; i < ROLE_COUNT; i++) {
        fprintf(out, ".TP\n.B %s\n", roles[i][0]);
        man_sentence(out, roles[i][1]);
    }
}

static void man_metrics(FILE *out) {
    for (int i = 0; i < n_figures; i++) {
        fprintf(out, ".TP\n.B %s \\fR(%s)\n", figure_table[i].name, figure_table[i].type);
        man_sentence(out, figure_table[i].help);
    }
}

static bool man_table(FILE *out, const char *line, size_t size) {
    static const struct {
        const char *mark;
        void (*write)(FILE *out);
    } tables[] = {{"@commands@", man_commands},
                  {"@settings@", man_settings},
                  {"@keys@", man_keys},
                  {"@roles@", man_roles},
                  {"@metrics@", man_metrics}};
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
