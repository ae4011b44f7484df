// `confab devices`: lists the devices that models can be computed on.
#include <jansson.h>
#include <stdio.h>

#include "app/base/table.h"
#include "app/base/units.h"
#include "app/commands/command.h"
#include "engine/device.h"

// A device with several memory heaps has a row for each; its name and description are in the first.
static void print_table(const struct device *devices, int n) {
    static const struct table_column columns[] = {
        {"NAME", false, 0}, {"DEVICE", false, 1}, {"HEAP", false, 2}, {"MEMORY", true, 0}, {"FREE", true, 0}};
    struct table t;
    table_open(&t, columns, sizeof columns / sizeof *columns);
    for (const struct device *d = devices; d < devices + n; d++)
        for (int i = 0; i < d->n_heaps; i++) {
            const struct memory_heap *heap = &d->heaps[i];
            char description[sizeof d->description + 32], bytes[24], free[24];
            snprintf(description, sizeof description, "%s%s", d->description,
                     d->emulated ? ", emulated by the processor" : "");
            table_add(&t, TABLE_PLAIN, 5,
                      (const char *[]){i ? "" : d->name, i ? "" : description, heap->name,
                                       heap->bytes ? units_bytes((double)heap->bytes, bytes) : "-",
                                       heap->free ? units_bytes((double)heap->free, free) : "-"});
        }
    table_print(&t, stdout);
    table_close(&t);
}

// Unknown values are null.
static json_t *bytes_json(uint64_t bytes) { return bytes ? json_integer((json_int_t)bytes) : json_null(); }

static void print_json(const struct device *devices, int n) {
    json_t *list = json_array();
    for (const struct device *d = devices; d < devices + n; d++) {
        json_t *heaps = json_array();
        for (int i = 0; i < d->n_heaps; i++)
            json_array_append_new(heaps,
                                  json_pack("{s:s, s:o, s:o}", "name", d->heaps[i].name, "bytes",
                                            bytes_json(d->heaps[i].bytes), "free_bytes", bytes_json(d->heaps[i].free)));
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:o}", "name", d->name, "description", d->description,
                                              "emulated", d->emulated, "memory", heaps));
    }
    json_t *object = json_pack("{s:o}", "devices", list);
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(object);
}

int command_devices(const struct settings *s, int n_arguments, char **arguments) {
    (void)n_arguments, (void)arguments;
    struct device devices[DEVICE_MOST];
    const int n = device_list(devices);
    if (s->json) print_json(devices, n);
    else print_table(devices, n);
    return EXIT_DONE;
}
