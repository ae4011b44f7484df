// Log view: which entries of the log are shown, in the pane beside the chat and in the one over it, which share one.
#ifndef CONFAB_UI_LOG_VIEW_H
#define CONFAB_UI_LOG_VIEW_H

#include "ui/list.h"
#include "ui/text_field.h"

// A zeroed struct log_view shows all entries, up to the newest.
struct log_view {
    int hidden;               // levels, from the least serious on
    int back;                 // beside the chat: entries below the last one in sight
    struct text_field filter; // over the chat
    struct list list;         // there, of those with what is typed
    uint64_t numbers[LOG_RING]; // of the entries of its rows, as it was last drawn
    uint64_t chosen;          // number of the one with the cursor
    bool left;                // the end: otherwise the cursor follows the newest
    uint64_t unread;          // number of the first entry that was not there when the pane was last seen
};

const char *log_view_level(const struct log_view *v); // "warnings and errors"
void log_view_next_level(struct log_view *v, int step);
// Indices of the entries shown that have the words, oldest first, into out; returns how many.
int log_view_find(const struct log_view *v, const struct screen_view *view, const char *words, int out[LOG_RING]);
int log_view_unread_errors(const struct log_view *v, const struct screen_view *view);
enum theme_role log_view_role(enum log_level level);
const char *log_view_mark(enum log_level level); // says in two columns what the colour says; "": nothing
void log_view_time(const struct log_entry *e, char out[16]); // "23:10:00"

#endif
