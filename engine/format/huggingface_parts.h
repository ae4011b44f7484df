// Shared by the files of the Hugging Face importer. huggingface.c opens a folder; huggingface_families.c has the
// tables; huggingface_config.c converts config.json to keys, huggingface_rope.c its RoPE settings;
// huggingface_tensors.c maps tensors, whose rows huggingface_source.c reads.
#ifndef CONFAB_FORMAT_HUGGINGFACE_PARTS_H
#define CONFAB_FORMAT_HUGGINGFACE_PARTS_H

#include <jansson.h>

#include "engine/base/thread_pool.h"
#include "engine/format/huggingface.h"
#include "engine/format/safetensors.h"

// ---- tables ----

enum huggingface_type {
    MEMBER_INTEGER,
    MEMBER_FLOAT,
    MEMBER_ROOT, // 1 / √member, a float
    MEMBER_BOOL,
};

struct huggingface_key {
    const char *member; // of config.json; "a|b": a, or b if there is no a; "a.b": b in the object a
    const char *key;    // without "<architecture>."
    enum huggingface_type type;
    double fallback; // if the member is missing; 0: no key
};

enum huggingface_change {
    PLACE_PLAIN,
    PLACE_QUERY,         // rows of each head permuted, if the family does so
    PLACE_KEY,           // likewise
    PLACE_HALVES,        // first half of the rows, second half
    PLACE_INTERLEAVED,   // even rows, odd rows
    PLACE_EXPERTS,       // one tensor per expert from a stack
    PLACE_EXPERT_HALVES, // both
    PLACE_HEAD,          // the vector of a head, joined with those of the other heads
};

// "{layer}" and "{item}" stand for numbers. A ".weight" or ".bias" after `from` is kept after `to`.
struct huggingface_name {
    const char *from, *to, *second; // second: for the other half or the odd rows
    enum huggingface_change change;
};

struct huggingface_family {
    const char *model_types[4];         // in config.json
    const char *architecture;           // in GGUF
    bool permute;                       // RoPE rotates neighbours, so queries and keys are permuted (ROPE_NORM)
    bool norms_plus_one;                // norms are stored minus 1
    bool tied;                          // ignore any output matrix; use the embeddings
    const struct huggingface_key *keys; // in addition to or overriding the common ones; ended by member NULL
    const struct huggingface_name *names;
};

const struct huggingface_family *huggingface_family_find(const char *model_type); // NULL if unknown
// All model types, for messages.
void huggingface_family_list(char *out, size_t size);
extern const struct huggingface_key huggingface_common_keys[];
extern const struct huggingface_name huggingface_common_names[];

// ---- a folder being opened ----

struct huggingface_import {
    const char *path;
    bool convert; // matrices
    json_t *config;
    const json_t *text; // text_config, or config itself
    const struct huggingface_family *family;
    struct safetensors files;
    struct thread_pool *pool; // for conversions, NULL before the first
    struct gguf *g;
};

// The member, spelled as in struct huggingface_key; NULL if missing or null.
const json_t *huggingface_member(const struct huggingface_import *f, const char *member);
// A number; `otherwise` if missing. Fails if it is not a number.
bool huggingface_number(const struct huggingface_import *f, const char *member, double otherwise, double *out,
                        struct status *st);
const char *huggingface_string(const struct huggingface_import *f, const char *member); // NULL if not a string
bool huggingface_fail_config(const struct huggingface_import *f, struct status *st, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
// "<architecture>.<name>", valid until the next call on this thread.
const char *huggingface_key_name(const struct huggingface_import *f, const char *name);
// Reads a JSON file of the folder. A missing file is not an error; *out is then NULL.
bool huggingface_read_json(const struct huggingface_import *f, const char *name, json_t **out, struct status *st);

bool huggingface_add_config(struct huggingface_import *f, struct status *st);  // huggingface_config.c
bool huggingface_add_rope(struct huggingface_import *f, struct status *st);    // huggingface_rope.c: keys and factors
bool huggingface_add_tensors(struct huggingface_import *f, struct status *st); // huggingface_tensors.c

// Keys added so far; names without "<architecture>.".
bool huggingface_has_key(const struct huggingface_import *f, const char *name);
uint32_t huggingface_added_int(const struct huggingface_import *f, const char *name); // 0 if missing
// The head size, explicit or from the embedding size; 0 if unknown.
uint32_t huggingface_head_size(const struct huggingface_import *f);

// ---- huggingface_source.c ----

// A tensor of the files, as rows in a block format, decoded if necessary.
struct huggingface_source {
    const struct safetensors_tensor *tensor;
    const struct block_format *format; // of the decoded rows
    int n_dims;
    uint64_t dims[4]; // innermost first
    uint64_t rows, columns;
    size_t row_bytes;
    // Decodes a row; NULL if rows are used as they are at tensor->data.
    void (*decode)(const struct huggingface_source *s, uint64_t row, void *out);
    const struct safetensors_tensor *scales; // FP8, MXFP4
    uint64_t scale_rows, scale_columns;      // FP8: rows and columns per scale
    uint64_t scales_per_row;
    const float *absmax, *codes; // NF4: of each block; values of the 16 codes
    uint64_t block;              // NF4: elements per absmax
};

bool huggingface_source_open(struct huggingface_import *f, const struct safetensors_tensor *t,
                             struct huggingface_source *s, struct status *st);
void huggingface_source_read(const struct huggingface_source *s, uint64_t row, void *out);
// Whether a tensor of this name only describes another one (scales, quantisation state).
bool huggingface_source_is_part(const char *name);

#endif
