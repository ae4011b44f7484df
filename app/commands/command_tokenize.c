// `confab tokenize` and `confab detokenize`: convert text to token ids and back.
#include <stdio.h>
#include <stdlib.h>

#include "app/base/clean.h"
#include "app/commands/command.h"
#include "app/commands/ids.h"
#include "app/models/model.h"
#include "engine/base/reader.h"

#define TEXT_LIMIT (1u << 30)

int command_tokenize(const struct settings *s, int n_arguments, char **arguments) {
    (void)n_arguments;
    struct status st = {0};
    struct model_file *m = model_open_text(arguments[0], &st);
    if (!m) return command_fail(&st);
    size_t size, count;
    char *text = file_read(arguments[1], TEXT_LIMIT, &size, &st);
    if (text) {
        int32_t *ids = model_file_tokenize(m, text, size, s->special, &count);
        for (size_t i = 0; i < count; i++) printf("%s%d", i ? " " : "", ids[i]);
        putchar('\n');
        free(ids);
    }
    bool done = text;
    free(text);
    model_file_close(m);
    return done ? EXIT_DONE : command_fail(&st);
}

int command_detokenize(const struct settings *s, int n_arguments, char **arguments) {
    (void)s, (void)n_arguments;
    struct status st = {0};
    struct model_file *m = model_open_text(arguments[0], &st);
    if (!m) return command_fail(&st);
    size_t count, size;
    int32_t *ids = ids_read(arguments[1], &count, &st);
    char *text = ids ? model_file_detokenize(m, ids, count, &size, &st) : NULL;
    if (text) clean_write(stdout, text, size);
    bool done = text;
    free(text);
    free(ids);
    model_file_close(m);
    return done ? EXIT_DONE : command_fail(&st);
}
