#include "engine/model/template.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/panic.h"
#include "engine/text/jinja.h"

// ---- rendering any template ----

static bool read_now(const char *text, struct tm *now, struct status *st) {
    *now = (struct tm){0};
    if (!text) {
        time_t seconds = time(NULL);
        return localtime_r(&seconds, now) || status_fail(st, STATUS_IO, "cannot get the local time");
    }
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", now);
    if (!end || *end)
        return status_fail(st, STATUS_USAGE, "invalid time '%s' (expected the form 2026-01-02T03:04:05)", text);
    time_t seconds = timegm(now); // sets the day of the week and of the year
    return gmtime_r(&seconds, now) || status_fail(st, STATUS_USAGE, "invalid time '%s'", text);
}

static json_t *read_context(const struct template_input *in, struct status *st) {
    json_error_t error;
    json_t *context = json_loadb(in->context, in->context_size, JSON_ALLOW_NUL, &error);
    if (!context) status_fail(st, STATUS_FORMAT, "%s: line %d: %s", in->context_name, error.line, error.text);
    else if (!json_is_object(context)) {
        status_fail(st, STATUS_FORMAT, "%s: not a JSON object", in->context_name);
        json_decref(context);
        return NULL;
    }
    return context;
}

static char *join(const struct prompt *p, size_t *size) {
    size_t total = 0, at = 0;
    for (size_t i = 0; i < p->count; i++) total += p->pieces[i].size;
    char *text = xmalloc(total + 1);
    for (size_t i = 0; i < p->count; at += p->pieces[i++].size) memcpy(text + at, p->pieces[i].text, p->pieces[i].size);
    text[total] = 0;
    *size = total;
    return text;
}

static bool render_over(const struct template_input *in, json_t *context, struct tm now, struct prompt *out,
                        struct status *st) {
    struct jinja_template *parsed = jinja_compile((struct span){in->text, in->size}, st);
    struct jinja_input input = {parsed, context, now};
    bool done = parsed && jinja_render(&input, out, st);
    jinja_template_free(parsed);
    if (done || (st && st->code == STATUS_UNSUPPORTED)) return done; // raise_exception: only the template's own message
    return status_prefix(st, "%s", in->name);
}

char *template_render(const struct template_input *in, size_t *size, struct status *st) {
    struct prompt prompt;
    struct tm now;
    json_t *context = read_now(in->now, &now, st) ? read_context(in, st) : NULL;
    char *text = NULL;
    if (context && render_over(in, context, now, &prompt, st)) {
        text = join(&prompt, size);
        prompt_free(&prompt);
    }
    json_decref(context);
    return text;
}

// ---- rendering a model's template ----

// Messages may contain invalid UTF-8; the interpreter accepts it.
static json_t *json_text(const char *text) { return json_stringn_nocheck(text, strlen(text)); }

static void set_token(json_t *context, const struct tokenizer *t, const char *name, int32_t id) {
    struct span text = id >= 0 ? tokenizer_piece(t, id, true) : (struct span){0};
    if (id >= 0) json_object_set_new(context, name, json_stringn_nocheck(text.data, text.size));
}

static void set_text(json_t *object, const char *name, const char *text) {
    json_object_set_new(object, name, json_text(text));
}

// Reasoning goes under both names that templates use.
static json_t *message_of(const struct engine_message *m) {
    json_t *message = json_object();
    set_text(message, "role", m->role);
    set_text(message, "content", m->text);
    if (m->thinking && *m->thinking) {
        set_text(message, "reasoning_content", m->thinking);
        set_text(message, "thinking", m->thinking);
    }
    return message;
}

static void set_reasoning(json_t *context, enum reasoning r) {
    static const char *const efforts[REASONING_COUNT] = {
        [REASONING_LOW] = "low", [REASONING_MEDIUM] = "medium", [REASONING_HIGH] = "high"};
    if (r == REASONING_AUTO) return;
    json_object_set_new(context, "enable_thinking", json_boolean(r != REASONING_OFF));
    json_object_set_new(context, "thinking", json_boolean(r != REASONING_OFF));
    if (efforts[r]) set_text(context, "reasoning_effort", efforts[r]);
}

static json_t *context_of(const struct model_file *m, const struct engine_message *messages, size_t count,
                          enum reasoning reasoning) {
    json_t *context = json_object(), *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (strcmp(messages[i].role, "system") || *messages[i].text)
            json_array_append_new(list, message_of(&messages[i]));
    json_object_set_new(context, "messages", list);
    json_object_set_new(context, "add_generation_prompt", json_true());
    set_token(context, m->tokenizer, "bos_token", tokenizer_bos(m->tokenizer));
    set_token(context, m->tokenizer, "eos_token", tokenizer_eos(m->tokenizer));
    set_reasoning(context, reasoning);
    return context;
}

static bool render(const struct model_file *m, const struct jinja_template *template,
                   const struct engine_message *messages, size_t count, enum reasoning reasoning, struct prompt *out,
                   struct status *st) {
    struct jinja_input input = {.template = template};
    if (!read_now(NULL, &input.now, st)) return false;
    json_t *context = context_of(m, messages, count, reasoning);
    input.context = context;
    bool done = jinja_render(&input, out, st);
    json_decref(context);
    return done;
}

static bool render_folded(const struct model_file *m, const struct jinja_template *template,
                          const struct engine_message *messages, size_t count, enum reasoning reasoning,
                          struct prompt *out, struct status *st) {
    struct engine_message *folded = xcalloc(count, sizeof *folded);
    char *text = xasprintf("%s\n\n%s", messages[0].text, messages[1].text);
    memcpy(folded, messages + 1, (count - 1) * sizeof *folded);
    folded[0].text = text;
    bool done = render(m, template, folded, count - 1, reasoning, out, st);
    free(text);
    free(folded);
    return done;
}

bool template_prompt(const struct model_file *m, const struct jinja_template *template,
                     const struct engine_message *messages, size_t count, enum reasoning reasoning, struct prompt *out,
                     struct status *st) {
    if (!reasoning_fits(&m->info, reasoning)) reasoning = REASONING_AUTO;
    if (render(m, template, messages, count, reasoning, out, st)) return true;
    bool foldable = count > 1 && !strcmp(messages[0].role, "system") && !strcmp(messages[1].role, "user");
    return foldable && st->code == STATUS_UNSUPPORTED && render_folded(m, template, messages, count, reasoning, out, st);
}

bool template_works(const struct model_file *m, struct status *st) {
    static const struct engine_message messages[] = {
        {.role = "user", .text = "Hi"}, {.role = "assistant", .text = "Hello"}, {.role = "user", .text = "Bye"}};
    struct prompt prompt;
    bool done =
        template_prompt(m, m->template, messages, sizeof messages / sizeof *messages, REASONING_AUTO, &prompt, st);
    if (done) prompt_free(&prompt);
    return done;
}
