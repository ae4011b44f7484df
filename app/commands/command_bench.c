// `confab bench`: speed, memory and accuracy of a model here, beside what the machine would allow.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "app/bench/bench.h"
#include "app/commands/command.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"

// An earlier record under the name is lost only to a whole one.
static bool save(const char *path, const struct bench_report *r, struct status *st) {
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (!memory || !bench_json_write(memory, r, NULL) || fclose(memory)) panic("no memory for a record");
    bool saved = output_file_replace(path, text, size, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, st);
    free(text);
    return saved;
}

int command_bench(const struct settings *s, int n_arguments, char **arguments) {
    (void)n_arguments, (void)arguments;
    struct status st = {0};
    struct bench_report report, earlier; // the earlier one first: what is wrong with it is told at once
    if (s->compare && !bench_json_read(&earlier, s->compare, &st)) return command_fail(&st);
    const struct bench_report *other = s->compare ? &earlier : NULL;
    if (!bench_measure(&report, s, &st)) return command_fail(&st);
    if (s->json) bench_json_write(stdout, &report, other);
    else bench_print(&report, other, s->compare);
    return !s->save || save(s->save, &report, &st) ? EXIT_DONE : command_fail(&st);
}
