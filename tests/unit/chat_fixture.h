// What the tests of the chat controller share: an engine that plays a script, a screen that plays a person, and a clock
// that stands still unless a test moves it.
//
// It defines functions of ui/screen.h, in place of those of the library; so each program includes it in one file, and
// it is no helper that is linked into every test.
#ifndef CONFAB_TESTS_CHAT_FIXTURE_H
#define CONFAB_TESTS_CHAT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/chat/chat_state.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/model/opened_model.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/told_engine.h"

// ---- models ----

// Models are there at once, but for the file called FAILS; no model drafts for the one called ALONE.
static struct model_file *fixture_open(const char *path, struct status *st) {
    static const struct format_share formats[] = {{"Q4_0", 1, 1}};
    (void)st;
    if (!path) path = "Tiny 1B";
    struct model_file *m = xcalloc(1, sizeof *m);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t name_size = strcspn(name, ".");
    char *own_path = arena_alloc(&m->arena, strlen(path) + 1), *own_name = arena_alloc(&m->arena, name_size + 1);
    own_name[name_size] = 0;
    m->info = (struct model_info){.path = strcpy(own_path, path),
                                  .name = memcpy(own_name, name, name_size),
                                  .family = "tiny",
                                  .chat_template = "none", // so that it is asked for no titles
                                  .thinking = "",
                                  .formats = formats,
                                  .n_formats = 1,
                                  .n_context = 4096,
                                  .sampling = sampling_default(),
                                  .has_weights = true};
    return m;
}
static struct model_file *fixture_open_header(const char *path, bool text, struct status *st) {
    return (void)text, fixture_open(path, st);
}
static uint64_t fixture_need = 1; // bytes of memory of a model

static bool fixture_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                           struct model_memory *out, struct status *st) {
    (void)m, (void)p, (void)available, (void)st;
    *out = (struct model_memory){.kv_tokens = 512, .total = fixture_need};
    return true;
}
static struct engine *fixture_open_engine(struct model_file *m, const struct engine_params *p, struct status *st) {
    if (!strcmp(m->info.name, "ALONE")) status_fail(p->draft_refused, STATUS_USAGE, "small: cannot draft for ALONE");
    if (!strcmp(m->info.name, "FAILS")) return status_fail(st, STATUS_MEMORY, "%s: does not fit", m->info.path), NULL;
    return &engine.engine;
}

static const struct model_opener fixture_models = {.open = fixture_open,
                                                   .open_header = fixture_open_header,
                                                   .memory = fixture_memory,
                                                   .open_engine = fixture_open_engine};

// ---- a screen that remembers what it was shown ----

static struct {
    struct ui_command commands[16];
    int n_commands, next_command, draws;
    struct screen_view view;
    struct view_chat chats[32];
    struct view_message messages[32];
    char status[512], composer[4096], asked[64];
    struct view_node nodes[64];
    uint64_t token_message; // where its token cursor is; 0: there is none
    int token;
    char taken[4096], notice[128]; // notice: its kind and chat
    bool ended, typed, tree, compares, context, lent, settings;
    const char *finding; // words typed in the pane to find a chat; NULL: it is not open
    enum find_order finding_order;
    struct view_found found[32];
    struct pane_choice panes;
    uint64_t shown; // message that was to be shown
    bool asks;      // whether to do something
    const char *theme_problem; // at the next opening; NULL: none
} screen;

struct screen *screen_open(const struct screen_options *o, struct status *st) {
    (void)st;
    if (screen.theme_problem) status_fail(o->theme_problem, STATUS_FORMAT, "%s", screen.theme_problem);
    return (struct screen *)&screen;
}
void screen_close(struct screen *s) { (void)s; }
bool screen_input(struct screen *s, struct ui_command *out) {
    (void)s;
    screen.typed = false;
    if (screen.next_command == screen.n_commands) return false;
    *out = screen.commands[screen.next_command++];
    if (out->id == COMMAND_SEND) screen.composer[0] = 0;
    return true;
}
bool screen_ended(const struct screen *s) { return (void)s, screen.ended; }
void screen_draw(struct screen *s, const struct screen_view *v) {
    (void)s;
    screen.draws++;
    screen.view = *v;
    memcpy(screen.chats, v->chats, (size_t)v->n_chats * sizeof *v->chats);
    if (v->n_messages) memcpy(screen.messages, v->messages, (size_t)v->n_messages * sizeof *v->messages);
    if (v->n_found) memcpy(screen.found, v->found, (size_t)v->n_found * sizeof *v->found);
    if (v->n_nodes) memcpy(screen.nodes, v->nodes, (size_t)v->n_nodes * sizeof *v->nodes);
    snprintf(screen.status, sizeof screen.status, "%s", v->status ? v->status : "");
}
int screen_timeout(const struct screen *s) {
    return (void)s, screen.typed || screen.next_command < screen.n_commands ? 0 : -1;
}
int screen_output_fd(const struct screen *s) { return (void)s, -1; }
void screen_resized(struct screen *s) { (void)s; }
void screen_suspend(struct screen *s) { (void)s; }
void screen_lend(struct screen *s) { (void)s, screen.lent = true; }
void screen_reclaim(struct screen *s) { (void)s, screen.lent = false; }
void screen_ask(struct screen *s, enum ui_command_id id, const char *label, const char *hint, const char *initial) {
    (void)s, (void)id, (void)label, (void)hint;
    snprintf(screen.asked, sizeof screen.asked, "%s", initial);
}

void screen_confirm(struct screen *s, enum ui_command_id id, const char *question) {
    (void)s, (void)id, (void)question;
    screen.asks = true;
}
void screen_set_composer(struct screen *s, const char *text) {
    (void)s, snprintf(screen.composer, sizeof screen.composer, "%s", text);
}
void screen_insert(struct screen *s, const char *text) {
    const size_t size = strlen(screen.composer);
    (void)s, snprintf(screen.composer + size, sizeof screen.composer - size, "%s", text);
}
void screen_quote(struct screen *s, const char *text, size_t size) {
    (void)size;
    screen_insert(s, text);
}
size_t screen_message_size(const struct screen *s) { return (void)s, strlen(screen.composer); }
void screen_rewrite(struct screen *s, const char *text) { screen_set_composer(s, text); }
void screen_compare(struct screen *s) { (void)s, screen.compares = true; }
const char *screen_take_message(struct screen *s) {
    (void)s;
    snprintf(screen.taken, sizeof screen.taken, "%s", screen.composer);
    screen.composer[0] = 0;
    return *screen.taken ? screen.taken : NULL;
}
void screen_draft(const struct screen *s, struct draft *out) {
    (void)s;
    *out = (struct draft){0};
    if (*screen.composer) *out = (struct draft){.text = xstrdup(screen.composer), .point = strlen(screen.composer)};
}
void screen_set_draft(struct screen *s, const struct draft *d) { screen_set_composer(s, d->text ? d->text : ""); }
bool screen_set_theme(struct screen *s, const char *name, struct status *st) {
    (void)s;
    return strcmp(name, "none") || status_fail(st, STATUS_IO, "no theme 'none'");
}
void screen_notify(struct screen *s, int kind, const char *title) {
    (void)s, snprintf(screen.notice, sizeof screen.notice, "%d %s", kind, title);
}
void screen_set_title(struct screen *s, bool title) { (void)s, (void)title; }
void screen_set_ascii(struct screen *s, bool ascii) { (void)s, (void)ascii; }
void screen_set_panes(struct screen *s, const struct pane_choice *choice) { (void)s, (void)choice; }
struct pane_choice screen_pane_choice(const struct screen *s) { return (void)s, screen.panes; }
const char *screen_theme(const struct screen *s) { return (void)s, "ember"; }
uint32_t screen_panes(const struct screen *s) { return (void)s, 1u << 2 | 1u << 4; }
uint32_t screen_panes_with_room(const struct screen *s) { return (void)s, 1u << 2; }
bool screen_has_open(const struct screen *s, enum pane_id pane) {
    (void)s;
    return (pane == PANE_TREE && screen.tree) || (pane == PANE_COMPARE && screen.compares) ||
           (pane == PANE_CONTEXT && screen.context) || (pane == PANE_DIALOG && screen.asks) ||
           (pane == PANE_SETTINGS && screen.settings);
}
const char *screen_finding(const struct screen *s, enum find_order *order) {
    (void)s;
    *order = screen.finding_order;
    return screen.finding;
}
void screen_show_message(struct screen *s, uint64_t chat_id, uint64_t message) {
    (void)s, (void)chat_id;
    screen.shown = message;
}
int screen_page(const struct screen *s) { return (void)s, -1; }
bool screen_token(struct screen *s, const struct screen_view *v, uint64_t *message, int *token) {
    (void)s, (void)v;
    *message = screen.token_message, *token = screen.token;
    return screen.token_message;
}
bool screen_ascii(const struct screen *s) { return (void)s, true; }
bool screen_copy(struct screen *s, const char *text, size_t size, char how[128]) {
    (void)s;
    snprintf(how, 128, "copied %.*s", (int)size, text);
    return true;
}

// ---- the chat under test ----

static uint64_t now;
static struct settings settings;
static struct model_host *host;
static struct chat *chat;
static char folder[64], *store_path, *config_path;
static const char *chat_limits_path; // NULL: nothing is measured

// What the model under test says of itself, to be changed.
static inline struct model_info *described(void) { return (struct model_info *)model_host_info(host); }

static inline void step(void) { assert_true(chat_step(chat, 0)); }

static inline void pass(double seconds) {
    now += (uint64_t)(seconds * 1e9);
    clock_freeze(now);
    step();
    bool shown = !chat->stale;
    chat_wait(chat); // as if the disk took no time
    step();
    if (shown && chat->stale) chat_draw(chat);
}

// The one command that the screen has at the next step.
static inline void press(enum ui_command_id id, int number, const char *text) {
    screen.n_commands = screen.next_command = 0;
    screen.commands[screen.n_commands++] = (struct ui_command){.id = id, .number = number, .text = text};
}

static inline void act(enum ui_command_id id, int number, const char *text) {
    press(id, number, text);
    pass(0.05);
}

// About the message with this index on the screen.
static inline void act_on(int message, enum ui_command_id id) {
    press(id, -1, NULL);
    screen.commands[0].message = screen.messages[message].id;
    pass(0.05);
}

// Into the composer.
static inline void type(const char *text) {
    screen_set_composer(NULL, text);
    screen.typed = true;
    pass(0.05);
}

static inline void happen(struct engine_event event) {
    if (!event.at) event.at = now + 50000000;
    told_engine_say(event);
    pass(0.05);
}

static inline void utter(uint64_t conversation, uint64_t request, enum engine_event_kind kind, enum channel channel,
                         const char *text) {
    struct engine_event event = {
        .kind = kind, .conversation = conversation, .request = request, .token = 1, .channel = channel};
    event.size = strlen(text);
    memcpy(event.text, text, event.size + 1);
    happen(event);
}

static inline void say(uint64_t conversation, uint64_t request, const char *text) {
    utter(conversation, request, EVENT_TEXT, CHANNEL_ANSWER, text);
}

static inline void think(uint64_t conversation, uint64_t request, const char *text) {
    utter(conversation, request, EVENT_TEXT, CHANNEL_THINKING, text);
}

static inline void end(uint64_t conversation, uint64_t request, enum request_state state, enum finish_reason reason,
                       const char *text) {
    struct engine_event event = {.kind = EVENT_STATE,
                                 .conversation = conversation,
                                 .request = request,
                                 .state = state,
                                 .reason = reason,
                                 .n_prompt = 10,
                                 .n_generated = 3};
    snprintf(event.text, sizeof event.text, "%s", text);
    happen(event);
}

static inline void wait_for_model(void) {
    for (int i = 0; i < 10000 && (!model_host_engine(host) || model_host_loading(host)); i++) {
        struct status st = {0};
        if (chat) step();
        else model_host_poll(host, &st);
        usleep(1000);
    }
    assert_non_null(model_host_engine(host));
    if (chat) pass(0.05); // so that it is drawn
}

static inline void open_chat(void) {
    struct status st = {0};
    host = model_host_open(&settings, &fixture_models, &st);
    assert_non_null(host);
    wait_for_model();
    struct chat_params params = {.host = host,
                                 .settings = &settings,
                                 .config_path = config_path,
                                 .store_path = store_path,
                                 .limits_path = chat_limits_path,
                                 .screen = {.input_fd = -1, .output_fd = -1}};
    chat = chat_open(&params, &st);
    assert_non_null(chat);
    pass(0.05);
}

static inline bool close_chat(void) {
    bool saved = chat_close(chat, NULL);
    chat = NULL;
    model_host_close(host);
    return saved;
}

static inline int chat_setup(void **state) {
    (void)state;
    told_engine_reset();
    memset(&screen, 0, sizeof screen);
    settings = settings_default();
    strcpy(folder, "/tmp/confab-test-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    store_path = xasprintf("%s/confab.db", folder);
    config_path = xasprintf("%s/config", folder);
    now = 1000000000;
    clock_freeze(now);
    setenv("XDG_DATA_HOME", folder, 1);
    setenv("HOME", folder, 1);
    open_chat();
    return 0;
}

static inline int chat_teardown(void **state) {
    (void)state;
    close_chat();
    settings_free(&settings);
    free(store_path), free(config_path);
    return temporary_folder_remove(folder);
}

static inline void assert_message(int index, enum view_role role, const char *text) {
    assert_true(index < screen.view.n_messages);
    assert_int_equal(screen.messages[index].role, role);
    assert_int_equal(screen.messages[index].size, strlen(text));
    assert_memory_equal(screen.messages[index].text, text, strlen(text));
}

// A whole line, where the text given ends with \n.
static inline bool config_has(const char *text) {
    FILE *in = fopen(config_path, "r");
    char line[512];
    bool found = false;
    while (in && fgets(line, sizeof line, in)) found |= !strncmp(line, text, strlen(text));
    if (in) fclose(in);
    return found;
}

#define CHAT_TEST(name) cmocka_unit_test_setup_teardown(name, chat_setup, chat_teardown)

#endif
