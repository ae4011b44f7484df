// Models: which models there are on this machine, also those that other programs fetched, and what people call them.
//
// A list is made by looking at the places of the table in model_sources.c: names and sizes first, which takes no reading,
// then the headers of the files. Looking is bounded in depth, number and time, and safe on any thread; what is not there
// or cannot be read is passed over.
#ifndef CONFAB_APP_MODELS_H
#define CONFAB_APP_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

enum model_container { MODEL_GGUF, MODEL_SAFETENSORS, MODEL_BUILT_IN };

struct model_entry {
    char *name;         // what -m accepts: unique in its list, clean for display
    char *path;         // as model_file_open takes it; NULL: the built-in model
    const char *source; // whose place it lies in: "Ollama"
    enum model_container container;
    uint64_t bytes;     // of all its files
    int parts;          // files that it is split into
    int64_t last_used;  // by confab, in seconds since 1970; 0: never
    uint64_t device, inode;

    // After models_describe, where there was time for it; NULL and 0 before.
    char *family, *format; // format: that of most of its bytes
    uint64_t n_parameters;
    uint64_t need;         // bytes of memory for one conversation of 4,096 tokens, or its whole context when that is less
    char *problem;         // why it cannot run; NULL: nothing is known against it
};

struct model_list {
    struct model_entry *entries; // by name
    int count, capacity;
    bool cut; // there is more than the bounds of looking allow
};

void models_scan(struct model_list *list); // *list is overwritten
void models_describe(struct model_list *list, double seconds); // reads headers, for so long at most
void models_free(struct model_list *list);

// The entry that `word` means: its whole name, or a beginning or a part that no other has (letter case does not count).
// NULL with a status that lists the candidates, or what is near.
const struct model_entry *models_find(const struct model_list *list, const char *word, struct status *st);

// What is left of a message about this model without its path, which most begin with.
const char *model_problem(const char *path, const char *message);

// What -m takes: a path of something that is there, or else a name. *path, which the caller frees, is NULL for the
// built-in model. A failure says what is near.
bool models_resolve(const char *word, char **path, struct status *st);

const char *model_container_name(enum model_container container); // "GGUF"

#endif
