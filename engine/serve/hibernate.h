// Hibernation: pages of conversations in a folder on the disk, where they outlive the engine.
//
// What a conversation has computed when it rests is written to files of consecutive pages (hibernate_file.h), as far as
// it is not there yet; who asks with a text that begins alike reads the pages instead of computing them, today or
// tomorrow. Pages are found by their tokens and by what computed them alone, so that forks share files, and several
// engines and programs share a folder: names of files follow from their contents, a file appears whole or not at all,
// and one that is gone, damaged or foreign is only ever a page that is not found. A kill leaves at most a temporary
// file, which a later start removes. Files belong to this user alone.
//
//   scheduler (scheduler_hibernate.c)                    the worker of this module
//   a sequence ends ─► its text rests ─► pages are   ─save─►  makes room: least recently used first, and of one use the
//                      read out of the KV cache               later pages first; writes a file
//   a prompt comes ─► it waits ──────────────────────  ─look─►
//                      where that is sooner ─────────  ─load─►  reads, verifies
//                      ◄─ written into the KV cache, found by the prefix index ──┘
//   a chat is deleted ──────────────────────────── ─forget─► removes its files
//
// The worker alone touches the disk. Looks and loads overtake saves, between two pages of these. The index of what is
// there is read when the folder is opened, and what others changed since when somebody looks; it lies behind a lock
// that is never held over a system call. Used by the engine thread.
#ifndef CONFAB_SERVE_HIBERNATE_H
#define CONFAB_SERVE_HIBERNATE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

enum hibernate_kind {
    HIBERNATE_LOOK, // the index is as the folder is by then
    HIBERNATE_LOAD,
    HIBERNATE_SAVE,
    HIBERNATE_FORGET
};

struct hibernate_job {
    enum hibernate_kind kind;
    uint64_t fingerprint, owner; // owner: whose files; the same whenever the conversation is opened
    uint64_t conversation;       // of the engine; the caller's
    int32_t *tokens;             // [(first + n_pages) × KV_PAGE_TOKENS] from the beginning of the text; owned
    int first, n_pages;          // the pages to save or load
    uint64_t page_bytes;
    uint8_t *data;  // [n_pages, page_bytes]; owned
    int n_done;     // pages that were saved or loaded, the first ones; they are right
    double seconds; // that it took
    void *context;  // the caller's
    struct hibernate_job *next;
};
void hibernate_job_free(struct hibernate_job *job);

struct hibernate_params {
    const char *folder; // is made where it is missing
    uint64_t budget;    // bytes of files; what is written beyond it makes older ones go
    // Told of every job that has ended, on the worker's thread; it owns the job from then on.
    void (*done)(void *context, struct hibernate_job *job);
    void *context;
};

struct hibernate;
struct hibernate *hibernate_open(const struct hibernate_params *p, struct status *st);
// What was to be saved is, within a moment; what takes longer is given up.
void hibernate_close(struct hibernate *h);

void hibernate_do(struct hibernate *h, struct hibernate_job *job); // takes it
uint64_t hibernate_backlog(struct hibernate *h);                   // bytes that wait to be saved

enum hibernate_page { HIBERNATE_ABSENT, HIBERNATE_COMING, HIBERNATE_THERE }; // coming: being saved
// Of each of the first n pages of a text, whether it is on the disk.
void hibernate_look(struct hibernate *h, uint64_t fingerprint, const int32_t *tokens, int n, enum hibernate_page *out);

struct hibernate_usage {
    uint64_t bytes, budget; // of files, as far as this index knows
    int files;
};
struct hibernate_usage hibernate_usage(struct hibernate *h);

// Removes the files of a conversation from a folder that no engine of this program has open. Touches the disk.
void hibernate_remove(const char *folder, uint64_t owner);

#endif
