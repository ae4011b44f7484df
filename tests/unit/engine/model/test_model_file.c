// Model files through the public interface: description, tokenizing and detokenizing, and streamed answers.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/answer/answer.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/serve/prompt_source.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/tiny_vocab.h"

struct opened {
    void *bytes;
    struct model_file *file;
};

static struct opened open_tiny(struct tiny_model_options o) {
    size_t size;
    struct status st = {0};
    struct opened m = {.bytes = tiny_model_bytes(o, &size)};
    m.file = model_file_open_memory("some/where/tiny.gguf", m.bytes, size, NULL, &st);
    if (!m.file) fail_msg("%s", st.text);
    return m;
}

// A vocabulary with the keys of an 8B model and no tensors.
static struct opened open_vocabulary(const char *name) {
    struct gguf_writer w = {0};
    size_t size;
    struct status st = {0};
    gguf_writer_string(&w, "general.architecture", "llama");
    if (name) gguf_writer_string(&w, "general.name", name);
    gguf_writer_u32(&w, "llama.block_count", 32);
    gguf_writer_u32(&w, "llama.embedding_length", 4096);
    gguf_writer_u32(&w, "llama.attention.head_count", 32);
    gguf_writer_u32(&w, "llama.attention.head_count_kv", 8);
    gguf_writer_u32(&w, "llama.context_length", 8192);
    gguf_writer_u32(&w, "llama.feed_forward_length", 0xffffffffu); // out of range
    gguf_writer_float(&w, "llama.rope.freq_base", 500000);
    tiny_vocab_byte_level(&w, "llama-bpe");
    struct opened m = {.bytes = gguf_writer_finish(&w, &size)};
    m.file = model_file_open_memory("some/where/words.gguf", m.bytes, size, NULL, &st);
    if (!m.file) fail_msg("%s", st.text);
    return m;
}

static void close_opened(struct opened m) {
    model_file_close(m.file);
    free(m.bytes);
}

static void test_info_of_a_model(void **state) {
    (void)state;
    struct opened m =
        open_tiny((struct tiny_model_options){.format = BLOCK_Q8_0, .chat_template = TINY_CHATML, .n_context = 300});
    const struct model_info *i = model_file_info(m.file);
    assert_true(i->has_weights);
    assert_string_equal(i->weight_problem, "");
    assert_string_equal(i->family, "llama");
    assert_string_equal(i->chat_template, "chatml");
    assert_string_equal(i->tokenizer, "llama");
    assert_int_equal(i->n_layer, 2);
    assert_int_equal(i->n_embd, 64);
    assert_int_equal(i->n_head, 4);
    assert_int_equal(i->n_head_kv, 2);
    assert_int_equal(i->head_size, 16);
    assert_int_equal(i->n_context, 300);
    assert_int_equal(i->n_vocab, tokenizer_count(m.file->tokenizer));
    struct model_memory memory;
    struct status st;
    const struct engine_params params = {.kv_tokens = 64, .options.quick_start = true};
    const uint64_t token_bytes = local_engine_token_bytes(m.file, KV_F16);
    assert_true(local_engine_memory(m.file, &params, 0, &memory, &st));
    assert_int_equal(64 * token_bytes, memory.kv);
    assert_true(token_bytes >= 2 * 2 * 2 * 2 * 16); // K and V, f16, 2 layers, 2 heads of 16, and padding
    assert_int_equal(memory.total, memory.weights + memory.buffers + memory.kv);
    // Heads of 16 take blocks of 32 elements: 34 and 18 bytes for a key, the same for a value.
    assert_int_equal(local_engine_token_bytes(m.file, KV_BF16), token_bytes);
    assert_int_equal(local_engine_token_bytes(m.file, KV_Q8_0), 2 * 2 * 2 * 34);
    assert_int_equal(local_engine_token_bytes(m.file, KV_Q4_0), 2 * 2 * 2 * 18);
    assert_true(local_engine_tokens_that_fit(m.file, KV_Q4_0, memory.total) >
                local_engine_tokens_that_fit(m.file, KV_F16, memory.total));
    int fits = local_engine_tokens_that_fit(m.file, KV_F16, memory.total);
    assert_int_equal(fits, 64);
    assert_int_equal(local_engine_tokens_that_fit(m.file, KV_F16, memory.total - 1), 32);
    assert_int_equal(local_engine_tokens_that_fit(m.file, KV_F16, memory.weights), 0);
    assert_true(i->float_share == 0); // norms are not matrices
    assert_int_equal(i->n_formats, 2);
    assert_string_equal(i->formats[0].name, "Q8_0");
    assert_string_equal(i->formats[1].name, "F32");
    assert_int_equal(i->formats[0].tensors, 2 * 7 + 2);
    assert_int_equal(i->formats[0].bytes + i->formats[1].bytes, i->weight_bytes);
    assert_true(i->formats[0].bytes > i->formats[1].bytes);
    assert_true(i->weight_bytes < i->file_bytes && i->n_parameters > 64 * 64);
    close_opened(m);
}

static void test_info_of_a_vocabulary(void **state) {
    (void)state;
    struct opened m = open_vocabulary("A \x1b[31mred\x07 name\n\xff \xe2\x80\xae.");
    const struct model_info *i = model_file_info(m.file);
    assert_false(i->has_weights);
    assert_non_null(strstr(i->weight_problem, "no weights"));
    assert_string_equal(i->name,
                        "A ?[31mred? name?\xef\xbf\xbd ?."); // no control characters or bidirectional overrides
    assert_int_equal(i->n_layer, 32);
    assert_int_equal(i->head_size, 128);
    assert_int_equal(i->n_ff, 0);
    assert_int_equal(i->n_context, 8192);
    assert_int_equal(local_engine_token_bytes(m.file, KV_F16), 0); // it cannot run
    assert_true(i->rope_base == 500000);
    assert_int_equal(i->n_formats, 0);
    struct status st = {0};
    assert_null(local_engine_open(m.file, &(struct engine_params){0}, &st));
    assert_string_equal(st.text, i->weight_problem);
    close_opened(m);
}

static void test_name_without_a_title_and_a_long_one(void **state) {
    (void)state;
    struct opened m = open_vocabulary(NULL);
    assert_string_equal(model_file_info(m.file)->name, "words.gguf");
    close_opened(m);
    char title[1001] = "";
    for (int i = 0; i < 500; i++) memcpy(title + 2 * i, "\xc3\xa9", 3);
    m = open_vocabulary(title);
    const char *name = model_file_info(m.file)->name;
    assert_true(strlen(name) < 160 && strlen(name) % 2 == 0); // cut between characters
    assert_int_equal(strncmp(name, title, strlen(name)), 0);
    close_opened(m);
}

static void test_ids_and_back(void **state) {
    (void)state;
    struct opened m = open_tiny((struct tiny_model_options){.pre = "gpt-2"});
    static const char text[] = "Hello world,\n\xf0\x9f\x98\x80 <|im_end|> \xff 1999";
    struct status st = {0};
    size_t count, plain_count, size;
    int32_t *ids = model_file_tokenize(m.file, text, sizeof text - 1, true, &count);
    char *back = model_file_detokenize(m.file, ids, count, &size, &st);
    assert_int_equal(size, sizeof text - 1);
    assert_memory_equal(back, text, size);
    free(back);
    int32_t *plain = model_file_tokenize(m.file, text, sizeof text - 1, false, &plain_count);
    assert_true(plain_count > count); // the mark is one token only when asked for
    ids[1] = model_file_info(m.file)->n_vocab;
    assert_null(model_file_detokenize(m.file, ids, count, &size, &st));
    assert_non_null(strstr(st.text, "id 1: "));
    free(ids);
    free(plain);
    ids = model_file_tokenize(m.file, "", 0, true, &count);
    assert_non_null(ids);
    assert_int_equal(count, 0);
    free(ids);
    close_opened(m);
}

static void test_open_refuses(void **state) {
    (void)state;
    struct status st = {0};
    assert_null(model_file_open("/nowhere/at/all.gguf", &st));
    assert_non_null(strstr(st.text, "/nowhere/at/all.gguf"));
    static const _Alignas(64) char broken[64] = "GGUF....";
    assert_null(model_file_open_memory("broken", broken, sizeof broken, NULL, &st));
    struct gguf_writer w = {0}; // a file without a tokenizer
    size_t size;
    gguf_writer_string(&w, "general.architecture", "llama");
    uint8_t *bytes = gguf_writer_finish(&w, &size);
    st = (struct status){0};
    assert_null(model_file_open_memory("bare", bytes, size, NULL, &st));
    assert_non_null(strstr(st.text, "tokenizer.ggml.model"));
    free(bytes);
}

// ---- answers ----

struct stream {
    struct opened m;
    struct queue events;
    struct answer *answer;
    char text[8192];
    size_t size;
    int n_events, n_tokens, n_thinking; // thinking: tokens
};

// Takes over the opened file.
static void stream_begin(struct stream *s, struct opened m, struct answer_params p) {
    *s = (struct stream){.m = m};
    assert_true(queue_open(&s->events, sizeof(struct engine_event), NULL));
    p.tokenizer = m.file->tokenizer, p.channels = &m.file->channels, p.events = &s->events;
    p.request = p.conversation = 1;
    s->answer = answer_open(&p);
}

static void stream_open(struct stream *s, bool chat) {
    stream_begin(s, open_tiny((struct tiny_model_options){.pre = "gpt-2"}),
                 (struct answer_params){.chat = chat, .template_stop = chat ? "\nUser:" : NULL});
}

static void stream_collect(struct stream *s) {
    struct engine_event e;
    while (queue_pop(&s->events, &e)) {
        assert_int_equal(e.kind, EVENT_TEXT);
        assert_int_equal(e.text[e.size], 0);
        memcpy(s->text + s->size, e.text, e.size + 1);
        s->size += e.size;
        s->n_events++;
        s->n_tokens += e.token >= 0;
        s->n_thinking += e.token >= 0 && e.channel == CHANNEL_THINKING;
    }
}

static bool stream_token(struct stream *s, int32_t id) {
    bool ended = answer_token(s->answer, &(struct sample){.ok = true, .token = id});
    stream_collect(s);
    return ended;
}

// Feeds text as one token per byte; true if the answer ended early, after *used bytes.
static bool stream_bytes(struct stream *s, const char *text, size_t *used) {
    for (*used = 0; text[*used];) {
        size_t count;
        int32_t *id = model_file_tokenize(s->m.file, text + (*used)++, 1, false, &count);
        assert_int_equal(count, 1);
        bool ended = stream_token(s, *id);
        free(id);
        if (ended) return true;
    }
    return false;
}

static void stream_close(struct stream *s) {
    answer_close(s->answer);
    queue_close(&s->events);
    close_opened(s->m);
}

static void test_split_characters_are_joined(void **state) {
    (void)state;
    struct stream s;
    size_t used;
    stream_open(&s, false);
    assert_false(stream_bytes(&s, "a\xf0\x9f\x98", &used));
    assert_string_equal(s.text, "a");
    assert_int_equal(s.n_tokens, 4); // tokens without text yet are reported too
    assert_false(stream_bytes(&s, "\x80z\xe4\xb8", &used));
    assert_string_equal(s.text, "a\xf0\x9f\x98\x80z");
    answer_finish(s.answer);
    stream_collect(&s);
    assert_string_equal(s.text, "a\xf0\x9f\x98\x80z\xef\xbf\xbd"); // never completed
    stream_close(&s);
}

static void test_stop_text_ends_the_answer(void **state) {
    (void)state;
    struct stream s;
    size_t used;
    stream_open(&s, true); // a file without a template stops at "\nUser:"
    assert_true(stream_bytes(&s, "one\nUse\n\nUser: more", &used));
    assert_int_equal(used, strlen("one\nUse\n\nUser:"));
    answer_finish(s.answer);
    stream_collect(&s);
    assert_string_equal(s.text, "one\nUse\n");
    stream_close(&s);
}

static void test_beginning_of_a_stop_text_is_held_back(void **state) {
    (void)state;
    struct stream s;
    size_t used;
    stream_open(&s, true);
    assert_false(stream_bytes(&s, "one\nUser", &used));
    assert_string_equal(s.text, "one");
    assert_false(stream_bytes(&s, "s", &used));
    assert_string_equal(s.text, "one\nUsers");
    assert_false(stream_bytes(&s, "\nUs", &used));
    answer_finish(s.answer);
    stream_collect(&s);
    assert_string_equal(s.text, "one\nUsers\nUs");
    stream_close(&s);
    stream_open(&s, false); // a raw continuation has no stop text
    assert_false(stream_bytes(&s, "one\nUser: two", &used));
    assert_string_equal(s.text, "one\nUser: two");
    stream_close(&s);
}

// An answer that spells out the end mark does not end there.
static void test_spelled_end_token_does_not_end(void **state) {
    (void)state;
    struct stream s;
    size_t used;
    stream_begin(&s, open_tiny((struct tiny_model_options){.pre = "gpt-2"}),
                 (struct answer_params){.chat = true, .template_stop = "<|im_end|>"});
    int32_t end = tokenizer_find(s.m.file->tokenizer, "<|im_end|>", strlen("<|im_end|>"));
    assert_true(tokenizer_ends_generation(s.m.file->tokenizer, end));
    assert_false(stream_bytes(&s, "<|im_end|> ends it", &used));
    assert_string_equal(s.text, "<|im_end|> ends it");
    assert_true(stream_token(&s, end));
    stream_close(&s);
}

static void test_end_token_ends_unless_ignored(void **state) {
    (void)state;
    struct stream s;
    stream_open(&s, false);
    int32_t end = tokenizer_eos(s.m.file->tokenizer);
    assert_true(tokenizer_ends_generation(s.m.file->tokenizer, end));
    assert_true(stream_token(&s, end));
    assert_int_equal(s.n_events, 0);
    stream_close(&s);
    stream_begin(&s, open_tiny((struct tiny_model_options){.pre = "gpt-2"}),
                 (struct answer_params){.ignore_end = true, .chat = true, .template_stop = "\nUser:"});
    assert_false(stream_token(&s, end));
    assert_int_equal(s.n_tokens, 1);
    assert_int_equal(s.size, 0);
    stream_close(&s);
}

// Tokens of any length are allowed; their text comes in several events of whole characters.
static void test_long_pieces_are_split(void **state) {
    (void)state;
    enum { LONG = 1000 };
    struct gguf_writer w = {0};
    struct bytes tokens = {0}, types = {0};
    char text[2 * LONG + 2] = "x";
    for (int i = 0; i < LONG; i++) memcpy(text + 1 + 2 * i, "\xc3\xa9", 3);
    const char *const texts[] = {"<unk>", "<s>", "</s>", text};
    const int32_t kinds[] = {TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_CONTROL, TOKEN_NORMAL};
    float scores[4] = {0};
    for (int i = 0; i < 4; i++) bytes_string(&tokens, texts[i]), bytes_put(&types, &kinds[i], sizeof kinds[i]);
    gguf_writer_string(&w, "general.architecture", "llama");
    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    gguf_writer_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, 4, tokens.data, tokens.size);
    gguf_writer_array(&w, "tokenizer.ggml.token_type", GGUF_I32, 4, types.data, types.size);
    gguf_writer_array(&w, "tokenizer.ggml.scores", GGUF_F32, 4, scores, sizeof scores);
    size_t size;
    struct status st = {0};
    struct opened m = {.bytes = gguf_writer_finish(&w, &size)};
    m.file = model_file_open_memory("long", m.bytes, size, NULL, &st);
    if (!m.file) fail_msg("%s", st.text);
    struct stream s;
    stream_begin(&s, m, (struct answer_params){0});
    // As an alternative it is truncated at a character.
    struct sample sample = {.ok = true, .token = 3, .n_alternatives = 1, .alternatives = {{3, 1}}};
    struct engine_event e;
    assert_false(answer_token(s.answer, &sample));
    assert_true(queue_pop(&s.events, &e));
    assert_int_equal(e.n_alternatives, 1);
    assert_string_equal(e.alternatives[0].text,
                        "x\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    memcpy(s.text, e.text, s.size = e.size);
    s.n_tokens = e.token >= 0;
    stream_collect(&s);
    assert_int_equal(s.n_tokens, 1);
    assert_true(s.n_events > 3);
    assert_string_equal(s.text, text);
    free(tokens.data);
    free(types.data);
    stream_close(&s);
}

// ---- thinking ----

// A vocabulary of bytes and these marks, with a template.
static struct opened open_marks(const char *const *marks, int n_marks, int32_t type, const char *template) {
    struct gguf_writer w = {0};
    struct bytes tokens = {0}, types = {0};
    float scores[512] = {0};
    const int32_t control = TOKEN_CONTROL, byte = TOKEN_BYTE;
    for (int i = 0; i < 3; i++) {
        bytes_string(&tokens, ((const char *[]){"<unk>", "<s>", "</s>"})[i]);
        bytes_put(&types, &control, sizeof control);
    }
    for (unsigned i = 0; i < 256; i++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", i);
        bytes_string(&tokens, text), bytes_put(&types, &byte, sizeof byte);
    }
    for (int i = 0; i < n_marks; i++) bytes_string(&tokens, marks[i]), bytes_put(&types, &type, sizeof type);
    uint64_t n = 259 + (uint64_t)n_marks;
    gguf_writer_string(&w, "general.architecture", "llama");
    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    gguf_writer_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, n, tokens.data, tokens.size);
    gguf_writer_array(&w, "tokenizer.ggml.token_type", GGUF_I32, n, types.data, types.size);
    gguf_writer_array(&w, "tokenizer.ggml.scores", GGUF_F32, n, scores, n * sizeof *scores);
    if (template) gguf_writer_string(&w, "tokenizer.chat_template", template);
    size_t size;
    struct status st = {0};
    struct opened m = {.bytes = gguf_writer_finish(&w, &size)};
    m.file = model_file_open_memory("marks", m.bytes, size, NULL, &st);
    if (!m.file) fail_msg("%s", st.text);
    free(tokens.data);
    free(types.data);
    return m;
}

// Feeds a text byte by byte, marks as tokens, and expects "thinking|answer".
static void draw_text(struct stream *s, const char *text, const char *expected) {
    size_t count;
    int32_t *ids = model_file_tokenize(s->m.file, text, strlen(text), true, &count);
    char thinking[256] = "", answer[256] = "", *shown;
    int n_tokens = 0;
    struct engine_event e;
    for (size_t i = 0; i < count; i++)
        assert_false(answer_token(s->answer, &(struct sample){.ok = true, .token = ids[i]}));
    answer_finish(s->answer);
    while (queue_pop(&s->events, &e)) {
        strcat(e.channel == CHANNEL_THINKING ? thinking : answer, e.text);
        n_tokens += e.token >= 0;
    }
    shown = xasprintf("%s|%s", thinking, answer);
    assert_string_equal(shown, expected);
    assert_int_equal(n_tokens, count); // each once, including marks
    free(shown);
    free(ids);
}

static const char *const harmony_marks[] = {"<|start|>",   "<|end|>",    "<|message|>",
                                            "<|channel|>", "<|return|>", "<|call|>"};
static const char *const think_marks[] = {"<think>", "</think>"};

// ---- slots ----

static char *slot_text(void *context, const char *name) {
    (*(int *)context)++;
    return !strcmp(name, "key:stop")       ? xasprintf("Ctrl+\xc3\xa9")
           : !strcmp(name, "default:temp") ? xasprintf("0.7")
                                           : NULL;
}

static const char *const slot_marks[] = {"<|key:stop|>", "<|default:temp|>", "<|fact:stop|>", "<|im_end|>",
                                         "<||>",         "<|a|b|>"};
enum { SLOT_MARKS = sizeof slot_marks / sizeof *slot_marks };

static void test_slots_show_what_the_program_knows(void **state) {
    (void)state;
    int asked = 0;
    struct opened m = open_marks(slot_marks, SLOT_MARKS, TOKEN_CONTROL, NULL);
    model_file_fill_slots(m.file, slot_text, &asked);
    assert_int_equal(asked, 4);
    struct stream s;
    stream_begin(&s, m, (struct answer_params){.chat = true});
    draw_text(&s, "<|fact:stop|>Press:<|key:stop|>,not:<|default:temp|>.", "|Press:Ctrl+\xc3\xa9,not:0.7.");
    stream_close(&s);
}

static void test_slots_are_shown_among_alternatives(void **state) {
    (void)state;
    int asked = 0;
    struct opened m = open_marks(slot_marks, SLOT_MARKS, TOKEN_CONTROL, NULL);
    model_file_fill_slots(m.file, slot_text, &asked);
    struct stream s;
    stream_begin(&s, m, (struct answer_params){.chat = true});
    struct sample sample = {.ok = true, .token = 260, .n_alternatives = 2, .alternatives = {{260, 0.5f}, {259, 0.25f}}};
    struct engine_event e;
    assert_false(answer_token(s.answer, &sample));
    assert_true(queue_pop(&s.events, &e));
    assert_string_equal(e.text, "0.7");
    assert_int_equal(e.token, 260);
    assert_string_equal(e.alternatives[0].text, "0.7");
    assert_string_equal(e.alternatives[1].text, "Ctrl+\xc3\xa9");
    stream_close(&s);
}

static void test_texts_like_a_slots_are_not_the_slot(void **state) {
    (void)state;
    int asked = 0;
    struct opened m = open_marks(slot_marks, SLOT_MARKS, TOKEN_CONTROL, NULL);
    model_file_fill_slots(m.file, slot_text, &asked);
    const struct {
        const char *text;
        bool special;
        size_t count;
    } cases[] = {{"0.7", true, 3}, {"0.7", false, 3}, {"<|default:temp|>", false, 16}, {"<|default:temp|>", true, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count;
        int32_t *ids = model_file_tokenize(m.file, cases[i].text, strlen(cases[i].text), cases[i].special, &count);
        assert_int_equal(count, cases[i].count);
        if (count == 1) assert_int_equal(ids[0], 260);
        free(ids);
    }
    close_opened(m);
}

static void test_slots_that_nobody_fills_are_silent(void **state) {
    (void)state;
    struct opened m = open_marks(slot_marks, SLOT_MARKS, TOKEN_CONTROL, NULL);
    struct stream s;
    stream_begin(&s, m, (struct answer_params){.chat = true});
    draw_text(&s, "Press:<|key:stop|>.", "|Press:.");
    stream_close(&s);
}

static void test_harmony_is_known_by_its_tokens(void **state) {
    (void)state;
    struct opened m = open_marks(harmony_marks, 6, TOKEN_CONTROL, NULL);
    const struct model_info *i = model_file_info(m.file);
    assert_string_equal(i->chat_template, "harmony");
    assert_string_equal(i->thinking, "harmony");
    assert_true(i->chooses_effort && !i->chooses_thinking);
    struct stream s;
    stream_begin(&s, m, (struct answer_params){.chat = true});
    draw_text(&s, "<|channel|>analysis<|message|>h\xc3\xa9<|end|><|start|>assistant<|channel|>final<|message|>Yes",
              "h\xc3\xa9|Yes");
    stream_close(&s);
    // A raw continuation has no parts.
    m = open_marks(harmony_marks, 6, TOKEN_CONTROL, NULL);
    stream_begin(&s, m, (struct answer_params){0});
    draw_text(&s, "<|channel|>analysis<|message|>hm", "|analysishm");
    stream_close(&s);
}

static void test_brackets_are_tokens_or_text(void **state) {
    (void)state;
    static const struct {
        int n_marks;
        int32_t type;
        const char *template, *thinking, *expected;
    } cases[] = {
        {2, TOKEN_CONTROL, NULL, "<think>", "a|b"},
        {2, TOKEN_USER_DEFINED, NULL, "<think>", "a|b"},
        {0, 0, "{{ '<think>' if x }}{{ '</think>' }}", "<think>", "a|b"},
        {0, 0, "<think></think><answer></answer>", "<think>", "a|b"},
        {0, 0, "{{ '[THINK]' }}", "", "|<think>a</think>b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct opened m = open_marks(think_marks, cases[i].n_marks, cases[i].type, cases[i].template);
        assert_string_equal(model_file_info(m.file)->thinking, cases[i].thinking);
        struct stream s;
        stream_begin(&s, m, (struct answer_params){.chat = true});
        bool wraps = cases[i].template && strstr(cases[i].template, "<answer>");
        draw_text(&s, wraps ? "<think>a</think><answer>b</answer>" : "<think>a</think>b", cases[i].expected);
        stream_close(&s);
    }
}

// An incomplete character before a mark does not continue in the next part or a header.
static void test_marks_cut_characters_off(void **state) {
    (void)state;
    struct stream s;
    stream_begin(&s, open_marks(think_marks, 2, TOKEN_CONTROL, NULL), (struct answer_params){.chat = true});
    draw_text(&s, "<think>a\xe6\x97</think>b", "a\xef\xbf\xbd|b");
    stream_close(&s);
    stream_begin(&s, open_marks(harmony_marks, 6, TOKEN_CONTROL, NULL), (struct answer_params){.chat = true});
    draw_text(&s, "<|channel|>analysis<|message|>a\xe6\x97<|end|><|start|>assistant<|channel|>final<|message|>b",
              "a\xef\xbf\xbd|b");
    stream_close(&s);
    stream_begin(&s, open_marks(harmony_marks, 6, TOKEN_CONTROL, NULL), (struct answer_params){.chat = true});
    draw_text(&s, "\xe6\x97<|channel|>analysis<|message|>a", "a|\xef\xbf\xbd");
    stream_close(&s);
}

static struct prompt_outcome outcome_of(const char *template, enum reasoning reasoning, char **text) {
    static const struct engine_message said[] = {{.role = "user", .text = "q"},
                                                 {.role = "assistant", .text = "a", .thinking = "t"},
                                                 {.role = "user", .text = "<think>"}};
    struct opened m = open_marks(harmony_marks, 6, TOKEN_CONTROL, template);
    struct prompt_source source =
        prompt_source_copy(&(struct request_params){.messages = said, .n_messages = 3, .reasoning = reasoning});
    struct token_list list = {0};
    struct prompt_outcome outcome;
    size_t size;
    prompt_source_encode(m.file, &source, &list, &outcome);
    *text = tokenizer_decode(m.file->tokenizer, list.ids, list.count, false, &size);
    (*text)[size] = 0;
    free(list.ids);
    prompt_source_free(&source);
    close_opened(m);
    return outcome;
}

static void test_what_templates_are_given(void **state) {
    (void)state;
    static const struct {
        const char *template;
        enum reasoning reasoning;
        const char *expected;
        bool refused, inside;
    } cases[] = {
        {"{{ messages[1].reasoning_content }}{{ messages[1].thinking }}{{ messages[1].content }}", REASONING_AUTO,
         "tta", false, false},
        {"{{ enable_thinking is defined }}{{ reasoning_effort is defined }}", REASONING_AUTO, "FalseFalse", false,
         false},
        {"{{ enable_thinking }}{{ thinking }}{{ reasoning_effort is defined }}", REASONING_OFF, "FalseFalseFalse",
         false, false},
        {"{{ enable_thinking }}{{ reasoning_effort }}", REASONING_HIGH, "Truehigh", false, false},
        {"{{ enable_thinking is defined }}", REASONING_HIGH, "False", false, false}, // not supported by the template
        {"x<think>\n{{ '</think>' if y }}", REASONING_AUTO, "x<think>\n", false, true},
        {"x<think>\n</think>", REASONING_AUTO, "x<think>\n</think>", false, false},
        {"{{ messages[2].content }}{{ '</think>' if y }}", REASONING_AUTO, "<think>", false,
         false}, // written by the user
        // Fails only in longer conversations: the recognised format takes over.
        {"{{ raise_exception('no thoughts') if messages[1].thinking }}<|im_start|>", REASONING_AUTO,
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\n<think><|im_end|>\n"
         "<|im_start|>assistant\n",
         true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;
        struct prompt_outcome o = outcome_of(cases[i].template, cases[i].reasoning, &text);
        assert_string_equal(text, cases[i].expected);
        assert_int_equal(o.refused.code != STATUS_OK, cases[i].refused);
        assert_int_equal(o.opens_thinking, cases[i].inside);
        free(text);
    }
}

static void test_sampling_of_the_file(void **state) {
    (void)state;
    struct gguf_writer w = {0};
    size_t size;
    struct status st = {0};
    gguf_writer_string(&w, "general.architecture", "llama");
    gguf_writer_float(&w, "general.sampling.temp", 0.25f);
    gguf_writer_u32(&w, "general.sampling.top_k", 100000); // clamped to the range of the knob
    gguf_writer_float(&w, "general.sampling.top_p", NAN);
    gguf_writer_string(&w, "general.sampling.min_p", "much");
    gguf_writer_pair(&w, "general.sampling.penalty_last_n", GGUF_I32, &(int32_t){-1}, 4);
    gguf_writer_float(&w, "general.sampling.penalty_repeat", 1.125f);
    tiny_vocab_byte_level(&w, "llama-bpe");
    struct opened m = {.bytes = gguf_writer_finish(&w, &size)};
    m.file = model_file_open_memory("words", m.bytes, size, NULL, &st);
    assert_non_null(m.file);
    const struct model_info *i = model_file_info(m.file);
    struct sampling initial = sampling_default();
    assert_true(i->sampling.temperature == 0.25f && i->sampling.repeat_penalty == 1.125f);
    assert_int_equal(i->sampling.top_k, 1000);
    assert_true(i->sampling.top_p == initial.top_p && i->sampling.min_p == initial.min_p);
    assert_int_equal(i->sampling.penalty_window, 4096);
    assert_int_equal(i->sampling_given,
                     1u << KNOB_temperature | 1u << KNOB_top_k | 1u << KNOB_penalty_window | 1u << KNOB_repeat_penalty);
    close_opened(m);
}

static void test_shared_harmony_vocabulary(void **state) {
    (void)state;
    struct status st = {0};
    struct opened m = {.file = model_file_open(shared_file("vocabs/o200k-harmony.gguf"), &st)};
    if (!m.file) fail_msg("%s", st.text);
    assert_string_equal(model_file_info(m.file)->thinking, "harmony");
    struct stream s;
    stream_begin(&s, m, (struct answer_params){.chat = true});
    draw_text(&s,
              "<|channel|>analysis<|message|>Simple.<|end|><|start|>assistant<|channel|>commentary to=functions.get "
              "<|constrain|>json<|message|>{\"a\": 1}<|end|><|start|>assistant<|channel|>final<|message|>Hello, 日本!",
              "Simple.\n\nto=functions.get: {\"a\": 1}|Hello, 日本!");
    stream_close(&s);
}

static void test_shared_vocabularies(void **state) {
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s", shared_file("vocabs/qwen2.gguf"));
    struct status st = {0};
    struct model_file *m = model_file_open(path, &st);
    if (!m) fail_msg("%s", st.text);
    assert_false(model_file_info(m)->has_weights);
    assert_string_equal(model_file_info(m)->pre_tokenizer, "qwen2");
    assert_true(model_file_info(m)->n_vocab > 150000);
    model_file_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info_of_a_model),
        cmocka_unit_test(test_info_of_a_vocabulary),
        cmocka_unit_test(test_name_without_a_title_and_a_long_one),
        cmocka_unit_test(test_ids_and_back),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_split_characters_are_joined),
        cmocka_unit_test(test_stop_text_ends_the_answer),
        cmocka_unit_test(test_beginning_of_a_stop_text_is_held_back),
        cmocka_unit_test(test_spelled_end_token_does_not_end),
        cmocka_unit_test(test_end_token_ends_unless_ignored),
        cmocka_unit_test(test_long_pieces_are_split),
        cmocka_unit_test(test_slots_show_what_the_program_knows),
        cmocka_unit_test(test_slots_are_shown_among_alternatives),
        cmocka_unit_test(test_texts_like_a_slots_are_not_the_slot),
        cmocka_unit_test(test_slots_that_nobody_fills_are_silent),
        cmocka_unit_test(test_harmony_is_known_by_its_tokens),
        cmocka_unit_test(test_brackets_are_tokens_or_text),
        cmocka_unit_test(test_marks_cut_characters_off),
        cmocka_unit_test(test_what_templates_are_given),
        cmocka_unit_test(test_sampling_of_the_file),
        cmocka_unit_test(test_shared_harmony_vocabulary),
        cmocka_unit_test(test_shared_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
