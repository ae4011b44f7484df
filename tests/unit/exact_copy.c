#include "tests/unit/exact_copy.h"

#include <string.h>

#include "engine/base/panic.h"

void *exact_copy(const void *bytes, size_t size) {
    void *copy = xmalloc(size ? size : 1);
    if (size) memcpy(copy, bytes, size);
    return copy;
}
