#include "engine/text/vocabulary.h"

#include <math.h>
#include <string.h>

static const struct span *read_texts(struct vocabulary *v, struct status *st) {
    uint64_t count;
    const struct span *texts = gguf_get_strings(v->file, VOCABULARY_KEY("tokens"), &v->arena, &count, st);
    if (!texts && st->code != STATUS_OK) return NULL;
    if (count == 0 || count > INT32_MAX) {
        status_fail(st, STATUS_FORMAT, "%s: tokenizer.ggml.tokens has %llu tokens", v->file->path,
                    (unsigned long long)count);
        return NULL;
    }
    v->count = (int32_t)count;
    for (int32_t id = 0; id < v->count; id++) {
        v->bytes += texts[id].size;
        if (texts[id].size > v->longest) v->longest = texts[id].size;
    }
    return texts;
}

const struct gguf_pair *vocabulary_numbers(const struct vocabulary *v, const char *key, struct status *st) {
    const struct gguf_pair *p = gguf_find(v->file, key);
    if (!p) return NULL;
    if (p->type != GGUF_ARRAY || p->element == GGUF_STRING)
        status_fail(st, STATUS_FORMAT, "%s: %s: expected an array of numbers", v->file->path, key);
    else if (p->count != (uint64_t)v->count)
        status_fail(st, STATUS_FORMAT, "%s: %s has %llu elements for %d tokens", v->file->path, key,
                    (unsigned long long)p->count, v->count);
    else return p;
    return NULL;
}

const float *vocabulary_scores(struct vocabulary *v, struct status *st) {
    const char *key = VOCABULARY_KEY("scores");
    const struct gguf_pair *p = vocabulary_numbers(v, key, st);
    float *scores = p ? arena_array(&v->arena, (uint64_t)v->count, sizeof *scores, st) : NULL;
    if (!p && st->code == STATUS_OK) status_fail(st, STATUS_FORMAT, "%s: missing key %s", v->file->path, key);
    if (!scores) return NULL;
    for (int32_t id = 0; id < v->count; id++) {
        double score = gguf_number(p, (uint64_t)id);
        if (isnan(score)) {
            status_fail(st, STATUS_FORMAT, "%s: %s: not a number for token %d", v->file->path, key, id);
            return NULL;
        }
        scores[id] = (float)score;
    }
    return scores;
}

// Without types, byte tokens are recognised by their texts.
static bool read_types(struct vocabulary *v, struct status *st) {
    const char *key = VOCABULARY_KEY("token_type");
    const struct gguf_pair *p = vocabulary_numbers(v, key, st);
    if (!p && st->code != STATUS_OK) return false;
    for (int32_t id = 0; id < v->count; id++) {
        int byte = token_byte(v->texts[id]);
        double type = p ? gguf_number(p, (uint64_t)id) : byte >= 0 ? TOKEN_BYTE : TOKEN_NORMAL;
        if (!(type >= 0 && type <= TOKEN_BYTE))
            return status_fail(st, STATUS_FORMAT, "%s: %s: type %g of token %d is out of range (0 to %d)",
                               v->file->path, key, type, id, TOKEN_BYTE);
        v->types[id] = type >= 1 ? (uint8_t)type : TOKEN_NORMAL;
        if (v->types[id] == TOKEN_BYTE && byte < 0)
            return status_fail(st, STATUS_FORMAT, "%s: token %d: '%.*s' is not a byte token", v->file->path, id,
                               (int)(v->texts[id].size < 32 ? v->texts[id].size : 32), v->texts[id].data);
    }
    return true;
}

// Reads the key of a special token. −1, signed or unsigned, means none.
static bool read_id(const struct vocabulary *v, const char *key, int32_t *id, struct status *st) {
    int64_t value = *id < v->count ? *id : -1;
    if (!gguf_get_int(v->file, key, GGUF_OPTIONAL, -1, UINT32_MAX, &value, st)) return false;
    if (value == UINT32_MAX) value = -1;
    if (value >= v->count)
        return status_fail(st, STATUS_FORMAT, "%s: %s: %lld is out of range for %d tokens", v->file->path, key,
                           (long long)value, v->count);
    *id = (int32_t)value;
    return true;
}

int32_t vocabulary_find(const struct vocabulary *v, struct span text) {
    return text.size <= v->longest ? token_index_find(&v->index, text.data, text.size) : -1;
}

static int32_t find_marker(const struct vocabulary *v, const char *text) {
    int32_t id = vocabulary_find(v, span_of(text));
    return id >= 0 && vocabulary_is_special(v, id) ? id : -1;
}

// Markers that end an answer regardless of keys. Some files declare them user-defined; they are control tokens here, so
// that typed text cannot become one. In harmony vocabularies, and in those with <|flush|>, <|end|> only ends one of
// several messages; Gemma 4 uses </s> for something else.
static void mark_ends_by_text(struct vocabulary *v) {
    static const char *const texts[] = {"<|eot_id|>",
                                        "<|eom_id|>",
                                        "<|im_end|>",
                                        "<|end|>",
                                        "<|return|>",
                                        "<|call|>",
                                        "<end_of_turn>",
                                        "<|endoftext|>",
                                        "<|end_of_text|>",
                                        "</s>",
                                        "<eos>",
                                        "<EOT>",
                                        "_<EOT>",
                                        "[EOT]",
                                        "[EOS]",
                                        "<end_of_utterance>",
                                        "<turn|>",
                                        "<|tool_response>",
                                        "<|flush|>",
                                        "<|calls|>",
                                        "[e~[",
                                        "<｜end▁of▁sentence｜>"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int32_t id = find_marker(v, texts[i]);
        if (id >= 0) v->ends[id] = true, v->types[id] = TOKEN_CONTROL;
    }
    int32_t end = find_marker(v, "<|end|>"), other = find_marker(v, "</s>");
    bool ends_turns = (find_marker(v, "<|return|>") >= 0 && find_marker(v, "<|call|>") >= 0) ||
                      (find_marker(v, "<|calls|>") >= 0 && find_marker(v, "<|flush|>") >= 0);
    if (end >= 0 && ends_turns) v->ends[end] = false;
    if (other >= 0 && find_marker(v, "<|tool_response>") >= 0) v->ends[other] = false;
}

static bool read_special_ids(struct vocabulary *v, struct vocabulary_defaults defaults, struct status *st) {
    int32_t eot = -1, eom = -1;
    v->bos = defaults.bos, v->eos = defaults.eos, v->unknown = defaults.unknown, v->separator = defaults.separator;
    const struct {
        const char *key;
        int32_t *id;
        bool ends;
    } ids[] = {
        {VOCABULARY_KEY("bos_token_id"), &v->bos, false}, {VOCABULARY_KEY("unknown_token_id"), &v->unknown, false},
        {VOCABULARY_KEY("eos_token_id"), &v->eos, true},  {VOCABULARY_KEY("eot_token_id"), &eot, true},
        {VOCABULARY_KEY("eom_token_id"), &eom, true},     {VOCABULARY_KEY("seperator_token_id"), &v->separator, false},
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (!read_id(v, ids[i].key, ids[i].id, st)) return false;
        if (ids[i].ends && *ids[i].id >= 0) v->ends[*ids[i].id] = true;
    }
    return true;
}

bool vocabulary_open(struct vocabulary *v, const struct gguf *g, struct vocabulary_defaults defaults,
                     struct status *st) {
    v->file = g;
    v->texts = read_texts(v, st);
    if (!v->texts || !token_index_open(&v->index, v->texts, v->count, st)) return false;
    v->types = arena_array(&v->arena, (uint64_t)v->count, sizeof *v->types, st);
    v->ends = arena_array(&v->arena, (uint64_t)v->count, sizeof *v->ends, st);
    if (!v->types || !v->ends || !read_types(v, st)) return false;
    mark_ends_by_text(v);
    return read_special_ids(v, defaults, st);
}

void vocabulary_close(struct vocabulary *v) {
    token_index_close(&v->index);
    arena_free(&v->arena);
}
