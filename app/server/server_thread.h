// Server thread: a server on a thread of its own, for whoever has a screen to draw: a slow client, a large request or a
// grammar hold up nobody else.
//
//   starting ──► serving ──stop──► stopped
//       └── the port is taken, the keys cannot be read ──┘
//
// The server and all that belongs to it is the thread's alone. What the two have in common lies behind one lock, which
// nobody holds while he does anything that takes time: what the owner wants (orders), and what he is shown (a report).
// The thread never waits for its owner. So the owner may wait for it, and does in three places: until an engine is let
// go, until idle models are unloaded, and until the thread has ended. The first two come with the end of the present
// turn, for which it hurries: it begins no request any more, and what one may cost is limited. All functions are the
// owner's, and are called on one thread.
#ifndef CONFAB_SERVER_SERVER_THREAD_H
#define CONFAB_SERVER_SERVER_THREAD_H

#include "app/models/model.h"
#include "app/server/snapshot.h"

enum server_state { SERVER_STARTING, SERVER_SERVING, SERVER_STOPPED };

struct server_report {
    enum server_state state;
    int port;
    struct status failure; // why it does not serve; ok: it does, or was told to stop
    struct server_snapshot clients;
};

struct server_thread;
// The settings are copied; of them nothing is saved to the disk. NULL: there is no thread to be had.
struct server_thread *server_thread_open(const struct settings *s, const struct model_opener *opener,
                                         struct status *st);
void server_thread_stop(struct server_thread *t);  // and does not wait; the report says when it has
void server_thread_close(struct server_thread *t); // stops, waits, frees; t may be NULL

// Readable when there is something new in the report: a few times a second at most.
int server_thread_fd(const struct server_thread *t);
bool server_thread_look(struct server_thread *t, struct server_report *out); // false: nothing new

struct server_loan { // an engine of the owner's, with its model
    struct engine *engine;
    const char *path; // copied; NULL: the built-in one
    const struct model_info *info;
    const struct model_file *file;
    struct model_memory memory; // that it takes
};
// Clients may use it until it is withdrawn; after that the thread uses nothing of it, and they have been told so. One
// at a time.
void server_thread_lend(struct server_thread *t, const struct server_loan *loan);
void server_thread_withdraw(struct server_thread *t); // waits; nothing happens if none is lent

// Unloads the models that nobody uses, and waits until their memory is free.
void server_thread_make_room(struct server_thread *t);

void server_thread_cancel(struct server_thread *t, uint64_t number); // of an exchange in the report

#endif
