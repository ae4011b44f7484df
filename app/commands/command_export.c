// `confab export`: writes chats for other programs and people.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/base/clean.h"
#include "app/commands/command.h"
#include "app/session/export.h"
#include "app/session/store.h"
#include "engine/base/match.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"

enum { NAMED_MOST = 5 }; // chats that a message names

struct chats {
    struct conversation *list; // as store_list has them
    int count, capacity;
};

static void keep(void *context, struct conversation *found) {
    struct chats *c = context;
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 64;
        c->list = xrealloc(c->list, (size_t)c->capacity * sizeof *c->list);
    }
    c->list[c->count++] = *found;
}

static void forget(struct chats *c) {
    for (int i = 0; i < c->count; i++) conversation_close(&c->list[i]);
    free(c->list);
}

// ---- which of them ----

static bool has_title(const struct conversation *c, const struct match_needle *title, bool whole) {
    size_t start, end, size = strlen(c->title);
    return match_find(title, c->title, size, 0, &start, &end) && (!whole || (start == 0 && end == size));
}

// Those whose title is `word`, or otherwise has it in it. Returns how many, the last of them in *found.
static int with_title(const struct chats *chats, const char *word, int *found, bool *whole) {
    const struct match_needle title = match_needle(word, strlen(word));
    int count = 0;
    for (int exact = 1; exact >= 0 && !count; exact--)
        for (int i = 0; i < chats->count; i++)
            if (has_title(&chats->list[i], &title, exact)) *found = i, *whole = exact, count++;
    return count;
}

static int with_number(const struct chats *chats, const char *word) {
    char *end;
    const long long row = strtoll(word, &end, 10);
    for (int i = 0; i < chats->count && end != word && !*end; i++)
        if (chats->list[i].row == row) return i;
    return -1;
}

static bool several(const struct chats *chats, const char *word, int count, bool whole, struct status *st) {
    const struct match_needle title = match_needle(word, strlen(word));
    char names[300] = "";
    int named = 0;
    for (int i = chats->count - 1; i >= 0 && named < NAMED_MOST; i--) {
        if (!has_title(&chats->list[i], &title, whole)) continue;
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%lld '%.30s'", named++ ? ", " : "", (long long)chats->list[i].row,
                 chats->list[i].title);
    }
    return status_fail(st, STATUS_USAGE, "'%s' matches %d chats; give a number: %s%s", word, count, names,
                       named < count ? ", ..." : "");
}

// Index in the list; −1: none, and why.
static int choose(const struct chats *chats, const char *word, struct status *st) {
    int found = chats->count - 1;
    bool whole = false;
    if (found < 0) status_fail(st, STATUS_IO, "no chats");
    for (int i = found - 1; i >= 0; i--) // pinned ones stand behind the others
        if (chats->list[i].used > chats->list[found].used) found = i;
    if (found < 0 || !word) return found;
    const int number = with_number(chats, word), count = with_title(chats, word, &found, &whole);
    if (number >= 0) return number;
    if (!count) status_fail(st, STATUS_USAGE, "no chat with the title '%s'", word);
    if (count > 1) several(chats, word, count, whole, st);
    return count == 1 ? found : -1;
}

// ---- writing ----

struct target {
    enum export_format format;
    bool folder, replace;
    const char *path; // NULL: standard output
    struct output_file file;
};

static bool write_text(struct target *t, const char *text, size_t size, struct status *st) {
    if (t->path) return output_file_write(&t->file, text, size, st);
    clean_write(stdout, text, size);
    return true;
}

static bool open_file(struct target *t, const char *path, struct status *st) {
    struct stat there;
    if (output_file_open(&t->file, path, t->replace, st)) return true;
    if (t->replace || stat(path, &there) || !S_ISREG(there.st_mode)) return false;
    return status_fail(st, STATUS_IO, "%s: already exists (use --force to overwrite)", path);
}

static bool write_each(struct target *t, const struct conversation *c, struct status *st) {
    char *name = export_file_name(c, c->row, t->format), *path = xasprintf("%s/%s", t->path, name);
    size_t size;
    char *text = export_document(c, t->format, &size);
    bool done = open_file(t, path, st);
    if (done && !output_file_write(&t->file, text, size, st)) output_file_discard(&t->file), done = false;
    done = done && output_file_keep_unsynced(&t->file, st);
    free(text), free(path), free(name);
    return done;
}

// Part of the one document; NULL: its beginning or end.
static bool write_part(struct target *t, const struct conversation *c, bool end, const char *title, struct status *st) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) panic("out of memory");
    if (c) export_chat(out, t->format, c);
    else if (end) export_end(out, t->format);
    else export_begin(out, t->format, title);
    fclose(out);
    bool done = write_text(t, text, size, st);
    free(text);
    return done;
}

static bool write_chat(struct target *t, struct store *store, struct conversation *c, struct status *st) {
    bool done = store_read(store, c, st);
    done = done && (t->folder ? write_each(t, c, st) : write_part(t, c, false, NULL, st));
    conversation_forget_messages(c); // one at a time
    return done;
}

static bool write_chats(struct target *t, struct store *store, struct chats *chats, int from, int to,
                        struct status *st) {
    const bool file = t->path && !t->folder;
    const char *title = to - from == 1 ? export_title(&chats->list[from]) : "Chats";
    if (file && !open_file(t, t->path, st)) return false;
    bool done = t->folder || write_part(t, NULL, false, title, st);
    for (int i = from; i < to && done; i++) done = write_chat(t, store, &chats->list[i], st);
    done = done && (t->folder || write_part(t, NULL, true, NULL, st));
    if (file && !done) output_file_discard(&t->file);
    return done && (!file || output_file_keep(&t->file, st));
}

static bool is_folder(const char *path) {
    struct stat file;
    const size_t size = strlen(path);
    return (size && path[size - 1] == '/') || (!stat(path, &file) && S_ISDIR(file.st_mode));
}

static bool run(const struct settings *s, const char *word, struct status *st) {
    char *path = path_data("confab.db");
    struct target target = {.format = (enum export_format)s->export_format, .path = s->output, .replace = s->force};
    struct chats chats = {0};
    if (s->all && word) status_fail(st, STATUS_USAGE, "CHAT and --all exclude each other");
    else if (!path) status_fail(st, STATUS_IO, "no chats: neither XDG_DATA_HOME nor HOME is set");
    struct store *store = path && !st->code ? store_open(path, st) : NULL;
    free(path);
    if (!store) return false;
    target.folder = target.path && is_folder(target.path);
    if (target.path && !target.folder && export_format_of(target.path) < EXPORT_FORMAT_COUNT)
        target.format = export_format_of(target.path);
    bool done = store_list(store, s, keep, &chats, st);
    const int chosen = done ? s->all ? 0 : choose(&chats, word, st) : -1;
    if (target.folder) {
        char *inside = xasprintf("%s/chat", target.path); // the folder is made
        done = done && path_make_parents(inside, st);
        free(inside);
    }
    done = done && chosen >= 0 && write_chats(&target, store, &chats, chosen, s->all ? chats.count : chosen + 1, st);
    if (done && target.path) {
        const int count = s->all ? chats.count : 1;
        printf("exported %d chat%s to %s\n", count, count == 1 ? "" : "s", target.path);
    }
    forget(&chats);
    store_close(store);
    return done;
}

int command_export(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    return run(s, n_arguments ? arguments[0] : NULL, &st) ? EXIT_DONE : command_fail(&st);
}
