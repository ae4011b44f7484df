// Local engine: a model of this machine's on threads of its own, what it is opened with, and the memory it takes.
//
// It owns weights, KV cache, scheduler and sampler. Commands of its clients go in through one queue, metrics come out
// through snapshots.
#ifndef CONFAB_LOCAL_ENGINE_H
#define CONFAB_LOCAL_ENGINE_H

#include "engine/backend_options.h"
#include "engine/engine.h"
#include "engine/model_file.h"

// How the next tokens of an answer are guessed, to be computed in one step and taken where they are what is drawn.
// Where a backend's rows are equal the text is the same, to the bit, as without; elsewhere it is as equal as beside
// other conversations.
enum draft_kind {
    DRAFT_OFF,
    DRAFT_LOOKUP, // from what followed where the last tokens stood in the conversation before
    DRAFT_MODEL   // and, where that finds nothing likely, by a small model
};
// Saved pages of conversations in a folder: see engine/serve/hibernate.h. All zero: none.
struct engine_hibernation {
    uint64_t budget;      // bytes that its files may take
    const char *folder;   // copied; NULL: the user's own, local_engine_saved_folder
    double delay;         // seconds that a conversation rests before it is saved
    double worth_seconds; // what can be computed again in less time is not saved
};
#define HIBERNATION_DELAY         2.0
#define HIBERNATION_WORTH_SECONDS 0.1

struct engine_params {
    int n_threads;     // 0: one a physical core, for a small model one alone
    int context;       // tokens a conversation may have, 0: the model's own, at most the arena
    int kv_tokens;     // KV arena in tokens, 0: chosen from the machine's memory
    int prefill_chunk; // prompt rows a step at most, 0: default
    enum draft_kind draft;
    const char *draft_model;      // path of a model of the same vocabulary, for DRAFT_MODEL; borrowed
    struct status *draft_refused; // set where that model cannot draft, and lookup does alone; NULL: then nothing opens
    struct engine_hibernation hibernation;
    struct backend_options options;
};

struct engine *local_engine_open(struct model_file *m, const struct engine_params *p,
                                 struct status *st); // m outlives it

// Removes what is saved of a conversation from a folder, for when no engine has it open. Touches the disk.
char *local_engine_saved_folder(void); // the caller frees; NULL: there is none
void local_engine_remove_saved(const char *folder, uint64_t disk_owner);

// ---- memory, as local_engine_open itself reckons it ----

// Bytes of the machine's memory, but for on_devices.
struct model_memory {
    uint64_t weights;  // what is copied of them, at once or as the file was opened; what stays in the mapped file is
                       // none of ours
    uint64_t in_place; // weights that are read where the file has them: no part of the total
    uint64_t buffers;  // activations and scratch
    uint64_t kv;       // the KV cache
    uint64_t total;
    uint64_t on_devices; // weights, buffers and KV cache in the own memory of devices: no part of the total
    int kv_tokens;       // that the KV cache holds
    int context;         // that a conversation may have
};
// On a machine with so many bytes free, beside what the file itself holds; devices are asked what they have free. The
// draft model is counted where its file can be read, of whatever vocabulary. False: no engine can be opened with these,
// however much were free.
bool local_engine_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                         struct model_memory *out, struct status *st);
// On the CPU: the tokens of KV cache that find room beside everything else; 0: not even the weights do.
int local_engine_tokens_that_fit(const struct model_file *m, enum kv_type kv_type, uint64_t available);
// On the CPU: bytes that a token takes in a KV cache of this type; 0 when the model cannot run.
uint64_t local_engine_token_bytes(const struct model_file *m, enum kv_type kv_type);

#endif
