#include "engine/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

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

// A text in the making: template marks and harmless message texts, joined, so that merges across their seams are those
// the model was trained on.
struct joined {
    char *text;
    size_t size, capacity;
    bool begun; // something was encoded before it
};

static void join(struct joined *j, const struct prompt_piece *p) {
    if (j->size + p->size > j->capacity) {
        j->capacity = 2 * (j->size + p->size);
        j->text = xrealloc(j->text, j->capacity);
    }
    memcpy(j->text + j->size, p->text, p->size);
    j->size += p->size;
}

static void encode_joined(const struct tokenizer *t, struct joined *j, struct token_list *list) {
    struct tokenizer_options options = {.parse_special = true, .no_space_prefix = j->begun};
    if (j->size) tokenizer_encode_with(t, j->text, j->size, options, list);
    j->begun |= j->size > 0;
    j->size = 0;
}

// Does a message spell a special token ("<|im_end|>")? It must stay text then.
static bool spells_special(const struct tokenizer *t, const struct prompt_piece *p) {
    struct token_list plain = {0}, special = {0};
    tokenizer_encode(t, p->text, p->size, false, &plain);
    tokenizer_encode(t, p->text, p->size, true, &special);
    bool differ = plain.count != special.count ||
                  (plain.count && memcmp(plain.ids, special.ids, plain.count * sizeof *plain.ids) != 0);
    free(plain.ids);
    free(special.ids);
    return differ;
}

static void encode_messages(const struct model_file *m, const struct prompt_source *source, struct token_list *list) {
    struct prompt prompt = chat_template_render(m->chat_template, source->messages, source->n_messages, true);
    struct joined joined = {0};
    for (size_t i = 0; i < prompt.count; i++) {
        const struct prompt_piece *p = &prompt.pieces[i];
        if (p->special || !spells_special(m->tokenizer, p)) {
            join(&joined, p);
            continue;
        }
        encode_joined(m->tokenizer, &joined, list);
        tokenizer_encode_with(m->tokenizer, p->text, p->size, (struct tokenizer_options){.no_space_prefix = joined.begun}, list);
        joined.begun = true;
    }
    encode_joined(m->tokenizer, &joined, list);
    free(joined.text);
    prompt_free(&prompt);
}

void prompt_encode(const struct model_file *m, const struct prompt_source *source, struct token_list *list) {
    if (source->ids) {
        for (int i = 0; i < source->n_ids; i++) token_list_push(list, source->ids[i]);
        return;
    }
    int32_t bos = tokenizer_bos(m->tokenizer);
    if (bos >= 0 && tokenizer_adds_bos(m->tokenizer)) token_list_push(list, bos);
    if (source->raw) tokenizer_encode(m->tokenizer, source->raw, strlen(source->raw), true, list);
    else if (source->messages) encode_messages(m, source, list);
}
