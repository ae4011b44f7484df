// Models: lists the models on this machine, including those that other programs downloaded, and finds them by name.
//
// The search goes through the places in the table of model_sources.c. Names and sizes come first, without opening
// files, then what the headers say. It is limited in depth, number and time, and safe on any thread; what does not
// exist or cannot be read is skipped.
#ifndef CONFAB_APP_MODELS_H
#define CONFAB_APP_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

#define MODEL_SOURCE_OWN "confab" // of models in confab's own folder

enum model_container { MODEL_GGUF, MODEL_SAFETENSORS, MODEL_BUILT_IN };

struct model_entry {
    char *name;         // what -m accepts: unique in its list, clean for display
    char *path;         // for model_file_open; NULL: the built-in model
    const char *source; // whose folder it is in: "Ollama"
    enum model_container container;
    uint64_t bytes;    // of all its files
    int parts;         // number of files
    int64_t last_used; // by confab, in seconds since 1970; 0: never
    uint64_t device, inode;

    // Set by models_describe, time permitting; before, NULL and 0.
    char *family, *format; // format: of most of its bytes
    uint64_t n_parameters;
    uint64_t need; // bytes of the machine's memory for one conversation of 4,096 tokens, or of the model's context if
                   // that is less
    char *problem; // why it cannot run; NULL: no known reason
};

struct model_list {
    struct model_entry *entries; // sorted by name
    int count, capacity;
    bool cut; // a limit of the search was reached
};

// Where confab keeps models of its own; may not exist. The caller frees; NULL: there is no home.
char *model_own_folder(void);

struct model_opener;
void models_scan(struct model_list *list, const struct model_opener *opener); // *list is overwritten
// Reads headers, for at most so long.
void models_describe(struct model_list *list, const struct model_opener *opener, double seconds);
void models_free(struct model_list *list);

// Finds the entry that `word` means: a whole name, or a unique prefix or part of one, ignoring case. NULL with a status
// that lists the candidates, or similar names.
const struct model_entry *models_find(const struct model_list *list, const char *word, struct status *st);

// Returns a message about this model without its path, if it begins with that.
const char *model_problem(const char *path, const char *message);

// Resolves what -m takes: an existing path, or else a name. *path, which the caller frees, is NULL for the built-in
// model. A failure lists similar names.
bool models_resolve(const char *word, char **path, struct status *st);

// What a list calls the model that -m takes; one that is in none goes by its file's name. The caller frees.
char *models_name(const char *word);

const char *model_container_name(enum model_container container); // "GGUF"

#endif
