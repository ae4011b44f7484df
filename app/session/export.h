// Export: chats as text for other programs and people.
//
//   markdown  the path that is shown, headings by author
//   json      everything but the figures of single tokens: the tree of all versions with names, models, times and
//             settings; an object a chat, of several one a line, as import.h reads them
//   html      the path that is shown, as one page without anything to load, light or dark as the reader's screen
#ifndef CONFAB_APP_EXPORT_H
#define CONFAB_APP_EXPORT_H

#include <stdio.h>

#include "app/session/conversation.h"
#include "engine/base/status.h"

// X(enumerator, name, ending of files)
#define EXPORT_FORMATS(X)                                                                                              \
    X(EXPORT_MARKDOWN, "markdown", "md")                                                                               \
    X(EXPORT_JSON, "json", "json")                                                                                     \
    X(EXPORT_HTML, "html", "html")
enum export_format {
#define X(id, ...) id,
    EXPORT_FORMATS(X)
#undef X
        EXPORT_FORMAT_COUNT
};

// By the ending of a path; EXPORT_FORMAT_COUNT: of no format.
enum export_format export_format_of(const char *path);
const char *export_ending(enum export_format format);
// A name for the file of a chat, made of its title and, if that is not 0, of a number. The caller frees.
char *export_file_name(const struct conversation *c, int64_t number, enum export_format format);

// A document is a beginning, chats whose messages have been read, and an end.
void export_begin(FILE *out, enum export_format format, const char *title);
void export_chat(FILE *out, enum export_format format, const struct conversation *c);
void export_end(FILE *out, enum export_format format);
char *export_document(const struct conversation *c, enum export_format format, size_t *size); // the caller frees

// export_json.c, export_html.c
void export_json_chat(FILE *out, const struct conversation *c);
void export_html_begin(FILE *out, const char *title);
void export_html_chat(FILE *out, const struct conversation *c);
void export_html_end(FILE *out);

// What they share: a title, a message's author, and a local time ("": unknown).
const char *export_title(const struct conversation *c);
const char *export_author(const struct message *m);
const char *export_time(int64_t ms, char out[32]);

#endif
