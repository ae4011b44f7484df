#include "app/session/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/utf8.h"

#define TITLE_BYTES 120 // of the first line of the first message

static int64_t now_ms(void) { return (int64_t)(clock_wall_ns() / 1000000); }

void conversation_open(struct conversation *c, uint64_t id, const struct settings *s) {
    *c = (struct conversation){
        .id = id, .title = xstrdup(""), .tags = xstrdup(""), .settings = settings_of_conversation(s), .first = -1};
}

void conversation_set_settings(struct conversation *c, const struct settings *s) {
    settings_free(&c->settings);
    c->settings = settings_of_conversation(s);
    c->dirty = true;
}

// Of a message, the texts that it owns.
#define MESSAGE_TEXTS(X) X(text) X(thinking) X(note) X(notice) X(name) X(edit) X(model)

void conversation_forget_messages(struct conversation *c) {
    for (int i = 0; i < c->count; i++) {
#define X(field) free(c->messages[i].field);
        MESSAGE_TEXTS(X)
#undef X
        message_tokens_free(&c->messages[i].drawn);
        free(c->messages[i].sampling);
    }
    c->count = 0;
    c->first = -1;
    c->prunings = 0;
}

void conversation_close(struct conversation *c) {
    conversation_forget_messages(c);
    free(c->messages);
    free(c->title);
    text_list_clear(&c->waiting);
    free(c->tags);
    settings_free(&c->settings);
    *c = (struct conversation){.first = -1};
}

// The first line that is not blank, cut at a character.
static char *title_of(const char *text) {
    text += strspn(text, " \t\r\n");
    size_t size = strcspn(text, "\r\n");
    if (size > TITLE_BYTES) size = TITLE_BYTES - utf8_incomplete(text, TITLE_BYTES);
    return xstrndup(text, size);
}

static int *chosen_after(struct conversation *c, int message) {
    return message < 0 ? &c->first : &c->messages[message].chosen;
}

int conversation_add(struct conversation *c, int parent, enum message_role role, const char *text, size_t size) {
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 8;
        c->messages = xrealloc(c->messages, (size_t)c->capacity * sizeof *c->messages);
    }
    int added = c->count++;
    c->messages[added] = (struct message){.parent = parent, .chosen = -1, .role = role, .created = now_ms()};
    c->used = c->messages[added].created;
    if (!c->row && !c->created) c->created = c->used;
    conversation_append(c, added, text, size);
    *chosen_after(c, parent) = added;
    c->dirty = true;
    if (!c->named && !*c->title && role == MESSAGE_USER) {
        free(c->title);
        c->title = title_of(c->messages[added].text);
    }
    return added;
}

static void changed(struct message *m) {
    m->revision++;
    m->dirty = true;
}

static void append(char **whole, size_t *used, size_t *capacity, const char *text, size_t size) {
    size_t needed = *used + 3 * size + 1; // a NUL becomes three bytes
    if (needed > *capacity) {
        *capacity = needed < 256 ? 256 : needed + needed / 2;
        *whole = xrealloc(*whole, *capacity);
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i]) (*whole)[(*used)++] = text[i];
        else *used += utf8_encode(UTF8_REPLACEMENT, *whole + *used);
    }
    (*whole)[*used] = 0;
}

void conversation_append(struct conversation *c, int message, const char *text, size_t size) {
    struct message *m = &c->messages[message];
    append(&m->text, &m->size, &m->capacity, text, size);
    changed(m);
}

void conversation_think(struct conversation *c, int message, const char *text, size_t size, double seconds) {
    struct message *m = &c->messages[message];
    append(&m->thinking, &m->thinking_size, &m->thinking_capacity, text, size);
    m->thinking_seconds = seconds;
    changed(m);
}

void conversation_clear(struct conversation *c, int message) {
    struct message *m = &c->messages[message];
    m->size = m->thinking_size = 0;
    m->thinking_tokens = 0;
    if (m->text) *m->text = 0;
    if (m->thinking) *m->thinking = 0;
    message_tokens_free(&m->drawn);
    changed(m);
}

static void replace(struct message *m, char **field, const char *text) {
    free(*field);
    *field = text ? xstrdup(text) : NULL;
    changed(m);
}

void conversation_note(struct conversation *c, int message, const char *note) {
    replace(&c->messages[message], &c->messages[message].note, note);
}

void conversation_notice(struct conversation *c, int message, const char *notice) {
    replace(&c->messages[message], &c->messages[message].notice, notice);
}

void conversation_name(struct conversation *c, int message, const char *name) {
    char *line = title_of(name);
    replace(&c->messages[message], &c->messages[message].name, *line ? line : NULL);
    free(line);
}

void conversation_set_edit(struct conversation *c, int message, const char *edit) {
    struct message *m = &c->messages[message];
    free(m->edit);
    m->edit = edit ? xstrdup(edit) : NULL;
    m->dirty = true;
}

void conversation_set_model(struct conversation *c, int message, const char *model) {
    struct message *m = &c->messages[message];
    free(m->model);
    m->model = xstrdup(model);
    m->revision++;
    m->dirty = true;
}

void conversation_use(struct conversation *c, int message, enum message_use use) {
    if (c->messages[message].use == use) return;
    c->messages[message].use = use;
    changed(&c->messages[message]);
}

void conversation_count(struct conversation *c, int message, int own_tokens) {
    struct message *m = &c->messages[message];
    m->dirty |= m->own_tokens != own_tokens;
    m->own_tokens = own_tokens;
}

void conversation_set_sampling(struct conversation *c, int message, const struct sampling *sampling) {
    struct message *m = &c->messages[message];
    if (!m->sampling) m->sampling = xmalloc(sizeof *m->sampling);
    *m->sampling = *sampling;
    m->dirty = true;
}

// What a chat is called by where nobody has named it. The caller frees.
static char *first_title(const struct conversation *c) {
    int first = 0;
    while (first < c->count && (c->messages[first].role != MESSAGE_USER || c->messages[first].pruned)) first++;
    return title_of(first < c->count ? c->messages[first].text : "");
}

static void set_title(struct conversation *c, char *title) {
    free(c->title);
    c->title = title;
    c->dirty = true;
}

void conversation_rename(struct conversation *c, const char *title) {
    set_title(c, title_of(title));
    c->named = *c->title;
    if (!c->named) set_title(c, first_title(c));
    if (!c->row && !c->created) c->created = now_ms();
}

bool conversation_has_first_title(const struct conversation *c) {
    char *first = first_title(c);
    const bool same = !c->named && !strcmp(c->title, first);
    free(first);
    return same;
}

void conversation_set_title(struct conversation *c, const char *title) { set_title(c, title_of(title)); }

void conversation_wait(struct conversation *c, int place, const char *text) {
    text_list_insert(&c->waiting, place, text);
    c->line_revision++;
    c->dirty = true;
}

char *conversation_wait_no_more(struct conversation *c, int place) {
    c->line_revision++;
    c->dirty = true;
    return text_list_take(&c->waiting, place);
}

void conversation_tag(struct conversation *c, const char *tags) {
    char *words = xstrdup(tags), *rest = NULL, *all = xstrdup("");
    for (char *word = strtok_r(words, " #,\t\r\n", &rest); word; word = strtok_r(NULL, " #,\t\r\n", &rest)) {
        char *longer = xasprintf("%s%s%s", all, *all ? " " : "", word);
        free(all);
        all = longer;
    }
    free(words);
    free(c->tags);
    c->tags = all;
    c->dirty = true;
}

int conversation_last(const struct conversation *c) {
    int last = c->first;
    while (last >= 0 && c->messages[last].chosen >= 0) last = c->messages[last].chosen;
    return last;
}

int conversation_path(const struct conversation *c, int *out) {
    int n = 0;
    for (int m = c->first; m >= 0; m = c->messages[m].chosen) out[n++] = m;
    return n;
}

int conversation_version(const struct conversation *c, int message, int *total) {
    int parent = c->messages[message].parent, number = 0;
    *total = 0;
    for (int i = 0; i < c->count; i++) {
        if (c->messages[i].parent != parent || c->messages[i].pruned) continue;
        ++*total;
        if (i <= message) number++;
    }
    return number;
}

void conversation_versions(const struct conversation *c, int *numbers, int *totals) {
    memset(totals, 0, ((size_t)c->count + 1) * sizeof *totals);
    for (int i = 0; i < c->count; i++) numbers[i] = c->messages[i].pruned ? 0 : ++totals[c->messages[i].parent + 1];
}

bool conversation_switch(struct conversation *c, int message, int step) {
    int parent = c->messages[message].parent, total, wanted = conversation_version(c, message, &total) + step;
    wanted = wanted < 1 ? 1 : wanted > total ? total : wanted;
    for (int i = 0; i < c->count; i++) {
        if (c->messages[i].parent != parent || c->messages[i].pruned || --wanted) continue;
        if (i == message) return false;
        *chosen_after(c, parent) = i;
        c->dirty = true;
        return true;
    }
    return false;
}

void conversation_choose(struct conversation *c, int message) {
    while (message >= 0) {
        int parent = c->messages[message].parent;
        *chosen_after(c, parent) = message;
        message = parent;
    }
}

// The version before a message, otherwise the one after it; −1: it is the only one.
static int neighbour(const struct conversation *c, int message) {
    int parent = c->messages[message].parent, before = -1;
    for (int i = 0; i < c->count; i++) {
        if (c->messages[i].parent != parent || c->messages[i].pruned || i == message) continue;
        if (i > message) return before >= 0 ? before : i;
        before = i;
    }
    return before;
}

// Takes a message away, with all that come after it. Returns how many there were.
static int prune(struct conversation *c, int message, int number) {
    int count = 0;
    for (int i = message; i < c->count; i++) {
        struct message *m = &c->messages[i];
        bool after = i == message || (m->parent >= message && c->messages[m->parent].pruned == number);
        if (!after || m->pruned) continue;
        m->pruned = number;
        m->dirty = true;
        count++;
    }
    c->dirty = true;
    return count;
}

int conversation_prune(struct conversation *c, int message) {
    int *chosen = chosen_after(c, c->messages[message].parent);
    c->messages[message].was_chosen = *chosen == message;
    if (*chosen == message) *chosen = neighbour(c, message);
    return prune(c, message, ++c->prunings);
}

int conversation_marked(const struct conversation *c, int message) {
    int count = 0, parent = c->messages[message].parent;
    for (int i = 0; i < c->count; i++)
        count += c->messages[i].parent == parent && !c->messages[i].pruned && c->messages[i].marked;
    return count;
}

int conversation_keep(struct conversation *c, int message) {
    int number = c->prunings + 1, count = 0, parent = c->messages[message].parent, kept = -1;
    if (!conversation_marked(c, message)) c->messages[message].marked = true;
    for (int i = 0; i < c->count; i++) {
        struct message *m = &c->messages[i];
        if (m->parent != parent || m->pruned) continue;
        if (m->marked && (kept < 0 || i == message)) kept = i;
        m->was_chosen = !m->marked && i == message;
        if (!m->marked) count += prune(c, i, number);
        m->marked = false;
    }
    *chosen_after(c, parent) = kept;
    if (count) c->prunings = number;
    return count;
}

int conversation_restore(struct conversation *c) {
    int first = -1;
    for (int i = c->count - 1; c->prunings && i >= 0; i--) {
        if (c->messages[i].pruned != c->prunings) continue;
        c->messages[i].pruned = 0;
        c->messages[i].dirty = true;
        if (c->messages[i].was_chosen) *chosen_after(c, c->messages[i].parent) = i;
        c->messages[i].was_chosen = false;
        first = i;
    }
    if (first < 0) return -1;
    c->prunings--;
    c->dirty = true;
    return first;
}

void conversation_take_changes(struct conversation *c, struct conversation *copy) {
    *copy = *c;
    copy->title = xstrdup(c->title);
    copy->waiting = text_list_copy(&c->waiting);
    copy->tags = xstrdup(c->tags);
    copy->settings = settings_copy(&c->settings);
    copy->messages = xcalloc((size_t)c->count, sizeof *copy->messages);
    for (int i = 0; i < c->count; i++) {
        struct message *m = &c->messages[i], *own = &copy->messages[i];
        *own = *m;
#define X(field) own->field = m->dirty && m->field ? xstrdup(m->field) : NULL;
        MESSAGE_TEXTS(X)
#undef X
        bool complete = m->dirty && m->state != MESSAGE_STREAMING; // tokens go with the text that is theirs for good
        own->drawn = complete ? message_tokens_copy(&m->drawn) : (struct message_tokens){0};
        own->sampling = NULL;
        if (m->dirty && m->sampling) conversation_set_sampling(copy, i, m->sampling);
        m->dirty = false;
    }
    c->dirty = false;
}

void conversation_put_back(struct conversation *c, const struct conversation *copy, bool written) {
    if (written) c->row = copy->row;
    if (copy->gone) c->row = 0;
    if (!written) c->dirty |= copy->dirty;
    for (int i = 0; i < copy->count; i++) {
        struct message *m = &c->messages[i];
        if (written) m->row = copy->messages[i].row;
        if (copy->gone) m->row = 0;
        if (!written) m->dirty |= copy->gone || copy->torn || copy->messages[i].dirty;
    }
}

// ---- names ----

static const char *const role_names[] = {
#define X(id, name) [id] = name,
    MESSAGE_ROLES(X)
#undef X
};
static const char *const state_names[] = {
#define X(id, name) [id] = name,
    MESSAGE_STATES(X)
#undef X
};
static const char *const use_names[] = {
#define X(id, name) [id] = name,
    MESSAGE_USES(X)
#undef X
};

static int name_find(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return (int)i;
    return 0;
}

const char *message_role_name(enum message_role role) { return role_names[role]; }
const char *message_state_name(enum message_state state) { return state_names[state]; }
const char *message_use_name(enum message_use use) { return use_names[use]; }

#define NAMED(names, name) name_find(names, sizeof(names) / sizeof *(names), name)
enum message_role message_role_named(const char *name) { return (enum message_role)NAMED(role_names, name); }
enum message_state message_state_named(const char *name) { return (enum message_state)NAMED(state_names, name); }
enum message_use message_use_named(const char *name) { return (enum message_use)NAMED(use_names, name); }
