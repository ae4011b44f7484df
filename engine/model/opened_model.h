// Opened model: what the engine shares of an opened model file, beyond model_file.h.
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
    struct model model; // valid when info.has_weights
    bool described;     // opened as a header: what its weights hold may not be there
    struct status weight_status;
    struct span template_text;             // the file's chat template; {NULL, 0}: none
    struct jinja_template *template;       // the same, parsed; NULL: there is none, or it cannot be parsed
    struct status template_status;         // why it cannot be run; ok also when there is none
    enum chat_template_kind chat_template; // what it is recognised as, and what is used instead when it cannot be run
    struct channel_scheme channels;        // of its answers
    struct arena arena;
    struct model_info info;
};

// Fills in the info, all but file_bytes and has_weights: of a file of this name, whose vocabulary, if it is to be read,
// template and weights are bound.
void model_describe(struct model_file *m, const char *name);

// Copies text for display into out [size]: control characters and bidirectional overrides become '?', invalid bytes
// U+FFFD, and what does not fit is cut at a character. Returns the bytes written, without the NUL.
size_t display_clean(struct span text, char *out, size_t size);

#endif
