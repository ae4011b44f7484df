// `confab ls`: lists the models on this machine.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "app/base/clean.h"
#include "app/base/table.h"
#include "app/base/units.h"
#include "app/commands/command.h"
#include "app/models/model.h"
#include "app/models/model_sources.h"

#define HEADER_SECONDS 10 // for reading headers; models left over are listed without the details

// ---- as text ----

// "3 min ago", "5 days ago", "2026-01-02".
static const char *ago(int64_t at, int64_t now, char out[32]) {
    int64_t seconds = now - at;
    time_t when = (time_t)at;
    struct tm day;
    if (!at) snprintf(out, 32, "-");
    else if (seconds < 60) snprintf(out, 32, "just now");
    else if (seconds < 3600) snprintf(out, 32, "%d min ago", (int)(seconds / 60));
    else if (seconds < 86400) snprintf(out, 32, "%d h ago", (int)(seconds / 3600));
    else if (seconds < 14 * 86400) snprintf(out, 32, "%d days ago", (int)(seconds / 86400));
    else if (localtime_r(&when, &day)) strftime(out, 32, "%Y-%m-%d", &day);
    else snprintf(out, 32, "long ago");
    return out;
}

static const char *or_dash(const char *text) { return text && *text ? text : "-"; }

static void add_row(struct table *t, const struct model_entry *e, int64_t now) {
    char parameters[24] = "-", bytes[24], used[32];
    if (e->n_parameters) units_count((double)e->n_parameters, parameters);
    table_add(t, e->problem ? TABLE_DIM : TABLE_PLAIN, 7,
              (const char *[]){e->name, or_dash(e->family), parameters, or_dash(e->format),
                               units_bytes((double)e->bytes, bytes), e->source, ago(e->last_used, now, used)});
}

static void print_problems(const struct model_list *list) {
    bool first = true;
    for (int i = 0; i < list->count; i++) {
        if (!list->entries[i].problem) continue;
        if (first) printf("\nCannot run:\n");
        first = false;
        printf("  %s: %s\n", list->entries[i].name, list->entries[i].problem);
    }
}

static void print_list(const struct model_list *list) {
    static const struct table_column columns[] = {
        {"NAME", false, 0}, {"FAMILY", false, 3}, {"PARAMETERS", true, 4}, {"FORMAT", false, 2},
        {"SIZE", true, 1},  {"SOURCE", false, 5}, {"LAST USED", false, 6},
    };
    struct table t;
    table_open(&t, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < list->count; i++) add_row(&t, &list->entries[i], (int64_t)time(NULL));
    table_print(&t, stdout);
    table_close(&t);
    print_problems(list);
    if (list->cut) printf("\nThe search was cut short; there may be more models.\n");
}

// ---- as JSON ----

static json_t *entry_json(const struct model_entry *e) {
    char *path = e->path ? clean_copy(e->path) : NULL;
    json_t *object = json_pack("{s:s, s:s?, s:s, s:s, s:s?, s:s?, s:I, s:I, s:i, s:I, s:I, s:s?}", "name", e->name,
                               "path", path, "source", e->source, "container", model_container_name(e->container),
                               "family", e->family, "format", e->format, "parameters", (json_int_t)e->n_parameters,
                               "bytes", (json_int_t)e->bytes, "files", e->parts, "memory_bytes", (json_int_t)e->need,
                               "last_used", (json_int_t)e->last_used, "problem", e->problem);
    free(path);
    return object;
}

static json_t *places_json(void) {
    int count;
    struct model_place *places = model_places(&count);
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        struct stat there;
        char *path = clean_copy(places[i].path);
        json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "source", places[i].source, "path", path, "found",
                                              !stat(places[i].path, &there)));
        free(path);
    }
    model_places_free(places, count);
    return list;
}

static void print_json(const struct model_list *list) {
    json_t *models = json_array();
    for (int i = 0; i < list->count; i++) json_array_append_new(models, entry_json(&list->entries[i]));
    json_t *object = json_pack("{s:o, s:o, s:b}", "models", models, "places", places_json(), "complete", !list->cut);
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(object);
}

int command_ls(const struct settings *s, int n_arguments, char **arguments) {
    (void)n_arguments, (void)arguments;
    struct model_list list;
    models_scan(&list, &local_models);
    models_describe(&list, &local_models, HEADER_SECONDS);
    if (s->json) print_json(&list);
    else print_list(&list);
    models_free(&list);
    return EXIT_DONE;
}
