// What engine.c and its helpers share of an opened model file, beyond engine.h.
#ifndef CONFAB_ENGINE_MODEL_FILE_H
#define CONFAB_ENGINE_MODEL_FILE_H

#include "engine/backend.h"
#include "engine/engine.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

struct model_file { // immutable once open
    struct gguf gguf;
    struct tokenizer *tokenizer;
    struct model model; // valid when info.has_weights
    struct status weight_status;
    struct span template_text;             // the file's chat template; {NULL, 0}: none
    struct status template_status;         // why it cannot be run; ok also when there is none
    enum chat_template_kind chat_template; // what it is recognised as, and what is used instead when it cannot be run
    struct arena arena;
    struct model_info info;
};

// engine_open over any backend.
struct engine *engine_open_on(struct model_file *m, const struct engine_params *p, const struct backend_ops *ops,
                              struct status *st);

int engine_threads(const struct model_file *m, const struct engine_params *p); // that it will compute on

// Copies text for display into out [size]: control characters and bidirectional overrides become '?', invalid bytes
// U+FFFD, and what does not fit is cut at a character. Returns the bytes written, without the NUL.
size_t display_clean(struct span text, char *out, size_t size);

#endif
