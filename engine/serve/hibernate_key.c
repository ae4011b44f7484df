#include "engine/serve/hibernate_key.h"

#include <string.h>
#include <sys/stat.h>

#include "engine/base/checksum.h"
#include "engine/model/opened_model.h"

// Whoever trains a model changes all its tensors: a few of them tell, without the whole file being read.
enum { SAMPLES = 32, SAMPLE_BYTES = 64 };

static uint64_t add_number(uint64_t key, uint64_t number) { return checksum(&number, sizeof number, key); }

static uint64_t add_file(uint64_t key, const struct gguf *g) {
    struct stat info;
    key = add_number(key, gguf_file_bytes(g));
    if (!g->n_mappings || stat(g->path, &info)) return key;
    return add_number(add_number(key, (uint64_t)info.st_mtim.tv_sec), (uint64_t)info.st_mtim.tv_nsec);
}

static uint64_t add_metadata(uint64_t key, const struct gguf *g) {
    for (uint64_t i = 0; i < g->n_pairs; i++) {
        const struct gguf_pair *p = &g->pairs[i];
        key = checksum(p->key.data, p->key.size, key);
        key = add_number(key, (uint64_t)p->type << 32 | (uint64_t)p->element);
        key = checksum(p->data, (size_t)p->size, key);
    }
    return key;
}

static uint64_t add_tensors(uint64_t key, const struct gguf *g) {
    const uint64_t every = g->n_tensors / SAMPLES + 1;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        key = checksum(t->name.data, t->name.size, key);
        key = checksum(t->dims, sizeof t->dims, key);
        key = checksum(t->format->name, strlen(t->format->name), key);
        if (i % every) continue;
        const size_t size = t->size < SAMPLE_BYTES ? (size_t)t->size : SAMPLE_BYTES;
        key = checksum((const char *)t->data + (t->size - size) / 2, size, key);
    }
    return key;
}

uint64_t hibernate_model_key(const struct model_file *m, int asked_context) {
    const struct model_spec *spec = &m->model.spec;
    const bool by_context = spec->rope.scaling == ROPE_SCALING_LONG;
    const uint64_t key = add_tensors(add_metadata(add_file(1, &m->gguf), &m->gguf), &m->gguf);
    return by_context ? add_number(key, (uint64_t)(asked_context ? asked_context : spec->n_context)) : key;
}

uint64_t hibernate_fingerprint(uint64_t model_key, const struct backend_info *info) {
    const uint64_t key = checksum(info->page_layout, strlen(info->page_layout), model_key);
    return add_number(add_number(key, info->page_bytes), info->rows_equal);
}
