// Prompt source: from what a request holds to the token ids it starts from.
#ifndef CONFAB_ENGINE_PROMPT_SOURCE_H
#define CONFAB_ENGINE_PROMPT_SOURCE_H

#include "engine/model_file.h"

// A deep copy of what a request generates from; prompt_source_free frees it.
struct prompt_source {
    struct chat_message *messages; // or
    size_t n_messages;
    char *raw; // or
    int32_t *ids;
    int n_ids;
};
struct prompt_source prompt_source_copy(const struct request_params *p);
void prompt_source_free(struct prompt_source *source);

// The ids, BOS included as the file says; the caller frees list->ids. Given ids are taken as they are.
void prompt_source_encode(const struct model_file *m, const struct prompt_source *source, struct token_list *list);

#endif
