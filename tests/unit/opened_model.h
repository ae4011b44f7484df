// A model opened for a test, over the bytes of a file.
#ifndef CONFAB_TESTS_OPENED_MODEL_H
#define CONFAB_TESTS_OPENED_MODEL_H

#include "engine/model/model.h"

struct opened_model {
    void *bytes; // from malloc
    struct gguf gguf;
    struct model model;
};

// Takes the bytes; a failure fails the test.
void opened_model_open(struct opened_model *o, const char *name, void *bytes, size_t size);
void opened_model_close(struct opened_model *o);

#endif
