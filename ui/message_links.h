// Message links: where the links and images of a message lead to, those of reference links and bare addresses too.
#ifndef CONFAB_UI_MESSAGE_LINKS_H
#define CONFAB_UI_MESSAGE_LINKS_H

#include <stddef.h>

struct message_link {
    char *text, *address; // text: one line
};

// In their order; returns how many, *out is the caller's to free.
int message_links_find(const char *text, size_t size, struct message_link **out);
void message_links_free(struct message_link *links, int count);

#endif
