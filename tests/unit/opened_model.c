#include "tests/unit/opened_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

void opened_model_open(struct opened_model *o, const char *name, void *bytes, size_t size) {
    struct status st = {0};
    o->bytes = bytes;
    if (!gguf_open_memory(&o->gguf, name, bytes, size, &st) || !model_open(&o->model, &o->gguf, 0, &st))
        fail_msg("%s: %s", name, st.text);
}

void opened_model_close(struct opened_model *o) {
    model_close(&o->model);
    gguf_close(&o->gguf);
    free(o->bytes);
}
