// Jinja: renders the chat templates that model files carry, as Jinja2 does in the sandbox and with the settings that
// Hugging Face gives it (trim_blocks, lstrip_blocks, loop controls, generation blocks, its tojson).
//
// A template is a hostile program. It runs with budgets of steps, depth, memory and size of strings, it changes nothing
// but its own variables and namespaces, and every failure is a status that names the line. What it lacks, and refuses by
// name: inheritance and imports, recursive loops, integers beyond 64 bits.
#ifndef CONFAB_TEXT_JINJA_H
#define CONFAB_TEXT_JINJA_H

#include <jansson.h>
#include <time.h>

#include "engine/text/chat_template.h"

struct jinja_template; // parsed; immutable, so that threads share it

// The source, UTF-8, outlives it. NULL on failure.
struct jinja_template *jinja_compile(struct span source, struct status *st);
void jinja_template_free(struct jinja_template *t);
// Whether the template uses a variable of this name anywhere.
bool jinja_uses(const struct jinja_template *t, const char *name);

struct jinja_input {
    const struct jinja_template *template;
    const json_t *context; // an object: its members are the template's variables
    struct tm now;         // for strftime_now
};

// On success *out holds the output. What came from the context is text there (special = false), except its members whose
// names end in "_token": these and what the template itself says are marks (special = true). prompt_free frees.
// The message of raise_exception is the status's whole text, with STATUS_UNSUPPORTED; no other failure has this code.
bool jinja_render(const struct jinja_input *input, struct prompt *out, struct status *st);

#endif
