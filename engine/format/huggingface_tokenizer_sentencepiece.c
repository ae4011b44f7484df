// tokenizer.model: a SentencePiece model, a message in the wire format of protocol buffers.
//
// The API of the SentencePiece library does not expose user-defined pieces, the model type or the normaliser, so the
// message is read here; the tests compare ids with the library's.
//
//   message:  (key value)*, key = varint (field << 3 | kind)
//   kinds:    0 varint, 1 eight bytes, 2 varint length and bytes, 5 four bytes
//   model:    1 piece*, 2 trainer, 3 normalizer
//   piece:    1 text, 2 score (float), 3 type, numbered as in GGUF
//   trainer:  3 model type, 24 white space as suffix, 35 byte fallback, texts of 46 BOS, 47 EOS, 48 padding
//   normalizer: 2 precompiled charsmap, 3 adds a space in front, 4 removes extra spaces, 5 marks spaces
#include <math.h>
#include <string.h>

#include "engine/format/huggingface_tokenizer_parts.h"

enum wire_kind { WIRE_VARINT = 0, WIRE_EIGHT_BYTES = 1, WIRE_BYTES = 2, WIRE_FOUR_BYTES = 5 };

struct field {
    uint64_t number;
    enum wire_kind kind;
    uint64_t value;    // of WIRE_VARINT and WIRE_FOUR_BYTES
    struct span bytes; // of WIRE_BYTES
};

static uint64_t read_varint(struct reader *r) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t byte = reader_u8(r);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    reader_fail(r, "number exceeds 64 bits");
    return 0;
}

// Reads the next field; false at the end or on failure.
static bool next_field(struct reader *r, struct field *f) {
    if (reader_failed(r) || reader_left(r) == 0) return false;
    uint64_t key = read_varint(r);
    *f = (struct field){.number = key >> 3, .kind = (enum wire_kind)(key & 7)};
    switch (key & 7) {
    case WIRE_VARINT: f->value = read_varint(r); break;
    case WIRE_EIGHT_BYTES: reader_u64(r); break;
    case WIRE_BYTES: f->bytes = reader_bytes(r, read_varint(r)); break;
    case WIRE_FOUR_BYTES: f->value = reader_u32(r); break;
    default: reader_fail(r, "unknown field kind %d", (int)(key & 7));
    }
    return !reader_failed(r);
}

static bool finish(const struct reader *r, struct status *st) {
    if (!reader_failed(r)) return true;
    return status_fail(st, STATUS_FORMAT, "not a SentencePiece model: %s", r->status.text);
}

// Trainer and normalizer settings, initialised to the format's defaults.
struct specification {
    uint64_t model_type; // 1 unigram, 2 BPE
    bool byte_fallback, space_as_suffix;
    bool adds_space, removes_spaces, marks_spaces;
    struct span charsmap, bos, eos, pad;
};

static bool read_piece(struct token_import *t, struct span message, int64_t id, struct status *st) {
    struct reader r = reader_over(message.data, message.size);
    struct token_import_entry piece = {.text = {"", 0}, .type = TOKEN_NORMAL};
    struct field f;
    uint32_t bits;
    while (next_field(&r, &f)) {
        if (f.number == 1 && f.kind == WIRE_BYTES) piece.text = f.bytes;
        if (f.number == 2 && f.kind == WIRE_FOUR_BYTES) bits = (uint32_t)f.value, memcpy(&piece.score, &bits, 4);
        if (f.number == 3 && f.kind == WIRE_VARINT) piece.type = f.value <= TOKEN_BYTE ? (int32_t)f.value : 0;
    }
    if (!finish(&r, st)) return false;
    if (piece.text.size == 0 || !isfinite(piece.score) || piece.type < TOKEN_NORMAL ||
        (piece.type == TOKEN_BYTE && token_byte(piece.text) < 0))
        return status_fail(st, STATUS_FORMAT, "piece %lld: '%.*s': invalid text, score or type", (long long)id,
                           token_import_shown(piece.text), piece.text.data);
    if (piece.type == TOKEN_UNKNOWN) {
        if (t->specials[IMPORT_UNK] >= 0) return status_fail(st, STATUS_FORMAT, "more than one unknown piece");
        t->specials[IMPORT_UNK] = (int32_t)id;
    }
    return token_import_put(t, id, piece, st);
}

static void read_trainer(struct reader *r, struct specification *s) {
    struct field f;
    while (next_field(r, &f)) {
        if (f.kind == WIRE_VARINT && f.number == 3) s->model_type = f.value;
        if (f.kind == WIRE_VARINT && f.number == 24) s->space_as_suffix = f.value;
        if (f.kind == WIRE_VARINT && f.number == 35) s->byte_fallback = f.value;
        if (f.kind == WIRE_BYTES && f.number == 46) s->bos = f.bytes;
        if (f.kind == WIRE_BYTES && f.number == 47) s->eos = f.bytes;
        if (f.kind == WIRE_BYTES && f.number == 48) s->pad = f.bytes;
    }
}

static void read_normalizer(struct reader *r, struct specification *s) {
    struct field f;
    while (next_field(r, &f)) {
        if (f.kind == WIRE_BYTES && f.number == 2) s->charsmap = f.bytes;
        if (f.kind == WIRE_VARINT && f.number == 3) s->adds_space = f.value;
        if (f.kind == WIRE_VARINT && f.number == 4) s->removes_spaces = f.value;
        if (f.kind == WIRE_VARINT && f.number == 5) s->marks_spaces = f.value;
    }
}

static bool read_model(struct token_import *t, struct span file, struct specification *s, struct status *st) {
    struct reader r = reader_over(file.data, file.size);
    struct field f;
    int64_t pieces = 0;
    token_import_expect(t, file.size / 4); // minimum bytes of a piece
    while (next_field(&r, &f)) {
        if (f.kind != WIRE_BYTES) continue;
        struct reader inner = reader_over(f.bytes.data, f.bytes.size);
        if (f.number == 1 && !read_piece(t, f.bytes, pieces++, st)) return false;
        if (f.number == 2) read_trainer(&inner, s);
        if (f.number == 3) read_normalizer(&inner, s);
        if (!finish(&inner, st)) return false;
    }
    return finish(&r, st);
}

static bool check_bytes(const struct token_import *t, struct status *st) {
    bool seen[256] = {0};
    int count = 0;
    for (int64_t id = 0; id < t->count; id++) {
        if (t->tokens[id].type != TOKEN_BYTE) continue;
        int byte = token_byte(t->tokens[id].text);
        count += !seen[byte];
        seen[byte] = true;
    }
    return count == 256 || status_fail(st, STATUS_FORMAT, "byte_fallback: only %d of 256 bytes have pieces", count);
}

static bool choose_model(struct token_import *t, const struct specification *s, struct status *st) {
    if (!s->marks_spaces || s->space_as_suffix)
        return status_fail(st, STATUS_UNSUPPORTED, "%s is not supported",
                           s->marks_spaces ? "treat_whitespace_as_suffix" : "escape_whitespaces: false");
    if (s->byte_fallback && !check_bytes(t, st)) return false;
    if (s->model_type == 1) {
        t->model = "t5";
        t->charsmap = s->charsmap;
        t->removes_spaces = s->removes_spaces ? IMPORT_YES : IMPORT_NO;
        t->add_bos = IMPORT_NO, t->add_eos = IMPORT_YES;
        return true;
    }
    if (s->model_type != 2)
        return status_fail(st, STATUS_UNSUPPORTED, "unsupported model type %llu (expected unigram or BPE)",
                           (unsigned long long)s->model_type);
    if (!s->byte_fallback) return status_fail(st, STATUS_UNSUPPORTED, "BPE without byte_fallback is not supported");
    if (s->charsmap.size || s->removes_spaces)
        return status_fail(st, STATUS_UNSUPPORTED, "BPE that %s is not supported",
                           s->charsmap.size ? "normalises characters" : "removes extra spaces");
    t->model = "llama";
    t->add_bos = IMPORT_YES, t->add_eos = IMPORT_NO;
    return true;
}

bool token_import_sentencepiece(struct token_import *t, struct span file, struct status *st) {
    struct specification s = {.model_type = 1,
                              .adds_space = true,
                              .removes_spaces = true,
                              .marks_spaces = true,
                              .bos = {"<s>", 3},
                              .eos = {"</s>", 4},
                              .pad = {"<pad>", 5}};
    if (!read_model(t, file, &s, st)) return false;
    if (t->specials[IMPORT_UNK] < 0) return status_fail(st, STATUS_FORMAT, "no unknown piece");
    if (!choose_model(t, &s, st)) return false;
    token_import_write_spaces(t);
    t->has_scores = true;
    t->space_prefix = s.adds_space ? IMPORT_YES : IMPORT_NO;
    t->specials[IMPORT_BOS] = token_import_find(t, s.bos);
    t->specials[IMPORT_EOS] = token_import_find(t, s.eos);
    t->specials[IMPORT_PAD] = token_import_find(t, s.pad);
    return true;
}
