#include "engine/answer/channel.h"

#include <string.h>

// In order of recognition; first by tokens, then by the text of the template.
static const struct channel_brackets bracket_table[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<seed:think>", "</seed:think>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
    {"<|begin_of_thought|>", "<|end_of_thought|>"},
    {"◁think▷", "◁/think▷"},
    {"<thinking>", "</thinking>"},
    {"<thought>", "</thought>"},
    {"<reasoning>", "</reasoning>"},
};

// Only if the template contains them, since a user may ask for such marks.
static const struct channel_brackets wrap_table[] = {
    {"<response>", "</response>"},
    {"<answer>", "</answer>"},
    {"<|begin_of_solution|>", "<|end_of_solution|>"},
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const char *const harmony_texts[] = {
#define X(id, text) [id] = text,
    HARMONY_MARKS(X)
#undef X
};

static int32_t find(const struct tokenizer *t, const char *text) { return tokenizer_find(t, text, strlen(text)); }

// A control token has no text of its own in an answer.
static int32_t find_control(const struct tokenizer *t, const char *text) {
    int32_t id = find(t, text);
    return id >= 0 && !tokenizer_piece(t, id, false).size ? id : -1;
}

bool channel_has_harmony(const struct tokenizer *t) {
    static const enum harmony_mark needed[] = {HARMONY_START, HARMONY_CHANNEL, HARMONY_MESSAGE,
                                               HARMONY_END,   HARMONY_RETURN,  HARMONY_CALL};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (find(t, harmony_texts[needed[i]]) < 0) return false;
    return true;
}

static bool names(struct span text, const char *mark) {
    return text.data && memmem(text.data, text.size, mark, strlen(mark));
}

static const struct channel_brackets *find_named(const struct channel_brackets *table, size_t count,
                                                 struct span template_text) {
    for (size_t i = 0; i < count; i++)
        if (names(template_text, table[i].open) && names(template_text, table[i].close)) return &table[i];
    return NULL;
}

static const struct channel_brackets *find_brackets(const struct tokenizer *t, struct span template_text) {
    for (size_t i = 0; i < COUNT(bracket_table); i++)
        if (find(t, bracket_table[i].open) >= 0 && find(t, bracket_table[i].close) >= 0) return &bracket_table[i];
    return find_named(bracket_table, COUNT(bracket_table), template_text);
}

struct channel_scheme channel_recognise(const struct tokenizer *t, enum chat_template_kind kind,
                                        struct span template_text) {
    struct channel_scheme c = {.kind = CHANNELS_NONE, .open = -1, .close = -1};
    for (int i = 0; i < HARMONY_MARK_COUNT; i++) c.harmony[i] = find(t, harmony_texts[i]);
    if (kind == CHAT_TEMPLATE_HARMONY && channel_has_harmony(t)) {
        c.kind = CHANNELS_HARMONY;
    } else if ((c.brackets = find_brackets(t, template_text))) {
        c.kind = CHANNELS_BRACKETS;
        c.wrap = find_named(wrap_table, COUNT(wrap_table), template_text);
        c.open = find_control(t, c.brackets->open);
        c.close = find_control(t, c.brackets->close);
    }
    return c;
}

const char *channel_name(const struct channel_scheme *c) {
    if (c->kind == CHANNELS_NONE) return "";
    return c->kind == CHANNELS_HARMONY ? "harmony" : c->brackets->open;
}

bool channel_opened(const struct channel_scheme *c, const struct prompt *p) {
    if (c->kind != CHANNELS_BRACKETS || !p->count || !p->pieces[p->count - 1].special) return false;
    const struct prompt_piece *last = &p->pieces[p->count - 1];
    size_t size = last->size, length = strlen(c->brackets->open);
    while (size && strchr(" \t\r\n", last->text[size - 1])) size--;
    return size >= length && !memcmp(last->text + size - length, c->brackets->open, length);
}
