// `confab complete`: what the last word of a command line may become, from the tables of commands and settings, for the
// scripts in completions/.
//
// What an option or argument takes is named by words, as the tables have it: "off|lookup|MODEL", "[MODEL]". Words in
// capitals are kinds, of which the table below knows what there is; the others are offered as they are.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/base/clean.h"
#include "app/commands/command.h"
#include "app/models/model.h"
#include "app/models/models.h"
#include "app/session/store.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/device.h"
#include "engine/quantize.h"
#include "ui/theme.h"

#define WORD_ENDS "|[] ."

struct line {
    const struct command *command;
    const char *word;     // the last one, or of it what stands behind "--option="
    int before;           // bytes of it before that
    const char *argument; // of the option whose value it is; NULL: it is none
    int place;            // among the arguments of the command
    bool after_dashes;    // options have ended
};

// ---- the lists ----

static void offer(const struct line *l, const char *word, const char *text) {
    if (strncmp(word, l->word, strlen(l->word))) return;
    char *clean = clean_copy(word);
    printf("%.*s%s\t%s\n", l->before, l->word - l->before, clean, text);
    free(clean);
}

static void offer_models(const struct line *l) {
    struct model_list list;
    models_scan(&list, &local_models);
    for (int i = 0; i < list.count; i++) offer(l, list.entries[i].name, list.entries[i].source);
    models_free(&list);
}

static void offer_devices(const struct line *l) {
    struct device devices[DEVICE_MOST];
    const int n = device_list(devices);
    offer(l, "auto", "all GPUs, and the CPU for the rest");
    for (int i = 0; i < n; i++) offer(l, devices[i].name, devices[i].description);
}

static void offer_themes(const struct line *l) {
    for (int i = 0; theme_list(i); i++) offer(l, theme_list(i), "");
}

static void offer_types(const struct line *l) {
#define X(name, format, file_type, mix, help) offer(l, name, help);
    QUANTIZE_TYPES(X)
#undef X
}

static void offer_commands(const struct line *l) {
    for (int i = 0; i < n_commands; i++) offer(l, commands[i].name, commands[i].summary);
}

static void offer_chat(void *context, struct conversation *found) {
    offer(context, found->title, "");
    conversation_close(found);
}

static void offer_chats(const struct line *l) {
    char *path = path_data("confab.db");
    struct settings initial = settings_default();
    struct status st;
    struct store *store = path && !access(path, R_OK) ? store_open(path, &st) : NULL;
    if (store) store_list(store, &initial, offer_chat, (void *)l, &st);
    store_close(store);
    settings_free(&initial);
    free(path);
}

static void offer_files(const struct line *l) {
    (void)l;
    printf("\tFILE\n"); // the shell's own business
}

static const struct kind {
    const char *name;
    void (*offers[2])(const struct line *l);
} kinds[] = {
    {"MODEL", {offer_models, offer_files}},
    {"IN", {offer_models, offer_files}},
    {"DEVICE", {offer_devices}},
    {"THEME", {offer_themes}},
    {"TYPE", {offer_types}},
    {"COMMAND", {offer_commands}},
    {"CHAT", {offer_chats}},
    {"FILE", {offer_files}},
    {"PATH", {offer_files}},
    {"OUT", {offer_files}},
    {"IDS", {offer_files}},
    {"TEMPLATE", {offer_files}},
    {"CONTEXT", {offer_files}},
};

static void offer_word(const struct line *l, const char *word) {
    bool literal = false;
    for (const char *at = word; *at; at++) literal |= islower((unsigned char)*at) != 0;
    if (literal) offer(l, word, "");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, word)) continue;
        for (int k = 0; k < 2 && kinds[i].offers[k]; k++) kinds[i].offers[k](l);
    }
}

// Those of the words in "off|lookup|MODEL" or "IN OUT TYPE" that belong to the place; the last one may repeat.
static void offer_words(const struct line *l, const char *words, int place) {
    const bool choice = strchr(words, '|') != NULL, repeats = strchr(words, '.') != NULL;
    int n = 0;
    for (const char *at = words + strspn(words, WORD_ENDS); *at; at += strspn(at, WORD_ENDS), n++) {
        char *word = xstrndup(at, strcspn(at, WORD_ENDS));
        at += strlen(word);
        if (choice || n == place || (repeats && !*(at + strspn(at, WORD_ENDS)) && n < place)) offer_word(l, word);
        free(word);
    }
}

static void offer_options(const struct line *l) {
    for (int id = 0; id < SETTING_COUNT; id++) {
        if (!(setting_table[id].places & l->command->place)) continue;
        char *option = xasprintf("--%s", setting_table[id].key);
        offer(l, option, setting_table[id].help);
        free(option);
    }
    offer(l, "--help", "show the options");
    if (l->command == commands) offer(l, "--version", "show the version");
}

// ---- the line ----

// The option of "--model", "-m" or "--model=x"; −1: none that the command has.
static int option_of(const struct command *command, const char *word) {
    const size_t size = strcspn(word, "=");
    for (int id = 0; id < SETTING_COUNT; id++) {
        const struct setting_info *info = &setting_table[id];
        const bool named =
            !strncmp(word, "--", 2) && strlen(info->key) + 2 == size && !strncmp(word + 2, info->key, size - 2);
        const bool lettered = info->letter && word[1] == info->letter && !word[2];
        if (info->places & command->place && (named || lettered)) return id;
    }
    return -1;
}

static void read_option(struct line *l, const char *word, bool last) {
    const int id = option_of(l->command, word);
    const char *value = strchr(word, '=');
    if (id < 0 || !setting_table[id].argument || (!value && last)) return;
    if (!value || last) l->argument = setting_table[id].argument;
    if (value && last) l->word = value + 1, l->before = (int)(value + 1 - word);
}

static struct line read_line(int n, char **words) {
    struct line l = {.command = commands, .word = n ? words[n - 1] : ""};
    int first = 0;
    if (n > 1 && command_find(words[0])) l.command = command_find(words[first++]);
    for (int i = first; i < n; i++) {
        const bool last = i == n - 1;
        if (l.argument) { // this is its value
            if (!last) l.argument = NULL;
        } else if (!l.after_dashes && *words[i] == '-') {
            if (!strcmp(words[i], "--") && !last) l.after_dashes = true;
            else read_option(&l, words[i], last);
        } else if (!last) {
            l.place++;
        }
    }
    return l;
}

int command_complete(const struct settings *s, int n_arguments, char **arguments) {
    (void)s;
    const struct line l = read_line(n_arguments, arguments);
    if (l.argument) offer_words(&l, l.argument, 0);
    else if (*l.word == '-' && !l.after_dashes) offer_options(&l);
    else if (n_arguments <= 1) offer_commands(&l);
    else offer_words(&l, l.command->arguments, l.place);
    return EXIT_DONE;
}
