// The program as scripts use it: runs $CONFAB, or ./confab, with arguments.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/tiny_model.h"

static const char *folder;

struct result {
    char *output; // of standard output and error together
    size_t size;
    int status;
};

static void result_free(struct result *r) { free(r->output); }

// Runs a shell command line in which "confab" is the program under test; its standard input is empty unless redirected.
static struct result shell(const char *line) {
    const char *program = getenv("CONFAB");
    char *command =
        xasprintf("confab() { '%s' \"$@\"; }; { %s ; } 2>&1 < /dev/null", program ? program : "./confab", line);
    struct result r = {.output = xmalloc(1 << 20)};
    FILE *out = popen(command, "r");
    assert_non_null(out);
    r.size = fread(r.output, 1, (1 << 20) - 1, out);
    r.output[r.size] = 0;
    int status = pclose(out);
    r.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    free(command);
    return r;
}

static struct result __attribute__((format(printf, 1, 2))) shell_format(const char *format, ...) {
    va_list args;
    char *line;
    va_start(args, format);
    if (vasprintf(&line, format, args) < 0) panic("out of memory");
    va_end(args);
    struct result r = shell(line);
    free(line);
    return r;
}

static void assert_fails(struct result r, int status, const char *why) {
    if (r.status != status || !strstr(r.output, why)) fail_msg("exit status %d, output: %s", r.status, r.output);
    assert_ptr_equal(strchr(r.output, '\n'), r.output + r.size - 1); // one line
    result_free(&r);
}

static void test_a_chat_in_lines(void **state) {
    (void)state;
    struct result r =
        shell_format("export XDG_DATA_HOME=%s/plain; printf 'Hello\\n/temp 0.4\\n/nosuch\\n//x\\nHow do I quit?\\n'"
                     " | confab --plain",
                     folder);
    assert_int_equal(r.status, 0);
    static const char *const lines[] = {"temp is 0.4", "unknown command '/nosuch'", "> /x\n", "> How do I quit?\n",
                                        "Ctrl+Q"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(r.output, lines[i])) fail_msg("no \"%s\" in:\n%s", lines[i], r.output);
    assert_null(strchr(r.output, '\033'));
    free(r.output);
    r = shell_format(
        "export XDG_DATA_HOME=%s/plain; printf '/chats\\n/open 2\\n/again\\n/quit\\nnever read' | confab --plain",
        folder);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.output, "2 Hello"));
    assert_non_null(strstr(r.output, "Hello, 6 messages"));
    free(r.output);
    r = shell_format("export XDG_DATA_HOME=%s/plain; echo /quit | confab --plain --serve", folder);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.output, "warning: the chat in lines does not serve other programs"));
    free(r.output);
}

// An answer that failed or was stopped holds up what waits behind it, but not for ever.
static void test_lines_that_wait_are_asked_or_given_back(void **state) {
    (void)state;
    struct result r = shell_format("export XDG_DATA_HOME=%s/fails; { yes word | head -1000 | tr '\\n' ' '; "
                                   "printf '\\nHow do I quit?\\n'; } | "
                                   "timeout 60 \"${CONFAB:-./confab}\" --plain --context 256",
                                   folder);
    if (r.status || !strstr(r.output, "\n> How do I quit?\n")) fail_msg("exit status %d: %s", r.status, r.output);
    result_free(&r);
    char *model = xasprintf("%s/long.gguf", folder);
    tiny_model_write(model, (struct tiny_model_options){.n_context = 1 << 17, .chat_template = TINY_CHATML});
    r = shell_format("d=%s/stopped; export XDG_DATA_HOME=$d; mkdir $d; mkfifo $d/typed; "
                     "timeout --foreground 60 \"${CONFAB:-./confab}\" --plain -m %s < $d/typed > $d/shown & "
                     "{ yes word | head -20000 | tr '\\n' ' '; printf '\\ntwo\\nthree\\n'; " // seconds to read
                     "until [ \"$(grep -c 'sent when' $d/shown)\" = 2 ]; do sleep 0.02; done; kill -INT $!; } "
                     "> $d/typed; wait $!; s=$?; cat $d/shown; exit $s",
                     folder, model);
    if (r.status || !strstr(r.output, "\n(not sent: two)\n(not sent: three)\n"))
        fail_msg("exit status %d: %s", r.status, r.output);
    result_free(&r);
    free(model);
}

// Titles, a question that waited, and an answer of bytes by chance.
static void test_a_chat_in_lines_steers_no_terminal(void **state) {
    (void)state;
    char *model = xasprintf("%s/bytes.gguf", folder);
    tiny_model_write(model, (struct tiny_model_options){.pre = "gpt-2", .chat_template = TINY_CHATML});
    struct result r = shell_format(
        "d=%s; export XDG_DATA_HOME=$d/steers; mkdir $d/steers; "
        "echo '[{\"title\":\"a\\u001b]52;c;x\\u0007\\u202e\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}]' "
        "> $d/steers.json; confab import $d/steers.json > $d/imported; "
        "printf '/chats\\n/open 2\\n/new\\none\\nb\\033]52;c;x\\a\\342\\200\\256\\n/nosuch\\033\\n' > $d/steers.txt; "
        "script -qec \"'${CONFAB:-./confab}' --plain -m %s --temp 2 --seed 5 -n 100 < $d/steers.txt\" /dev/null",
        folder, model);
    assert_int_equal(r.status, 0);
    static const char *const lines[] = {"2 a␛]52;c;x␇␦\r\n", "> a␛]52;c;x␇␦, 1 messages\r\n", "> b␛]52;c;x␇␦\r\n",
                                        "command '/nosuch␛'"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(r.output, lines[i])) fail_msg("no \"%s\" in:\n%s", lines[i], r.output);
    for (const char *c = r.output; *c; c++)
        if ((unsigned char)*c < ' ' && !strchr("\r\n\t", *c)) fail_msg("byte %d: %s", *c, c);
    result_free(&r);
    free(model);
}

static void test_wrong_command_lines(void **state) {
    (void)state;
    assert_fails(shell("confab frobnicate"), 2, "frobnicate");
    assert_fails(shell("confab run --colour x"), 2, "--colour");
    assert_fails(shell("confab run --temp hot x"), 2, "'hot'");
    assert_fails(shell("confab logits one"), 2, "MODEL IDS OUT");
    assert_fails(shell("confab"), 2, "terminal");
}

static void test_an_empty_prompt_is_an_error(void **state) {
    (void)state;
    assert_fails(shell("confab run ''"), 2, "prompt");
    assert_fails(shell("echo | confab run"), 2, "prompt");
}

// The first is the one that is given without --answers; each has a line with its number.
static void test_several_answers_follow_each_other(void **state) {
    (void)state;
    const char *model = shared_file("models/stories260K-f32.gguf");
    struct result one = shell_format("confab run -m %s --raw -n 20 --seed 5 --temp 2 'Once upon a time'", model);
    struct result r =
        shell_format("confab run -m %s --raw -n 20 --seed 5 --temp 2 --answers 3 'Once upon a time'", model);
    char *first = xasprintf("==> 1 of 3 <==\n%s\n==> 2 of 3 <==\n", one.output);
    assert_int_equal(r.status, 0);
    assert_memory_equal(r.output, first, strlen(first));
    assert_non_null(strstr(r.output, "\n\n==> 3 of 3 <==\n,"));
    result_free(&one), result_free(&r), free(first);
    assert_fails(shell("confab run --answers 0 hello"), 2, "answers");
}

static void test_answers_as_json(void **state) {
    (void)state;
    const char *model = shared_file("models/stories260K-f32.gguf");
    struct result one = shell_format("confab run -m %s --raw -n 20 --seed 5 --temp 2 'Once upon a time'", model);
    struct result r =
        shell_format("confab run -m %s --raw -n 20 --seed 5 --temp 2 --answers 2 --json 'Once upon a time'", model);
    assert_int_equal(r.status, 0);
    json_t *object = json_loads(r.output, 0, NULL), *answers = json_object_get(object, "answers"),
           *first = json_array_get(answers, 0), *second = json_array_get(answers, 1),
           *usage = json_object_get(object, "usage");
    assert_int_equal(json_array_size(answers), 2);
    const char *text = json_string_value(json_object_get(first, "text"));
    assert_int_equal(strlen(text), one.size - 1); // but for the line break
    assert_memory_equal(text, one.output, one.size - 1);
    assert_string_not_equal(text, json_string_value(json_object_get(second, "text")));
    assert_string_equal(json_string_value(json_object_get(first, "finish_reason")), "length");
    assert_int_equal(json_integer_value(json_object_get(first, "n_tokens")), 20);
    assert_int_equal(json_integer_value(json_object_get(usage, "prompt_tokens")), 5);
    assert_int_equal(json_integer_value(json_object_get(usage, "completion_tokens")), 40);
    assert_int_equal(json_integer_value(json_object_get(usage, "total_tokens")), 45);
    json_decref(object);
    result_free(&one), result_free(&r);
}

// The object is whole where an answer fails too.
static void test_a_failed_answer_as_json(void **state) {
    (void)state;
    struct result r = shell("yes word | head -30000 | confab run --json 2>/dev/null");
    assert_int_equal(r.status, 1);
    json_t *object = json_loads(r.output, 0, NULL), *answer = json_array_get(json_object_get(object, "answers"), 0);
    assert_string_equal(json_string_value(json_object_get(answer, "finish_reason")), "error");
    assert_non_null(strstr(json_string_value(json_object_get(answer, "error")), "tokens"));
    json_decref(object);
    result_free(&r);
}

static void test_missing_models_are_reported(void **state) {
    (void)state;
    assert_fails(shell("confab run -m /nonexistent.gguf hello"), 1, "/nonexistent.gguf");
    assert_fails(shell("confab show README.md"), 1, "README.md");
    assert_fails(shell("confab tokenize /nonexistent.gguf README.md"), 1, "/nonexistent.gguf");
}

// A model named in the configuration may be missing; one named by an option may not.
static void test_a_missing_configured_model_gives_way_to_the_built_in_one(void **state) {
    (void)state;
    struct result r = shell_format("mkdir -p %s/lost/confab; echo model = /nonexistent.gguf > %s/lost/confab/config; "
                                   "XDG_CONFIG_HOME=%s/lost confab run --temp 0 hello",
                                   folder, folder, folder);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.output, "/nonexistent.gguf"));
    assert_non_null(strstr(r.output, "lost/confab/config"));
    assert_non_null(strstr(r.output, "-m"));
    assert_non_null(strstr(r.output, "Hello!"));
    result_free(&r);
    assert_fails(shell_format("XDG_CONFIG_HOME=%s/lost confab run -m /missing.gguf hello", folder), 1, "/missing.gguf");
}

static void test_runs_are_logged(void **state) {
    (void)state;
    struct result r = shell_format("export XDG_STATE_HOME=%s/state; confab run hello; "
                                   "confab run -m /nonexistent.gguf hello; cat %s/state/confab/log",
                                   folder, folder);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.output, " info    confab  confab "));
    assert_non_null(strstr(r.output, " info    engine  opened confab guide in "));
    assert_non_null(strstr(r.output, " error   confab  /nonexistent.gguf: "));
    assert_null(strstr(r.output, " debug "));
    result_free(&r);
    r = shell_format("XDG_STATE_HOME=%s/debug confab run --log-level debug hello; cat %s/debug/confab/log", folder,
                     folder);
    assert_non_null(strstr(r.output, " debug   engine  request 1 is finished: "));
    result_free(&r);
    r = shell_format("XDG_STATE_HOME=%s/off confab run --log-level off hello; ls %s/off", folder, folder);
    assert_non_null(strstr(r.output, "No such file"));
    result_free(&r);
}

static void test_the_log_is_shown(void **state) {
    (void)state;
    struct result r = shell_format("export XDG_STATE_HOME=%s/shown; mkdir -p $XDG_STATE_HOME/confab; "
                                   "cd $XDG_STATE_HOME/confab; printf 'one\\n' > log.2; printf 'two\\n' > log.1; "
                                   "printf 'th\\033[31mree\\nfour\\n' > log; "
                                   "cd - > /dev/null; confab log; echo -; confab log 2",
                                   folder);
    assert_int_equal(r.status, 0);
    assert_string_equal(r.output, "one\ntwo\nth␛[31mree\nfour\n-\nth␛[31mree\nfour\n");
    result_free(&r);
    r = shell_format("export XDG_STATE_HOME=%s/levels; f=$XDG_STATE_HOME/confab/log; mkdir -p $XDG_STATE_HOME/confab; "
                     "printf '2026-01-02 03:04:05.678 %%-7s engine  %%s\\n' info a error b warning c debug d info "
                     "'an error' > $f; echo '(2 entries are missing here)' >> $f; "
                     "confab log --level warning | cut -c 41-; echo -; confab log --level error 1 | cut -c 41-; "
                     "confab log | wc -l",
                     folder);
    assert_string_equal(r.output, "b\nc\n-\nb\n6\n");
    result_free(&r);
    assert_fails(shell("confab log --level off"), 2, "expected error, warning, info or debug");
    assert_fails(shell("confab log 0"), 2, "'0'");
    assert_fails(shell("confab log many"), 2, "'many'");
    assert_fails(shell("XDG_STATE_HOME=/nonexistent confab log"), 1, "/nonexistent/confab/log");
}

static void test_chats_are_exported_and_imported(void **state) {
    (void)state;
    struct result r = shell_format(
        "D=%s/chats; export XDG_DATA_HOME=$D; mkdir -p $D; { confab export; "
        "echo '[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Ho\"}]' > $D/a.json; "
        "confab import $D/a.json; confab export -f json > $D/b.json; confab import $D/b.json - < $D/a.json; "
        "confab export 2; confab export hi; confab export --all -o $D/all/; ls $D/all; confab export -o $D/c.html 1; "
        "confab export -o $D/c.html 1; confab export x; } 2>&1 | sed \"s|$D/||g\"",
        folder);
    assert_string_equal(r.output, "confab: no chats\n"
                                  "a.json: imported 1 chat with 2 messages\n"
                                  "b.json: imported 1 chat with 2 messages\n"
                                  "-: imported 1 chat with 2 messages\n"
                                  "# Hi\n\n## You\n\nHi\n\n## Assistant\n\nHo\n\n"
                                  "confab: 'hi' matches 3 chats; give a number: 3 'Hi', 2 'Hi', 1 'Hi'\n"
                                  "exported 3 chats to all/\n"
                                  "000001-Hi.md\n000002-Hi.md\n000003-Hi.md\n"
                                  "exported 1 chat to c.html\n"
                                  "confab: c.html: already exists (use --force to overwrite)\n"
                                  "confab: no chat with the title 'x'\n");
    result_free(&r);
    assert_fails(shell("echo '{}' | confab import -"), 1, "no chat of a known form");
}

static void test_a_log_that_cannot_be_written_stops_nothing(void **state) {
    (void)state;
    struct result r = shell("XDG_STATE_HOME=/proc/nowhere confab run --temp 0 hello"),
                  plain = shell("confab run --temp 0 hello");
    assert_int_equal(r.status, 0);
    assert_string_equal(r.output, plain.output);
    result_free(&r);
    result_free(&plain);
}

static void test_an_answer_of_the_built_in_model_is_repeatable(void **state) {
    (void)state;
    struct result a = shell("confab run --seed 5 -n 20 'How do I leave?'"),
                  b = shell("confab run --seed 5 -n 20 'How do I leave?'");
    assert_int_equal(a.status, 0);
    assert_true(a.size > 1);
    assert_string_equal(a.output, b.output);
    result_free(&a);
    result_free(&b);
}

static void test_a_prompt_may_come_through_a_pipe(void **state) {
    (void)state;
    struct result a = shell("printf 'Once upon' | confab run --raw --temp 0 -n 8");
    struct result b = shell("confab run --raw --temp 0 -n 8 'Once upon'");
    struct result c = shell("printf ' upon' | confab run --raw --temp 0 -n 8 Once");
    struct result d = shell("printf ' upon' | confab run --template raw --temp 0 -n 8 Once");
    assert_int_equal(a.status, 0);
    assert_string_equal(a.output, b.output);
    assert_string_equal(a.output, c.output);
    assert_string_equal(a.output, d.output);
    result_free(&a);
    result_free(&b);
    result_free(&c);
    result_free(&d);
}

static void test_an_answer_ends_at_a_stop_text(void **state) {
    (void)state;
    struct result whole = shell("confab run --temp 0 -n 20 'How do I leave?'");
    assert_true(whole.size > 20);
    char *stop = xstrndup(whole.output + 12, 5), *found = strstr(whole.output, stop);
    setenv("STOP", stop, 1);
    struct result r = shell("confab run --temp 0 -n 20 --stop 'not there' --stop \"$STOP\" 'How do I leave?'");
    assert_int_equal(r.status, 0);
    size_t size = (size_t)(found - whole.output);
    assert_int_equal(r.size, size + 1); // plus the newline
    assert_memory_equal(r.output, whole.output, size);
    free(stop);
    result_free(&whole);
    result_free(&r);
}

static void test_an_answer_is_held_to_its_form(void **state) {
    (void)state;
    struct result r = shell("confab run --choice maybe --choice never 'How do I leave?'");
    assert_int_equal(r.status, 0);
    assert_true(!strcmp(r.output, "maybe\n") || !strcmp(r.output, "never\n"));
    result_free(&r);
    r = shell("confab run --regex '[a-f]{3}-[0-9]' 'How do I leave?'");
    assert_int_equal(r.size, 6);
    assert_int_equal(strspn(r.output, "abcdef"), 3);
    result_free(&r);
    r = shell(
        "f=$(mktemp); echo '{\"const\": {\"a\": [1]}}' > $f; confab run --json-schema $f 'How do I leave?'; rm $f");
    assert_int_equal(*r.output, '{');
    result_free(&r);
    assert_fails(shell("confab run --regex '(' x"), 1, "--regex: line 1, column 1: unterminated group");
    assert_fails(shell("f=$(mktemp); echo 'root ::= a' > $f; confab run --grammar $f x; s=$?; rm $f; exit $s"), 1,
                 "line 1, column 10: rule 'a' is not defined");
    assert_fails(shell("confab run --regex x --choice y x"), 2, "only one of");
}

// The template opens a thinking block, which the model never closes.
static void test_thinking_is_not_on_standard_output(void **state) {
    (void)state;
    char *path = xasprintf("%s/thinker.gguf", folder);
    tiny_model_write(path, (struct tiny_model_options){
                               .pre = "gpt-2", .chat_template = "{{ messages[0].content }}<think>\n{# </think> #}"});
    const char *run = "confab run --temp 0 -n 20";
    struct result hidden = shell_format("%s -m '%s' hello", run, path);
    assert_int_equal(hidden.status, 0);
    assert_string_equal(hidden.output,
                        "confab: warning: the model gave no answer, only thinking (use --thinking to show it)\n");
    struct result output = shell_format("%s --thinking -m '%s' hello 2> /dev/null", run, path);
    assert_string_equal(output.output, "");
    struct result shown = shell_format("%s --thinking -m '%s' hello", run, path);
    assert_true(shown.size > strlen("confab: warning: the model gave no answer, only thinking\n") + 10);
    assert_non_null(strstr(shown.output, "\nconfab: warning: the model gave no answer, only thinking\n"));
    struct result raw = shell_format("%s --raw -m '%s' hello", run, path); // thinking is not recognised in raw text
    assert_null(strstr(raw.output, "thinking"));
    assert_true(raw.size > 10);
    result_free(&hidden), result_free(&output), result_free(&shown), result_free(&raw);
    free(path);
}

static void test_a_closed_pipe_ends_the_answer(void **state) {
    (void)state;
    struct result r = shell("confab run --seed 5 'How do I leave?' | head -c 1 | wc -c");
    assert_int_equal(r.status, 0);
    assert_string_equal(r.output, "1\n");
    result_free(&r);
}

static void test_devices_are_listed_and_chosen_by_their_names(void **state) {
    (void)state;
    struct result r = shell("confab devices");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.output, "NAME"));
    assert_non_null(strstr(r.output, "\ncpu "));
    result_free(&r);
    r = shell("confab devices --json");
    json_t *object = json_loads(r.output, 0, NULL);
    const json_t *device = json_array_get(json_object_get(object, "devices"), 0);
    assert_true(json_string_length(json_object_get(device, "description")) > 0);
    assert_true(json_is_false(json_object_get(device, "emulated")));
    const json_t *heap = json_array_get(json_object_get(device, "memory"), 0);
    assert_true(json_integer_value(json_object_get(heap, "bytes")) > 1 << 20);
    json_decref(object);
    result_free(&r);
    r = shell("confab run --device cpu --temp 0 -n 2 hello");
    assert_int_equal(r.status, 0);
    result_free(&r);
    assert_fails(shell("confab run --device abacus hello"), 2, "unknown device 'abacus' (expected auto, cpu");
    assert_fails(shell("confab bench --device abacus"), 2, "unknown device 'abacus' (expected auto");
    assert_fails(shell("confab run --gpu-layers most hello"), 2,
                 "gpu-layers: expected a whole number or 'auto', got 'most'");
}

// Half on each device gives an answer too.
static void test_layers_are_split_between_cpu_and_device(void **state) {
    (void)state;
    struct result r = shell("confab devices");
    const bool there = strstr(r.output, "\nvulkan0 ");
    result_free(&r);
    if (!there) {
        print_message("no Vulkan device: skipped\n");
        skip();
    }
    char *path = xasprintf("%s/split.gguf", folder);
    tiny_model_write(path, (struct tiny_model_options){0});
    const char *run = "confab run --raw --temp 0 -n 20";
    struct result cpu = shell_format("%s -m '%s' --device cpu 'one two'", run, path);
    struct result split = shell_format("%s -m '%s' --device vulkan0 --gpu-layers 1 'one two'", run, path);
    assert_int_equal(cpu.status, 0);
    assert_true(cpu.size > 20);
    assert_int_equal(split.status, 0);
    assert_string_equal(split.output, cpu.output);
    r = shell("confab log");
    assert_non_null(strstr(r.output, "vulkan0 computes layers 1 to 1"));
    result_free(&r), result_free(&cpu), result_free(&split);
    free(path);
}

static void test_json_is_json(void **state) {
    (void)state;
    static const char *const lines[] = {"confab help --json", "confab show --json"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct result r = shell(lines[i]);
        json_error_t error;
        json_t *object = json_loads(r.output, 0, &error);
        if (!object) fail_msg("%s: %s", lines[i], error.text);
        assert_true(json_object_size(object) > 3);
        json_decref(object);
        result_free(&r);
    }
}

static void test_tokens_round_trip(void **state) {
    (void)state;
    const char *vocabulary = shared_file("vocabs/qwen2.gguf");
    struct result r =
        shell_format("confab tokenize '%s' README.md > %s/ids && confab detokenize '%s' %s/ids | cmp - README.md",
                     vocabulary, folder, vocabulary, folder);
    assert_int_equal(r.status, 0);
    assert_string_equal(r.output, "");
    result_free(&r);
}

static void test_a_trained_model_continues_its_story(void **state) {
    (void)state;
    const char *model = shared_file("models/stories260K-f32.gguf");
    struct result r = shell_format("confab run -m '%s' --raw --temp 0 -n 100 'Once upon a time'", model);
    const char *expected =
        ", there was a little girl named Lily. She loved to play outside in the park. One day, she saw a "
        "big, red ball. She wanted to play with it, but it was too high.";
    assert_int_equal(r.status, 0);
    assert_int_equal(strncmp(r.output, expected, strlen(expected)), 0);
    result_free(&r);
}

static void test_a_model_is_quantised(void **state) {
    (void)state;
    struct tiny_model_options options = {.n_layer = 1};
    char *in = xasprintf("%s/tiny.gguf", folder);
    tiny_model_write(in, options);
    struct result r = shell_format("confab quantize %s/tiny.gguf %s/q.gguf q8_0", folder, folder);
    if (r.status || !strstr(r.output, "blk.0.ffn_down.weight") || !strstr(r.output, "F32 to Q8_0"))
        fail_msg("exit status %d, output: %s", r.status, r.output);
    result_free(&r);
    assert_fails(shell_format("confab quantize %s/tiny.gguf %s/q.gguf Q4_0", folder, folder), 1, "--force");
    assert_fails(shell_format("confab quantize %s/q.gguf %s/r.gguf Q4_0", folder, folder), 1, "--requantize");
    assert_fails(shell_format("confab quantize %s/tiny.gguf %s/r.gguf Q9", folder, folder), 2, "Q4_K_M");
    r = shell_format("confab quantize --force --json %s/tiny.gguf %s/q.gguf Q4_0", folder, folder);
    json_t *object = json_loads(r.output, 0, NULL);
    const json_t *first = json_array_get(json_object_get(object, "tensors"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "output.weight");
    assert_string_equal(json_string_value(json_object_get(first, "to")), "Q4_0");
    assert_true(json_real_value(json_object_get(first, "relative_error")) > 1e-4);
    assert_true(json_real_value(json_object_get(first, "mean_squared_error")) > 0);
    json_decref(object);
    result_free(&r);
    r = shell_format("ls %s | grep -c part; confab run -m %s/q.gguf --raw --temp 0 -n 1 a | wc -l", folder, folder);
    assert_string_equal(r.output, "0\n1\n");
    result_free(&r);
    free(in);
}

// The normalised mean squared error of `confab logits` compared with the reference.
static double logits_error(const char *options, const char *name) {
    struct status st = {0};
    char *reference = xasprintf("models/%s.logits", name), *model = xasprintf("models/%s.gguf", name);
    char *ids = xstrdup(shared_file("models/tokens.ids")), *path = xstrdup(shared_file(model));
    struct result r = shell_format("confab logits %s '%s' '%s' %s/logits", options, path, ids, folder);
    if (r.status) fail_msg("%s", r.output);
    char *file = xasprintf("%s/logits", folder);
    size_t size, wanted_size;
    char *got = file_read(file, 1 << 30, &size, &st),
         *wanted = file_read(shared_file(reference), 1 << 30, &wanted_size, &st);
    assert_non_null(got);
    assert_non_null(wanted);
    assert_int_equal(size, wanted_size);
    double error = 0, power = 0;
    for (size_t i = 0; i < size; i += sizeof(float)) {
        float a, b;
        memcpy(&a, got + i, sizeof a);
        memcpy(&b, wanted + i, sizeof b);
        error += ((double)a - b) * ((double)a - b);
        power += (double)b * b;
    }
    free(got), free(wanted), free(file), free(path), free(ids), free(model), free(reference);
    result_free(&r);
    return error / power;
}

// Every shared model whose logits are known, on the device: float weights as they are, quantised ones not much further
// off than on the processor, which rounds activations.
static void test_logits_on_a_vulkan_device(void **state) {
    (void)state;
    struct result devices = shell("confab devices --json");
    const bool has_device = strstr(devices.output, "\"vulkan0\"") != NULL;
    result_free(&devices);
    shared_file("models");
    if (!has_device) {
        print_message("no Vulkan device: skipped\n");
        skip();
    }
    struct result names = shell("cd ../shared/models && ls *.logits | sed 's/.logits$//'");
    for (char *rest = NULL, *name = strtok_r(names.output, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        const size_t n = strlen(name);
        const bool floats = n > 4 && (!strcmp(name + n - 3, "f32") || !strcmp(name + n - 3, "f16"));
        const double fast = floats ? 0 : logits_error("", name), limit = floats ? 1e-5 : fmin(1e-3, 2 * fast);
        const double error = logits_error("--device vulkan0", name);
        if (!(error <= limit)) fail_msg("%s: %g, %g is allowed", name, error, limit);
    }
    result_free(&names);
}

static void test_logits_match_the_reference(void **state) {
    (void)state;
    static const char *const names[] = {"tiny-llama-f32",  "tiny-llama-f16",  "tiny-llama-bf16", "tiny-llama-q8_0",
                                        "tiny-llama-q4_0", "tiny-llama-q4_k", "tiny-llama-q6_k", "tiny-llama3-f32",
                                        "tiny-qwen2-f32",  "tiny-qwen3-f32"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double exact = logits_error("--exact", names[i]), fast = logits_error("", names[i]);
        if (!(exact <= 1e-9) || !(fast <= 1e-3)) fail_msg("%s: %g exactly, %g fast", names[i], exact, fast);
    }
}

static void test_template_errors_name_the_right_file(void **state) {
    (void)state;
    static const struct {
        const char *template, *context, *why;
    } cases[] = {{"{{ x }}", "{\\n\"x\": }", "bad.json: line 2: "},
                 {"{{ x }}", "[1]", "bad.json: not a JSON object"},
                 {"{{ x }}", "{}\\0{}", "bad.json: line 1: "},
                 {"\\n{{ x", "{}", "bad.jinja: line 2: "},
                 {"{{ x + 1 }}", "{\"x\": {}}", "bad.jinja: line 1: "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *line = xasprintf("d=%s; printf '%s' > $d/bad.jinja && printf '%s' > $d/bad.json && "
                               "confab template $d/bad.jinja $d/bad.json",
                               folder, cases[i].template, cases[i].context);
        assert_fails(shell(line), 1, cases[i].why);
        free(line);
    }
}

// If standard output is closed, the report is not written into the model.
static void test_closed_standard_output_leaves_files_intact(void **state) {
    (void)state;
    char *in = xasprintf("%s/closed.gguf", folder);
    tiny_model_write(in, (struct tiny_model_options){.n_layer = 1});
    struct result r = shell_format("d=%s; confab quantize $d/closed.gguf $d/one.gguf Q8_0 && "
                                   "{ confab quantize $d/closed.gguf $d/two.gguf Q8_0 >&-; "
                                   "cmp $d/one.gguf $d/two.gguf; }",
                                   folder);
    if (r.status) fail_msg("%s", r.output);
    result_free(&r);
    free(in);
}

// So that a shell loop ends too. The answer is blocked by a pipe that nobody reads.
static void test_an_interrupt_ends_it_by_its_signal(void **state) {
    (void)state;
    static char filling[4096];
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, sizeof filling), sizeof filling);
    assert_int_equal(write(ends[1], filling, sizeof filling), sizeof filling);
    const char *program = getenv("CONFAB");
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], STDOUT_FILENO);
        signal(SIGINT, SIG_DFL);
        execl(program ? program : "./confab", "confab", "run", "hello", NULL);
        _exit(99);
    }
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    kill(child, SIGINT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    close(ends[0]), close(ends[1]);
}

// What notes that a model is used ends its loading; here that waits for somebody to read it.
static void test_an_interrupt_ends_the_chat_in_lines_while_it_loads(void **state) {
    (void)state;
    int status;
    char *model = xasprintf("%s/loads.gguf", folder), *data = xasprintf("%s/loads", folder);
    tiny_model_write(model, (struct tiny_model_options){.n_layer = 1});
    struct result r = shell_format("mkdir -p %s/confab; mkfifo %s/confab/models-used", data, data);
    const char *program = getenv("CONFAB");
    pid_t child = fork();
    if (!child) {
        setenv("XDG_DATA_HOME", data, 1);
        signal(SIGINT, SIG_DFL);
        alarm(30);
        execl(program ? program : "./confab", "confab", "--plain", "-m", model, NULL);
        _exit(99);
    }
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    kill(child, SIGINT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    result_free(&r);
    free(data), free(model);
}

static int setup(void **state) {
    (void)state;
    folder = temporary_folder_make_home();
    return folder ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_chat_in_lines),
        cmocka_unit_test(test_lines_that_wait_are_asked_or_given_back),
        cmocka_unit_test(test_a_chat_in_lines_steers_no_terminal),
        cmocka_unit_test(test_wrong_command_lines),
        cmocka_unit_test(test_an_empty_prompt_is_an_error),
        cmocka_unit_test(test_several_answers_follow_each_other),
        cmocka_unit_test(test_answers_as_json),
        cmocka_unit_test(test_a_failed_answer_as_json),
        cmocka_unit_test(test_missing_models_are_reported),
        cmocka_unit_test(test_a_missing_configured_model_gives_way_to_the_built_in_one),
        cmocka_unit_test(test_runs_are_logged),
        cmocka_unit_test(test_the_log_is_shown),
        cmocka_unit_test(test_chats_are_exported_and_imported),
        cmocka_unit_test(test_a_log_that_cannot_be_written_stops_nothing),
        cmocka_unit_test(test_an_answer_of_the_built_in_model_is_repeatable),
        cmocka_unit_test(test_a_prompt_may_come_through_a_pipe),
        cmocka_unit_test(test_an_answer_ends_at_a_stop_text),
        cmocka_unit_test(test_an_answer_is_held_to_its_form),
        cmocka_unit_test(test_thinking_is_not_on_standard_output),
        cmocka_unit_test(test_a_closed_pipe_ends_the_answer),
        cmocka_unit_test(test_devices_are_listed_and_chosen_by_their_names),
        cmocka_unit_test(test_layers_are_split_between_cpu_and_device),
        cmocka_unit_test(test_json_is_json),
        cmocka_unit_test(test_tokens_round_trip),
        cmocka_unit_test(test_a_trained_model_continues_its_story),
        cmocka_unit_test(test_a_model_is_quantised),
        cmocka_unit_test(test_closed_standard_output_leaves_files_intact),
        cmocka_unit_test(test_template_errors_name_the_right_file),
        cmocka_unit_test(test_an_interrupt_ends_it_by_its_signal),
        cmocka_unit_test(test_an_interrupt_ends_the_chat_in_lines_while_it_loads),
        cmocka_unit_test(test_logits_match_the_reference),
        cmocka_unit_test(test_logits_on_a_vulkan_device),
    };
    return cmocka_run_group_tests(tests, setup, temporary_folder_teardown);
}
