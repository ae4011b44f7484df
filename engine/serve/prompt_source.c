#include "engine/serve/prompt_source.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/reader.h"
#include "engine/model/template.h"

#define TEMPLATE_LIMIT (1u << 20)

static int32_t *copy_ids(const int32_t *ids, int n) {
    int32_t *copy = xmalloc((size_t)n * sizeof *copy);
    memcpy(copy, ids, (size_t)n * sizeof *copy);
    return copy;
}

struct prompt_source prompt_source_copy(const struct request_params *p) {
    struct prompt_source s = {.goes_on = p->read_ahead == READ_AHEAD_WORDS || p->read_ahead == READ_AHEAD_FIND,
                              .begun_text = p->begun_text ? xstrdup(p->begun_text) : NULL};
    if (p->n_begun > 0) s.begun = copy_ids(p->begun, s.n_begun = p->n_begun);
    if (p->ids && p->n_ids > 0) s.ids = copy_ids(p->ids, s.n_ids = p->n_ids);
    else if (p->raw) s.raw = xstrdup(p->raw);
    else if (p->n_messages > 0) {
        s.n_messages = (size_t)p->n_messages;
        s.messages = xcalloc(s.n_messages, sizeof *s.messages);
        s.reasoning = p->reasoning;
        s.template_file = p->template_file ? xstrdup(p->template_file) : NULL;
        for (size_t i = 0; i < s.n_messages; i++) {
            const struct engine_message *m = &p->messages[i];
            s.messages[i] = (struct engine_message){.role = xstrdup(m->role),
                                                    .text = xstrdup(m->text),
                                                    .thinking = m->thinking ? xstrdup(m->thinking) : NULL};
        }
    }
    return s;
}

void prompt_source_free(struct prompt_source *s) {
    for (size_t i = 0; i < s->n_messages; i++) {
        free((char *)s->messages[i].role);
        free((char *)s->messages[i].text);
        free((char *)s->messages[i].thinking);
    }
    free(s->messages);
    free(s->template_file);
    free(s->raw);
    free(s->ids);
    free(s->begun);
    free(s->begun_text);
    *s = (struct prompt_source){0};
}

// As the template's kind has it.
static struct prompt render_kind(const struct model_file *m, const struct prompt_source *source) {
    struct chat_message *messages = xcalloc(source->n_messages, sizeof *messages);
    for (size_t i = 0; i < source->n_messages; i++)
        messages[i] = (struct chat_message){source->messages[i].role, source->messages[i].text};
    static const char *const efforts[REASONING_COUNT] = {[REASONING_LOW] = "low", [REASONING_HIGH] = "high"};
    char date[32] = "";
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local)) strftime(date, sizeof date, "%Y-%m-%d", &local);
    struct prompt prompt = chat_template_render(
        m->chat_template, messages, source->n_messages,
        (struct chat_template_options){.open_answer = true, .date = date, .effort = efforts[source->reasoning]});
    free(messages);
    return prompt;
}

// With the template of a file. *kind: as its text tells.
static bool render_file(const struct model_file *m, const struct prompt_source *source, struct prompt *out,
                        enum chat_template_kind *kind, struct status *st) {
    size_t size;
    char *path = path_expand(source->template_file), *text = file_read_regular(path, TEMPLATE_LIMIT, &size, st);
    struct jinja_template *parsed = text ? jinja_compile((struct span){text, size}, st) : NULL;
    const bool done =
        parsed && template_prompt(m, parsed, source->messages, source->n_messages, source->reasoning, out, st);
    if (done) *kind = chat_template_recognise((struct span){text, size}), *st = (struct status){0};
    else if (text) status_prefix(st, "%s", path);
    jinja_template_free(parsed);
    free(text), free(path);
    return done;
}

// With the model's own template, or as its kind has it.
static bool render_own(const struct model_file *m, const struct prompt_source *source, struct prompt *out,
                       struct status *st) {
    *st = m->template_status;
    const bool own = m->template && st->code == STATUS_OK &&
                     template_prompt(m, m->template, source->messages, source->n_messages, source->reasoning, out, st);
    if (own) *st = (struct status){0};
    else *out = render_kind(m, source);
    return own;
}

static void encode_messages(const struct model_file *m, const struct prompt_source *source, struct token_list *list,
                            struct prompt_outcome *outcome) {
    struct prompt prompt;
    struct status refused;
    enum chat_template_kind kind = m->chat_template;
    bool own = source->template_file && render_file(m, source, &prompt, &kind, &outcome->refused);
    outcome->refused_file = source->template_file && !own;
    if (!own) {
        own = render_own(m, source, &prompt, &refused);
        if (!outcome->refused_file) outcome->refused = refused;
    }
    bool known = !own || kind != CHAT_TEMPLATE_NONE;
    outcome->template_stop = known ? chat_template_stop(kind) : NULL;
    outcome->opens_thinking = channel_opened(&m->channels, &prompt);
    prompt_encode(&prompt, m->tokenizer, list);
    prompt_free(&prompt);
}

static void push_ids(struct token_list *list, const int32_t *ids, int n) {
    for (int i = 0; i < n; i++) token_list_push(list, ids[i]);
}

static void encode_text(const struct model_file *m, const struct prompt_source *source, struct token_list *list,
                        struct prompt_outcome *outcome) {
    int32_t bos = tokenizer_bos(m->tokenizer);
    if (bos >= 0 && tokenizer_adds_bos(m->tokenizer)) token_list_push(list, bos);
    if (source->raw) tokenizer_encode(m->tokenizer, source->raw, strlen(source->raw), true, list);
    else if (source->messages) encode_messages(m, source, list, outcome);
    // A template that writes BOS itself does not get a second one.
    if (source->messages && list->count > 1 && list->ids[0] == bos && list->ids[1] == bos)
        memmove(list->ids, list->ids + 1, --list->count * sizeof *list->ids);
}

// What is typed goes on with the answer: no space comes before it, and it holds no special tokens.
static void encode_begun(const struct model_file *m, const struct prompt_source *source, struct token_list *list) {
    push_ids(list, source->begun, source->n_begun);
    if (!source->begun_text) return;
    struct tokenizer_part part = {.text = source->begun_text, .size = strlen(source->begun_text)};
    tokenizer_encode_parts(m->tokenizer, &part, 1, true, list);
}

// What another word at the end of the last message leaves as it is.
static size_t unchanged(const struct model_file *m, const struct prompt_source *source, const struct token_list *list) {
    struct engine_message *messages = source->messages, *last = &messages[source->n_messages - 1];
    struct prompt_source longer = *source;
    struct prompt_outcome outcome = {0};
    struct token_list other = {0};
    longer.messages = xmalloc(source->n_messages * sizeof *messages);
    memcpy(longer.messages, messages, source->n_messages * sizeof *messages);
    longer.messages[source->n_messages - 1].text = xasprintf("%s x", last->text);
    encode_text(m, &longer, &other, &outcome);
    size_t n = 0;
    while (n < list->count && n < other.count && list->ids[n] == other.ids[n]) n++;
    free((char *)longer.messages[source->n_messages - 1].text);
    free(longer.messages);
    free(other.ids);
    return n;
}

void prompt_source_encode(const struct model_file *m, const struct prompt_source *source, struct token_list *list,
                          struct prompt_outcome *outcome) {
    *outcome = (struct prompt_outcome){0};
    if (source->ids) push_ids(list, source->ids, source->n_ids);
    else encode_text(m, source, list, outcome);
    if (source->goes_on && source->messages) list->count = unchanged(m, source, list);
    const size_t n_prompt = list->count;
    encode_begun(m, source, list);
    outcome->n_begun = list->count - n_prompt;
}
