// `confab import`: adds chats from JSON files.
#include <stdio.h>
#include <stdlib.h>

#include "app/commands/command.h"
#include "app/session/import.h"
#include "app/session/store.h"
#include "engine/base/paths.h"

struct saving {
    struct store *store;
    struct status status; // of the first chat that could not be saved
};

static void save(void *context, struct conversation *found) {
    struct saving *s = context;
    if (!s->status.code) store_save(s->store, found, &s->status);
    conversation_close(found);
}

static const char *plural(int count) { return count == 1 ? "" : "s"; }

// What came before a mistake is kept, and said.
static bool import_one(struct store *store, const char *path, const struct settings *s, struct status *st) {
    struct saving saving = {.store = store};
    struct import_counts n;
    bool done = import_file(path, false, s, save, &saving, &n, st);
    if (saving.status.code) *st = saving.status;
    if (n.chats || done) {
        printf("%s: imported %d chat%s with %d message%s", path, n.chats, plural(n.chats), n.messages,
               plural(n.messages));
        if (n.skipped) printf(", skipped %d message%s", n.skipped, plural(n.skipped));
        putchar('\n');
    }
    return done && !saving.status.code;
}

int command_import(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    char *path = path_data("confab.db");
    if (!path) status_fail(&st, STATUS_IO, "chats cannot be saved: neither XDG_DATA_HOME nor HOME is set");
    struct store *store = path ? store_open(path, &st) : NULL;
    free(path);
    bool done = store;
    for (int i = 0; i < n_arguments && done; i++) done = import_one(store, arguments[i], s, &st);
    if (store) store_close(store);
    return done ? EXIT_DONE : command_fail(&st);
}
