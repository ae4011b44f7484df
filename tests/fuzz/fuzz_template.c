// Fuzzes chat templates with clang's libFuzzer. What stands before the first byte 0xff is the template, what follows is the
// context, as JSON; without one it is rendered over a small conversation.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/engine.h"

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"content\": \"Hi <b>\\n\"}, "
    "{\"role\": \"assistant\", \"content\": \"<think>\\u00e4</think> Yes\", \"n\": 2.5}], \"add_generation_prompt\": true, "
    "\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"tools\": [{\"name\": \"f\", \"items\": [1, -2, null, {}, []]}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *mark = size ? memchr(data, 0xff, size) : NULL;
    char *context = mark ? xstrndup((const char *)mark + 1, size - (size_t)(mark + 1 - data)) : xstrdup(conversation);
    size_t n = mark ? (size_t)(mark - data) : size, out_size = 0;
    char *template = xmalloc(n ? n : 1); // exactly as long, so that a byte read behind it is seen
    if (n) memcpy(template, data, n);
    struct status st = {0};
    char *text = template_render(template, n, context, "2026-01-02T03:04:05", &out_size, &st);
    if (!text && st.code == STATUS_OK) abort();
    if (text && strnlen(text, out_size + 1) > out_size) abort();
    free(text);
    free(template);
    free(context);
    return 0;
}
