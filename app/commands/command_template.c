// `confab template`: renders a chat template.
#include <stdio.h>
#include <stdlib.h>

#include "app/base/clean.h"
#include "app/commands/command.h"
#include "engine/base/reader.h"

#define TEMPLATE_LIMIT (16u << 20)
#define CONTEXT_LIMIT  (1u << 28)

int command_template(const struct settings *s, int n_arguments, char **arguments) {
    (void)n_arguments;
    struct status st = {0};
    size_t size, context_size, out_size;
    char *template = file_read(arguments[0], TEMPLATE_LIMIT, &size, &st), *context = NULL, *text = NULL;
    if (template) context = file_read(arguments[1], CONTEXT_LIMIT, &context_size, &st);
    if (context)
        text = template_render(&(struct template_input){.name = arguments[0],
                                                        .text = template,
                                                        .size = size,
                                                        .context_name = arguments[1],
                                                        .context = context,
                                                        .context_size = context_size,
                                                        .now = s->now},
                               &out_size, &st);
    if (text) clean_write(stdout, text, out_size);
    bool done = text;
    free(text);
    free(context);
    free(template);
    return done ? EXIT_DONE : command_fail(&st);
}
