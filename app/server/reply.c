// Replies as JSON.
#include "app/server/server_state.h"
#include "engine/base/utf8.h"

#define JSON_TYPE "application/json"

static char *dump(json_t *object, size_t *size) {
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(8));
    if (!text) panic("out of memory");
    json_decref(object);
    *size = strlen(text);
    return text;
}

void reply_json(struct exchange *x, int status, json_t *object) {
    size_t size;
    char *text = dump(object, &size);
    http_reply(x, status, JSON_TYPE, text, size);
    free(text);
}

void reply_refusal(struct exchange *x, const struct reply_form *form, const struct refusal *r) {
    reply_json(x, r->status, form->error(r));
    if (r->status == 503) http_add_header(x, "Retry-After", "1");
    if (r->status == 401) http_add_header(x, "WWW-Authenticate", "Bearer");
}

void reply_event(struct exchange *x, json_t *object) {
    size_t size;
    char *text = dump(object, &size);
    http_write(x, "data: ", 6);
    http_write(x, text, size);
    http_write(x, "\n\n", 2);
    free(text);
}

void reply_comment(struct generation *g) { http_write(g->exchange, ": waiting\n\n", 11); }

void reply_line(struct exchange *x, json_t *object) {
    size_t size;
    char *text = dump(object, &size);
    http_write(x, text, size);
    http_write(x, "\n", 1);
    free(text);
}

json_t *reply_text(const char *text, size_t size) {
    json_t *string = json_stringn(size ? text : "", size);
    if (string) return string;
    struct utf8_stream stream = {0};
    char *clean = xmalloc(3 * (size + 8));
    size_t n = utf8_stream_push(&stream, text, size, clean);
    n += utf8_stream_finish(&stream, clean + n);
    string = json_stringn(clean, n);
    free(clean);
    return string;
}
