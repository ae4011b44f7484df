#include "tests/unit/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

void safetensors_writer_tensor(struct safetensors_writer *w, const char *name, const char *dtype, int n_dims,
                               const uint64_t *dims, const void *data, size_t size) {
    if (!w->header) w->header = json_object();
    json_t *shape = json_array();
    for (int i = 0; i < n_dims; i++) json_array_append_new(shape, json_integer((json_int_t)dims[i]));
    json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtype, "shape", shape, "data_offsets",
                              (json_int_t)w->data.size, (json_int_t)(w->data.size + size));
    json_object_set_new(w->header, name, entry);
    bytes_put(&w->data, data, size);
}

uint8_t *safetensors_writer_finish(struct safetensors_writer *w, size_t *size) {
    struct bytes file = {0};
    if (!w->header) w->header = json_object();
    char *text = json_dumps(w->header, JSON_COMPACT);
    size_t length = strlen(text), padded = (length + 7) / 8 * 8; // with spaces, as the usual writer does
    bytes_u64(&file, padded);
    bytes_put(&file, text, length);
    while (file.size < 8 + padded) bytes_put(&file, " ", 1);
    bytes_put(&file, w->data.data, w->data.size);
    free(text);
    json_decref(w->header);
    free(w->data.data);
    *w = (struct safetensors_writer){0};
    *size = file.size;
    return file.data;
}

void write_whole_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) panic("%s cannot be written", path);
}

void safetensors_writer_save(struct safetensors_writer *w, const char *path) {
    size_t size;
    uint8_t *data = safetensors_writer_finish(w, &size);
    write_whole_file(path, data, size);
    free(data);
}
