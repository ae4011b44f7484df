// References: the definitions in a message that its text refers to: of links ("[name]: address") and of footnotes
// ("[^name]: text"). They may stand anywhere, before or after what refers to them.
//
// md4c resolves them, for each chunk of a message is parsed behind the definitions of the whole message; what they lead
// to there is a mark by which references_find knows the definition. The lines of a definition are hidden once something
// refers to it, and only then: nothing that was written is lost.
#ifndef CONFAB_UI_REFERENCES_H
#define CONFAB_UI_REFERENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct markdown_fence;
struct flow;

#define REFERENCES_NONE SIZE_MAX
#define REFERENCES_NOTE (SIZE_MAX - 1) // where footnotes refer from

struct reference {
    size_t start, end;            // its lines in the source, with the newline
    size_t label, label_size;     // between the brackets
    size_t content, content_size; // the address, or the text of the note
    uint32_t hash;                // of what it says, but for the text of a note
    bool note;
    bool hidden; // as its lines are laid out
    int number;  // of a footnote, in the order in which they are referred to; 0: nothing does
    size_t user; // where the first chunk begins that refers to it
};

// A zeroed struct has none.
struct references {
    const char *text;     // of the message; borrowed
    struct reference *at; // in their order
    int n, capacity, numbered;
};

void references_free(struct references *r);
// Looks for definitions in a text from a line on, in front of which `fence` is open; those before it are known.
// Returns where the first chunk begins that may now refer to another one than when it was laid out, or earlier.
size_t references_scan(struct references *r, const char *text, size_t size, size_t from, struct markdown_fence fence);
// Where `line`, the beginning of one, may become a definition that is hidden when it is complete.
bool references_begins(const char *line, size_t size);

// Adds all definitions for md4c, when the text may refer to one.
void references_add(const struct references *r, struct flow *out, const char *text, size_t size);
// What an address that md4c found stands for; NULL: itself.
struct reference *references_find(const struct references *r, const char *address, size_t size);
void references_use(struct references *r, struct reference *d, size_t chunk);    // shown in the chunk that begins there
void references_forget_users(struct references *r, size_t from);                 // of chunks from here on
const struct reference *references_note(const struct references *r, int number); // NULL: there are fewer

const struct reference *references_at(const struct references *r, size_t at); // that begins there; NULL: none does
bool references_inside(const struct references *r, size_t at); // in a definition, but not at its beginning
// Hides those that something refers to; returns where the first one begins that was laid out otherwise.
size_t references_settle(struct references *r);
void references_hide(struct references *r); // all of them

#endif
