// Hibernation in the scheduler: see scheduler_hibernate.c. Private to the scheduler's files.
#ifndef CONFAB_SERVE_SCHEDULER_HIBERNATE_H
#define CONFAB_SERVE_SCHEDULER_HIBERNATE_H

#include "engine/serve/hibernate.h"
#include "engine/serve/scheduler.h"

enum { HIBERNATION_MOST_PAGES = 4096 }; // of a file

struct hibernation_rest { // a text that was computed, and has not been looked at since
    uint64_t conversation, owner;
    double due;
    int32_t *tokens; // [n_pages × KV_PAGE_TOKENS]
    int n_pages;
    int n_done; // pages that are on the disk, or were given to be saved: once, whether that succeeds or not
};

struct wake;
struct hibernation {
    struct hibernate *store; // borrowed; NULL: nothing goes to the disk
    uint64_t model_key, fingerprint;
    double delay, worth_seconds;
    struct hibernation_rest *rests; // [n_rests], the next one due first
    int n_rests;
    struct hibernate_job *making; // pages of the first of them that are being read out
    struct wake *wakes;           // texts that are being loaded
    double read_rate;             // of the disk, bytes a second
    int64_t woken_tokens;
};

void hibernation_open(struct scheduler *s, const struct hibernation_params *p);
void hibernation_close(struct scheduler *s);
void hibernation_renew(struct scheduler *s); // the model is open elsewhere

void hibernation_rest(struct scheduler *s, const struct sequence *q); // q ends
void hibernation_forget(struct scheduler *s, uint64_t conversation, uint64_t owner);
// Whether q is to wait for pages from the disk, because that has more of its tokens than the n_known that are to be had
// otherwise. A sequence looks once.
bool hibernation_wakes(struct scheduler *s, struct sequence *q, int n_known);
void hibernation_metrics(const struct scheduler *s, struct engine_metrics *out);
void hibernation_leave(struct sequence *q); // q waits no more

#endif
