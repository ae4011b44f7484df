#include "engine/prompt_source.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/template.h"

struct prompt_source prompt_source_copy(const struct request_params *p) {
    struct prompt_source s = {0};
    if (p->ids && p->n_ids > 0) {
        s.n_ids = p->n_ids;
        s.ids = xmalloc((size_t)p->n_ids * sizeof *s.ids);
        memcpy(s.ids, p->ids, (size_t)p->n_ids * sizeof *s.ids);
    } else if (p->raw) s.raw = xstrdup(p->raw);
    else if (p->n_messages > 0) {
        s.n_messages = (size_t)p->n_messages;
        s.messages = xcalloc(s.n_messages, sizeof *s.messages);
        for (size_t i = 0; i < s.n_messages; i++)
            s.messages[i] = (struct chat_message){xstrdup(p->messages[i].role), xstrdup(p->messages[i].text)};
    }
    return s;
}

void prompt_source_free(struct prompt_source *s) {
    for (size_t i = 0; i < s->n_messages; i++) {
        free((char *)s->messages[i].role);
        free((char *)s->messages[i].text);
    }
    free(s->messages);
    free(s->raw);
    free(s->ids);
    *s = (struct prompt_source){0};
}

static void encode_messages(const struct model_file *m, const struct prompt_source *source, struct token_list *list) {
    struct prompt prompt;
    struct status refused = m->template_status;
    bool own = m->template_text.data && refused.code == STATUS_OK;
    if (!own || !template_prompt(m, source->messages, source->n_messages, &prompt, &refused))
        prompt = chat_template_render(m->chat_template, source->messages, source->n_messages, true);
    prompt_encode(&prompt, m->tokenizer, list);
    prompt_free(&prompt);
}

void prompt_source_encode(const struct model_file *m, const struct prompt_source *source, struct token_list *list) {
    if (source->ids) {
        for (int i = 0; i < source->n_ids; i++) token_list_push(list, source->ids[i]);
        return;
    }
    int32_t bos = tokenizer_bos(m->tokenizer);
    if (bos >= 0 && tokenizer_adds_bos(m->tokenizer)) token_list_push(list, bos);
    if (source->raw) tokenizer_encode(m->tokenizer, source->raw, strlen(source->raw), true, list);
    else if (source->messages) encode_messages(m, source, list);
    // A template that writes BOS itself does not get a second one.
    if (source->messages && list->count > 1 && list->ids[0] == bos && list->ids[1] == bos)
        memmove(list->ids, list->ids + 1, --list->count * sizeof *list->ids);
}
