// The built-in model: a small GGUF file embedded into the program, used when no other model is named.
#ifndef CONFAB_APP_GUIDE_H
#define CONFAB_APP_GUIDE_H

#include <stddef.h>

#define GUIDE_QUESTIONS 3
#define GUIDE_NAME "confab guide" // general.name of its file
extern const char *const guide_questions[GUIDE_QUESTIONS]; // for a person who does not know what to ask it

const void *guide_data(size_t *size); // *size = 0: this program was built without one
const char *guide_template(void);     // its chat template: app/guide/template.jinja
// The text of its slots (model_file_fill_slots), from the tables of keys, sampling, themes and states: "key:stop",
// "default:temp", "low:temp", "high:temp", "step:temp", "theme:default", "themes", "states". malloc'ed; NULL: there is
// no such slot.
char *guide_slot(void *unused, const char *name);

#endif
