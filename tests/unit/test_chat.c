// The chat controller between an engine that plays a script and a screen that plays a person; the clock stands still
// unless a test moves it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/chat.h"
#include "app/model_name.h"
#include "app/store.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"

// ---- an engine that does what it is told ----

static struct {
    int fd;
    struct engine_event events[64];
    int n_events, next_event;
    uint64_t n_requests, cancelled, focused, forgotten;
    char prompt[4096]; // of the last request: "role: text|role: text|"
    char stops[256];   // "stop|stop|"
    enum reasoning reasoning;
    struct sampling sampling, changed;
    uint64_t changed_request;
    struct engine_figures figures;
} engine;

uint64_t engine_submit(struct engine *e, const struct request_params *p) {
    (void)e;
    engine.prompt[0] = 0;
    for (int i = 0; i < p->n_messages; i++) {
        size_t used = strlen(engine.prompt);
        const char *thinking = p->messages[i].thinking ? p->messages[i].thinking : "";
        snprintf(engine.prompt + used, sizeof engine.prompt - used, "%s: %s%s%s|", p->messages[i].role, thinking,
                 *thinking ? "/" : "", p->messages[i].text);
    }
    engine.stops[0] = 0;
    for (int i = 0; i < p->n_stops; i++) strcat(strcat(engine.stops, p->stops[i]), "|");
    engine.reasoning = p->reasoning;
    engine.sampling = p->sampling;
    return ++engine.n_requests;
}
void engine_cancel(struct engine *e, uint64_t request) { (void)e, engine.cancelled = request; }
void engine_set_sampling(struct engine *e, uint64_t request, const struct sampling *s) {
    (void)e, engine.changed_request = request, engine.changed = *s;
}
void engine_focus(struct engine *e, uint64_t conversation) { (void)e, engine.focused = conversation; }
void engine_forget(struct engine *e, uint64_t conversation) { (void)e, engine.forgotten = conversation; }
bool engine_poll(struct engine *e, struct engine_event *out) {
    (void)e;
    if (engine.next_event == engine.n_events) return false;
    *out = engine.events[engine.next_event++];
    return true;
}
int engine_event_fd(const struct engine *e) { return (void)e, engine.fd; }
const struct engine_figures *engine_figures(struct engine *e) { return (void)e, &engine.figures; }

// Models are there at once, but for the file called FAILS.
struct model_file {
    struct model_info info;
    char path[256], name[64];
};
static const struct format_share formats[] = {{"Q4_0", 1, 1}};
struct model_file *model_file_open(const char *path, struct status *st) {
    (void)st;
    struct model_file *m = xcalloc(1, sizeof *m);
    const char *slash = strrchr(path, '/');
    snprintf(m->path, sizeof m->path, "%s", path);
    snprintf(m->name, sizeof m->name, "%.*s", (int)strcspn(slash ? slash + 1 : path, "."), slash ? slash + 1 : path);
    m->info = (struct model_info){.path = m->path,
                                  .name = m->name,
                                  .family = "tiny",
                                  .formats = formats,
                                  .n_formats = 1,
                                  .n_context = 4096,
                                  .sampling = sampling_default(),
                                  .has_weights = true};
    return m;
}
struct model_file *model_file_open_header(const char *path, bool text, struct status *st) {
    (void)text;
    return model_file_open(path, st);
}
struct model_file *model_file_open_memory(const char *name, const void *data, size_t size, struct status *st) {
    (void)name, (void)data, (void)size;
    return model_file_open("Tiny 1B", st);
}
void model_file_close(struct model_file *m) { free(m); }
const struct model_info *model_file_info(const struct model_file *m) { return &m->info; }
bool model_file_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                       struct model_memory *out, struct status *st) {
    (void)m, (void)p, (void)available, (void)st;
    *out = (struct model_memory){.kv_tokens = 512, .total = 1};
    return true;
}
int model_file_tokens_that_fit(const struct model_file *m, uint64_t available) { return (void)m, (void)available, 512; }

struct engine *engine_open(struct model_file *m, const struct engine_params *p, struct status *st) {
    (void)p;
    if (!strcmp(m->name, "FAILS")) return status_fail(st, STATUS_MEMORY, "%s: does not fit", m->path), NULL;
    return (struct engine *)&engine;
}
void engine_close(struct engine *e) { (void)e; }
bool engine_wait(struct engine *e, struct engine_event *out, int timeout_ms) {
    return (void)timeout_ms, engine_poll(e, out);
}
bool engine_logits(struct engine *e, const int32_t *ids, int n, float *out, struct status *st) {
    (void)e, (void)ids, (void)n, (void)out, (void)st;
    return false;
}

// ---- a screen that remembers what it was shown ----

static struct {
    struct ui_command commands[16];
    int n_commands, next_command, draws;
    struct screen_view view;
    struct view_chat chats[32];
    struct view_message messages[32];
    char status[512], composer[256];
    bool ended, chooses;
} screen;

struct screen *screen_open(const struct screen_options *o, struct status *st) {
    (void)o, (void)st;
    return (struct screen *)&screen;
}
void screen_close(struct screen *s) { (void)s; }
bool screen_input(struct screen *s, struct ui_command *out) {
    (void)s;
    if (screen.next_command == screen.n_commands) return false;
    *out = screen.commands[screen.next_command++];
    return true;
}
bool screen_ended(const struct screen *s) { return (void)s, screen.ended; }
void screen_draw(struct screen *s, const struct screen_view *v) {
    (void)s;
    screen.draws++;
    screen.view = *v;
    memcpy(screen.chats, v->chats, (size_t)v->n_chats * sizeof *v->chats);
    if (v->n_messages) memcpy(screen.messages, v->messages, (size_t)v->n_messages * sizeof *v->messages);
    snprintf(screen.status, sizeof screen.status, "%s", v->status ? v->status : "");
}
int screen_timeout(const struct screen *s) { return (void)s, screen.next_command < screen.n_commands ? 0 : -1; }
void screen_resized(struct screen *s) { (void)s; }
void screen_suspend(struct screen *s) { (void)s; }
void screen_choose_model(struct screen *s, const char *filter) {
    (void)s, (void)filter;
    screen.chooses = true;
}
void screen_set_composer(struct screen *s, const char *text) {
    (void)s, snprintf(screen.composer, sizeof screen.composer, "%s", text);
}
const char *screen_theme(const struct screen *s) { return (void)s, "ember"; }
uint32_t screen_boxes(const struct screen *s) { return (void)s, 1u << 2 | 1u << 4; }
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

// What the model under test says of itself, to be changed.
static struct model_info *described(void) { return (struct model_info *)model_host_info(host); }

static void step(void) { assert_true(chat_step(chat, 0)); }

static void pass(double seconds) {
    now += (uint64_t)(seconds * 1e9);
    clock_freeze(now);
    step();
}

static void act(enum ui_command_id id, int number, const char *text) {
    screen.n_commands = screen.next_command = 0;
    screen.commands[screen.n_commands++] = (struct ui_command){id, number, text};
    pass(0.05);
}

static void happen(struct engine_event event) {
    engine.n_events = engine.next_event = 0;
    if (!event.at) event.at = now + 50000000;
    engine.events[engine.n_events++] = event;
    pass(0.05);
}

static void utter(uint64_t conversation, uint64_t request, enum engine_event_kind kind, enum channel channel,
                  const char *text) {
    struct engine_event event = {
        .kind = kind, .conversation = conversation, .request = request, .token = 1, .channel = channel};
    event.size = strlen(text);
    memcpy(event.text, text, event.size + 1);
    happen(event);
}

static void say(uint64_t conversation, uint64_t request, const char *text) {
    utter(conversation, request, EVENT_TEXT, CHANNEL_ANSWER, text);
}

static void think(uint64_t conversation, uint64_t request, const char *text) {
    utter(conversation, request, EVENT_TEXT, CHANNEL_THINKING, text);
}

static void end(uint64_t conversation, uint64_t request, enum request_state state, enum finish_reason reason,
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

static void wait_for_model(void) {
    for (int i = 0; i < 10000 && (!model_host_engine(host) || model_host_loading(host)); i++) {
        struct status st = {0};
        if (chat) step();
        else model_host_poll(host, &st);
        usleep(1000);
    }
    assert_non_null(model_host_engine(host));
    if (chat) pass(0.05); // so that it is drawn
}

static void open_chat(void) {
    struct status st = {0};
    host = model_host_open(&settings, &st);
    assert_non_null(host);
    wait_for_model();
    struct chat_params params = {.host = host,
                                 .settings = &settings,
                                 .config_path = config_path,
                                 .store_path = store_path,
                                 .screen = {.input_fd = -1, .output_fd = -1}};
    chat = chat_open(&params, &st);
    assert_non_null(chat);
    pass(0.05);
}

static bool close_chat(void) {
    bool saved = chat_close(chat, NULL);
    chat = NULL;
    model_host_close(host);
    return saved;
}

static int setup(void **state) {
    (void)state;
    memset(&engine, 0, sizeof engine);
    memset(&screen, 0, sizeof screen);
    engine.fd = eventfd(0, 0);
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

static int teardown(void **state) {
    (void)state;
    close_chat();
    settings_free(&settings);
    char *command = xasprintf("rm -rf '%s'", folder);
    int result = system(command);
    free(command), free(store_path), free(config_path);
    close(engine.fd);
    return result;
}

static void assert_message(int index, enum view_role role, const char *text) {
    assert_true(index < screen.view.n_messages);
    assert_int_equal(screen.messages[index].role, role);
    assert_int_equal(screen.messages[index].size, strlen(text));
    assert_memory_equal(screen.messages[index].text, text, strlen(text));
}

static bool config_has(const char *line) {
    FILE *in = fopen(config_path, "r");
    char text[256];
    bool found = false;
    while (in && fgets(text, sizeof text, in)) found |= !strcmp(text, line);
    if (in) fclose(in);
    return found;
}

static bool config_has_key(const char *key) {
    FILE *in = fopen(config_path, "r");
    char text[512];
    bool found = false;
    while (in && fgets(text, sizeof text, in)) found |= !strncmp(text, key, strlen(key));
    if (in) fclose(in);
    return found;
}

// ---- tests ----

static void test_an_answer_streams(void **state) {
    (void)state;
    assert_string_equal(screen.view.model_name, "Tiny 1B Q4_0");
    assert_string_equal(screen.view.model_short, "Tiny");
    assert_string_equal(screen.chats[0].title, "New chat");
    act(COMMAND_SEND, -1, "Hello\nthere");
    assert_string_equal(engine.prompt, "user: Hello\nthere|");
    assert_message(0, VIEW_USER, "Hello\nthere");
    assert_string_equal(screen.chats[0].title, "Hello");
    assert_true(screen.chats[0].busy);
    assert_true(screen.messages[1].streaming);
    say(1, 1, "Good ");
    say(1, 1, "day");
    assert_message(1, VIEW_MODEL, "Good day");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_false(screen.messages[1].streaming);
    assert_false(screen.chats[0].busy);
    assert_string_equal(screen.messages[1].note, "40.0 tok/s, 3 tokens, first 50 ms");
    assert_int_equal(screen.view.context_used, 13);
    act(COMMAND_SEND, -1, "More");
    assert_string_equal(engine.prompt, "user: Hello\nthere|assistant: Good day|user: More|");
}

// An answer that is read in one burst, long after it was made, was no faster for that.
static void test_what_a_model_is_called(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"confab guide", "guide"},
        {"TinyLlama 1.1B Chat v1.0", "TinyLlama"},
        {"tinyllama-1.1b", "tinyllama"},
        {"Meta Llama 3.1 8B Instruct", "Llama 3.1"},
        {"Meta-Llama-3-8B-Instruct", "Llama-3"},
        {"Qwen2.5 0.5B Instruct", "Qwen2.5"},
        {"Mistral-7B-Instruct-v0.3", "Mistral"},
        {"Phi 3 Mini 4k Instruct", "Phi 3 Mini"},
        {"stories260K", "stories260K"},
        {"7B", "7B"},
        {"Google", "Google"},
        {"confab ", "confab "},
        {"--", "--"},
        {"", ""},
        {"日本語 7B", "日本語"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model_info info = {.name = names[i][0]};
        char *name = model_short_name(&info);
        assert_string_equal(name, names[i][1]);
        free(name);
    }
}

static void test_a_rate_is_of_when_tokens_came(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "Hello");
    uint64_t sent = now;
    engine.n_events = engine.next_event = 0;
    for (int i = 0; i < 3; i++)
        engine.events[engine.n_events++] = (struct engine_event){.kind = EVENT_TEXT,
                                                                 .conversation = 1,
                                                                 .request = 1,
                                                                 .token = 1,
                                                                 .size = 1,
                                                                 .text = "x",
                                                                 .at = sent + 100000000 + (uint64_t)i * 10000000};
    pass(3);
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_string_equal(screen.messages[1].note, "100 tok/s, 3 tokens, first 100 ms");
}

static void test_the_system_prompt_comes_first(void **state) {
    (void)state;
    assert_true(setting_parse(&settings, SETTING_system, "Be brief.", NULL));
    act(COMMAND_SEND, -1, "Hi");
    assert_string_equal(engine.prompt, "system: Be brief.|user: Hi|");
}

static void test_chats_answer_at_the_same_time(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "one");
    act(COMMAND_NEW, -1, NULL);
    assert_int_equal(engine.focused, 2);
    act(COMMAND_SEND, -1, "two");
    assert_int_equal(screen.view.n_chats, 2);
    say(1, 1, "first");
    say(2, 2, "second");
    assert_message(1, VIEW_MODEL, "second");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_true(screen.chats[1].unread);
    act(COMMAND_NEXT, -1, NULL);
    assert_message(1, VIEW_MODEL, "first");
    assert_false(screen.chats[1].unread);
    assert_int_equal(engine.focused, 1);
    act(COMMAND_STOP_ALL, -1, NULL);
    assert_int_equal(engine.cancelled, 2);
}

static void test_regenerating_makes_versions(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "old");
    act(COMMAND_REGENERATE, -1, NULL); // not while it answers
    assert_int_equal(engine.n_requests, 1);
    assert_true(screen.view.status_bad);
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_REGENERATE, -1, NULL);
    assert_string_equal(engine.prompt, "user: q|");
    say(1, 2, "new");
    assert_message(1, VIEW_MODEL, "new");
    assert_int_equal(screen.messages[1].version, 2);
    assert_int_equal(screen.messages[1].n_versions, 2);
    act(COMMAND_VERSION_PREVIOUS, -1, NULL);
    assert_message(1, VIEW_MODEL, "old");
    say(1, 2, "er"); // goes on out of sight
    act(COMMAND_VERSION_NEXT, -1, NULL);
    assert_message(1, VIEW_MODEL, "newer");
}

static void test_a_failure_is_shown_and_nothing_ends(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "so far");
    end(1, 1, REQUEST_FAILED, FINISH_ERROR, "the logits are not numbers");
    assert_message(1, VIEW_MODEL, "so far");
    assert_message(2, VIEW_NOTICE, "the logits are not numbers");
    act(COMMAND_REGENERATE, -1, NULL);
    end(1, 2, REQUEST_FAILED, FINISH_ERROR, "again");
    assert_message(1, VIEW_NOTICE, "again");
    assert_int_equal(screen.view.n_messages, 2);
    act(COMMAND_SEND, -1, "more"); // what could not be answered is left out
    assert_string_equal(engine.prompt, "user: more|");
    assert_message(2, VIEW_NOTICE, "what comes next was asked without this message");
}

static void test_thinking_is_a_part_of_its_own(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    think(1, 1, "hm ");
    think(1, 1, "so");
    assert_message(1, VIEW_MODEL, "");
    assert_int_equal(screen.messages[1].thinking_tokens, 2);
    assert_true(screen.messages[1].thinking_seconds > 0.049 && screen.messages[1].thinking_seconds < 0.051);
    say(1, 1, "Yes");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_message(1, VIEW_MODEL, "Yes");
    assert_int_equal(screen.messages[1].thinking_size, 5);
    assert_memory_equal(screen.messages[1].thinking, "hm so", 5);
    assert_int_equal(screen.view.context_used, 13 - 2); // it is not read again
    act(COMMAND_COPY, -1, NULL);
    assert_string_equal(screen.status, "copied Yes");
    act(COMMAND_SEND, -1, "more");
    assert_string_equal(engine.prompt, "user: q|assistant: hm so/Yes|user: more|");
    // Stopped while it thinks, then asked again: nobody speaks twice in a row.
    think(1, 2, "well");
    act(COMMAND_STOP, -1, NULL);
    end(1, 2, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    act(COMMAND_SEND, -1, "and more");
    assert_string_equal(engine.prompt, "user: q|assistant: hm so/Yes|user: more\n\nand more|");
    // All of it comes back from the store.
    assert_true(close_chat());
    open_chat();
    act(COMMAND_NEXT, -1, NULL);
    assert_memory_equal(screen.messages[1].thinking, "hm so", 5);
    assert_int_equal(screen.messages[1].thinking_tokens, 2);
    assert_true(screen.messages[1].thinking_seconds > 0.049);
    assert_memory_equal(screen.messages[3].thinking, "well", 4);
}

static void test_a_notice_is_shown_once(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    utter(1, 1, EVENT_NOTICE, CHANNEL_ANSWER, "another template is used");
    say(1, 1, "a");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_message(1, VIEW_NOTICE, "another template is used");
    assert_message(2, VIEW_MODEL, "a");
    act(COMMAND_SEND, -1, "r");
    utter(1, 2, EVENT_NOTICE, CHANNEL_ANSWER, "another template is used");
    assert_int_equal(screen.view.n_messages, 5);
    utter(1, 2, EVENT_NOTICE, CHANNEL_ANSWER, "for another reason");
    assert_message(4, VIEW_NOTICE, "for another reason");
    assert_int_equal(screen.view.n_messages, 6);
}

static void test_what_cannot_be_answered_is_left_out(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "too long");
    end(1, 1, REQUEST_FAILED, FINISH_ERROR, "the prompt has 9000 tokens");
    assert_int_equal(screen.view.n_messages, 2);
    act(COMMAND_REGENERATE, -1, NULL); // it is asked again all the same
    assert_string_equal(engine.prompt, "user: too long|");
    end(1, 2, REQUEST_FAILED, FINISH_ERROR, "the prompt has 9000 tokens");
    act(COMMAND_SEND, -1, "short");
    assert_string_equal(engine.prompt, "user: short|");
    assert_message(2, VIEW_NOTICE, "what comes next was asked without this message");
    say(1, 3, "fine");
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_SEND, -1, "next");
    assert_string_equal(engine.prompt, "user: short|assistant: fine|user: next|");
}

static void test_stops_and_reasoning_reach_the_engine(void **state) {
    (void)state;
    assert_true(setting_parse(&settings, SETTING_stops, "END", NULL));
    assert_true(setting_parse(&settings, SETTING_stops, "\nUser:", NULL));
    act(COMMAND_REASONING, -1, NULL);
    assert_non_null(strstr(screen.status, "lets nobody choose"));
    act(COMMAND_SEND, -1, "q");
    assert_string_equal(engine.stops, "END|\nUser:|");
    assert_int_equal(engine.reasoning, REASONING_AUTO);
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    described()->chooses_effort = true;
    act(COMMAND_REASONING, -1, NULL);
    assert_string_equal(screen.status, "reasoning is now low, from the next message on");
    assert_true(config_has("reasoning = low\n"));
    act(COMMAND_REGENERATE, -1, NULL);
    assert_int_equal(engine.reasoning, REASONING_LOW);
    described()->chooses_effort = false, described()->chooses_thinking = true;
    static const char *const words[] = {"auto", "off", "on", "auto"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        act(COMMAND_REASONING, -1, NULL);
        char *expected = xasprintf("reasoning is now %s, from the next message on", words[i]);
        assert_string_equal(screen.status, expected);
        free(expected);
    }
}

// The model's own values, not the program's; what is reset follows the next model too.
static void test_knobs_go_back_to_the_model(void **state) {
    (void)state;
    described()->sampling.temperature = 0.25f;
    act(COMMAND_KNOB_SET, -1, "1.5");
    assert_true(config_has("temp = 1.5\n"));
    act(COMMAND_KNOB_RESET, -1, NULL);
    assert_string_equal(screen.status, "temp is now 0.25");
    assert_true(config_has("temp = default\n"));
    act(COMMAND_KNOB_UP, -1, NULL);
    assert_true(config_has("temp = 0.3\n"));
    act(COMMAND_KNOB_RESET_ALL, -1, NULL);
    assert_true(config_has("temp = default\n"));
    act(COMMAND_SEND, -1, "q");
    assert_true(engine.sampling.temperature == 0.25f);
}

static void test_a_message_to_a_busy_chat_is_kept(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    act(COMMAND_SEND, -1, "too early");
    assert_string_equal(screen.composer, "too early");
    assert_int_equal(engine.n_requests, 1);
    act(COMMAND_INTERRUPT, -1, NULL);
    assert_int_equal(engine.cancelled, 1);
    end(1, 1, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    assert_non_null(strstr(screen.messages[1].note, "stopped"));
}

static void test_a_knob_reaches_the_running_answer(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    act(COMMAND_KNOB_SET, -1, "1.5");
    assert_int_equal(engine.changed_request, 1);
    assert_true(engine.changed.temperature == 1.5f);
    assert_string_equal(screen.status, "temp is now 1.50, from the next token on");
    assert_true(config_has("temp = 1.5\n"));
    act(COMMAND_KNOB_UP, -1, NULL);
    assert_true(engine.changed.temperature > 1.54f && engine.changed.temperature < 1.56f);
    act(COMMAND_KNOB_SET, -1, "hot");
    assert_true(screen.view.status_bad);
    act(COMMAND_KNOB_NEXT, -1, NULL);
    assert_int_equal(screen.view.knob, KNOB_top_p);
    act(COMMAND_KNOB_RESET_ALL, -1, NULL);
    assert_true(engine.changed.temperature == sampling_default().temperature);
    act(COMMAND_KNOB_PREVIOUS, -1, NULL);
    act(COMMAND_KNOB_DOWN, -1, NULL);
    act(COMMAND_NEW, -1, NULL); // begins with what was set last
    act(COMMAND_SEND, -1, "q2");
    assert_true(engine.sampling.temperature == engine.changed.temperature);
}

static void test_settings_of_the_screen_are_saved(void **state) {
    (void)state;
    act(COMMAND_THEME, -1, NULL);
    assert_string_equal(screen.status, "theme ember");
    act(COMMAND_BOX_1, -1, NULL);
    act(COMMAND_ASCII, -1, NULL);
    assert_true(config_has("theme = ember\n"));
    assert_true(config_has("boxes = 24\n"));
    assert_true(config_has("ascii = yes\n"));
}

static void test_rename_delete_and_copy(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "answer");
    act(COMMAND_COPY, -1, NULL);
    assert_string_equal(screen.status, "copied answer");
    act(COMMAND_RENAME, -1, "Mine");
    assert_string_equal(screen.chats[0].title, "Mine");
    act(COMMAND_DELETE, -1, NULL);
    assert_int_equal(engine.cancelled, 1);
    assert_int_equal(engine.forgotten, 1);
    assert_int_equal(screen.view.n_chats, 1);
    assert_string_equal(screen.chats[0].title, "New chat");
    say(1, 1, "late"); // of a chat that is gone
    assert_int_equal(screen.view.n_messages, 0);
}

static void test_conversations_come_back(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "first question");
    say(1, 1, "first answer");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_NEW, -1, NULL);
    act(COMMAND_SEND, -1, "second question");
    say(2, 2, "half an ans");
    assert_true(close_chat()); // what came so far is kept
    open_chat();
    assert_int_equal(screen.view.n_chats, 3);
    assert_string_equal(screen.chats[1].title, "second question");
    act(COMMAND_NEXT, -1, NULL);
    assert_message(1, VIEW_MODEL, "half an ans");
    assert_non_null(strstr(screen.messages[1].note, "stopped"));
    act(COMMAND_NEXT, 2, NULL); // a click on the third
    assert_message(1, VIEW_MODEL, "first answer");
    assert_int_equal(screen.view.context_used, 13);
}

static int visited_bytes;
static void visit(void *context, struct conversation *c) {
    struct store *s = context;
    struct status st = {0};
    assert_true(store_read(s, c, &st));
    visited_bytes = (int)c->messages[c->count - 1].size;
    conversation_close(c);
}

// The bytes of the last message as another program sees them in the store.
static int saved_bytes(void) {
    struct status st = {0};
    struct sampling initial = sampling_default();
    struct store *s = store_open(store_path, &st);
    assert_non_null(s);
    assert_true(store_list(s, &initial, visit, s, &st));
    store_close(s);
    return visited_bytes;
}

static void test_a_partial_answer_is_saved_every_second(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    for (int i = 0; i < 30; i++) say(1, 1, "word ");
    int saved = saved_bytes();
    assert_true(saved > 0 && saved <= 150);
    pass(1);
    assert_int_equal(saved_bytes(), 150);
}

static void test_an_idle_chat_draws_nothing(void **state) {
    (void)state;
    pass(5);
    int draws = screen.draws;
    for (int i = 0; i < 20; i++) pass(1);
    assert_int_equal(screen.draws, draws);
}

static void test_drawing_keeps_to_sixty_a_second(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    int draws = screen.draws;
    for (int i = 0; i < 1000; i++) { // one second
        engine.n_events = engine.next_event = 0;
        engine.events[engine.n_events++] = (struct engine_event){
            .kind = EVENT_TEXT, .conversation = 1, .request = 1, .token = 1, .size = 1, .text = "x"};
        pass(0.001);
    }
    assert_true(screen.draws - draws <= 60);
    assert_true(screen.draws - draws >= 50);
}

static void test_histories_move_while_something_runs(void **state) {
    (void)state;
    engine.figures.running = 1;
    engine.figures.decode_now = 40;
    act(COMMAND_SEND, -1, "q");
    for (int i = 0; i < 20; i++) pass(0.25);
    int samples = screen.view.decode.count;
    assert_true(samples >= 19);
    assert_true(screen.view.decode.values[samples - 1] == 40);
    engine.figures.running = 0;
    engine.figures.decode_now = 0;
    for (int i = 0; i < 20; i++) pass(0.25);
    assert_true(screen.view.decode.values[screen.view.decode.count - 1] == 0);
    int after = screen.view.decode.count;
    for (int i = 0; i < 20; i++) pass(0.25);
    assert_int_equal(screen.view.decode.count, after);
}

static void test_quitting_and_losing_the_terminal_end_it(void **state) {
    (void)state;
    screen.ended = true;
    assert_false(chat_step(chat, 0));
    screen.ended = false;
    screen.n_commands = screen.next_command = 0;
    screen.commands[screen.n_commands++] = (struct ui_command){COMMAND_QUIT, -1, NULL};
    assert_false(chat_step(chat, 0));
}

// A disk that is full, or another program that holds the store: what is not saved is shown, kept, and not lost by
// leaving in haste.
static void test_leaving_what_cannot_be_saved_asks_once(void **state) {
    (void)state;
    sqlite3 *other;
    assert_int_equal(sqlite3_open(store_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    act(COMMAND_SEND, -1, "Precious");
    pass(1);
    assert_true(screen.view.unsaved);
    assert_non_null(strstr(screen.status, "not saved"));
    act(COMMAND_QUIT, -1, NULL);
    assert_non_null(strstr(screen.status, "leaving again"));
    act(COMMAND_KNOB_NEXT, -1, NULL);
    act(COMMAND_QUIT, -1, NULL); // asks again after something else
    assert_non_null(strstr(screen.status, "leaving again"));
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(other);
    pass(3);
    assert_false(screen.view.unsaved);
    screen.n_commands = screen.next_command = 0;
    screen.commands[screen.n_commands++] = (struct ui_command){COMMAND_QUIT, -1, NULL};
    assert_false(chat_step(chat, 0));
}

static void write_model(const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static void test_answers_remember_their_model(void **state) {
    (void)state;
    char path[128], order[160];
    write_model("Other 2B.gguf", path);
    snprintf(order, sizeof order, "/model %s", path);
    act(COMMAND_SEND, -1, "one");
    say(1, 1, "first");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_null(screen.messages[1].author);
    act(COMMAND_SEND, -1, order);
    wait_for_model();
    assert_string_equal(screen.view.model_name, "Other 2B Q4_0");
    assert_int_equal(screen.view.n_messages, 2); // an order is no message
    assert_string_equal(screen.messages[1].author, "Tiny 1B Q4_0");
    assert_string_equal(settings.model, path);
    assert_true(config_has_key("model"));
    act(COMMAND_SEND, -1, "two");
    say(1, 2, "second");
    end(1, 2, REQUEST_FINISHED, FINISH_END, "");
    assert_string_equal(screen.messages[3].model, "Other 2B Q4_0"); // where it changes
    act(COMMAND_SEND, -1, "three");
    say(1, 3, "third");
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    assert_null(screen.messages[5].author);
    assert_null(screen.messages[5].model);
    close_chat();
    open_chat();
    act(COMMAND_NEXT, 1, NULL);
    assert_string_equal(screen.messages[1].author, "Tiny 1B Q4_0"); // from the store
    assert_string_equal(screen.messages[3].model, "Other 2B Q4_0");
}

static void test_a_running_answer_is_stopped_for_another_model(void **state) {
    (void)state;
    char path[128];
    write_model("Other 2B.gguf", path);
    act(COMMAND_SEND, -1, "one");
    say(1, 1, "half an ans");
    act(COMMAND_MODEL, -1, path);
    wait_for_model();
    assert_false(screen.chats[0].busy);
    assert_message(1, VIEW_MODEL, "half an ans");
    assert_non_null(strstr(screen.messages[1].note, "stopped for another model"));
    assert_non_null(strstr(screen.status, "Other 2B Q4_0 answers from now on; 1 answer was stopped"));
}

static void test_a_model_that_fails_leaves_the_old(void **state) {
    (void)state;
    char path[128];
    write_model("FAILS.gguf", path);
    act(COMMAND_MODEL, -1, path);
    wait_for_model();
    assert_string_equal(screen.view.model_name, "Tiny 1B Q4_0");
    assert_non_null(strstr(screen.status, "does not fit"));
    assert_true(screen.view.status_bad);
    assert_null(settings.model);
    act(COMMAND_MODEL, -1, "no such model");
    assert_non_null(strstr(screen.status, "no known model"));
    act(COMMAND_SEND, -1, "one");
    assert_string_equal(engine.prompt, "user: one|");
}

static void test_orders_and_messages_differ(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "/model");
    assert_true(screen.chooses);
    act(COMMAND_SEND, -1, "/models are many");
    assert_string_equal(engine.prompt, "user: /models are many|");
    act(COMMAND_MODEL_STOP, -1, NULL);
    assert_non_null(strstr(screen.status, "no model is being loaded"));
}

static void test_a_store_that_cannot_open_is_said(void **state) {
    (void)state;
    close_chat();
    free(store_path);
    store_path = xstrdup("/proc/nothing/confab.db");
    open_chat();
    assert_true(screen.view.status_bad);
    assert_true(screen.view.unsaved);
    assert_non_null(strstr(screen.status, "not saved"));
    act(COMMAND_SEND, -1, "still works");
    assert_message(0, VIEW_USER, "still works");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_an_answer_streams),
        TEST(test_answers_remember_their_model),
        TEST(test_a_running_answer_is_stopped_for_another_model),
        TEST(test_a_model_that_fails_leaves_the_old),
        TEST(test_orders_and_messages_differ),
        TEST(test_what_a_model_is_called),
        TEST(test_a_rate_is_of_when_tokens_came),
        TEST(test_the_system_prompt_comes_first),
        TEST(test_chats_answer_at_the_same_time),
        TEST(test_regenerating_makes_versions),
        TEST(test_a_failure_is_shown_and_nothing_ends),
        TEST(test_thinking_is_a_part_of_its_own),
        TEST(test_a_notice_is_shown_once),
        TEST(test_what_cannot_be_answered_is_left_out),
        TEST(test_stops_and_reasoning_reach_the_engine),
        TEST(test_knobs_go_back_to_the_model),
        TEST(test_a_message_to_a_busy_chat_is_kept),
        TEST(test_a_knob_reaches_the_running_answer),
        TEST(test_settings_of_the_screen_are_saved),
        TEST(test_rename_delete_and_copy),
        TEST(test_conversations_come_back),
        TEST(test_a_partial_answer_is_saved_every_second),
        TEST(test_an_idle_chat_draws_nothing),
        TEST(test_drawing_keeps_to_sixty_a_second),
        TEST(test_histories_move_while_something_runs),
        TEST(test_quitting_and_losing_the_terminal_end_it),
        TEST(test_leaving_what_cannot_be_saved_asks_once),
        TEST(test_a_store_that_cannot_open_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
