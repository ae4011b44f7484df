// Model file: opens and describes a model, tokenizes text and renders templates. Does not touch weights.
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
    const char *pairs;        // elements rotated together: "adjacent" or "halves"
    int n_rot;                // rotated elements per head
    float base, base_sliding; // base_sliding: of layers with a window
    int n_layer;              // layers with RoPE
    const char *scaling;      // "none", "linear", "yarn", "long", "by frequency"
    float factor;             // of scaling; 1: none
    int original_context;     // before scaling; 0: unknown
};

struct expert_info {
    int count, used; // per layer; 0: none
    int n_ff, n_ff_shared;
    int n_layer; // layers with experts
};

// The range of a value that differs between layers.
struct range_info {
    int least, most;
};

struct model_info {
    const char *path, *name, *family; // name: general.name or the file's base name, cleaned for display
    uint64_t file_bytes, n_parameters, weight_bytes;
    int n_layer, n_embd, n_head, n_head_kv, head_size, n_ff, n_vocab, n_context;
    float rope_base;
    bool tied;
    bool has_weights;                                      // the model can run; otherwise weight_problem says why not
    const char *weight_problem;                            // "" if has_weights
    const char *tokenizer, *pre_tokenizer, *chat_template; // names; chat_template is "none" if the file has none
    const struct format_share *formats;                    // by bytes, descending
    int n_formats;
    double float_share; // share of float weights in the matmuls of a token, 0 to 1

    // If the model can run; otherwise 0, "" and NULL.
    struct rope_info rope;
    struct expert_info experts;
    struct range_info heads, kv_heads;
    int window, n_windowed; // size of the sliding window, and number of layers with one

    // If the vocabulary was read.
    bool template_own;            // the file's own chat template is used; otherwise template_kind
    const char *template_kind;    // "chatml", "none"
    const char *template_problem; // why its own is not used; "" if it is used or missing
    bool adds_bos;
    const struct special_token *special;
    int n_special;

    const char *thinking;                  // how answers mark thinking: "harmony", "<think>" …; "": they do not
    bool chooses_thinking, chooses_effort; // the template has a switch for thinking, and for effort: see reasoning_fits
    struct sampling sampling;              // recommended by the file, otherwise sampling_default()
    uint32_t sampling_given;               // bit k: the file recommends knob k
};

bool reasoning_fits(const struct model_info *info, enum reasoning r); // whether it affects the model's prompts

struct model_file *model_file_open(const char *path, struct status *st);
// Opens a model in memory that outlives it (the built-in model). `name` is for display; `template`, unless NULL,
// replaces the file's own chat template and must outlive the model too.
struct model_file *model_file_open_memory(const char *name, const void *data, size_t size, const char *template,
                                          struct status *st);
// Opens a model without converting weights; it cannot be run. Without `text`, vocabulary and template are not read
// either: fast, for lists of models.
struct model_file *model_file_open_header(const char *path, bool text, struct status *st);
// Slots are control tokens <|NAME|> that stand for values of the program, such as a key that the user can rebind.
// `text` returns the text of a slot (malloc'ed), or NULL if the name is not a slot; from then on the token shows as
// this text. Ids do not change, and the same words as plain text keep their ids. Call before opening an engine on m.
typedef char *model_slot_text(void *context, const char *name);
void model_file_fill_slots(struct model_file *m, model_slot_text *text, void *context);
void model_file_close(struct model_file *m);
const struct model_info *model_file_info(const struct model_file *m); // owned by m
// The ids of a text, without BOS; the caller frees.
int32_t *model_file_tokenize(const struct model_file *m, const char *text, size_t size, bool special, size_t *count);
// The bytes of ids; fails if an id is out of range. The caller frees.
char *model_file_detokenize(const struct model_file *m, const int32_t *ids, size_t count, size_t *size,
                            struct status *st);

// A chat template (Jinja) and its context, a JSON object whose members are the variables. Errors name the template or
// the context. `now`: the time for strftime_now, as "2026-01-02T03:04:05"; NULL: the local time.
struct template_input {
    const char *name, *text;
    size_t size;
    const char *context_name, *context;
    size_t context_size;
    const char *now;
};
// The caller frees. STATUS_UNSUPPORTED: the template called raise_exception, whose message is the text.
char *template_render(const struct template_input *in, size_t *size, struct status *st);

#endif
