// `confab quantize`: writes a model in another weight format.
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/base/clean.h"
#include "app/base/file_fault.h"
#include "app/base/progress.h"
#include "app/base/units.h"
#include "app/commands/command.h"
#include "app/models/models.h"
#include "engine/base/panic.h"
#include "engine/quantize.h"

static volatile sig_atomic_t stopped_by; // the signal that stops us; 0: none yet

static void stop(int signal_number) { stopped_by = signal_number; }

// Totals of the tensors in one format, or of all.
struct totals {
    const char *name;
    uint64_t tensors, weights, bytes;
    double squared_error, squares;
};

struct quantize_view {
    bool lines; // print a line for each tensor
    int name_width;
    uint64_t n_shown;
    struct progress progress;
};

static double relative_error(double squared_error, double squares) { return squares > 0 ? squared_error / squares : 0; }

static double bits(uint64_t bytes, uint64_t weights) { return weights ? 8.0 * (double)bytes / (double)weights : 0; }

static void totals_add(struct totals *s, const struct quantize_tensor *t) {
    s->name = t->to;
    s->tensors++;
    s->weights += t->n_weights;
    s->bytes += t->bytes;
    s->squared_error += t->squared_error;
    s->squares += t->squares;
}

static int most_bytes_first(const void *a, const void *b) {
    const struct totals *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

// The totals of each format, most bytes first, and of all tensors in *all. The caller frees.
static struct totals *totals_by_format(const struct quantize_report *r, int *n, struct totals *all) {
    struct totals *formats = xcalloc(r->n_tensors, sizeof *formats);
    *n = 0;
    *all = (struct totals){0};
    for (uint64_t i = 0; i < r->n_tensors; i++) {
        int f = 0;
        while (f < *n && strcmp(formats[f].name, r->tensors[i].to)) f++;
        if (f == *n) ++*n;
        totals_add(&formats[f], &r->tensors[i]);
        totals_add(all, &r->tensors[i]);
    }
    qsort(formats, (size_t)*n, sizeof *formats, most_bytes_first);
    return formats;
}

// ---- as text ----

static void print_shape(const struct quantize_tensor *t, char out[64]) {
    int n = 0;
    for (int i = 0; i < t->n_dims; i++)
        n += snprintf(out + n, 64 - (size_t)n, "%s%llu", i ? "x" : "", (unsigned long long)t->dims[i]);
}

static void print_tensor(const struct quantize_tensor *t, int name_width) {
    char shape[96], *name = clean_copy(t->name);
    print_shape(t, shape);
    printf("%-*s  %14s  %6s to %-6s  %5.2f bits  error %.3e%s%s\n", name_width, name, shape, t->from, t->to,
           bits(t->bytes, t->n_weights), relative_error(t->squared_error, t->squares), *t->note ? "  " : "", t->note);
    free(name);
}

static void print_summary(const struct quantize_report *r, const char *out) {
    struct totals all, *formats;
    int n;
    char read[24], written[24], *path = clean_copy(out);
    formats = totals_by_format(r, &n, &all);
    putchar('\n');
    for (int i = 0; i < n; i++)
        printf("%-6s  %5llu tensors  %10s  %5.1f %%  %5.2f bits  error %.3e\n", formats[i].name,
               (unsigned long long)formats[i].tensors, units_bytes((double)formats[i].bytes, written),
               100.0 * (double)formats[i].bytes / (double)all.bytes, bits(formats[i].bytes, formats[i].weights),
               relative_error(formats[i].squared_error, formats[i].squares));
    printf("%s: %s from %s; %.2f bits per weight, error %.3e; %.1f s\n", path,
           units_bytes((double)r->bytes_written, written), units_bytes((double)r->bytes_read, read),
           bits(all.bytes, all.weights), relative_error(all.squared_error, all.squares), r->seconds);
    free(formats);
    free(path);
}

static int longest_name(const struct quantize_report *r) {
    size_t longest = 0;
    for (uint64_t i = 0; i < r->n_tensors; i++)
        if (strlen(r->tensors[i].name) > longest) longest = strlen(r->tensors[i].name);
    return longest < 60 ? (int)longest : 60;
}

static bool show(void *context, const struct quantize_report *r, double done) {
    struct quantize_view *v = context;
    if (!v->name_width) v->name_width = longest_name(r);
    if (v->lines && v->n_shown < r->n_done) {
        progress_clear(&v->progress);
        while (v->n_shown < r->n_done) print_tensor(&r->tensors[v->n_shown++], v->name_width);
        fflush(stdout);
    }
    if (done < 1) {
        char *name = clean_copy(r->tensors[r->n_done].name);
        progress_draw(&v->progress, done, name);
        free(name);
    }
    return !stopped_by;
}

// ---- as JSON ----

static json_t *tensor_json(const struct quantize_tensor *t) {
    char *name = clean_copy(t->name);
    json_t *shape = json_array();
    for (int i = 0; i < t->n_dims; i++) json_array_append_new(shape, json_integer((json_int_t)t->dims[i]));
    json_t *object = json_pack("{s:s, s:o, s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f}", "name", name, "shape", shape,
                               "from", t->from, "to", t->to, "note", t->note, "weights", (json_int_t)t->n_weights,
                               "bytes", (json_int_t)t->bytes, "bits_per_weight", bits(t->bytes, t->n_weights),
                               "mean_squared_error", t->n_weights ? t->squared_error / (double)t->n_weights : 0,
                               "relative_error", relative_error(t->squared_error, t->squares));
    free(name);
    return object;
}

static json_t *totals_json(const struct totals *s) {
    return json_pack("{s:s, s:I, s:I, s:I, s:f, s:f}", "name", s->name, "tensors", (json_int_t)s->tensors, "weights",
                     (json_int_t)s->weights, "bytes", (json_int_t)s->bytes, "bits_per_weight",
                     bits(s->bytes, s->weights), "relative_error", relative_error(s->squared_error, s->squares));
}

static void print_json(const struct quantize_report *r, const char *out, const char *type) {
    struct totals all, *by_format;
    int n;
    json_t *tensors = json_array(), *formats = json_array();
    char *path = clean_copy(out);
    by_format = totals_by_format(r, &n, &all);
    for (uint64_t i = 0; i < r->n_tensors; i++) json_array_append_new(tensors, tensor_json(&r->tensors[i]));
    for (int i = 0; i < n; i++) json_array_append_new(formats, totals_json(&by_format[i]));
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o}", "path", path, "type", type, "file_bytes",
                  (json_int_t)r->file_bytes, "bytes_read", (json_int_t)r->bytes_read, "bytes_written",
                  (json_int_t)r->bytes_written, "weights", (json_int_t)all.weights, "bits_per_weight",
                  bits(all.bytes, all.weights), "relative_error", relative_error(all.squared_error, all.squares),
                  "seconds", r->seconds, "formats", formats, "tensors", tensors);
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(object);
    free(by_format);
    free(path);
}

// ---- the command ----

// A signal makes us stop in order, so that the temporary file is removed. A second one kills.
static void watch_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before, action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN) // nohup ignores SIGHUP
            sigaction(signals[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN); // finish even if nobody reads the report
}

static int quantize_fail(const struct status *st) {
    int result = command_fail(st);
    if (stopped_by) { // so that the parent sees the signal
        signal(stopped_by, SIG_DFL);
        raise(stopped_by);
    }
    return result;
}

static bool quantize_run(const struct settings *s, const char *in, const char *out, const char *type,
                         struct status *st) {
    struct quantize_view view = {.lines = !s->json, .progress = progress_begin()};
    struct quantize_params params = {.in = in,
                                     .out = out,
                                     .type = type,
                                     .n_threads = s->threads,
                                     .requantize = s->requantize,
                                     .replace = s->force,
                                     .progress = show,
                                     .progress_context = &view};
    file_fault_watch(in);
    watch_signals();
    struct quantize_report *r = quantize_model(&params, st);
    progress_clear(&view.progress);
    if (!r) return false;
    if (s->json) print_json(r, out, type);
    else print_summary(r, out);
    quantize_report_free(r);
    return true;
}

static bool quantize_check(const struct settings *s, const char *in, const char *out, struct status *st) {
    struct stat existing;
    if (!in) return status_fail(st, STATUS_USAGE, "cannot quantize the built-in model");
    if (s->force || stat(out, &existing) || !S_ISREG(existing.st_mode) || !existing.st_size) return true;
    return status_fail(st, STATUS_IO, "%s: already exists (use --force to overwrite)", out);
}

int command_quantize(const struct settings *s, int n_arguments, char **arguments) {
    (void)n_arguments;
    struct status st = {0};
    char *in;
    if (!models_resolve(arguments[0], &in, &st)) return command_fail(&st);
    bool done = quantize_check(s, in, arguments[1], &st) && quantize_run(s, in, arguments[1], arguments[2], &st);
    free(in);
    return done ? EXIT_DONE : quantize_fail(&st);
}
