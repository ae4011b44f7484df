// Random checks: what must hold of a chat whatever a person does: of the screen after each key, and of what was
// written, which is never lost: what is sent is in the chat, what is not yet is in the draft, and all of it is in the
// store when the chat has been closed.
#ifndef CONFAB_TESTS_RANDOM_CHECKS_H
#define CONFAB_TESTS_RANDOM_CHECKS_H

#include "app/chat/chat_state.h"
#include "tests/golden/golden_display.h"

struct random_checks;

struct random_checks *random_checks_open(const char *store_path);
void random_checks_close(struct random_checks *k);

// Around whatever a person does. They say on standard error what does not hold. `closely`: all cells of the screen.
void random_checks_before(struct random_checks *k, const struct chat *c, const char *bytes, size_t size);
bool random_checks_after(struct random_checks *k, const struct chat *c, const struct golden_display *d, bool closely);
int random_checks_sent(const struct random_checks *k); // messages so far
// Around closing a chat.
void random_checks_closing(struct random_checks *k, const struct chat *c);
bool random_checks_closed(struct random_checks *k);

#endif
