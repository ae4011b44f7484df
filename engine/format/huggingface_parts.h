// What the files of the Hugging Face import share. huggingface.c opens a folder; huggingface_families.c has the tables;
// huggingface_config.c makes keys of config.json, huggingface_rope.c those of RoPE; huggingface_tensors.c places
// tensors, whose rows huggingface_source.c reads.
#ifndef CONFAB_FORMAT_HUGGINGFACE_PARTS_H
#define CONFAB_FORMAT_HUGGINGFACE_PARTS_H

#include <jansson.h>

#include "engine/format/huggingface.h"
#include "engine/format/safetensors.h"

// ---- tables ----

enum hf_type {
    HF_INTEGER,
    HF_FLOAT,
    HF_ROOT, // a float, 1 / √ of the member
    HF_BOOL,
};

struct hf_key {
    const char *member; // of config.json: "a|b" = a, or b where there is no a; "a.b" = b in the object a
    const char *key;    // without "<architecture>."
    enum hf_type type;
    double fallback; // what the family means where the member is missing; 0: no key then
};

enum hf_change {
    HF_PLAIN,
    HF_QUERY,         // rows of every head permuted, in families that say so
    HF_KEY,           // likewise
    HF_HALVES,        // the first half of the rows, the second half
    HF_INTERLEAVED,   // even rows, odd rows
    HF_EXPERTS,       // one tensor an expert out of a stack
    HF_EXPERT_HALVES, // both
    HF_HEAD,          // a head's vector: joined with those of the other heads
};

// "{layer}" and "{item}" stand for numbers. A ".weight" or ".bias" behind `from` goes behind `to`.
struct hf_name {
    const char *from, *to, *second; // second: of the two that halves and interleaved rows make
    enum hf_change change;
};

struct hf_family {
    const char *model_types[4]; // in config.json
    const char *architecture;   // in GGUF
    bool permute;               // rotates neighbours, so queries and keys are permuted (ROPE_NORM)
    bool norms_plus_one;        // stores norms less 1
    bool tied;                  // has no output matrix of its own, whatever the files hold
    const struct hf_key *keys;  // beyond the common ones, or instead of them; ended by member NULL
    const struct hf_name *names;
};

const struct hf_family *hf_family_find(const char *model_type); // NULL: unknown
// All model types, for messages.
void hf_family_list(char *out, size_t size);
extern const struct hf_key hf_common_keys[];
extern const struct hf_name hf_common_names[];

// ---- a folder being opened ----

struct hf_folder {
    const char *path;
    bool convert; // matrices
    json_t *config;
    const json_t *text; // the part of it about the language model; config itself where there is no other
    const struct hf_family *family;
    struct safetensors files;
    struct gguf *g;
};

// The member as in struct hf_key; NULL where missing or null.
const json_t *hf_member(const struct hf_folder *f, const char *member);
// A number; `otherwise` where missing. Fails where it is something else.
bool hf_number(const struct hf_folder *f, const char *member, double otherwise, double *out, struct status *st);
const char *hf_text(const struct hf_folder *f, const char *member); // NULL where missing or no string
bool hf_fail_config(const struct hf_folder *f, struct status *st, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
// "<architecture>.<name>", valid until the next call on this thread.
const char *hf_key_name(const struct hf_folder *f, const char *name);
// A JSON file of the folder. *out is NULL where there is none, which is no failure.
bool hf_read_json(const struct hf_folder *f, const char *name, json_t **out, struct status *st);

bool hf_add_config(struct hf_folder *f, struct status *st);  // huggingface_config.c
bool hf_add_rope(struct hf_folder *f, struct status *st);    // huggingface_rope.c: keys and factors
bool hf_add_tensors(struct hf_folder *f, struct status *st); // huggingface_tensors.c

// Of the keys added so far, without "<architecture>.".
bool hf_has_key(const struct hf_folder *f, const char *name);
uint32_t hf_figure(const struct hf_folder *f, const char *name); // an integer; 0 where there is none
// Size of a head, as said or what the embedding leaves each; 0 where the figures make none.
uint32_t hf_head_size(const struct hf_folder *f);

// ---- huggingface_source.c ----

// A tensor of the files as rows in a format of ours, decoded where that takes it.
struct hf_source {
    const struct safetensors_tensor *tensor;
    const struct block_format *format; // of the rows that come out
    int n_dims;
    uint64_t dims[4]; // innermost first
    uint64_t rows, columns;
    size_t row_bytes;
    // One row; NULL where rows lie at tensor->data as they are.
    void (*decode)(const struct hf_source *s, uint64_t row, void *out);
    const struct safetensors_tensor *scales; // FP8, MXFP4
    uint64_t scale_rows, scale_columns;      // FP8: rows and columns that share a scale
    uint64_t scales_a_row;
    const float *absmax, *codes; // NF4: of each block; what the 16 codes stand for
    uint64_t block;              // NF4: elements that share an absmax
};

bool hf_source_open(struct hf_folder *f, const struct safetensors_tensor *t, struct hf_source *s, struct status *st);
void hf_source_read(const struct hf_source *s, uint64_t row, void *out);
// Whether a tensor of this name only says how another one is to be read.
bool hf_source_is_part(const char *name);

#endif
