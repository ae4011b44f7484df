// `confab bench`: speed, memory and accuracy of a model here, beside what the machine would allow.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app/bench.h"
#include "app/command.h"

static bool save(const char *path, const struct bench_report *r, struct status *st) {
    FILE *out = fopen(path, "w");
    bool written = out && bench_json_write(out, r, NULL);
    written = out && !fclose(out) && written;
    return written || status_fail(st, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
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
