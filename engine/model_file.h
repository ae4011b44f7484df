// Model file: what a model is and what its vocabulary and template can do. No weights are touched: `show`, `tokenize`
// and `template` need no more.
#ifndef CONFAB_ENGINE_MODEL_FILE_H
#define CONFAB_ENGINE_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/message.h"
#include "engine/sampling.h"

struct model_file;

struct format_share {
    const char *name; // "Q4_K"
    uint64_t tensors, bytes;
};

struct special_token {
    const char *role; // "bos"
    int32_t id;
    const char *text; // cleaned for display
};

struct rope_info {
    const char *pairs;        // which elements are rotated together: "adjacent" or "halves"
    int n_rot;                // rotated elements of a head
    float base, base_sliding; // the second: of layers with a window
    int n_layer;              // layers that rotate
    const char *scaling;      // "none", "linear", "yarn", "long", "by frequency"
    float factor;             // of scaling; 1: none
    int original_context;     // that scaling begins from; 0: not said
};

struct expert_info {
    int count, used; // of a layer; 0: none
    int n_ff, n_ff_shared;
    int n_layer; // layers that have them
};

// What differs from layer to layer.
struct range_info {
    int least, most;
};

struct model_info {
    const char *path, *name, *family; // name: general.name or the file's base name, cleaned for display
    uint64_t file_bytes, n_parameters, weight_bytes;
    int n_layer, n_embd, n_head, n_head_kv, head_size, n_ff, n_vocab, n_context;
    float rope_base;
    bool tied;
    bool has_weights;           // false for a vocabulary-only file; weight_problem says why it cannot run
    const char *weight_problem; // "" when has_weights
    const char *tokenizer, *pre_tokenizer, *chat_template; // names; chat_template is "none" when the file has none
    const struct format_share *formats;                    // by bytes, descending
    int n_formats;
    double float_share; // of the weights that a token is multiplied with, those that are floats: 0 to 1

    // Of a model that can run; otherwise 0, "" and NULL.
    struct rope_info rope;
    struct expert_info experts;
    struct range_info heads, kv_heads;
    int window, n_windowed; // tokens that layers with a window see, and how many such layers there are

    // Of a file with a vocabulary that was read.
    bool template_own;            // its own chat template is used; otherwise the one of this kind
    const char *template_kind;    // "chatml", "none"
    const char *template_problem; // why its own is not used; "" when it is, or there is none
    bool adds_bos;
    const struct special_token *special;
    int n_special;

    // Of its answers.
    const char *thinking; // what its answers mark thinking with: "harmony", "<think>" …; "" when they do not
    bool chooses_thinking, chooses_effort; // its template asks whether to think, and how much: see reasoning_fits
    struct sampling sampling;              // the knobs as the file recommends them, otherwise sampling_default()
    uint32_t sampling_given;               // bit k: knob k is the file's own
};

bool reasoning_fits(const struct model_info *info, enum reasoning r); // whether it makes a difference to its prompts

struct model_file *model_file_open(const char *path, struct status *st);
// Over memory that outlives it: the built-in model. `name` is shown to people; `template`, which outlives it too, is
// used instead of the file's own chat template, unless it is NULL.
struct model_file *model_file_open_memory(const char *name, const void *data, size_t size, const char *template,
                                          struct status *st);
// What keys and shapes tell, with nothing converted: no engine can be opened over it. Without `text` neither vocabulary
// nor template are read, and nothing can be tokenized: cheap, for lists of many models.
struct model_file *model_file_open_header(const char *path, bool text, struct status *st);
// Slots are control tokens <|NAME|> for what the program knows and the file does not, such as a key that can be changed.
// From now on each for whose name `text` returns one (malloc'ed; NULL: not a slot) stands for that text in answers and
// wherever its token is shown. Ids keep their meaning, and a text with the same words has the ids it had. Called before
// an engine is opened over m.
typedef char *model_slot_text(void *context, const char *name);
void model_file_fill_slots(struct model_file *m, model_slot_text *text, void *context);
void model_file_close(struct model_file *m);
const struct model_info *model_file_info(const struct model_file *m); // owned by m
// Ids of a text, no BOS added; *count ids, the caller frees.
int32_t *model_file_tokenize(const struct model_file *m, const char *text, size_t size, bool special, size_t *count);
// The bytes of ids; ids out of range are a failure. The caller frees.
char *model_file_detokenize(const struct model_file *m, const int32_t *ids, size_t count, size_t *size,
                            struct status *st);

// A chat template (Jinja) and what it is rendered over: one JSON object whose members are its variables. Errors name
// what is at fault. `now` is what strftime_now tells, like "2026-01-02T03:04:05"; NULL: the local time.
struct template_input {
    const char *name, *text;
    size_t size;
    const char *context_name, *context;
    size_t context_size;
    const char *now;
};
// The caller frees. STATUS_UNSUPPORTED: the template itself refused, and the text is the message of its
// raise_exception.
char *template_render(const struct template_input *in, size_t *size, struct status *st);

#endif
