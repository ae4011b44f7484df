// Prompt source: from what a request holds to the token ids it starts from.
#ifndef CONFAB_SERVE_PROMPT_SOURCE_H
#define CONFAB_SERVE_PROMPT_SOURCE_H

#include "engine/engine.h"
#include "engine/model/opened_model.h"

// A deep copy of what a request generates from; prompt_source_free frees it.
struct prompt_source {
    struct engine_message *messages; // or
    size_t n_messages;
    enum reasoning reasoning; // of messages
    char *template_file;      // likewise; NULL: the model's own template
    char *raw;                // or
    int32_t *ids;
    int n_ids;
    bool goes_on; // of messages, the last one: only what it has in common with longer ones is wanted
    int32_t *begun; // how the answer begins
    int n_begun;
    char *begun_text;
};
struct prompt_source prompt_source_copy(const struct request_params *p);
void prompt_source_free(struct prompt_source *source);

// What became of it; all but n_begun is of messages, and zeroed otherwise.
struct prompt_outcome {
    struct status refused; // why a template cannot be run, or not over these messages; in place of the model's own its
                           // kind's rendering is used,
    bool refused_file;     // in place of the template_file, if it is that one, the model's own
    const char *template_stop; // the text that ends the turns of the template used; NULL: none is known
    bool opens_thinking;       // the answer begins inside the thinking
    size_t n_begun;            // of the ids, the last: how the answer begins
};
// The ids, BOS included as the file says, and behind them those that the answer begins with; the caller frees
// list->ids. Given ids are taken as they are.
void prompt_source_encode(const struct model_file *m, const struct prompt_source *source, struct token_list *list,
                          struct prompt_outcome *outcome);

#endif
