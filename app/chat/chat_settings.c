// Settings as a person changes them on the screen: of the chat alone, or of the program, where the configuration keeps
// them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/chat/chat_state.h"
#include "app/session/sampling_text.h"
#include "engine/base/panic.h"
#include "ui/theme.h"

struct chat_settings {
    struct view_setting views[SETTING_COUNT];
    char *value[SETTING_COUNT], *own[SETTING_COUNT], *initial[SETTING_COUNT]; // of the views
    int n;
    char themes[256]; // names, separated by '|', as of when the pane was open
    bool open;
};

static const char *effect_of(int id) {
    if (id == SETTING_model) return "once it is loaded";
    if (id >= SETTING_FIRST_KNOB) return "with the next token";
    if (setting_table[id].places & ON_LOADING) return "when a model is loaded (/reload)";
    if (setting_table[id].places & ON_STARTING) return "when confab starts";
    return setting_table[id].places & OF_CONVERSATION ? "with the next answer" : "at once";
}

// ---- as the screen is shown them ----

// Texts of a list on one line; of a knob the value that counts, whoever chose it.
static char *shown(const struct settings *s, int id) {
    const struct text_list *list = setting_texts(s, id);
    struct settings all = *s;
    all.knobs_set = ~0u;
    if (!list) return setting_format(&all, id);
    char *text = xstrdup("");
    for (int i = 0; i < list->count; i++) {
        char *longer = xasprintf("%s%s%s", text, i ? " | " : "", list->texts[i]);
        free(text);
        text = longer;
    }
    return text;
}

static const char *choices_of(struct chat_settings *all, int id) {
    const struct setting_info *info = &setting_table[id];
    size_t n = 0;
    if (info->kind == SETTING_FLAG) return "no|yes";
    if (id != SETTING_theme) return info->kind == SETTING_CHOICE ? info->argument : NULL;
    for (int i = 0; all->open && theme_list(i) && n < sizeof all->themes; i++) // which may look into a folder
        n += (size_t)snprintf(all->themes + n, sizeof all->themes - n, "%s%s", i ? "|" : "", theme_list(i));
    return *all->themes ? all->themes : NULL;
}

static void take(char **text, char *fresh) {
    free(*text);
    *text = fresh;
}

static void make_views(struct chat *c, struct chat_settings *all) {
    struct settings initial = settings_default();
    settings_follow_model(&initial, model_host_info(c->p.host));
    all->n = 0;
    for (int id = 0; id < SETTING_COUNT; id++) {
        const struct setting_info *info = &setting_table[id];
        if (!(info->places & IN_FILE)) continue;
        const int i = all->n++;
        if (all->open) {
            take(&all->value[i], shown(c->p.settings, id));
            take(&all->own[i], setting_of_conversation(id) ? shown(&c->current->conversation.settings, id) : NULL);
            take(&all->initial[i], shown(&initial, id));
        }
        all->views[i] = (struct view_setting){
            .key = info->key,
            .help = info->help,
            .choices = choices_of(all, id),
            .adds = info->kind == SETTING_TEXTS,
            .value = all->value[i],
            .own = all->own[i],
            .initial = all->initial[i],
            .effect = effect_of(id),
        };
    }
}

// Their values are looked at only while the pane is open.
void chat_settings_show(struct chat *c, struct screen_view *view) {
    struct chat_settings *all = c->settings;
    if (!all) all = c->settings = xcalloc(1, sizeof *all);
    all->open = screen_has_open(c->screen, PANE_SETTINGS);
    if (all->open || !all->n) make_views(c, all);
    view->settings = all->views;
    view->n_settings = all->n;
}

void chat_settings_close(struct chat *c) {
    for (int i = 0; c->settings && i < c->settings->n; i++)
        free(c->settings->value[i]), free(c->settings->own[i]), free(c->settings->initial[i]);
    free(c->settings);
    c->settings = NULL;
}

// ---- changing them ----

static bool set_own(struct chat *c, int id, const char *text, struct status *st) {
    return session_change_setting(c->session, c->current, id, text, model_host_info(c->p.host), st);
}

static bool is_library(int id) { return id == SETTING_prompts || id == SETTING_presets; }

static struct text_list *library(struct settings *s, int id) {
    return id == SETTING_prompts ? &s->prompts : &s->presets;
}

// What is kept under a name; NULL: nothing is.
static const char *find_named(const struct text_list *l, const char *name) {
    const size_t size = strlen(name);
    for (int i = 0; i < l->count; i++)
        if (!strncmp(l->texts[i], name, size) && l->texts[i][size] == ' ') return l->texts[i] + size + 1;
    return NULL;
}

// "NAME TEXT" in place of what had that name; a name alone takes it out.
static void keep_named(struct text_list *l, const char *text) {
    const size_t size = strcspn(text, " ");
    for (int i = l->count - 1; i >= 0; i--)
        if (strcspn(l->texts[i], " ") == size && !memcmp(l->texts[i], text, size)) free(text_list_take(l, i));
    if (text[size]) text_list_insert(l, l->count, text);
}

struct pane_choice chat_pane_choice(const struct settings *s) {
    return (struct pane_choice){s->panes, (enum pane_arrangement)s->layout, s->sizes};
}

static bool set_program(struct chat *c, int id, const char *text, struct status *st) {
    struct settings *s = c->p.settings;
    if (is_library(id) && *text) {
        keep_named(library(s, id), text);
        chat_save_setting(c, id);
        return true;
    }
    if (id == SETTING_theme && !screen_set_theme(c->screen, *text ? text : THEME_DEFAULT, st)) return false;
    if (!setting_change(s, id, text, model_host_info(c->p.host), st)) return false;
    screen_set_ascii(c->screen, s->ascii);
    screen_set_title(c->screen, s->title);
    if (id == SETTING_panes || id == SETTING_layout || id == SETTING_sizes) {
        const struct pane_choice choice = chat_pane_choice(s);
        screen_set_panes(c->screen, &choice);
    }
    session_begin_with_defaults(c->session);
    chat_save_setting(c, id);
    chat_serve_set(c, id);
    return true;
}

char *chat_settings_text(const struct chat *c, const char *key, int number) {
    const int id = setting_find(key);
    return setting_format(number == 1 ? c->p.settings : &c->current->conversation.settings, id);
}

// "KEY VALUE"; number 1: of the program, 0: of the chat, otherwise of the chat where that has its own.
void chat_settings_set(struct chat *c, const struct ui_command *command) {
    const char *text = command->text ? command->text : "";
    const size_t size = strcspn(text, " \t\n");
    char *key = xstrndup(text, size);
    const int id = setting_find(key);
    const char *value = text + size + strspn(text + size, " \t\n");
    const bool of_chat = id >= 0 && command->number != 1 && setting_of_conversation(id);
    struct status st = {0};
    free(key);
    if (id < 0 || !(setting_table[id].places & IN_FILE)) return;
    if (id == SETTING_model) {
        chat_model_choose(c, value);
        return;
    }
    const char *named = id == SETTING_system ? find_named(&c->p.settings->prompts, value) : NULL;
    char *typed = chat_typed(named ? named : value);
    if (!(of_chat ? set_own : set_program)(c, id, typed, &st)) {
        chat_say(c, true, "%s", st.text);
    } else {
        char *now = shown(of_chat ? &c->current->conversation.settings : c->p.settings, id);
        const char *effect = effect_of(id);
        const bool later = strcmp(effect, "at once");
        chat_say(c, false, "%s is %s%.200s%s%s%s", setting_table[id].key, *now ? "now " : "no longer set", now,
                 of_chat ? " in this chat" : "", later ? ", " : "", later ? effect : "");
        free(now);
    }
    free(typed);
}

// ---- what is kept under names ----

void chat_preset(struct chat *c, const struct ui_command *command) {
    const char *name = command->text ? command->text : "", *knobs = find_named(&c->p.settings->presets, name);
    struct session_chat *chat = c->current;
    if (!knobs) {
        chat_say(c, true, "no preset '%.40s' (save-preset keeps one)", name);
        return;
    }
    const struct sampling sampling = sampling_text_read(knobs, &chat->conversation.settings.sampling);
    session_set_sampling(c->session, chat, &sampling);
    session_settings_changed(chat);
    chat_say(c, false, "%s: %s", name, knobs);
}

// A name is a word.
static void save_named(struct chat *c, int id, const char *name, const char *text) {
    char *whole = xasprintf("%s %s", name, text);
    if (!*name || strpbrk(name, " \t\n")) {
        chat_say(c, true, "'%.40s' is not a name (expected one word)", name);
    } else {
        keep_named(library(c->p.settings, id), whole);
        chat_save_setting(c, id);
        chat_say(c, false, "kept as %s", name);
    }
    free(whole);
}

void chat_save_preset(struct chat *c, const struct ui_command *command) {
    char *knobs = sampling_text_write(&c->current->conversation.settings.sampling);
    save_named(c, SETTING_presets, command->text ? command->text : "", knobs);
    free(knobs);
}

void chat_save_prompt(struct chat *c, const struct ui_command *command) {
    const char *prompt = c->current->conversation.settings.system;
    if (prompt) save_named(c, SETTING_prompts, command->text ? command->text : "", prompt);
    else chat_say(c, true, "this chat has no system prompt (/system sets one)");
}
