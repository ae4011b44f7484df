#include "engine/format/huggingface_tokenizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface_tokenizer_parts.h"
#include "engine/format/json_source.h"

static const struct {
    const char *name;
    size_t limit;
} files[HUGGINGFACE_FILE_COUNT] = {
#define X(file, name, limit) [file] = {name, limit},
    HUGGINGFACE_TOKENIZER_FILES(X)
#undef X
};

// Prefixes a failure with the path of the file; returns false.
static bool name_file(const struct token_import *t, enum huggingface_file file, struct status *st) {
    return status_prefix(st, "%s/%s", t->texts->folder, files[file].name);
}

// ---- reading ----

// Decodes numbers as floats unless exact ids are needed: some files have numbers of thirty digits.
static bool parse(struct token_import *t, enum huggingface_file file, struct status *st) {
    struct span text = t->texts->files[file];
    bool has_exact_ids = file == HUGGINGFACE_TOKENIZER || file == HUGGINGFACE_VOCABULARY;
    if (!text.data) return true;
    t->roots[file] = json_source_parse(text, JSON_ALLOW_NUL | (has_exact_ids ? 0 : JSON_DECODE_INT_AS_REAL), st);
    return t->roots[file] || name_file(t, file, st);
}

static bool read_vocabulary(struct token_import *t, struct status *st) {
    // These two files do not name the pre-tokenizer; the class that reads them implies it.
    static const char *const classes[][2] = {{"GPT2Tokenizer", "gpt-2"},
                                             {"GPT2TokenizerFast", "gpt-2"},
                                             {"CodeGenTokenizer", "gpt-2"},
                                             {"Qwen2Tokenizer", "qwen2"},
                                             {"Qwen2TokenizerFast", "qwen2"}};
    struct span class = token_import_string(t->roots[HUGGINGFACE_TOKENIZER_CONFIG], "tokenizer_class");
    if (!class.data) class = (struct span){"GPT2Tokenizer", 13};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (span_equals(class, classes[i][0])) t->pre = classes[i][1];
    if (!t->pre)
        return status_fail(st, STATUS_UNSUPPORTED, "tokenizer_class: '%.*s' is supported only with a tokenizer.json",
                           token_import_shown(class), class.data) ||
               name_file(t, HUGGINGFACE_TOKENIZER_CONFIG, st);
    t->add_bos = t->add_eos = IMPORT_NO;
    if (!t->texts->files[HUGGINGFACE_MERGES].data)
        return status_fail(st, STATUS_FORMAT, "missing (vocab.json needs it)") || name_file(t, HUGGINGFACE_MERGES, st);
    return (token_import_vocabulary_json(t, t->roots[HUGGINGFACE_VOCABULARY], st) ||
            name_file(t, HUGGINGFACE_VOCABULARY, st)) &&
           (token_import_merges_text(t, t->texts->files[HUGGINGFACE_MERGES], st) ||
            name_file(t, HUGGINGFACE_MERGES, st));
}

static bool read_main_file(struct token_import *t, struct status *st) {
    const struct span *texts = t->texts->files;
    if (texts[HUGGINGFACE_TOKENIZER].data)
        return token_import_json(t, t->roots[HUGGINGFACE_TOKENIZER], st) || name_file(t, HUGGINGFACE_TOKENIZER, st);
    if (texts[HUGGINGFACE_SENTENCEPIECE].data)
        return token_import_sentencepiece(t, texts[HUGGINGFACE_SENTENCEPIECE], st) ||
               name_file(t, HUGGINGFACE_SENTENCEPIECE, st);
    if (texts[HUGGINGFACE_VOCABULARY].data) return read_vocabulary(t, st);
    return status_fail(st, STATUS_FORMAT, "%s: no tokenizer (expected tokenizer.json, tokenizer.model or vocab.json)",
                       t->texts->folder);
}

static bool read_all(struct token_import *t, struct status *st) {
    for (int file = 0; file < HUGGINGFACE_FILE_COUNT; file++) {
        if (span_ends_with(span_of(files[file].name), ".json") && !parse(t, (enum huggingface_file)file, st))
            return false;
    }
    if (!read_main_file(t, st)) return false;
    bool replaces = !t->texts->files[HUGGINGFACE_TOKENIZER].data;
    const json_t *decoder = json_object_get(t->roots[HUGGINGFACE_TOKENIZER_CONFIG], "added_tokens_decoder");
    return (token_import_added_map(t, t->roots[HUGGINGFACE_ADDED_TOKENS], replaces, st) ||
            name_file(t, HUGGINGFACE_ADDED_TOKENS, st)) &&
           (token_import_added_decoder(t, decoder, replaces, st) || name_file(t, HUGGINGFACE_TOKENIZER_CONFIG, st)) &&
           (token_import_settings(t, st) || name_file(t, HUGGINGFACE_CONFIG, st));
}

// ---- writing ----

#define KEY(name) "tokenizer.ggml." name

static bool write_tokens(struct token_import *t, struct gguf *g, struct status *st) {
    uint64_t rows = (uint64_t)t->rows;
    struct span *texts = arena_array(&t->arena, rows, sizeof *texts, st);
    float *scores = arena_array(&t->arena, rows, sizeof *scores, st);
    int32_t *types = arena_array(&t->arena, rows, sizeof *types, st);
    uint8_t *strips = arena_array(&t->arena, rows, sizeof *strips, st), any_strips = 0;
    if (!texts || !scores || !types || !strips) return false;
    for (int64_t id = 0; id < t->rows; id++) {
        struct token_import_entry token = id < t->count ? t->tokens[id] : (struct token_import_entry){0};
        if (!token.type) {
            struct span text = span_of(arena_printf(&t->arena, "[PAD%lld]", (long long)id));
            token = (struct token_import_entry){.text = text, .type = TOKEN_UNUSED};
        }
        texts[id] = token.text, scores[id] = token.score, types[id] = token.type, strips[id] = token.strips;
        any_strips |= token.strips;
    }
    gguf_add_strings(g, KEY("tokens"), texts, rows);
    gguf_add_numbers(g, KEY("token_type"), GGUF_I32, types, rows);
    if (any_strips) gguf_add_numbers(g, "tokenizer.confab.strips", GGUF_U8, strips, rows);
    if (t->has_scores) gguf_add_numbers(g, KEY("scores"), GGUF_F32, scores, rows);
    if (t->merges) gguf_add_strings(g, KEY("merges"), t->merges, t->n_merges);
    return true;
}

static void write_flag(struct gguf *g, const char *key, enum token_import_flag flag) {
    if (flag != IMPORT_UNSET) gguf_add_bool(g, key, flag == IMPORT_YES);
}

static bool write_pairs(struct token_import *t, struct gguf *g, struct status *st) {
    static const char *const keys[] = {
#define X(special, text, id, key) key,
        IMPORT_SPECIALS(X)
#undef X
    };
    struct span template = token_import_chat_template(t);
    gguf_add_string(g, KEY("model"), span_of(t->model));
    if (t->pre) gguf_add_string(g, KEY("pre"), span_of(t->pre));
    if (!write_tokens(t, g, st)) return false;
    for (int i = 0; i < IMPORT_SPECIAL_COUNT; i++)
        if (t->specials[i] >= 0) gguf_add_int(g, keys[i], (uint32_t)t->specials[i]);
    write_flag(g, KEY("add_bos_token"), t->add_bos);
    write_flag(g, KEY("add_eos_token"), t->add_eos);
    write_flag(g, KEY("add_space_prefix"), t->space_prefix);
    write_flag(g, KEY("remove_extra_whitespaces"), t->removes_spaces);
    write_flag(g, KEY("normalizer.lowercase"), t->lowercase);
    write_flag(g, KEY("normalizer.strip_accents"), t->strips_accents);
    write_flag(g, "tokenizer.confab.ignore_merges", t->ignore_merges);
    if (t->prefix_scheme) gguf_add_string(g, "tokenizer.confab.space_prefix", span_of(t->prefix_scheme));
    if (t->charsmap.size) gguf_add_numbers(g, KEY("precompiled_charsmap"), GGUF_U8, t->charsmap.data, t->charsmap.size);
    if (template.data) gguf_add_string(g, "tokenizer.chat_template", template);
    return true;
}

// ---- opening ----

bool huggingface_tokenizer_add_texts(struct gguf *g, const struct huggingface_texts *texts, struct status *st) {
    struct token_import t = {.texts = texts, .first = -1, .last = -1};
    struct status own = {0};
    for (int i = 0; i < IMPORT_SPECIAL_COUNT; i++) t.specials[i] = -1;
    bool done = read_all(&t, &own) && write_pairs(&t, g, &own);
    if (!done && st) *st = own;
    for (int file = 0; file < HUGGINGFACE_FILE_COUNT; file++) json_decref(t.roots[file]);
    free(t.tokens);
    arena_free(&t.arena);
    return done;
}

// tokenizer.json is complete; files with the same content in older formats are not read.
static bool is_superseded(int file, const struct huggingface_texts *texts) {
    if (file == HUGGINGFACE_SENTENCEPIECE) return texts->files[HUGGINGFACE_TOKENIZER].data;
    if (file == HUGGINGFACE_VOCABULARY || file == HUGGINGFACE_MERGES)
        return texts->files[HUGGINGFACE_TOKENIZER].data || texts->files[HUGGINGFACE_SENTENCEPIECE].data;
    return false;
}

static bool read_files(struct huggingface_texts *texts, struct status *st) {
    for (int file = 0; file < HUGGINGFACE_FILE_COUNT; file++) {
        char *path = xasprintf("%s/%s", texts->folder, files[file].name);
        struct span *text = &texts->files[file];
        bool exists = !is_superseded(file, texts) && (access(path, F_OK) == 0 || errno != ENOENT);
        if (exists) text->data = file_read_regular(path, files[file].limit, &text->size, st);
        free(path);
        if (exists && !text->data) return false;
    }
    return true;
}

bool huggingface_tokenizer_add(struct gguf *g, const char *folder, struct status *st) {
    struct huggingface_texts texts = {.folder = folder};
    bool done = read_files(&texts, st) && huggingface_tokenizer_add_texts(g, &texts, st);
    for (int file = 0; file < HUGGINGFACE_FILE_COUNT; file++) free((void *)texts.files[file].data);
    return done;
}
