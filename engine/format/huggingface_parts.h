// What the files of the Hugging Face import share. huggingface.c opens a folder; huggingface_families.c has the tables;
// huggingface_config.c makes keys of config.json, huggingface_rope.c those of RoPE; huggingface_tensors.c places
// tensors, whose rows huggingface_source.c reads.
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
    MEMBER_ROOT, // a float, 1 / √ of the member
    MEMBER_BOOL,
};

struct huggingface_key {
    const char *member; // of config.json: "a|b" = a, or b where there is no a; "a.b" = b in the object a
    const char *key;    // without "<architecture>."
    enum huggingface_type type;
    double fallback; // what the family means where the member is missing; 0: no key then
};

enum huggingface_change {
    PLACE_PLAIN,
    PLACE_QUERY,         // rows of every head permuted, in families that say so
    PLACE_KEY,           // likewise
    PLACE_HALVES,        // the first half of the rows, the second half
    PLACE_INTERLEAVED,   // even rows, odd rows
    PLACE_EXPERTS,       // one tensor an expert out of a stack
    PLACE_EXPERT_HALVES, // both
    PLACE_HEAD,          // a head's vector: joined with those of the other heads
};

// "{layer}" and "{item}" stand for numbers. A ".weight" or ".bias" behind `from` goes behind `to`.
struct huggingface_name {
    const char *from, *to, *second; // second: of the two that halves and interleaved rows make
    enum huggingface_change change;
};

struct huggingface_family {
    const char *model_types[4];         // in config.json
    const char *architecture;           // in GGUF
    bool permute;                       // rotates neighbours, so queries and keys are permuted (ROPE_NORM)
    bool norms_plus_one;                // stores norms less 1
    bool tied;                          // has no output matrix of its own, whatever the files hold
    const struct huggingface_key *keys; // beyond the common ones, or instead of them; ended by member NULL
    const struct huggingface_name *names;
};

const struct huggingface_family *huggingface_family_find(const char *model_type); // NULL: unknown
// All model types, for messages.
void huggingface_family_list(char *out, size_t size);
extern const struct huggingface_key huggingface_common_keys[];
extern const struct huggingface_name huggingface_common_names[];

// ---- a folder being opened ----

struct huggingface_import {
    const char *path;
    bool convert; // matrices
    json_t *config;
    const json_t *text; // the part of it about the language model; config itself where there is no other
    const struct huggingface_family *family;
    struct safetensors files;
    struct thread_pool *pool; // for conversions, NULL before the first
    struct gguf *g;
};

// The member as in struct huggingface_key; NULL where missing or null.
const json_t *huggingface_member(const struct huggingface_import *f, const char *member);
// A number; `otherwise` where missing. Fails where it is something else.
bool huggingface_number(const struct huggingface_import *f, const char *member, double otherwise, double *out,
                        struct status *st);
const char *huggingface_text(const struct huggingface_import *f, const char *member); // NULL where missing or no string
bool huggingface_fail_config(const struct huggingface_import *f, struct status *st, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
// "<architecture>.<name>", valid until the next call on this thread.
const char *huggingface_key_name(const struct huggingface_import *f, const char *name);
// A JSON file of the folder. *out is NULL where there is none, which is no failure.
bool huggingface_read_json(const struct huggingface_import *f, const char *name, json_t **out, struct status *st);

bool huggingface_add_config(struct huggingface_import *f, struct status *st);  // huggingface_config.c
bool huggingface_add_rope(struct huggingface_import *f, struct status *st);    // huggingface_rope.c: keys and factors
bool huggingface_add_tensors(struct huggingface_import *f, struct status *st); // huggingface_tensors.c

// Of the keys added so far, without "<architecture>.".
bool huggingface_has_key(const struct huggingface_import *f, const char *name);
uint32_t huggingface_figure(const struct huggingface_import *f, const char *name); // an integer; 0 where there is none
// Size of a head, as said or what the embedding leaves each; 0 where the figures make none.
uint32_t huggingface_head_size(const struct huggingface_import *f);

// ---- huggingface_source.c ----

// A tensor of the files as rows in a format of ours, decoded where that takes it.
struct huggingface_source {
    const struct safetensors_tensor *tensor;
    const struct block_format *format; // of the rows that come out
    int n_dims;
    uint64_t dims[4]; // innermost first
    uint64_t rows, columns;
    size_t row_bytes;
    // One row; NULL where rows lie at tensor->data as they are.
    void (*decode)(const struct huggingface_source *s, uint64_t row, void *out);
    const struct safetensors_tensor *scales; // FP8, MXFP4
    uint64_t scale_rows, scale_columns;      // FP8: rows and columns that share a scale
    uint64_t scales_a_row;
    const float *absmax, *codes; // NF4: of each block; what the 16 codes stand for
    uint64_t block;              // NF4: elements that share an absmax
};

bool huggingface_source_open(struct huggingface_import *f, const struct safetensors_tensor *t,
                             struct huggingface_source *s, struct status *st);
void huggingface_source_read(const struct huggingface_source *s, uint64_t row, void *out);
// Whether a tensor of this name only says how another one is to be read.
bool huggingface_source_is_part(const char *name);

#endif
