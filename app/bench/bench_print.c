#include "app/bench/bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "app/base/clean.h"
#include "app/base/table.h"
#include "app/base/units.h"

#define X(id, name) [id] = name,
const char *const bench_stage_names[STAGE_COUNT] = {BACKEND_STAGES(X)};
#undef X

const struct bench_result *bench_find(const struct bench_report *r, const char *name) {
    for (int i = 0; i < r->n_results; i++)
        if (!strcmp(r->results[i].name, name)) return &r->results[i];
    return NULL;
}

// ---- facts ----

static void print_machine(const struct bench_report *r) {
    char bytes[24], integers[24], floats[24];
    const bool known = *r->limits.int8_name;
    const char *threads = r->threads == 1 ? "thread" : "threads";
    fact_printf(stdout, "machine", "%s%s%d %s", r->processor, *r->processor ? ", " : "", r->threads, threads);
    if (r->limits.read_bytes <= 0) return;
    fact_printf(stdout, "limits",
                "memory %s/s%s%s%s%s%s%s%s (best seen; the table has the limits at the time of each result)",
                units_bytes(r->limits.read_bytes, bytes), known ? ", " : "",
                known ? units_count(r->limits.int8_operations, integers) : "", known ? " 8-bit and " : "",
                known ? units_count(r->limits.float_operations, floats) : "", known ? " float operations/s" : "",
                known ? " with " : "", r->limits.int8_name);
}

static void print_accuracy(const struct bench_accuracy *a) {
    if (!a->positions) return;
    fact_printf(
        stdout, "accuracy",
        "against the exact path at %d positions: same top token %.1f %%, divergence %.2e nats, logits error %.2e",
        a->positions, 100 * a->same_top, a->divergence, a->error);
}

static void print_facts(const struct bench_report *r) {
    char count[24], bytes[24], peak[24];
    heading_print(stdout, r->model);
    fact_printf(stdout, "weights", "%s parameters, %s", units_count(r->parameters, count),
                units_bytes(r->weight_bytes, bytes));
    fact_printf(stdout, "engine", "%s", r->backend);
    print_machine(r);
    fact_printf(stdout, "start", "loaded in %.3f s, first token after %.3f s (short prompt); peak memory %s",
                r->load_seconds, r->first_token_seconds, units_bytes(r->peak_bytes, peak));
    print_accuracy(&r->accuracy);
    if (*r->note) fact_printf(stdout, "note", "%s", r->note);
}

// The earlier run, and what was different about it.
static void print_other(const struct bench_report *r, const struct bench_report *other, const char *path) {
    char peak[24], *name = clean_copy(path);
    fact_printf(stdout, "earlier", "%s%s%s", name, *other->time ? ", of " : "", other->time);
    free(name);
    if (*other->note) fact_printf(stdout, "", "note: %s", other->note);
    if (strcmp(other->model, r->model)) fact_printf(stdout, "", "different model: %s", other->model);
    if (other->threads != r->threads) fact_printf(stdout, "", "different number of threads: %d", other->threads);
    if (strcmp(other->backend, r->backend)) fact_printf(stdout, "", "different engine: %s", other->backend);
    if (*other->processor && strcmp(other->processor, r->processor))
        fact_printf(stdout, "", "different machine: %s", other->processor);
    fact_printf(stdout, "", "loaded in %.3f s, first token after %.3f s; peak memory %s", other->load_seconds,
                other->first_token_seconds, units_bytes(other->peak_bytes, peak));
    if (other->accuracy.positions)
        fact_printf(stdout, "", "%d positions: same top token %.1f %%, divergence %.2e nats", other->accuracy.positions,
                    100 * other->accuracy.same_top, other->accuracy.divergence);
}

// ---- the table ----

// The columns of every table, then those of the earlier run if there is one, then the stages.
enum { OWN_COLUMNS = 5, OTHER_COLUMNS = 3, CELL_SIZE = 40 };
static const struct table_column own_columns[OWN_COLUMNS] = {
    {"", false, 0}, {"tokens/s", true, 0}, {"limit", true, 6}, {"share", true, 5}, {"of", false, 7}};
static const struct table_column other_columns[OTHER_COLUMNS] = {
    {"earlier", true, 2}, {"share", true, 4}, {"ratio", true, 1}};

struct cells {
    char texts[TABLE_COLUMNS][CELL_SIZE];
    int n;
};

static void cell(struct cells *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void cell(struct cells *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->texts[c->n++], CELL_SIZE, format, args);
    va_end(args);
}

// "12.3", "1234"
static void cell_rate(struct cells *c, double rate) {
    if (rate > 0) cell(c, "%.*f", rate < 1000 ? 1 : 0, rate);
    else cell(c, "-");
}

static void cell_share(struct cells *c, const struct bench_result *r) {
    if (r && r->limit > 0) cell(c, "%.0f %%", 100 * r->tokens_per_second / r->limit);
    else cell(c, "-");
}

static void cell_limit(struct cells *c, const struct bench_result *r) {
    char amount[24];
    if (r->limit <= 0) cell(c, "-");
    else if (r->by_memory) cell(c, "memory, %s/s", units_bytes(r->read_bytes, amount));
    else cell(c, "compute, %s/s", units_count(r->operations, amount));
}

static void add_row(struct table *t, const struct bench_result *r, const struct bench_report *other) {
    struct cells c = {.n = 0};
    const char *pointers[TABLE_COLUMNS];
    cell(&c, "%s", r->name);
    cell_rate(&c, r->tokens_per_second);
    cell_rate(&c, r->limit);
    cell_share(&c, r);
    cell_limit(&c, r);
    if (other) {
        const struct bench_result *before = bench_find(other, r->name);
        cell_rate(&c, before ? before->tokens_per_second : 0);
        cell_share(&c, before);
        if (before) cell(&c, "%.2f", r->tokens_per_second / before->tokens_per_second);
        else cell(&c, "-");
    }
    for (int i = 0; i < STAGE_COUNT; i++) cell(&c, metric_known(r->stages[i]) ? "%.1f %%" : "-", 100 * r->stages[i]);
    for (int i = 0; i < c.n; i++) pointers[i] = c.texts[i];
    table_add(t, TABLE_PLAIN, c.n, pointers);
}

void bench_print(const struct bench_report *r, const struct bench_report *other, const char *other_path) {
    struct table_column columns[TABLE_COLUMNS];
    struct table t;
    int n = 0;
    for (int i = 0; i < OWN_COLUMNS; i++) columns[n++] = own_columns[i];
    for (int i = 0; other && i < OTHER_COLUMNS; i++) columns[n++] = other_columns[i];
    for (int i = 0; i < STAGE_COUNT; i++) columns[n++] = (struct table_column){bench_stage_names[i], true, 8 + i};
    print_facts(r);
    if (other) print_other(r, other, other_path);
    putchar('\n');
    table_open(&t, columns, n);
    t.indent = TABLE_INDENT;
    for (int i = 0; i < r->n_results; i++) add_row(&t, &r->results[i], other);
    table_print(&t, stdout);
    table_close(&t);
}
