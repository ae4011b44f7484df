// `confab logits`: writes the logits at every position, for comparing engines.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/commands/ids.h"
#include "app/models/model.h"
#include "engine/base/arena.h"
#include "engine/base/reader.h"

static bool logits_write(const char *path, const float *logits, size_t size, struct status *st) {
    FILE *out = strcmp(path, "-") ? fopen(path, "wb") : stdout;
    if (!out) return status_fail(st, STATUS_IO, "%s: %s", path, strerror(errno));
    bool written = fwrite(logits, 1, size, out) == size;
    written = !(out == stdout ? fflush(out) : fclose(out)) && written;
    return written || status_fail(st, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
}

static bool logits_compute(struct model_file *m, const struct settings *s, const int32_t *ids, size_t count,
                           const char *path, struct status *st) {
    uint64_t size;
    int n_vocab = model_file_info(m)->n_vocab;
    if (!count) return status_fail(st, STATUS_LIMIT, "no token ids");
    if (count > INT32_MAX / 2 || !checked_mul(count, (uint64_t)n_vocab * sizeof(float), &size))
        return status_fail(st, STATUS_LIMIT, "too many token ids: %zu", count);
    struct engine_params params = {
        .n_threads = s->threads, .kv_tokens = (int)count, .options = model_backend_options(s)};
    struct engine *engine = local_engine_open(m, &params, st);
    if (!engine) return false;
    float *logits = region_alloc(size);
    bool done = logits || status_fail(st, STATUS_MEMORY, "out of memory for the logits of %zu tokens", count);
    done = done && engine_logits(engine, ids, (int)count, logits, st) && logits_write(path, logits, size, st);
    if (logits) region_free(logits, size);
    engine_close(engine);
    return done;
}

int command_logits(const struct settings *s, int n_arguments, char **arguments) {
    (void)n_arguments;
    struct status st = {0};
    struct model_file *m = model_open_file(arguments[0], &st);
    if (!m) return command_fail(&st);
    size_t count;
    int32_t *ids = ids_read(arguments[1], &count, &st);
    bool done = ids && logits_compute(m, s, ids, count, arguments[2], &st);
    free(ids);
    model_file_close(m);
    return done ? EXIT_DONE : command_fail(&st);
}
