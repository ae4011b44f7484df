// Model host: holds the chat's current model, loads another in its place, and lists those to choose from.
//
//   loading the first ──► ready ──choose──► ready, and loading ──► ready with the new one
//                                              │          └ failed or stopped ──► ready with the old one
//                                              └ not enough memory for both: the old one is closed first, and loaded
//                                                again if the new one fails or is stopped
//
// Used by one thread; slow work is done on others. The engine's user is told before the engine is closed.
#ifndef CONFAB_APP_MODEL_HOST_H
#define CONFAB_APP_MODEL_HOST_H

#include "app/models/model.h"
#include "app/models/models.h"

struct model_host;

// Opens the model that the settings name and starts to load it. Both are borrowed and must outlive the host.
struct model_host *model_host_open(const struct settings *s, const struct model_opener *opener, struct status *st);
void model_host_close(struct model_host *h); // waits a few seconds for a loader at most

// `release` is called before an engine and its client are closed; nothing may use them afterwards, and other clients
// of that engine must be closed by then.
void model_host_watch(struct model_host *h, void (*release)(void *context), void *context);

// Others of this process that hold memory for models: how many bytes of it they would give back, and has them do so,
// which is waited for. The current model comes after them.
struct model_host_others {
    uint64_t (*hold)(void *context);
    void (*give_back)(void *context);
    void *context;
};
void model_host_share(struct model_host *h, const struct model_host_others *others); // copied

enum model_host_event {
    HOST_NOTHING,
    HOST_PROGRESS, // of loading
    HOST_REFUSED,  // what model_host_refused says cannot be loaded: see the status; nothing has changed
    HOST_LISTED,   // model_host_list has changed
    HOST_LOADED,   // there is a new engine
    HOST_FAILED,   // loading failed or was stopped: see the status; the old model may be loading again
};
int model_host_fd(const struct model_host *h); // readable when there may be an event
enum model_host_event model_host_poll(struct model_host *h, struct status *st);

struct engine *model_host_engine(const struct model_host *h);         // NULL: none at the moment
struct engine_client *model_host_client(const struct model_host *h);  // of that engine, for whoever uses the host
const struct model_info *model_host_info(const struct model_host *h); // of the current model, even without an engine
const struct model_file *model_host_file(const struct model_host *h); // likewise
const char *model_host_path(const struct model_host *h);              // likewise; NULL: the built-in model
const char *model_host_draft_refused(const struct model_host *h); // why the draft model does not draft; NULL: it does
const struct model_memory *model_host_memory(const struct model_host *h); // that its engine takes; NULL: there is none

struct model_loading {
    const char *title;
    uint64_t bytes;
    float done; // 0 to 1; −1: unknown
    bool stoppable;
};
const struct model_loading *model_host_loading(struct model_host *h); // NULL: not loading

// Finds the model that word means (models.h), and starts to load it in place of the current one and any that is being
// loaded. HOST_PROGRESS or HOST_REFUSED follows, unless it is stopped or another one is chosen first.
void model_host_choose(struct model_host *h, const char *word);
void model_host_reload(struct model_host *h); // the same with the current one, under the settings as they are now
bool model_host_choosing(const struct model_host *h);       // it is still being looked for
void model_host_wait(struct model_host *h);                 // until it no longer is
const char *model_host_refused(const struct model_host *h); // the latest word that was
void model_host_stop(struct model_host *h);

void model_host_look(struct model_host *h); // starts to search for models, if not doing so already
bool model_host_looking(const struct model_host *h);
const struct model_list *model_host_list(const struct model_host *h);
const struct model_entry *model_host_entry(const struct model_host *h); // the current model in the list; may be NULL
// Bytes of memory for another model, with what the engine in use has, on devices too, and what others would give back;
// 0: unknown.
uint64_t model_host_room(const struct model_host *h);

#endif
