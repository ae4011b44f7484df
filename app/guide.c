#include "app/guide.h"

// Laid down by the assembler file that the Makefile makes (guide_data.S).
extern const char guide_begin[], guide_end[];

const void *guide_data(size_t *size) {
    *size = (size_t)(guide_end - guide_begin);
    return guide_begin;
}
