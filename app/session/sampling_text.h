// Sampling text: knobs as one line, 'temp=0.7 top-p=0.95 …', as the store and exported chats have them.
#ifndef CONFAB_APP_SAMPLING_TEXT_H
#define CONFAB_APP_SAMPLING_TEXT_H

#include "engine/sampling.h"

char *sampling_text_write(const struct sampling *sampling); // the caller frees
// What it does not understand (knobs of other versions) it leaves at the values of `initial`.
struct sampling sampling_text_read(const char *text, const struct sampling *initial);

#endif
