// Fuzzes chats to import: a file is refused with a message, or its chats are trees that every export can write, and
// confab's own JSON of them is read again with the same messages.
#include <stdlib.h>
#include <string.h>

#include "app/session/export.h"
#include "app/session/import.h"
#include "engine/base/panic.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/exact_copy.h"

static const char *const seeds[] = {
    "{\"format\":\"confab\",\"version\":1,\"title\":\"Rust\",\"named\":true,\"created\":1790000000000,\"used\":"
    "1790000001000,"
    "\"pinned\":true,\"tags\":\"a b\",\"sampling\":\"temp=0.7 top-k=40\",\"settings\":\"system = Be "
    "brief\\n\",\"last\":2,"
    "\"messages\":[{\"id\":1,\"role\":\"user\",\"text\":\"What <b>is</b> it?\",\"created\":1},{\"id\":2,\"parent\":1,"
    "\"role\":\"assistant\",\"state\":\"stopped\",\"text\":\"# A\\n\\n```c\\nint x;\",\"thinking\":\"well\","
    "\"thinking_seconds\":1.5,\"note\":\"stopped\",\"model\":\"m\",\"use\":\"pinned\",\"name\":\"n\"},"
    "{\"id\":3,\"parent\":1,\"role\":\"assistant\",\"text\":\"[a](https://b.c) ![d](e)\"}]}\n",
    "[{\"role\":\"system\",\"content\":\"Be brief\"},{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\","
    "\"content\":[{\"type\":\"text\",\"text\":\"One\"},{\"type\":\"image_url\"}]}]",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"title\":\"T\"}\n{\"messages\":[{\"role\":\"tool\"}]}\n",
    "[{\"title\":\"Oslo\",\"created_at\":1700000000,\"chat\":{\"history\":{\"currentId\":\"b\",\"messages\":{\"b\":{"
    "\"id\":"
    "\"b\",\"parentId\":\"a\",\"role\":\"assistant\",\"content\":\"| a | b |\\n|---|---|\\n| 1 | 2 "
    "|\"},\"a\":{\"id\":\"a\","
    "\"parentId\":null,\"role\":\"user\",\"content\":\"Trip\",\"timestamp\":1700000001}}}}}]",
    "{\"conversationId\":\"x\",\"title\":\"T\",\"messagesTree\":[{\"messageId\":\"1\",\"isCreatedByUser\":true,"
    "\"text\":"
    "\"Q\",\"children\":[{\"messageId\":\"2\",\"parentMessageId\":\"1\",\"isCreatedByUser\":false,\"text\":\"A\","
    "\"createdAt\":\"2026-01-02T03:04:05.678Z\"}]}]}",
};

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= sizeof seeds / sizeof *seeds) return NULL;
    *size = strlen(seeds[k]);
    return (uint8_t *)xstrdup(seeds[k]);
}

static void count_messages(void *context, struct conversation *found) {
    *(int *)context += found->count;
    conversation_close(found);
}

static void write_all(void *context, struct conversation *found) {
    struct import_counts counts;
    struct status st = {0};
    size_t size;
    int again = 0;
    (void)context;
    for (int i = 0; i < found->count; i++)
        if (found->messages[i].parent >= i) abort();
    for (int format = 0; format < EXPORT_FORMAT_COUNT; format++) {
        char *text = export_document(found, (enum export_format)format, &size);
        const bool own = format == EXPORT_JSON;
        if (own && !import_text((struct span){text, size}, &found->settings, count_messages, &again, &counts, &st))
            abort();
        free(text);
    }
    if (again != found->count) abort();
    conversation_close(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct settings initial = settings_default();
    struct import_counts counts;
    struct status st = {0};
    char *text = exact_copy(data, size);
    const bool done = import_text((struct span){text, size}, &initial, write_all, NULL, &counts, &st);
    if (done == (st.code != STATUS_OK) || (!done && !*st.text)) abort();
    free(text);
    settings_free(&initial);
    return 0;
}
