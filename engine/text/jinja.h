// Jinja: renders chat templates of model files, like Jinja2 in its sandbox with Hugging Face's settings (trim_blocks,
// lstrip_blocks, loop controls, generation blocks, its tojson).
//
// Templates are not trusted. They run with limits on steps, depth, memory and string size, can change only their own
// variables and namespaces, and every failure is a status that names the line. Not supported, with an error:
// inheritance and imports, recursive loops, integers of more than 64 bits.
#ifndef CONFAB_TEXT_JINJA_H
#define CONFAB_TEXT_JINJA_H

#include <jansson.h>
#include <time.h>

#include "engine/text/chat_template.h"

struct jinja_template; // parsed; immutable and thread-safe

// Borrows the source (UTF-8). NULL on failure.
struct jinja_template *jinja_compile(struct span source, struct status *st);
void jinja_template_free(struct jinja_template *t);
// Whether the template uses a variable of this name.
bool jinja_uses(const struct jinja_template *t, const char *name);

struct jinja_input {
    const struct jinja_template *template;
    const json_t *context; // an object: its members are the template's variables
    struct tm now;         // for strftime_now
};

// On success the caller frees *out with prompt_free. Text from the context becomes pieces with special = false, text of
// the template and context members named "…_token" pieces with special = true.
// A call of raise_exception fails with STATUS_UNSUPPORTED and its message alone; no other failure has this code.
bool jinja_render(const struct jinja_input *input, struct prompt *out, struct status *st);

#endif
