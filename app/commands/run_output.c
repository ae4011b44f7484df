#include "app/commands/run_output.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/base/clean.h"
#include "engine/base/panic.h"

struct run_piece {
    enum channel channel;
    char *text;
    size_t size, capacity;
};

static bool has_ended(const struct run_answer *a) { return a->end.state >= REQUEST_FINISHED; }

bool run_output_ended(const struct run_output *o) {
    for (int i = 0; i < o->n_answers; i++)
        if (!has_ended(&o->answers[i])) return false;
    return true;
}

// ---- writing ----

static void flush_output(struct run_output *o) {
    if (fflush(stdout)) o->error = errno;
}

static void write_clean(FILE *out, struct word_wrap *wrap, const char *text, size_t size) {
    wrap->columns = word_wrap_columns(out); // the terminal may have been resized
    if (!wrap->columns) {
        clean_write(out, text, size);
        return;
    }
    char *clean = xmalloc(3 * size);
    word_wrap_write(wrap, out, clean, clean_text(text, size, clean));
    free(clean);
}

static void end_thinking(struct run_output *o) {
    if (!o->thinking) return;
    if (o->dims) fputs("\033[22m", stderr);
    if (o->last != '\n') word_wrap_write(&o->thoughts, stderr, "\n", 1);
    o->thinking = false;
    o->last = '\n';
}

static void write_thinking(struct run_output *o, const char *text, size_t size) {
    if (!o->shows_thinking) return;
    if (!o->thinking && o->dims) fputs("\033[2m", stderr);
    o->thinking = true;
    write_clean(stderr, &o->thoughts, text, size);
    fflush(stderr);
    o->last = text[size - 1];
}

static void write_text(struct run_output *o, enum channel channel, const char *text, size_t size) {
    if (o->silent || o->error) return;
    if (channel == CHANNEL_THINKING) {
        write_thinking(o, text, size);
        return;
    }
    end_thinking(o);
    write_clean(stdout, &o->text, text, size);
    flush_output(o);
    o->last = text[size - 1];
}

static void end_line(struct run_output *o) {
    end_thinking(o);
    if (o->last == '\n' || o->error) return;
    putchar('\n');
    flush_output(o);
    o->last = '\n';
}

static bool has_failed(const struct run_answer *a) { return a->end.state == REQUEST_FAILED; }

// What a person should know of an answer that has ended.
static void warn(struct run_output *o, const struct run_answer *a) {
    const enum finish_reason reason = a->end.reason;
    o->failed |= has_failed(a);
    if (o->silent || o->error) return;
    if (has_failed(a)) fprintf(stderr, "confab: %s\n", a->end.text);
    if (o->json || has_failed(a)) return;
    if (reason == FINISH_CONTEXT)
        fprintf(stderr, "confab: warning: answer cut off: the context is full (see --context)\n");
    if (reason == FINISH_TIME) fprintf(stderr, "confab: warning: answer cut off: time limit reached\n");
    if (a->any[CHANNEL_THINKING] && !a->any[CHANNEL_ANSWER])
        fprintf(stderr, "confab: warning: the model gave no answer, only thinking%s\n",
                o->shows_thinking ? "" : " (use --thinking to show it)");
}

static void begin_answer(struct run_output *o) {
    char line[64];
    if (o->n_answers == 1 || o->silent) return;
    int size = snprintf(line, sizeof line, "%s==> %d of %d <==\n", o->shown ? "\n" : "", o->shown + 1, o->n_answers);
    write_text(o, CHANNEL_ANSWER, line, (size_t)size);
}

// ---- opening and closing ----

void run_output_open(struct run_output *o, int n_answers, bool json, bool thinking) {
    const bool terminal = isatty(STDERR_FILENO);
    *o = (struct run_output){.answers = xcalloc((size_t)n_answers, sizeof *o->answers),
                             .n_answers = n_answers,
                             .json = json,
                             .shows_thinking = !json && (thinking || terminal),
                             .dims = terminal,
                             .last = '\n'};
    if (!json) begin_answer(o);
}

void run_output_close(struct run_output *o) {
    for (int i = 0; i < o->n_answers; i++) {
        struct run_answer *a = &o->answers[i];
        for (int k = 0; k < a->n_pieces; k++) free(a->pieces[k].text);
        free(a->pieces);
    }
    free(o->answers);
}

// ---- what comes ----

static void keep(struct run_answer *a, const struct engine_event *event) {
    struct run_piece *last = a->n_pieces ? &a->pieces[a->n_pieces - 1] : NULL;
    if (!last || last->channel != event->channel) {
        a->pieces = xrealloc(a->pieces, (size_t)(a->n_pieces + 1) * sizeof *a->pieces);
        last = &a->pieces[a->n_pieces++];
        *last = (struct run_piece){.channel = event->channel};
    }
    if (last->size + event->size > last->capacity) {
        last->capacity = 2 * (last->size + event->size);
        last->text = xrealloc(last->text, last->capacity);
    }
    memcpy(last->text + last->size, event->text, event->size);
    last->size += event->size;
}

// Writes what is kept of the answers whose turn it is.
static void go_on(struct run_output *o) {
    while (o->shown < o->n_answers && has_ended(&o->answers[o->shown])) {
        end_line(o);
        warn(o, &o->answers[o->shown++]);
        if (o->shown == o->n_answers) return;
        begin_answer(o);
        const struct run_answer *next = &o->answers[o->shown];
        for (int i = 0; i < next->n_pieces; i++)
            write_text(o, next->pieces[i].channel, next->pieces[i].text, next->pieces[i].size);
    }
}

static void take_text(struct run_output *o, struct run_answer *a, const struct engine_event *event) {
    if (!event->size) return;
    a->any[event->channel] = true;
    const bool shown = !o->json && event->answer == o->shown;
    if (!shown) keep(a, event);
    else write_text(o, event->channel, event->text, event->size);
}

void run_output_take(struct run_output *o, const struct engine_event *event) {
    struct run_answer *a = &o->answers[event->answer];
    if (event->kind == EVENT_NOTICE) fprintf(stderr, "confab: %s\n", event->text);
    if (event->kind == EVENT_TEXT) take_text(o, a, event);
    if (event->kind != EVENT_STATE || event->state < REQUEST_FINISHED) return;
    a->end = *event;
    if (!o->json) go_on(o);
    else warn(o, a);
}

// ---- JSON ----

static json_t *text_json(const struct run_answer *a, enum channel channel) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) panic("out of memory");
    for (int i = 0; i < a->n_pieces; i++)
        if (a->pieces[i].channel == channel) fwrite(a->pieces[i].text, 1, a->pieces[i].size, memory);
    if (fclose(memory)) panic("out of memory");
    json_t *string = json_stringn(text, size);
    free(text);
    return string;
}

static const char *reason_name(const struct run_answer *a) {
    static const char *const names[] = {
        [FINISH_NONE] = "none", [FINISH_END] = "stop",    [FINISH_LENGTH] = "length",      [FINISH_CONTEXT] = "context",
        [FINISH_TIME] = "time", [FINISH_ERROR] = "error", [FINISH_CANCELLED] = "cancelled"};
    return names[has_failed(a) ? FINISH_ERROR : a->end.reason];
}

static json_t *answer_json(const struct run_answer *a) {
    json_t *answer = json_pack("{s:o, s:s, s:i}", "text", text_json(a, CHANNEL_ANSWER), "finish_reason", reason_name(a),
                               "n_tokens", a->end.n_generated);
    if (a->any[CHANNEL_THINKING]) json_object_set_new(answer, "thinking", text_json(a, CHANNEL_THINKING));
    if (has_failed(a)) json_object_set_new(answer, "error", json_string(a->end.text));
    return answer;
}

void run_output_write_json(struct run_output *o) {
    json_t *answers = json_array();
    int generated = 0;
    for (int i = 0; i < o->n_answers; i++) {
        json_array_append_new(answers, answer_json(&o->answers[i]));
        generated += o->answers[i].end.n_generated;
    }
    const struct engine_event *first = &o->answers[0].end;
    json_t *usage =
        json_pack("{s:i, s:i, s:i, s:i}", "prompt_tokens", first->n_prompt, "cached_tokens", first->n_reused,
                  "completion_tokens", generated, "total_tokens", first->n_prompt + generated);
    json_t *object = json_pack("{s:o, s:o}", "answers", answers, "usage", usage);
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    flush_output(o);
    json_decref(object);
}
