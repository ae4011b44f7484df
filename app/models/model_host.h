// Model host: the model that the chat talks with, the one that is being loaded to take its place, and the list of those to
// choose from.
//
//   loading the first ──► ready ──choose──► ready, and loading ──► ready with the new one
//                                              │          └ failed or stopped ──► ready with the old one
//                                              └ too little memory for both: the old one goes first, and is loaded
//                                                again when the new one fails or is stopped
//
// One thread uses it; what takes long is done on others. Whoever uses the engine is told before it is closed.
#ifndef CONFAB_APP_MODEL_HOST_H
#define CONFAB_APP_MODEL_HOST_H

#include "app/models/model.h"
#include "app/models/models.h"

struct model_host;

// Opens the file that the settings name (borrowed, as they are to outlive the host) and begins to load it.
struct model_host *model_host_open(const struct settings *s, struct status *st);
void model_host_close(struct model_host *h); // what does not stop soon is left to the end of the process

// `release` is called before an engine is closed: nothing may use it afterwards.
void model_host_watch(struct model_host *h, void (*release)(void *context), void *context);

enum model_host_event {
    HOST_NOTHING,
    HOST_PROGRESS, // of loading
    HOST_LISTED,   // model_host_list has changed
    HOST_LOADED,   // engine and info are those of another model
    HOST_FAILED,   // or stopped: the status says why, and loading says whether the old model is on its way back
};
int model_host_fd(const struct model_host *h); // readable when there may be an event
enum model_host_event model_host_poll(struct model_host *h, struct status *st);

struct engine *model_host_engine(const struct model_host *h);         // NULL: there is none now
const struct model_info *model_host_info(const struct model_host *h); // of the engine's model, or of the one that was there
const char *model_host_path(const struct model_host *h);              // of that model; NULL: the built-in one

struct model_loading {
    const char *title;
    uint64_t bytes;
    float done; // 0 to 1; −1: not known
    bool stoppable;
};
const struct model_loading *model_host_loading(struct model_host *h); // NULL: nothing is loaded

// Begins to load what this word means (models.h) in place of what is there or on its way. False: it cannot be, and nothing has
// changed.
bool model_host_choose(struct model_host *h, const char *word, struct status *st);
void model_host_stop(struct model_host *h);

void model_host_look(struct model_host *h); // begins to look for models, unless it does so already
bool model_host_looking(const struct model_host *h);
const struct model_list *model_host_list(const struct model_host *h);
const struct model_entry *model_host_entry(const struct model_host *h); // of the list: the model that is there; or NULL
uint64_t model_host_room(const struct model_host *h); // bytes of memory that another model could have; 0: not known

#endif
