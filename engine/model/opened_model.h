// Opened model: the contents of struct model_file (engine/model_file.h), for the engine only.
#ifndef CONFAB_MODEL_OPENED_MODEL_H
#define CONFAB_MODEL_OPENED_MODEL_H

#include "engine/answer/channel.h"
#include "engine/model/model.h"
#include "engine/model_file.h"
#include "engine/text/chat_template.h"
#include "engine/text/jinja.h"
#include "engine/text/tokenizer.h"

struct model_file { // immutable once open
    struct gguf gguf;
    struct tokenizer *tokenizer;
    struct model model; // valid if info.has_weights
    bool described;     // opened as a header: weights may read as zeros
    struct status weight_status;
    struct span template_text;             // the file's chat template; {NULL, 0}: none
    struct jinja_template *template;       // parsed; NULL if missing or invalid
    struct status template_status;         // why the template does not work; OK if there is none
    enum chat_template_kind chat_template; // the recognised format, used if the template does not work
    struct channel_scheme channels;        // of answers
    struct arena arena;
    struct model_info info;
};

// Fills m->info, except file_bytes and has_weights; everything else in m is set. `name` is the path.
void model_describe(struct model_file *m, const char *name);

// Copies text for display to out [size], truncated at a character: control characters and bidirectional overrides
// become
// '?', invalid bytes U+FFFD. Returns the number of bytes written, without the NUL.
size_t display_clean(struct span text, char *out, size_t size);

#endif
