// `confab bench`: measures speed, memory use and accuracy of a model, and the machine's limits.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "app/bench/bench.h"
#include "app/commands/command.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"

// An existing file is replaced only once the new one is complete.
static bool save(const char *path, const struct bench_report *r, struct status *st) {
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (!memory || !bench_json_write(memory, r, NULL) || fclose(memory)) panic("out of memory");
    bool saved = output_file_replace(path, text, size, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, st);
    free(text);
    return saved;
}

int command_bench(const struct settings *s, int n_arguments, char **arguments) {
    (void)n_arguments, (void)arguments;
    struct status st = {0};
    struct bench_report report, earlier;
    if (s->compare && !bench_json_read(&earlier, s->compare, &st)) return command_fail(&st);
    const struct bench_report *other = s->compare ? &earlier : NULL;
    if (!bench_measure(&report, s, &st)) return command_fail(&st);
    if (s->json) bench_json_write(stdout, &report, other);
    else bench_print(&report, other, s->compare);
    return !s->save || save(s->save, &report, &st) ? EXIT_DONE : command_fail(&st);
}
