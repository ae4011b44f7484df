// Guide: the built-in model, a small GGUF file embedded into the program, used if no other model is named.
#ifndef CONFAB_APP_GUIDE_H
#define CONFAB_APP_GUIDE_H

#include <stddef.h>

#define GUIDE_QUESTIONS 3
#define GUIDE_NAME      "confab guide" // general.name of its file
extern const char *const guide_questions[GUIDE_QUESTIONS]; // suggestions for an empty chat

const void *guide_data(size_t *size); // *size is 0 if the program was built without the model
const char *guide_template(void);     // its chat template: app/guide/template.jinja
// Returns the text of one of its slots (model_file_fill_slots), from the tables of keys, sampling, themes and states:
// "key:stop", "default:temp", "low:temp", "high:temp", "step:temp", "theme:default", "themes", "states". NULL: no such
// slot. The caller frees.
char *guide_slot(void *unused, const char *name);

#endif
