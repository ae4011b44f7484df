// Finding a chat, and what a person does with chats as a whole: pins, archive, tags, export and import.
#include <stdlib.h>
#include <string.h>

#include "app/chat/chat_state.h"
#include "engine/base/match.h"
#include "engine/base/panic.h"
#include "ui/keys.h"

// A chat that is found; view_found is what the screen is shown of it.
enum { TEXT_FOUND = MATCH_LETTERS_ONLY + 1 };
struct found {
    struct session_chat *chat;
    int index, score; // of its title; TEXT_FOUND: that does not say as much as its text
    int rank;         // of its text among those found
    int64_t message;  // row of the message found; 0: none
    const char *snippet;
};

struct chat_find {
    char *words; // as of the last look; NULL: the pane is not open
    enum find_order order;
    bool stale; // chats may have changed since
    bool known; // the session's matches are of these words
    struct found *found;
    struct view_found *view;
    int count, room;
    struct session_chat *going; // chat to whose message it goes once it is read; NULL: none
    int64_t going_to;           // row of the message
};

void chat_find_open(struct chat *c) { c->find = xcalloc(1, sizeof *c->find); }

void chat_find_close(struct chat *c) {
    free(c->find->words), free(c->find->found), free(c->find->view);
    free(c->find);
}

void chat_find_changed(struct chat *c) { c->find->stale = true; }

void chat_find_matched(struct chat *c) { c->find->known = c->find->stale = true; }

// ---- which chats ----

static bool is_shown(const struct chat_find *f, const struct conversation *talk) {
    const bool begun = talk->count || talk->unread_rows || talk->named;
    if (!begun || (f->order == FIND_ARCHIVED && !talk->archived)) return false;
    return (f->order != FIND_PINNED || talk->pinned) && (f->order == FIND_ARCHIVED || *f->words || !talk->archived);
}

static int title_score(const struct conversation *talk, const char *words) {
    if (!*talk->tags) return match_score(talk->title, words);
    char *text = xasprintf("%s #%s", talk->title, talk->tags);
    for (char *at = text + strlen(talk->title) + 1; (at = strchr(at, ' ')); at++) *at = '#'; // each has one
    const int score = match_score(text, words);
    free(text);
    return score;
}

static int by_order(const struct found *a, const struct found *b) {
    const struct conversation *one = &a->chat->conversation, *other = &b->chat->conversation;
    if (one->used != other->used) return one->used > other->used ? -1 : 1;
    return a->index - b->index;
}

static int by_use(const void *a, const void *b) {
    const struct found *one = a, *other = b;
    const bool pinned = one->chat->conversation.pinned, other_pinned = other->chat->conversation.pinned;
    return pinned != other_pinned ? other_pinned - pinned : by_order(one, other);
}

static int by_title(const void *a, const void *b) {
    const struct found *one = a, *other = b;
    const int order = strcasecmp(one->chat->conversation.title, other->chat->conversation.title);
    return order ? order : by_order(one, other);
}

// A title with the words, then texts with them in the order of the search, then titles that have but the letters.
static int by_score(const void *a, const void *b) {
    const struct found *one = a, *other = b;
    if (one->score != other->score) return other->score - one->score;
    return one->score == TEXT_FOUND ? one->rank - other->rank : by_order(one, other);
}

static void find_titles(struct chat *c) {
    struct chat_find *f = c->find;
    f->count = 0;
    for (int i = 0; i < session_count(c->session); i++) {
        struct session_chat *chat = session_chat(c->session, i);
        const int score = is_shown(f, &chat->conversation) ? title_score(&chat->conversation, f->words) : -1;
        if (score >= 0) f->found[f->count++] = (struct found){.chat = chat, .index = i, .score = score};
    }
}

// A chat that is there for its title gets the words around its match too.
static void find_texts(struct chat *c) {
    struct chat_find *f = c->find;
    int n_matches, *places = xcalloc((size_t)session_count(c->session) + 1, sizeof *places); // by chat, from 1 on
    const struct session_match *matches = session_matches(c->session, &n_matches);
    for (int i = 0; i < f->count; i++) places[f->found[i].index] = i + 1;
    for (int i = 0; i < n_matches; i++) {
        struct session_chat *chat = matches[i].chat;
        const int index = session_index(c->session, chat);
        if (index < 0 || !is_shown(f, &chat->conversation)) continue;
        if (!places[index]) {
            f->found[f->count] = (struct found){.chat = chat, .index = index};
            places[index] = ++f->count;
        }
        struct found *found = &f->found[places[index] - 1];
        if (found->score < TEXT_FOUND) found->score = TEXT_FOUND, found->rank = i;
        found->message = matches[i].message;
        found->snippet = matches[i].snippet;
    }
    free(places);
}

static void find(struct chat *c) {
    struct chat_find *f = c->find;
    const int chats = session_count(c->session);
    if (chats > f->room) {
        f->room = 2 * chats;
        f->found = xrealloc(f->found, (size_t)f->room * sizeof *f->found);
        f->view = xrealloc(f->view, (size_t)f->room * sizeof *f->view);
    }
    find_titles(c);
    if (*f->words && f->known) find_texts(c);
    qsort(f->found, (size_t)f->count, sizeof *f->found,
          *f->words                ? by_score
          : f->order == FIND_TITLE ? by_title
                                   : by_use);
    for (int i = 0; i < f->count; i++) f->view[i] = (struct view_found){f->found[i].index, f->found[i].snippet};
    f->stale = false;
}

void chat_find_show(struct chat *c, struct screen_view *view) {
    struct chat_find *f = c->find;
    enum find_order order = FIND_RECENT;
    const char *words = screen_finding(c->screen, &order);
    if (!words) {
        free(f->words);
        f->words = NULL;
        return;
    }
    const bool other = !f->words || strcmp(f->words, words);
    if (other) {
        free(f->words);
        f->words = xstrdup(words);
        f->known = false;
        if (*words) session_search(c->session, words);
    }
    if (other || f->stale || f->order != order) f->order = order, find(c);
    view->found = f->view;
    view->n_found = f->count;
    view->finding = *words && !f->known && c->p.store_path;
}

// ---- going there ----

static void go_to_message(struct chat *c) {
    struct chat_find *f = c->find;
    const struct conversation *talk = &f->going->conversation;
    const int message = session_message_at(f->going, f->going_to);
    f->going = NULL;
    if (message < 0) return;
    chat_lead_to(c, message);
    screen_show_message(c->screen, talk->id, chat_message_id(talk, message));
}

void chat_find_read(struct chat *c, const struct session_chat *chat) {
    if (c->find->going != chat) return;
    if (c->current == chat) go_to_message(c);
    else c->find->going = NULL;
}

void chat_find_deleted(struct chat *c, const struct session_chat *chat) {
    c->find->count = 0; // what is found may be gone
    c->find->stale = true;
    if (c->find->going == chat) c->find->going = NULL;
}

static const struct found *found_at(const struct chat *c, const struct ui_command *command) {
    const int row = command->number;
    return row >= 0 && row < c->find->count ? &c->find->found[row] : NULL;
}

void chat_find_go(struct chat *c, const struct ui_command *command) {
    const struct found *found = found_at(c, command);
    if (!found) return;
    struct session_chat *chat = found->chat;
    c->find->going = found->message ? chat : NULL;
    c->find->going_to = found->message;
    chat_select(c, chat);
    if (c->find->going && !chat->conversation.unread_rows) go_to_message(c);
}

// ---- chats as a whole ----

// The chat that a command is about: one of those found, or else the one on the screen. NULL: one that is no longer
// found.
static struct session_chat *subject(struct chat *c, const struct ui_command *command) {
    const struct found *found = found_at(c, command);
    return found ? found->chat : command->number < 0 ? c->current : NULL;
}

static const char *title_of(const struct session_chat *chat) {
    return *chat->conversation.title ? chat->conversation.title : "the chat";
}

void chat_pin_chat(struct chat *c, const struct ui_command *command) {
    struct session_chat *chat = subject(c, command);
    if (!chat) return;
    const bool pin = !chat->conversation.pinned;
    session_pin(c->session, chat, pin);
    chat_say(c, false, pin ? "pinned %s" : "%s is no longer pinned", title_of(chat));
}

void chat_archive(struct chat *c, const struct ui_command *command) {
    struct session_chat *chat = subject(c, command);
    if (!chat) return;
    const bool archive = !chat->conversation.archived;
    const char *key = keys_name(COMMAND_FIND_CHAT);
    if (archive && !chat->conversation.count && !chat->conversation.unread_rows) {
        chat_say(c, false, "there is nothing to archive yet");
        return;
    }
    session_archive(c->session, chat, archive);
    if (archive)
        chat_say(c, false, "archived %s%s%s%s", title_of(chat), *key ? " (" : "", key, *key ? " finds it)" : "");
    else chat_say(c, false, "%s is back in the list", title_of(chat));
    if (archive && chat == c->current) chat_new_or_empty(c);
}

void chat_tag(struct chat *c, const struct ui_command *command) {
    session_tag(c->current, command->text ? command->text : "");
    const char *tags = c->current->conversation.tags;
    chat_say(c, false, *tags ? "tags: %s" : "no tags%s", tags);
}

void chat_delete(struct chat *c, const struct ui_command *command) {
    struct session_chat *chat = subject(c, command);
    if (chat) session_delete(c->session, chat);
}

void chat_undelete(struct chat *c, const struct ui_command *command) {
    (void)command;
    struct session_chat *chat = session_undelete(c->session);
    if (!chat) {
        chat_say(c, false, "no chat was deleted since confab began");
        return;
    }
    chat_select(c, chat);
    chat_say(c, false, "%s is back", title_of(chat));
}

// "~" is the home folder, as in a shell.
static char *path_typed(const char *text) {
    const char *home = getenv("HOME");
    if (text[0] == '~' && text[1] == '/' && home) return xasprintf("%s%s", home, text + 1);
    return xstrdup(text);
}

void chat_export(struct chat *c, const struct ui_command *command) {
    char *path = path_typed(command->text ? command->text : "");
    if (c->current->conversation.unread_rows) chat_say(c, true, "this chat is still being read");
    else if (!c->current->conversation.count) chat_say(c, true, "there is no message to export");
    else if (*path) session_export(c->session, c->current, path);
    free(path);
}

void chat_import(struct chat *c, const struct ui_command *command) {
    char *path = path_typed(command->text ? command->text : "");
    if (*path) session_import(c->session, path);
    free(path);
}
