// Tokenizer settings in the other files of the folder: special tokens, BOS and EOS, vocabulary size, chat template.
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

// A token with a role is a control token, not text.
static void mark_control(struct token_import *t, int32_t id) {
    struct token_import_entry *token = &t->tokens[id];
    if (token->type == TOKEN_NORMAL || token->type == TOKEN_USER_DEFINED) token->type = TOKEN_CONTROL;
}

// The list may be as long as the vocabulary, hence a hash of the texts.
static void mark_listed(struct token_import *t, const json_t *list) {
    json_t *texts = json_array_size(list) ? json_object() : NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct span text = token_import_text(json_array_get(list, i));
        if (text.data) json_object_setn_new(texts, text.data, text.size, json_true());
    }
    for (int64_t id = 0; texts && id < t->count; id++)
        if (t->tokens[id].type && json_object_getn(texts, t->tokens[id].text.data, t->tokens[id].text.size))
            mark_control(t, (int32_t)id);
    json_decref(texts);
}

static void read_named(struct token_import *t, const json_t *root, bool overrides) {
    for (int i = 0; i < IMPORT_SPECIAL_COUNT; i++) {
        struct span text = token_import_text(json_object_get(root, specials[i].text));
        int32_t id = text.data ? token_import_find(t, text) : -1;
        if (id < 0) continue;
        mark_control(t, id);
        if (overrides || t->specials[i] < 0) t->specials[i] = id;
    }
    mark_listed(t, json_object_get(root, "additional_special_tokens"));
}

// The number if it is the id of a token; otherwise −1.
static int32_t id_of(const struct token_import *t, const json_t *number) {
    double id = json_is_number(number) ? json_number_value(number) : -1;
    return id >= 0 && id < (double)t->count && t->tokens[(int64_t)id].type ? (int32_t)id : -1;
}

// The keys have room for three tokens that end an answer.
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

static void read_flag(const json_t *root, const char *member, enum token_import_flag *flag) {
    const json_t *value = json_object_get(root, member);
    if (json_is_boolean(value)) *flag = json_is_true(value) ? IMPORT_YES : IMPORT_NO;
}

// Fits the vocabulary to the model's: larger ids are dropped, further rows stay unused.
static bool fit_to_model(struct token_import *t, const json_t *config, struct status *st) {
    const json_t *size = json_object_get(config, "vocab_size");
    if (!size) size = json_object_get(json_object_get(config, "text_config"), "vocab_size");
    t->rows = t->count;
    if (!json_is_number(size)) return true;
    double rows = json_number_value(size);
    if (!(rows >= 1 && rows <= (double)t->id_limit))
        return status_fail(st, STATUS_LIMIT, "vocab_size: %g does not fit %lld tokens", rows, (long long)t->count);
    for (int64_t id = (int64_t)rows; id < t->count; id++)
        if (t->tokens[id].type && t->tokens[id].type != TOKEN_CONTROL && t->tokens[id].type != TOKEN_USER_DEFINED)
            return status_fail(st, STATUS_FORMAT, "vocab_size: %g is too small (token %lld is '%.*s')", rows,
                               (long long)id, token_import_shown(t->tokens[id].text), t->tokens[id].text.data);
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
    read_flag(config, "add_bos_token", &t->add_bos);
    read_flag(config, "add_eos_token", &t->add_eos);
    return fit_to_model(t, t->roots[HUGGINGFACE_CONFIG], st);
}

// A template, or a list of named ones; "default" is the one for chats.
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
