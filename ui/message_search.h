// Message search: a text looked for in the messages of the chat on the screen: how often each has it, and the match
// gone to. Counted in the text as it was written; where marks of Markdown come between, a match is not highlighted.
#ifndef CONFAB_UI_MESSAGE_SEARCH_H
#define CONFAB_UI_MESSAGE_SEARCH_H

#include "engine/base/match.h"
#include "ui/lines.h"
#include "ui/panes.h"

// A zeroed struct looks for nothing.
struct message_search {
    struct match_needle needle;
    uint32_t version; // changes with the needle
    struct searched {
        uint64_t id;
        uint32_t revision, version; // as of which it was counted
        int count;
    } * messages; // [room]
    int room;
    int from;         // message in sight at the beginning; −1: it has not begun
    uint64_t message; // gone to; 0: none
    int match;        // of its matches
    size_t place;     // of it in the text of the message's layout: message_search_place
    int at, total;    // 1-based, of all
    int step;         // to go at the next draw
    bool begins;      // to the nearest one, with the next draw
    bool moved;       // it is to come into sight
};

void message_search_free(struct message_search *s);
void message_search_set(struct message_search *s, const char *text); // "": nothing
// Counts anew what has changed, and goes to another match where that is asked for.
void message_search_update(struct message_search *s, const struct screen_view *v, int in_sight);
// In the text of the layout of the message gone to: where the match is, or the last one; 0 where there is none. In that
// of any message: how many begin before a place.
size_t message_search_place(const struct message_search *s, const struct lines *l);
int message_search_before(const struct message_search *s, const struct lines *l, size_t before);
// Over a row as lines_draw drew it: the matches, the one at `place` apart.
void message_search_draw(const struct message_search *s, const struct lines *l, int row, uint64_t message,
                         struct canvas *c, struct rect clip, int x, int y);

#endif
