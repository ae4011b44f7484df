#include "app/bench/bench.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "app/base/clean.h"
#include "engine/base/reader.h"

#define FILE_LIMIT (1u << 20) // a report has a few thousand bytes

// ---- writing ----

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

static json_t *result_json(const struct bench_result *r, const struct bench_report *other) {
    json_t *stages = json_object();
    for (int i = 0; i < STAGE_COUNT; i++) {
        if (metric_known(r->stages[i])) json_object_set_new(stages, bench_stage_names[i], json_real(r->stages[i]));
    }
    json_t *object = json_pack("{s:s, s:f, s:f, s:f, s:i, s:i, s:i, s:i, s:f, s:f, s:s, s:f, s:f, s:f, s:f, s:o}",
                               "name", r->name, "tokens_per_second", r->tokens_per_second, "lowest", r->lowest,
                               "highest", r->highest, "conversations", r->conversations, "context", r->context,
                               "tokens", r->tokens, "repetitions", r->repetitions, "limit_tokens_per_second", r->limit,
                               "share_of_limit", ratio(r->tokens_per_second, r->limit), "limited_by",
                               r->by_memory ? "memory" : "compute", "read_bytes_per_second", r->read_bytes,
                               "int8_operations_per_second", r->int8_operations, "float_operations_per_second",
                               r->float_operations, "operations_per_second", r->operations, "stages", stages);
    json_object_set_new(object, "bytes_per_token", json_real(r->bytes_per_token));
    json_object_set_new(object, "operations_per_token", json_real(r->operations_per_token));
    const struct bench_result *before = other ? bench_find(other, r->name) : NULL;
    if (before) {
        json_object_set_new(object, "earlier_tokens_per_second", json_real(before->tokens_per_second));
        json_object_set_new(object, "ratio", json_real(ratio(r->tokens_per_second, before->tokens_per_second)));
    }
    return object;
}

static json_t *accuracy_json(const struct bench_accuracy *a) {
    return json_pack("{s:i, s:f, s:f, s:f}", "positions", a->positions, "same_top", a->same_top, "divergence",
                     a->divergence, "error", a->error);
}

static json_t *parts_json(const struct bench_report *r) {
    json_t *list = json_array();
    for (const struct part_metrics *p = r->parts; p < r->parts + r->n_parts; p++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:I}", "device", p->device, "description",
                                              p->description, "first_layer", p->first_layer, "end_layer", p->end_layer,
                                              "weight_bytes", (json_int_t)p->weights, "kv_bytes", (json_int_t)p->kv,
                                              "buffer_bytes", (json_int_t)p->buffers));
    return list;
}

bool bench_json_write(FILE *out, const struct bench_report *r, const struct bench_report *other) {
    json_t *results = json_array();
    for (int i = 0; i < r->n_results; i++) json_array_append_new(results, result_json(&r->results[i], other));
    json_t *limits =
        json_pack("{s:s, s:s, s:f, s:f, s:f}", "device", *r->limits.device ? r->limits.device : "cpu", "int8",
                  r->limits.int8_name, "int8_operations_per_second", r->limits.int8_operations,
                  "float_operations_per_second", r->limits.float_operations, "read_bytes_per_second",
                  r->limits.read_bytes);
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:f, s:f, s:I, s:o, s:o}", "time", r->time, "note", r->note,
                  "model", r->model, "backend", r->backend, "processor", r->processor, "parameters",
                  (json_int_t)r->parameters, "weight_bytes", (json_int_t)r->weight_bytes, "threads", r->threads,
                  "load_seconds", r->load_seconds, "first_token_seconds", r->first_token_seconds, "peak_memory_bytes",
                  (json_int_t)r->peak_bytes, "limits", limits, "results", results);
    json_object_set_new(object, "devices", parts_json(r));
    if (r->accuracy.positions) json_object_set_new(object, "accuracy", accuracy_json(&r->accuracy));
    const bool written = !json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) && fputc('\n', out) != EOF;
    json_decref(object);
    return written;
}

// ---- reading ----

// Where a value is, for messages; only the first failure is reported.
struct json_source {
    const char *path;
    char place[48]; // "results[2]"; "" at the top level
    struct status *st;
    bool failed;
};

static void refuse(struct json_source *s, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void refuse(struct json_source *s, const char *key, const char *format, ...) {
    char why[160];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    const char *dot = *s->place && *key ? "." : "";
    if (!s->failed) status_fail(s->st, STATUS_FORMAT, "%s: %s%s%s %s", s->path, s->place, dot, key, why);
    s->failed = true;
}

static const char *kind_name(const json_t *value) {
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string", [JSON_INTEGER] = "a number",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",    [JSON_FALSE] = "false",   [JSON_NULL] = "null"};
    return names[json_typeof(value)];
}

// Returns 0 if there is none.
static double number(struct json_source *s, const json_t *object, const char *key, double max) {
    const json_t *value = json_object_get(object, key);
    if (!value) return 0;
    const double n = json_number_value(value);
    if (!json_is_number(value)) refuse(s, key, "is %s, not a number", kind_name(value));
    else if (!(n >= 0 && n <= max)) refuse(s, key, "is out of range: %g (0 to %g)", n, max);
    else return n;
    return 0;
}

// Copies "" if there is none.
static void text(struct json_source *s, const json_t *object, const char *key, char *out, size_t size) {
    const json_t *value = json_object_get(object, key);
    *out = 0;
    if (!value) return;
    if (!json_is_string(value)) {
        refuse(s, key, "is %s, not a string", kind_name(value));
        return;
    }
    char *clean = clean_line(json_string_value(value), size - 1);
    snprintf(out, size, "%s", clean);
    free(clean);
}

// Returns NULL if there is none.
static const json_t *member(struct json_source *s, const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_object(value)) return value;
    refuse(s, key, "is %s, not an object", kind_name(value));
    return NULL;
}

#define MAX_RATE  1e18
#define MAX_COUNT 1e9

static void result_read(struct json_source *s, const json_t *object, struct bench_result *r) {
    char by[16];
    text(s, object, "name", r->name, sizeof r->name);
    if (!*r->name) refuse(s, "name", "is missing");
    r->tokens_per_second = number(s, object, "tokens_per_second", MAX_RATE);
    if (r->tokens_per_second <= 0) refuse(s, "tokens_per_second", "is missing or 0");
    r->lowest = number(s, object, "lowest", MAX_RATE);
    r->highest = number(s, object, "highest", MAX_RATE);
    r->conversations = (int)number(s, object, "conversations", MAX_COUNT);
    r->context = (int)number(s, object, "context", MAX_COUNT);
    r->tokens = (int)number(s, object, "tokens", MAX_COUNT);
    r->repetitions = (int)number(s, object, "repetitions", MAX_COUNT);
    r->limit = number(s, object, "limit_tokens_per_second", MAX_RATE);
    r->read_bytes = number(s, object, "read_bytes_per_second", MAX_RATE);
    r->int8_operations = number(s, object, "int8_operations_per_second", MAX_RATE);
    r->float_operations = number(s, object, "float_operations_per_second", MAX_RATE);
    r->operations = number(s, object, "operations_per_second", MAX_RATE);
    text(s, object, "limited_by", by, sizeof by);
    r->by_memory = !strcmp(by, "memory");
    const json_t *stages = member(s, object, "stages");
    for (int i = 0; stages && i < STAGE_COUNT; i++) r->stages[i] = number(s, stages, bench_stage_names[i], MAX_COUNT);
}

static void results_read(struct json_source *s, const json_t *list, struct bench_report *out) {
    if (!json_is_array(list)) {
        if (list) refuse(s, "results", "is %s, not an array", kind_name(list));
        else refuse(s, "results", "is missing (not written by `confab bench --json`?)");
        return;
    }
    if (json_array_size(list) > BENCH_MAX_RESULTS) {
        refuse(s, "results", "has too many entries: %zu (maximum %d)", json_array_size(list), BENCH_MAX_RESULTS);
        return;
    }
    for (size_t i = 0; i < json_array_size(list) && !s->failed; i++) {
        snprintf(s->place, sizeof s->place, "results[%zu]", i);
        const json_t *object = json_array_get(list, i);
        if (json_is_object(object)) result_read(s, object, &out->results[out->n_results++]);
        else refuse(s, "", "is %s, not an object", kind_name(object));
    }
    *s->place = 0;
}

static void report_read(struct json_source *s, const json_t *object, struct bench_report *out) {
    text(s, object, "time", out->time, sizeof out->time);
    text(s, object, "note", out->note, sizeof out->note);
    text(s, object, "model", out->model, sizeof out->model);
    text(s, object, "backend", out->backend, sizeof out->backend);
    text(s, object, "processor", out->processor, sizeof out->processor);
    out->threads = (int)number(s, object, "threads", MAX_COUNT);
    out->parameters = number(s, object, "parameters", MAX_RATE);
    out->weight_bytes = number(s, object, "weight_bytes", MAX_RATE);
    out->load_seconds = number(s, object, "load_seconds", MAX_COUNT);
    out->first_token_seconds = number(s, object, "first_token_seconds", MAX_COUNT);
    out->peak_bytes = number(s, object, "peak_memory_bytes", MAX_RATE);
    const json_t *limits = member(s, object, "limits"), *accuracy = member(s, object, "accuracy");
    out->limits = (struct machine_limits){.int8_name = "", .n_threads = out->threads};
    out->limits.read_bytes = limits ? number(s, limits, "read_bytes_per_second", MAX_RATE) : 0;
    out->limits.int8_operations = limits ? number(s, limits, "int8_operations_per_second", MAX_RATE) : 0;
    out->limits.float_operations = limits ? number(s, limits, "float_operations_per_second", MAX_RATE) : 0;
    if (accuracy)
        out->accuracy = (struct bench_accuracy){.positions = (int)number(s, accuracy, "positions", MAX_COUNT),
                                                .same_top = number(s, accuracy, "same_top", 1),
                                                .divergence = number(s, accuracy, "divergence", MAX_RATE),
                                                .error = number(s, accuracy, "error", MAX_RATE)};
    results_read(s, json_object_get(object, "results"), out);
}

bool bench_json_read(struct bench_report *out, const char *path, struct status *st) {
    size_t size;
    json_error_t error;
    *out = (struct bench_report){0};
    char *bytes = file_read(path, FILE_LIMIT, &size, st);
    if (!bytes) return false;
    json_t *object = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    free(bytes);
    if (!object) return status_fail(st, STATUS_FORMAT, "%s: line %d: %s", path, error.line, error.text);
    struct json_source source = {.path = path, .st = st};
    if (!json_is_object(object)) refuse(&source, "the top level", "is %s, not an object", kind_name(object));
    else report_read(&source, object, out);
    json_decref(object);
    return !source.failed;
}
