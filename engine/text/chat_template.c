#include "engine/text/chat_template.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

struct turn_marks {
    const char *before, *after;
};

// A format: how it is recognised, and the text around each message.
struct template_kind {
    const char *name;
    const char *head[3];      // of every conversation, around the date and the effort; may be NULL
    const char *marks[2];     // substrings of its templates, all required; no marks: never recognised
    struct turn_marks system; // before = NULL: no system role
    struct turn_marks fold;   // then: around the system text in front of the first user text
    struct turn_marks user, assistant;
    const char *again;   // before every user turn except the first; may be NULL
    const char *opening; // of the answer
    const char *stop;
    bool trims;             // white space around messages is removed
    bool keeps_folded_head; // but not before a user text after a folded system text
};

// In order of recognition: the first format whose marks are all present.
static const struct template_kind kinds[CHAT_TEMPLATE_COUNT] = {
    [CHAT_TEMPLATE_HARMONY] = {.name = "harmony",
                               .head = {"<|start|>system<|message|>You are ChatGPT, a large language model trained by "
                                        "OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: ",
                                        "\n\nReasoning: ",
                                        "\n\n# Valid channels: analysis, commentary, final. Channel must be included "
                                        "for every message.<|end|>"},
                               .marks = {"<|start|>", "<|channel|>"},
                               .system = {"<|start|>developer<|message|># Instructions\n\n", "\n\n<|end|>"},
                               .user = {"<|start|>user<|message|>", "<|end|>"},
                               .assistant = {"<|start|>assistant<|channel|>final<|message|>", "<|end|>"},
                               .opening = "<|start|>assistant"},
    [CHAT_TEMPLATE_PHI4] = {.name = "phi4",
                            .marks = {"<|im_start|>", "<|im_sep|>"},
                            .system = {"<|im_start|>system<|im_sep|>", "<|im_end|>"},
                            .user = {"<|im_start|>user<|im_sep|>", "<|im_end|>"},
                            .assistant = {"<|im_start|>assistant<|im_sep|>", "<|im_end|>"},
                            .opening = "<|im_start|>assistant<|im_sep|>",
                            .stop = "<|im_end|>"},
    [CHAT_TEMPLATE_CHATML] = {.name = "chatml",
                              .marks = {"<|im_start|>"},
                              .system = {"<|im_start|>system\n", "<|im_end|>\n"},
                              .user = {"<|im_start|>user\n", "<|im_end|>\n"},
                              .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},
                              .opening = "<|im_start|>assistant\n",
                              .stop = "<|im_end|>"},
    [CHAT_TEMPLATE_LLAMA2] = {.name = "llama2",
                              .marks = {"[INST]", "<<SYS>>"},
                              .fold = {"<<SYS>>\n", "\n<</SYS>>\n\n"},
                              .user = {"[INST] ", " [/INST]"},
                              .assistant = {" ", " </s>"},
                              .again = "<s>",
                              .opening = "",
                              .stop = "</s>",
                              .trims = true,
                              .keeps_folded_head = true},
    [CHAT_TEMPLATE_MISTRAL7] = {.name = "mistral v7",
                                .marks = {"[INST]", "[SYSTEM_PROMPT]"},
                                .system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
                                .user = {"[INST]", "[/INST]"},
                                .assistant = {"", "</s>"},
                                .opening = "",
                                .stop = "</s>"},
    [CHAT_TEMPLATE_MISTRAL] = {.name = "mistral",
                               .marks = {"[INST]"},
                               .fold = {"", "\n\n"},
                               .user = {"[INST] ", " [/INST]"},
                               .assistant = {" ", "</s>"},
                               .opening = "",
                               .stop = "</s>",
                               .trims = true},
    [CHAT_TEMPLATE_LLAMA3] = {.name = "llama3",
                              .marks = {"<|start_header_id|>"},
                              .system = {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
                              .user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
                              .assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
                              .opening = "<|start_header_id|>assistant<|end_header_id|>\n\n",
                              .stop = "<|eot_id|>",
                              .trims = true},
    [CHAT_TEMPLATE_GEMMA] = {.name = "gemma",
                             .marks = {"<start_of_turn>"},
                             .fold = {"", "\n\n"},
                             .user = {"<start_of_turn>user\n", "<end_of_turn>\n"},
                             .assistant = {"<start_of_turn>model\n", "<end_of_turn>\n"},
                             .opening = "<start_of_turn>model\n",
                             .stop = "<end_of_turn>",
                             .trims = true},
#define COMMAND_R_TURN(role) "<|START_OF_TURN_TOKEN|><|" role "_TOKEN|>"
    [CHAT_TEMPLATE_COMMAND_R] = {.name = "command-r",
                                 .marks = {"<|START_OF_TURN_TOKEN|>"},
                                 .system = {COMMAND_R_TURN("SYSTEM"), "<|END_OF_TURN_TOKEN|>"},
                                 .user = {COMMAND_R_TURN("USER"), "<|END_OF_TURN_TOKEN|>"},
                                 .assistant = {COMMAND_R_TURN("CHATBOT"), "<|END_OF_TURN_TOKEN|>"},
                                 .opening = COMMAND_R_TURN("CHATBOT"),
                                 .stop = "<|END_OF_TURN_TOKEN|>",
                                 .trims = true},
    [CHAT_TEMPLATE_DEEPSEEK] = {.name = "deepseek",
                                .marks = {"<｜User｜>"},
                                .system = {"", ""},
                                .user = {"<｜User｜>", ""},
                                .assistant = {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
                                .opening = "<｜Assistant｜>",
                                .stop = "<｜end▁of▁sentence｜>"},
    [CHAT_TEMPLATE_GRANITE] = {.name = "granite",
                               .marks = {"<|start_of_role|>"},
                               .system = {"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
                               .user = {"<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
                               .assistant = {"<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>\n"},
                               .opening = "<|start_of_role|>assistant<|end_of_role|>",
                               .stop = "<|end_of_text|>"},
    [CHAT_TEMPLATE_PHI3] = {.name = "phi3",
                            .marks = {"<|user|>", "<|end|>"},
                            .system = {"<|system|>\n", "<|end|>\n"},
                            .user = {"<|user|>\n", "<|end|>\n"},
                            .assistant = {"<|assistant|>\n", "<|end|>\n"},
                            .opening = "<|assistant|>\n",
                            .stop = "<|end|>"},
    [CHAT_TEMPLATE_ZEPHYR] = {.name = "zephyr",
                              .marks = {"<|user|>"},
                              .system = {"<|system|>\n", "</s>\n"},
                              .user = {"<|user|>\n", "</s>\n"},
                              .assistant = {"<|assistant|>\n", "</s>\n"},
                              .opening = "<|assistant|>\n",
                              .stop = "</s>"},
    [CHAT_TEMPLATE_NONE] = {.name = "none",
                            .system = {"", "\n\n"},
                            .user = {"User: ", "\n"},
                            .assistant = {"Assistant: ", "\n"},
                            .opening = "Assistant:",
                            .stop = "\nUser:",
                            .trims = true},
};

static bool has_marks(const struct template_kind *kind, struct span text) {
    if (!kind->marks[0]) return false;
    for (size_t i = 0; i < 2 && kind->marks[i]; i++)
        if (!memmem(text.data, text.size, kind->marks[i], strlen(kind->marks[i]))) return false;
    return true;
}

enum chat_template_kind chat_template_recognise(struct span template_text) {
    for (int kind = 0; template_text.data && kind < CHAT_TEMPLATE_COUNT; kind++)
        if (has_marks(&kinds[kind], template_text)) return (enum chat_template_kind)kind;
    return CHAT_TEMPLATE_NONE;
}

const char *chat_template_name(enum chat_template_kind kind) { return kinds[kind].name; }
const char *chat_template_stop(enum chat_template_kind kind) { return kinds[kind].stop; }
bool chat_template_effort(enum chat_template_kind kind) { return kinds[kind].head[0]; }

void prompt_add(struct prompt *p, const char *text, size_t size, bool special) {
    if (size == 0) return;
    bool full = (p->count & (p->count - 1)) == 0; // grows at powers of two
    if (full) p->pieces = xrealloc(p->pieces, 2 * (p->count + 1) * sizeof *p->pieces);
    p->pieces[p->count++] = (struct prompt_piece){xstrndup(text, size), size, special};
}

static void add_mark(struct prompt *p, const char *text) {
    if (text) prompt_add(p, text, strlen(text), true);
}

static void add_text(struct prompt *p, const char *text, bool trim_head, bool trim_tail) {
    size_t size = strlen(text);
    for (; trim_head && size && isspace((unsigned char)*text); text++, size--) continue;
    while (trim_tail && size && isspace((unsigned char)text[size - 1])) size--;
    prompt_add(p, text, size, false);
}

static bool is_role(const struct chat_message *m, const char *role) { return !strcmp(m->role, role); }

// Adds a turn; `system` (may be NULL) goes in front of its text.
static void add_turn(struct prompt *p, const struct template_kind *kind, struct turn_marks marks, const char *system,
                     const char *text) {
    add_mark(p, marks.before);
    if (system) {
        add_mark(p, kind->fold.before);
        add_text(p, system, false, false);
        add_mark(p, kind->fold.after);
    }
    add_text(p, text, kind->trims && !(system && kind->keeps_folded_head), kind->trims);
    add_mark(p, marks.after);
}

static void add_head(struct prompt *p, const struct template_kind *kind, struct chat_template_options o) {
    add_mark(p, kind->head[0]);
    add_mark(p, o.date);
    add_mark(p, kind->head[1]);
    add_mark(p, o.effort ? o.effort : "medium");
    add_mark(p, kind->head[2]);
}

struct prompt chat_template_render(enum chat_template_kind which, const struct chat_message *messages, size_t count,
                                   struct chat_template_options o) {
    const struct template_kind *kind = &kinds[which];
    struct prompt p = {0};
    if (kind->head[0] && count) add_head(&p, kind, o);
    const char *folded = NULL; // a system text for the next user turn
    bool again = false;
    for (size_t i = 0; i < count; i++) {
        const struct chat_message *m = &messages[i];
        if (is_role(m, "system") && !*m->text) continue;
        if (is_role(m, "assistant")) {
            add_turn(&p, kind, kind->assistant, NULL, m->text);
        } else if (is_role(m, "system") && kind->system.before) {
            add_turn(&p, kind, kind->system, NULL, m->text);
        } else if (is_role(m, "system") && i + 1 < count && is_role(&messages[i + 1], "user")) {
            folded = m->text;
        } else {
            if (again) add_mark(&p, kind->again);
            add_turn(&p, kind, kind->user, folded, m->text);
            folded = NULL;
            again = true;
        }
    }
    if (o.open_answer) add_mark(&p, kind->opening);
    return p;
}

void prompt_encode(const struct prompt *p, const struct tokenizer *t, struct token_list *out) {
    struct tokenizer_part *parts = xcalloc(p->count + 1, sizeof *parts);
    for (size_t i = 0; i < p->count; i++)
        parts[i] = (struct tokenizer_part){p->pieces[i].text, p->pieces[i].size, p->pieces[i].special};
    tokenizer_encode_parts(t, parts, p->count, false, out);
    free(parts);
}

void prompt_free(struct prompt *p) {
    for (size_t i = 0; i < p->count; i++) free(p->pieces[i].text);
    free(p->pieces);
    *p = (struct prompt){0};
}
