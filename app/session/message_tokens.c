#include "app/session/message_tokens.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/panic.h"

enum {
    VERSION = 1,
    UNKNOWN = 0x80, // in a record's second field,
    ACCEPTED = 0x40,
    FEW = 4, // alternatives that are kept however unlikely
};
#define LEAST 0.001f // probability of the others

void message_tokens_free(struct message_tokens *t) {
    free(t->tokens);
    free(t->bytes);
    *t = (struct message_tokens){0};
}

struct message_tokens message_tokens_copy(const struct message_tokens *t) {
    struct message_tokens copy = *t;
    copy.capacity = t->count, copy.room = t->size;
    copy.tokens = xmalloc((size_t)t->count * sizeof *copy.tokens);
    copy.bytes = xmalloc(t->size);
    if (t->count) memcpy(copy.tokens, t->tokens, (size_t)t->count * sizeof *copy.tokens);
    if (t->size) memcpy(copy.bytes, t->bytes, t->size);
    return copy;
}

// ---- figures ----

static uint16_t pack(double value) { return value > 0 ? (uint16_t)fmin(value * 2048 + 0.5, 65535) : 0; }
static uint16_t pack_probability(float p) { return p > 0 ? pack(-log2((double)p)) : 65535; }
static float unpack(uint16_t packed) { return (float)packed / 2048; }
static float unpack_probability(uint16_t packed) { return packed == 65535 ? 0 : exp2f(-unpack(packed)); }

// ---- writing ----

static void put(struct message_tokens *t, const void *bytes, size_t size) {
    if (!size) return;
    if (t->size + size > t->room) {
        t->room = 2 * (t->size + size) + 256;
        t->bytes = xrealloc(t->bytes, t->room);
    }
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

static void put_u8(struct message_tokens *t, uint8_t value) { put(t, &value, 1); }
static void put_u16(struct message_tokens *t, uint16_t value) {
    put(t, (const uint8_t[]){(uint8_t)value, (uint8_t)(value >> 8)}, 2);
}
static void put_varint(struct message_tokens *t, uint64_t value) {
    for (; value >= 0x80; value >>= 7) put_u8(t, (uint8_t)(value | 0x80));
    put_u8(t, (uint8_t)value);
}

static int worth_keeping(const struct token_alternative *alternatives, int n) {
    while (n > FEW && alternatives[n - 1].probability < LEAST) n--;
    return n;
}

static void put_alternative(struct message_tokens *t, const struct token_alternative *a) {
    const size_t size = strnlen(a->text, sizeof a->text);
    put_varint(t, (uint32_t)a->id);
    put_u16(t, pack_probability(a->probability));
    put_u8(t, (uint8_t)size);
    put(t, a->text, size);
}

static void put_record(struct message_tokens *t, const struct message_token *token,
                       const struct token_alternative *alternatives) {
    const bool known = !isnan(token->probability);
    put_varint(t, (uint32_t)token->id);
    put_u8(t, (uint8_t)(token->n_alternatives | (known ? 0 : UNKNOWN) | (token->accepted ? ACCEPTED : 0)));
    if (known) put_u16(t, pack_probability(token->probability)), put_u16(t, pack(token->entropy));
    for (int i = 0; i < token->n_alternatives; i++) put_alternative(t, &alternatives[i]);
}

static void add(struct message_tokens *t, struct message_token token, const struct token_alternative *alternatives) {
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->tokens = xrealloc(t->tokens, (size_t)t->capacity * sizeof *t->tokens);
    }
    token.record = (uint32_t)t->size;
    t->tokens[t->count++] = token;
    t->text[token.channel] = token.end;
    put_record(t, &token, alternatives);
}

static struct message_token token_of(const struct engine_event *e, size_t end) {
    return (struct message_token){.id = e->token,
                                  .end = (uint32_t)end,
                                  .channel = (uint8_t)e->channel,
                                  .probability = e->probability,
                                  .entropy = e->entropy,
                                  .accepted = e->accepted};
}

void message_tokens_add(struct message_tokens *t, const struct engine_event *e, size_t end) {
    struct message_token token = token_of(e, end), *last = t->count ? &t->tokens[t->count - 1] : NULL;
    if (e->token < 0) {
        if (last && last->channel == token.channel) t->text[token.channel] = last->end = token.end;
        return;
    }
    token.n_alternatives = (uint8_t)worth_keeping(e->alternatives, e->n_alternatives);
    add(t, token, e->alternatives);
}

void message_tokens_add_known(struct message_tokens *t, const struct engine_event *e, size_t end,
                              const struct message_tokens *from, int at) {
    struct token_alternative alternatives[SAMPLING_TOP];
    const int n = message_tokens_alternatives(from, at, alternatives);
    struct message_token token = token_of(e, end);
    if (token.id == from->tokens[at].id) {
        token.probability = from->tokens[at].probability;
        token.accepted = from->tokens[at].accepted;
    }
    for (int i = 0; i < n; i++)
        if (token.id == alternatives[i].id) token.probability = alternatives[i].probability;
    token.entropy = from->tokens[at].entropy;
    token.n_alternatives = isnan(token.probability) ? 0 : (uint8_t)n;
    add(t, token, alternatives);
}

// A blob is put together in a struct of its own.
uint8_t *message_tokens_write(const struct message_tokens *t, size_t *size) {
    struct message_tokens blob = {0};
    size_t text[2] = {0};
    put_u8(&blob, VERSION);
    put_varint(&blob, (uint64_t)t->count);
    for (int i = 0; i < t->count; i++) {
        const struct message_token *token = &t->tokens[i];
        put_varint(&blob, (token->end - text[token->channel]) << 1 | token->channel);
        text[token->channel] = token->end;
    }
    put(&blob, t->bytes, t->size);
    *size = blob.size;
    return blob.bytes;
}

// ---- reading ----

static uint64_t read_varint(struct reader *r) {
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        const uint8_t byte = reader_u8(r);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    reader_fail(r, "a number of a token is too long");
    return 0;
}

static int32_t read_id(struct reader *r) {
    const uint64_t id = read_varint(r);
    if (id > INT32_MAX) reader_fail(r, "token %llu is no id", (unsigned long long)id);
    return (int32_t)(id & INT32_MAX);
}

static uint16_t read_u16(struct reader *r) {
    const uint16_t low = reader_u8(r);
    return (uint16_t)(low | reader_u8(r) << 8);
}

static void read_alternative(struct reader *r, struct token_alternative *out) {
    *out = (struct token_alternative){.id = read_id(r)};
    out->probability = unpack_probability(read_u16(r));
    const uint8_t size = reader_u8(r);
    if (size >= sizeof out->text) reader_fail(r, "the text of a token has %u bytes", size);
    const struct span text = reader_bytes(r, size);
    if (!reader_failed(r)) memcpy(out->text, text.data, text.size);
}

// Fills in all but the place of its text.
static void read_record(struct reader *r, struct message_token *token, struct token_alternative out[SAMPLING_TOP]) {
    token->record = (uint32_t)r->at;
    token->id = read_id(r);
    const uint8_t n = reader_u8(r);
    const bool known = !(n & UNKNOWN);
    token->probability = known ? unpack_probability(read_u16(r)) : NAN;
    token->entropy = known ? unpack(read_u16(r)) : NAN;
    token->accepted = n & ACCEPTED;
    token->n_alternatives = n & (ACCEPTED - 1);
    if (token->n_alternatives > SAMPLING_TOP) reader_fail(r, "a token has %d alternatives", token->n_alternatives);
    for (int i = 0; i < token->n_alternatives && !reader_failed(r); i++) read_alternative(r, &out[i]);
}

int message_tokens_alternatives(const struct message_tokens *t, int at, struct token_alternative out[SAMPLING_TOP]) {
    struct reader r = reader_over(t->bytes, t->size);
    struct message_token token;
    r.at = t->tokens[at].record;
    read_record(&r, &token, out);
    return token.n_alternatives;
}

static void read_places(struct reader *r, struct message_tokens *out, const size_t text[2]) {
    for (int i = 0; i < out->count && !reader_failed(r); i++) {
        const uint64_t place = read_varint(r);
        struct message_token *token = &out->tokens[i];
        token->channel = place & 1;
        const uint64_t end = out->text[token->channel] + (place >> 1);
        if (end > text[token->channel]) reader_fail(r, "token %d ends behind the text", i);
        token->end = (uint32_t)end;
        out->text[token->channel] = (size_t)end;
    }
}

static void read_records(struct reader *r, struct message_tokens *out) {
    struct token_alternative alternatives[SAMPLING_TOP];
    struct reader records = reader_over(r->data + r->at, reader_left(r));
    for (int i = 0; i < out->count && !reader_failed(&records); i++)
        read_record(&records, &out->tokens[i], alternatives);
    if (!reader_failed(&records) && reader_left(&records)) reader_fail(&records, "there are bytes behind the tokens");
    if (reader_failed(&records)) r->status = records.status;
    else put(out, records.data, records.size);
}

bool message_tokens_read(struct message_tokens *out, const void *blob, size_t size, const size_t text[2],
                         struct status *st) {
    struct reader r = reader_over(blob, size);
    *out = (struct message_tokens){0};
    const uint8_t version = reader_u8(&r);
    if (version != VERSION) reader_fail(&r, "tokens of version %u, this confab reads %d", version, VERSION);
    const uint64_t count = read_varint(&r);
    if (count > reader_left(&r)) reader_fail(&r, "%llu tokens in %zu bytes", (unsigned long long)count, size);
    if (!reader_failed(&r)) {
        out->count = out->capacity = (int)count;
        out->tokens = xcalloc((size_t)count, sizeof *out->tokens);
        read_places(&r, out, text);
        if (!reader_failed(&r)) read_records(&r, out);
    }
    if (!reader_failed(&r)) return true;
    message_tokens_free(out);
    if (st) *st = r.status;
    return false;
}
