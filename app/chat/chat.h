// Chat: the controller of the chat screen, on top of the session. It carries out commands and shows the screen what
// there is.
//
// One thread. It sleeps in poll() until the terminal, the engine, a signal or one of its own deadlines wakes it; when
// nothing goes on there is no deadline. All deadlines are of clock_ns(), so that tests with a frozen clock are exact.
#ifndef CONFAB_APP_CHAT_H
#define CONFAB_APP_CHAT_H

#include "app/base/settings.h"
#include "app/models/model_host.h"
#include "ui/screen.h"

struct chat;

struct chat_params {              // everything is borrowed and outlives the chat
    struct model_host *host;      // which may still be loading its model
    struct settings *settings;    // changed with what is set on the screen
    const char *config_path;      // NULL: changed settings are not saved
    const char *store_path;       // NULL: conversations are not saved
    const char *kv_folder;        // as of struct session_params
    const char *limits_path;      // of the machine's limits; NULL: they are neither known nor measured
    const char *notice;           // shown as the first status, e.g. a bad line in the configuration; NULL: none
    struct screen_options screen; // theme, ascii and panes come from the settings
};

// A store that cannot be opened is not a failure: it is said on the screen, and the conversations live in memory.
struct chat *chat_open(const struct chat_params *p, struct status *st);

// One turn: waits at most timeout_ms (< 0: as long as need be) for something to happen, handles it, and draws when
// 1/30 s has gone by since the last drawing, 1/60 s after a key. False: the chat is to end.
bool chat_step(struct chat *c, int timeout_ms);
void chat_draw(struct chat *c); // now, whenever the last drawing was
void chat_wait(struct chat *c); // until the disk has answered everything

// Stops what still runs, saves, and gives the terminal back. False when something could not be saved.
bool chat_close(struct chat *c, struct status *st);

int chat_signal(void); // that ended the latest chat, which is to be raised again after closing it; 0: none

#endif
