// What the folder's other files say of a tokenizer: special tokens, BOS and EOS, the size of the vocabulary, the chat
// template.
#include <stdlib.h>
#include <string.h>

#include "engine/format/huggingface_tokenizer_parts.h"

static const struct {
    const char *text, *id;
} specials[] = {
#define X(special, text, id, key) {text, id},
    IMPORT_SPECIALS(X)
#undef X
};

// A token that has a name is control text, not something that is written.
static void mark_control(struct token_import *t, int32_t id) {
    struct token_import_entry *token = &t->tokens[id];
    if (token->type == IMPORT_NORMAL || token->type == IMPORT_USER_DEFINED) token->type = IMPORT_CONTROL;
}

static void read_named(struct token_import *t, const json_t *root, bool overrides) {
    for (int i = 0; i < IMPORT_SPECIAL_COUNT; i++) {
        struct span text = token_import_text(json_object_get(root, specials[i].text));
        int32_t id = text.data ? token_import_find(t, text) : -1;
        if (id < 0) continue;
        mark_control(t, id);
        if (overrides || t->specials[i] < 0) t->specials[i] = id;
    }
    const json_t *more = json_object_get(root, "additional_special_tokens");
    for (size_t i = 0; i < json_array_size(more); i++) {
        struct span text = token_import_text(json_array_get(more, i));
        int32_t id = text.data ? token_import_find(t, text) : -1;
        if (id >= 0) mark_control(t, id);
    }
}

// The number, where it is an id that a token has; −1 otherwise.
static int32_t id_of(const struct token_import *t, const json_t *number) {
    double id = json_is_number(number) ? json_number_value(number) : -1;
    return id >= 0 && id < (double)t->count && t->tokens[(int64_t)id].type ? (int32_t)id : -1;
}

// Of several tokens that end an answer, the keys have room for three.
static void add_end(struct token_import *t, int32_t id) {
    static const enum token_import_special places[] = {IMPORT_EOS, IMPORT_EOT, IMPORT_EOM};
    for (size_t i = 0; i < sizeof places / sizeof *places && id >= 0; i++) {
        if (t->specials[places[i]] == id) return;
        if (t->specials[places[i]] < 0) {
            t->specials[places[i]] = id;
            return;
        }
    }
}

static void read_ids(struct token_import *t, const json_t *root) {
    for (int i = 0; i < IMPORT_SPECIAL_COUNT; i++)
        if (t->specials[i] < 0 && i != IMPORT_EOS) t->specials[i] = id_of(t, json_object_get(root, specials[i].id));
    const json_t *ends = json_object_get(root, specials[IMPORT_EOS].id);
    if (json_is_number(ends)) add_end(t, id_of(t, ends));
    for (size_t i = 0; i < json_array_size(ends); i++) add_end(t, id_of(t, json_array_get(ends, i)));
}

static void read_answer(const json_t *root, const char *member, enum token_import_answer *answer) {
    const json_t *value = json_object_get(root, member);
    if (json_is_boolean(value)) *answer = json_is_true(value) ? IMPORT_YES : IMPORT_NO;
}

// The rows that the model has for tokens: ids beyond them cannot be used, rows beyond the tokens stay unused.
static bool fit_to_model(struct token_import *t, const json_t *config, struct status *st) {
    const json_t *size = json_object_get(config, "vocab_size");
    if (!size) size = json_object_get(json_object_get(config, "text_config"), "vocab_size");
    t->rows = t->count;
    if (!json_is_number(size)) return true;
    double rows = json_number_value(size);
    if (!(rows >= 1 && rows <= (double)t->id_limit))
        return status_fail(st, STATUS_LIMIT, "vocab_size: %g for %lld tokens", rows, (long long)t->count);
    for (int64_t id = (int64_t)rows; id < t->count; id++)
        if (t->tokens[id].type && t->tokens[id].type != IMPORT_CONTROL && t->tokens[id].type != IMPORT_USER_DEFINED)
            return status_fail(st, STATUS_FORMAT, "vocab_size: %g, but token %lld is \"%.*s\"", rows, (long long)id,
                               token_import_shown(t->tokens[id].text), t->tokens[id].text.data);
    t->rows = (int64_t)rows;
    for (int i = 0; i < IMPORT_SPECIAL_COUNT; i++)
        if (t->specials[i] >= t->rows) t->specials[i] = -1;
    return true;
}

static bool is_token(const struct token_import *t, int32_t id) {
    return id >= 0 && id < t->count && t->tokens[id].type;
}

bool token_import_settings(struct token_import *t, struct status *st) {
    const json_t *config = t->roots[HUGGINGFACE_TOKENIZER_CONFIG];
    read_named(t, config, true);
    read_named(t, t->roots[HUGGINGFACE_SPECIAL_TOKENS], false);
    if (is_token(t, t->first)) t->specials[IMPORT_BOS] = t->first;
    enum token_import_special closing = strcmp(t->model, "bert") ? IMPORT_EOS : IMPORT_SEP;
    if (is_token(t, t->last) && t->specials[closing] < 0) t->specials[closing] = t->last;
    read_ids(t, t->roots[HUGGINGFACE_CONFIG]);
    read_ids(t, t->roots[HUGGINGFACE_GENERATION_CONFIG]);
    read_answer(config, "add_bos_token", &t->add_bos);
    read_answer(config, "add_eos_token", &t->add_eos);
    return fit_to_model(t, t->roots[HUGGINGFACE_CONFIG], st);
}

// One template, or a list of named ones of which "default" is for chats.
static struct span read_template(const json_t *root) {
    const json_t *template = json_object_get(root, "chat_template");
    struct span chosen = token_import_string(root, "chat_template");
    for (size_t i = 0; i < json_array_size(template); i++) {
        const json_t *one = json_array_get(template, i);
        if (!chosen.data || token_import_is(one, "name", "default")) chosen = token_import_string(one, "template");
    }
    return chosen;
}

struct span token_import_chat_template(const struct token_import *t) {
    struct span own = t->texts->files[HUGGINGFACE_CHAT_TEMPLATE];
    if (!own.data) own = read_template(t->roots[HUGGINGFACE_CHAT_TEMPLATE_JSON]);
    return own.data ? own : read_template(t->roots[HUGGINGFACE_TOKENIZER_CONFIG]);
}
