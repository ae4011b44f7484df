#include "app/session/asked.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

enum {
    BYTES_A_TOKEN = 4, // of text, about
    FOLDED_BYTES = 200 // of the beginning of a folded message
};
#define PLACE "[...]" // of what is left out

bool asked_failed(const struct conversation *talk, int message) {
    const struct message *m = &talk->messages[message];
    return m->role == MESSAGE_MODEL && m->state == MESSAGE_FAILED && !m->size;
}

// ---- which messages ----

const char *asked_system(const struct conversation *talk) {
    return settings_raw(&talk->settings) ? NULL : talk->settings.system;
}

int asked_path(const struct conversation *talk, int last, int *out) {
    int n = 0;
    for (int m = last; m >= 0; m = talk->messages[m].parent) {
        const struct message *at = &talk->messages[m];
        if (asked_failed(talk, m) && at->parent >= 0) m = at->parent;
        else if (at->role == MESSAGE_USER ? m == last || at->use != USE_DROPPED : at->size && at->use != USE_DROPPED)
            out[n++] = m;
    }
    for (int i = 0; i < n / 2; i++) {
        const int other = out[i];
        out[i] = out[n - 1 - i];
        out[n - 1 - i] = other;
    }
    return n;
}

int asked_messages(const struct conversation *talk, int last) {
    int *path = xcalloc((size_t)talk->count + 1, sizeof *path);
    const int n = asked_path(talk, last, path);
    free(path);
    return n;
}

static size_t folded_size(const struct message *m) {
    return m->size <= FOLDED_BYTES ? m->size : FOLDED_BYTES - utf8_incomplete(m->text, FOLDED_BYTES);
}

static const char *text_of(struct asked *p, const struct message *m) {
    const size_t size = folded_size(m);
    if (m->use != USE_FOLDED || size == m->size) return m->text;
    return p->made[p->n_made++] = xasprintf("%.*s " PLACE, (int)size, m->text);
}

static void add(struct asked *p, const struct message *m) {
    struct engine_message *before = p->count ? &p->messages[p->count - 1] : NULL;
    const char *role = message_role_name(m->role), *user = message_role_name(MESSAGE_USER), *text = text_of(p, m);
    const bool after_user = before && !strcmp(before->role, user);
    if (m->role == MESSAGE_USER && after_user) {
        before->text = p->made[p->n_made++] = xasprintf("%s\n\n%s", before->text, text);
        return;
    }
    if (m->role == MESSAGE_MODEL && !after_user)
        p->messages[p->count++] = (struct engine_message){.role = user, .text = PLACE};
    p->messages[p->count++] = (struct engine_message){.role = role, .text = text, .thinking = m->thinking};
}

// The texts of a path, one behind the other, and this one.
static char *join(struct asked *p, const struct conversation *talk, const int *path, int n, const char *text) {
    size_t size = strlen(text), at = 0;
    for (int i = 0; i < n; i++) size += talk->messages[path[i]].size + sizeof " " PLACE;
    char *all = xmalloc(size + 1);
    for (int i = 0; i < n; i++) {
        const char *one = text_of(p, &talk->messages[path[i]]);
        memcpy(all + at, one, strlen(one));
        at += strlen(one);
    }
    strcpy(all + at, text);
    return all;
}

struct asked asked_open_with(const struct conversation *talk, int last, const char *text) {
    int *path = xcalloc((size_t)talk->count + 1, sizeof *path);
    const int n = asked_path(talk, last, path);
    struct asked p = {.messages = xcalloc(2 * (size_t)n + 2, sizeof *p.messages),
                      .made = xcalloc(2 * (size_t)n + 2, sizeof(char *))};
    if (settings_raw(&talk->settings)) {
        p.raw = join(&p, talk, path, n, text ? text : "");
        free(path);
        return p;
    }
    if (asked_system(talk))
        p.messages[p.count++] = (struct engine_message){.role = "system", .text = asked_system(talk)};
    for (int i = 0; i < n; i++) add(&p, &talk->messages[path[i]]);
    if (text) add(&p, &(struct message){.role = MESSAGE_USER, .text = (char *)text, .size = strlen(text)});
    free(path);
    return p;
}

struct asked asked_open(const struct conversation *talk, int last) {
    return asked_open_with(talk, last, NULL);
}

void asked_close(struct asked *p) {
    for (int i = 0; i < p->n_made; i++) free(p->made[i]);
    free(p->made);
    free(p->messages);
    free(p->raw);
}

// ---- tokens ----

int asked_guess(size_t bytes) {
    const size_t tokens = (bytes + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN;
    return tokens < INT32_MAX / 4 ? (int)tokens : INT32_MAX / 4;
}

int asked_system_tokens(const struct conversation *talk) {
    return asked_system(talk) ? asked_guess(strlen(asked_system(talk))) : 0;
}

int asked_tokens(const struct conversation *talk, int message, enum message_use use, bool *guessed) {
    const struct message *m = &talk->messages[message];
    const size_t size = use == USE_FOLDED ? folded_size(m) : m->size;
    *guessed = !m->own_tokens || size < m->size;
    if (!m->own_tokens) return asked_guess(size);
    return size < m->size ? (int)((double)m->own_tokens * (double)size / (double)m->size) : m->own_tokens;
}

// Of these messages: those counted, and those guessed.
static void add_up(const struct conversation *talk, const int *path, int n, int sums[2]) {
    bool guessed;
    sums[false] = sums[true] = 0;
    for (int i = 0; i < n; i++) {
        const int tokens = asked_tokens(talk, path[i], talk->messages[path[i]].use, &guessed);
        sums[guessed] += tokens;
    }
}

int asked_total(const struct conversation *talk, int last, bool *guessed) {
    int *path = xcalloc((size_t)talk->count + 1, sizeof *path), sums[2];
    add_up(talk, path, asked_path(talk, last, path), sums);
    free(path);
    *guessed = sums[true];
    return asked_system_tokens(talk) + sums[false] + sums[true];
}

void asked_count(struct conversation *talk, int answer, int n_prompt, int n_answer) {
    int *path = xcalloc((size_t)talk->count, sizeof *path), uncounted = 0, left = n_prompt - asked_system_tokens(talk);
    const int n = asked_path(talk, talk->messages[answer].parent, path);
    size_t bytes = 0;
    bool guessed;
    for (int i = 0; i < n; i++) {
        const struct message *m = &talk->messages[path[i]];
        if (m->own_tokens) left -= asked_tokens(talk, path[i], talk->messages[path[i]].use, &guessed);
        else uncounted++, bytes += m->size + 1;
    }
    for (int i = 0; i < n && uncounted && left > 0; i++) { // a template may leave messages out by itself
        const struct message *m = &talk->messages[path[i]];
        if (m->own_tokens) continue;
        const int own = (int)((double)left * (double)(m->size + 1) / (double)bytes);
        conversation_count(talk, path[i], own > 0 ? own : 1);
    }
    conversation_count(talk, answer, n_answer);
    free(path);
}

// ---- room ----

// By which guesses are to be multiplied so that all tokens are as many as the engine has counted.
static double scale_of(const struct conversation *talk, const int *path, int n, int *n_prompt) {
    int sums[2];
    add_up(talk, path, n, sums);
    sums[true] += asked_system_tokens(talk);
    if (*n_prompt <= 0) *n_prompt = sums[false] + sums[true];
    return sums[true] > 0 && *n_prompt > sums[false] ? (double)(*n_prompt - sums[false]) / sums[true] : 1;
}

struct asked_room asked_make_room(struct conversation *talk, int last, int n_prompt, int goal, int context,
                                  bool apply) {
    int *path = xcalloc((size_t)talk->count, sizeof *path), *goes = xcalloc((size_t)talk->count, sizeof *goes);
    const int n = asked_path(talk, last, path);
    const double scale = scale_of(talk, path, n, &n_prompt);
    struct asked_room room = {.left = n_prompt};
    for (int i = 0; i < n && path[i] != last; i++) {
        const struct message *m = &talk->messages[path[i]];
        bool guessed;
        if (m->use == USE_PINNED) continue;
        if (room.left <= goal && m->role == MESSAGE_USER) break; // an answer goes with its question
        int tokens = asked_tokens(talk, path[i], talk->messages[path[i]].use, &guessed);
        if (guessed) tokens = (int)(tokens * scale);
        goes[room.n_messages++] = path[i];
        room.tokens += tokens;
        room.left -= tokens;
    }
    room.enough = room.n_messages && room.left < context;
    for (int i = 0; apply && room.enough && i < room.n_messages; i++) conversation_use(talk, goes[i], USE_DROPPED);
    free(path);
    free(goes);
    return room;
}
