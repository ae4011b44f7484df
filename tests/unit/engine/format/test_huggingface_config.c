// config.json and related files: keys, RoPE factors, sampling; and messages for folders without a model.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface.h"
#include "engine/format/model_files.h"
#include "engine/local_engine.h"
#include "engine/model/opened_model.h"
#include "tests/unit/huggingface_folder.h"
#include "tests/unit/tiny_huggingface.h"
#include "tests/unit/tiny_model.h"

static void open_good(struct huggingface_folder *f, struct gguf *g) {
    struct status st = {0};
    if (!huggingface_folder_open(f, g, &st)) fail_msg("%s", st.text);
}

static void rejected(struct huggingface_folder *f, const char *why) {
    struct gguf g;
    struct status st = {0};
    if (huggingface_folder_open(f, &g, &st)) fail_msg("opened; expected '%s'", why);
    if (!strstr(st.text, why)) fail_msg("'%s' does not contain '%s'", st.text, why);
    assert_memory_equal(st.text, f->path, strlen(f->path));
    assert_null(g.arena.chunks);
}

static void rejected_config(const char *changes, const char *why) {
    struct huggingface_folder f = huggingface_folder_new(changes);
    rejected(&f, why);
    huggingface_folder_remove(&f);
}

static double number(const struct gguf *g, const char *key) {
    const struct gguf_pair *p = gguf_find(g, key);
    if (!p) fail_msg("no key %s", key);
    return gguf_number(p, 0);
}

static void text_is(const struct gguf *g, const char *key, const char *expected) {
    struct span text = {0};
    struct status st;
    assert_true(gguf_get_string(g, key, GGUF_REQUIRED, &text, &st));
    if (!span_equals(text, expected)) fail_msg("%s is %.*s, expected %s", key, (int)text.size, text.data, expected);
}

// ---- keys ----

// The keys that each family derives from a config.json.
struct expectation {
    const char *changes;
    struct {
        const char *key;
        double value; // of a number
        const char *text;
    } keys[8];
};

static void configurations_become_keys(void **state) {
    (void)state;
    static const struct expectation cases[] = {
        {"",
         {{"llama.block_count", 1, NULL},
          {"llama.embedding_length", 8, NULL},
          {"llama.feed_forward_length", 16, NULL},
          {"llama.attention.head_count", 2, NULL},
          {"llama.context_length", 64, NULL},
          {"llama.vocab_size", 260, NULL},
          {"general.architecture", 0, "llama"}}},
        {"{\"model_type\": \"mistral\", \"sliding_window\": 4096, \"rope_theta\": 1e6, \"head_dim\": 32}",
         {{"general.architecture", 0, "llama"},
          {"llama.attention.sliding_window", 4096, NULL},
          {"llama.rope.freq_base", 1e6, NULL},
          {"llama.attention.key_length", 32, NULL},
          {"llama.attention.value_length", 32, NULL}}},
        {"{\"model_type\": \"gemma3\", \"text_config\": {\"model_type\": \"gemma3_text\", \"hidden_size\": 24, "
         "\"query_pre_attn_scalar\": 64, \"sliding_window\": 512, \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": "
         "\"linear\"}}, \"num_attention_heads\": null, \"max_position_embeddings\": null}",
         {{"general.architecture", 0, "gemma3"},
          {"gemma3.embedding_length", 24, NULL},
          {"gemma3.attention.head_count", 8, NULL}, // default of its configuration class
          {"gemma3.context_length", 131072, NULL},
          {"gemma3.attention.scale", 0.125, NULL},
          {"gemma3.rope.freq_base_swa", 10000, NULL},
          {"gemma3.rope.scaling.type", 0, "linear"},
          {"gemma3.rope.scaling.factor", 8, NULL}}},
        {"{\"model_type\": \"phi\", \"partial_rotary_factor\": 0.5, \"head_dim\": 20, \"layer_norm_eps\": 0.25}",
         {{"phi2.rope.dimension_count", 10, NULL}, {"phi2.attention.layer_norm_epsilon", 0.25, NULL}}},
        {"{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 16}}",
         {{"llama.rope.scaling.type", 0, "yarn"},
          {"llama.rope.scaling.factor", 4, NULL},
          {"llama.rope.scaling.original_context_length", 16, NULL},
          {"llama.rope.scaling.yarn_beta_fast", 32, NULL},
          {"llama.rope.scaling.yarn_beta_slow", 1, NULL}}},
        {"{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 16, \"rope_theta\": 250000, \"mscale\": 0.5, "
         "\"mscale_all_dim\": 0.5, \"beta_fast\": 8, \"beta_slow\": 2, \"original_max_position_embeddings\": 16}}",
         {{"llama.rope.freq_base", 250000, NULL},
          {"llama.rope.scaling.yarn_beta_fast", 8, NULL},
          {"llama.rope.scaling.yarn_beta_slow", 2, NULL},
          {"llama.rope.scaling.yarn_log_multiplier", 1, NULL}}}, // equal ones cancel out
        {"{\"model_type\": \"ministral3\", \"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 16, \"mscale\": "
         "1, "
         "\"mscale_all_dim\": 0.5, \"llama_4_scaling_beta\": 0.125, \"original_max_position_embeddings\": 16}}",
         {{"mistral3.attention.temperature_scale", 0.125, NULL},
          {"mistral3.rope.scaling.yarn_log_multiplier", 0.5, NULL}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct huggingface_folder f = huggingface_folder_new(cases[i].changes);
        struct gguf g;
        open_good(&f, &g);
        for (int k = 0; k < 8 && cases[i].keys[k].key; k++) {
            if (cases[i].keys[k].text) text_is(&g, cases[i].keys[k].key, cases[i].keys[k].text);
            else if (number(&g, cases[i].keys[k].key) != cases[i].keys[k].value)
                fail_msg("%s is %g", cases[i].keys[k].key, number(&g, cases[i].keys[k].key));
        }
        gguf_close(&g);
        huggingface_folder_remove(&f);
    }
}

static void layer_types_become_a_pattern(void **state) {
    (void)state;
    struct huggingface_folder f = huggingface_folder_new(
        "{\"model_type\": \"olmo3\", \"sliding_window\": 32, \"layer_types\": [\"sliding_attention\", "
        "\"full_attention\", \"sliding_attention\"]}");
    struct gguf g;
    open_good(&f, &g);
    const struct gguf_pair *p = gguf_find(&g, "olmo2.attention.sliding_window_pattern");
    assert_true(p && p->element == GGUF_BOOL && p->count == 3);
    assert_true(gguf_number(p, 0) == 1 && gguf_number(p, 1) == 0 && gguf_number(p, 2) == 1);
    gguf_close(&g);
    huggingface_folder_remove(&f);
    rejected_config("{\"model_type\": \"olmo3\", \"sliding_window\": 32, \"layer_types\": [\"chunked_attention\"]}",
                    "layer_types: unknown type 'chunked_attention' at 0");
}

static void invalid_members_are_rejected(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"hidden_size\": \"8\"}", "config.json: hidden_size|n_embd: expected a number"},
        {"{\"hidden_size\": -8}", "hidden_size|n_embd: -8 is not an integer from 0 to 4294967295"},
        {"{\"hidden_size\": 8.5}", "8.5 is not an integer"},
        {"{\"hidden_size\": 4294967296}", "is not an integer"},
        {"{\"hidden_size\": [8]}", "expected a number"},
        {"{\"rms_norm_eps\": true}", "config.json: rms_norm_eps: expected a number"},
        {"{\"model_type\": null}", "config.json: missing model_type"},
        {"{\"model_type\": \"bert\"}", "unsupported model type 'bert' (supported: llama, "},
        {"{\"model_type\": \"qwen3_moe\", \"norm_topk_prob\": 1}", "norm_topk_prob: expected true or false"},
        {"{\"quantization_config\": {\"quant_method\": \"gptq\"}}", "unsupported quantisation method 'gptq'"},
        {"{\"partial_rotary_factor\": 0}", "partial_rotary_factor: 0 is out of range (0 to 1)"},
        {"{\"partial_rotary_factor\": 1.5}", "partial_rotary_factor: 1.5 is"},
        {"{\"rope_scaling\": {\"rope_type\": \"new\"}}", "unknown RoPE scaling 'new'"},
        {"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}}", "RoPE scaling: factor: 0 is not positive"},
        {"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": \"2\"}}", "expected a number"},
        {"{\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2, \"original_max_position_embeddings\": 1e300}}",
         "original_max_position_embeddings: 1e+300 is out of range"},
        {"{\"rope_scaling\": {\"type\": \"longrope\"}}", "RoPE scaling: long_factor: expected a list"},
        {"{\"rope_scaling\": {\"type\": \"longrope\", \"long_factor\": [1, 0]}}",
         "RoPE scaling: long_factor: 0 is not positive"},
        {"{\"rope_scaling\": {\"type\": \"llama3\", \"high_freq_factor\": -1}}",
         "RoPE scaling: high_freq_factor: -1 is not positive"},
        {"{\"rope_scaling\": {\"type\": \"llama3\"}, \"hidden_size\": 1}",
         "RoPE scaling: 0 pairs per head is out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) rejected_config(cases[i][0], cases[i][1]);
}

// ---- RoPE ----

static const float *factors(const struct gguf *g, const char *name, uint64_t n) {
    const struct gguf_tensor *t = gguf_tensor_find(g, name);
    if (!t) fail_msg("no %s", name);
    assert_true(t->n_dims == 1 && t->dims[0] == n && t->format->id == BLOCK_F32);
    return t->data;
}

// Llama 3.1 8B: 64 pairs, base 500000, factor 8 for wavelengths above 8192, 1 for those below 2048.
static void llama3_divisors_are_right(void **state) {
    (void)state;
    struct huggingface_folder f = huggingface_folder_new(
        "{\"hidden_size\": 4096, \"num_attention_heads\": 32, \"rope_theta\": 500000.0, \"rope_scaling\": {\"factor\": "
        "8.0, "
        "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192, "
        "\"rope_type\": \"llama3\"}}");
    struct gguf g;
    open_good(&f, &g);
    const float *divisors = factors(&g, "rope_freqs.weight", 64);
    for (int i = 0; i < 64; i++) {
        // By wavelengths: 2π · 500000^(i / 64) is 2048 at i = 28.2 and 8192 at 34.98.
        if (i <= 28) assert_true(divisors[i] == 1);
        else if (i >= 35) assert_true(divisors[i] == 8);
        else assert_true(divisors[i] > divisors[i - 1] && divisors[i] < 8);
    }
    // At i = 31 the wavelength is 3619.249, the share (8192 / 3619.249 − 1) / 3 = 0.421151: 1 / (0.578849 / 8 + share).
    assert_true(fabs((double)divisors[31] - 2.0263132) < 1e-6);
    assert_null(gguf_find(&g, "llama.rope.scaling.type"));
    gguf_close(&g);
    huggingface_folder_remove(&f);
}

static void long_and_short_factors_are_imported(void **state) {
    (void)state;
    struct huggingface_folder f = huggingface_folder_new(
        "{\"model_type\": \"phi3\", \"max_position_embeddings\": 131072, \"original_max_position_embeddings\": 4096, "
        "\"rope_scaling\": {\"type\": \"longrope\", \"long_factor\": [1.5, 40], \"short_factor\": [1, 1.25]}}");
    struct gguf g;
    open_good(&f, &g);
    const float *lengthy = factors(&g, "rope_factors_long.weight", 2),
                *brief = factors(&g, "rope_factors_short.weight", 2);
    assert_true(lengthy[0] == 1.5f && lengthy[1] == 40 && brief[0] == 1 && brief[1] == 1.25f);
    assert_true(number(&g, "phi3.rope.scaling.original_context_length") == 4096);
    // √(1 + ln 32 / ln 4096) = √(1 + 5 / 12)
    assert_true(fabs(number(&g, "phi3.rope.scaling.attn_factor") - 1.1902380714) < 1e-6);
    gguf_close(&g);
    huggingface_folder_remove(&f);
}

// ---- the other files ----

static void sampling_defaults_become_keys(void **state) {
    (void)state;
    struct huggingface_folder f = huggingface_folder_new("");
    struct gguf g;
    huggingface_folder_file(&f, "generation_config.json",
                            "{\"temperature\": 0.625, \"top_k\": 20, \"top_p\": 0.75, \"min_p\": 0, "
                            "\"repetition_penalty\": 1.125, \"do_sample\": true, \"bos_token_id\": [1, 2]}");
    open_good(&f, &g);
    assert_true(number(&g, "general.sampling.temp") == 0.625 && number(&g, "general.sampling.top_k") == 20);
    assert_true(number(&g, "general.sampling.top_p") == 0.75 && number(&g, "general.sampling.min_p") == 0);
    assert_true(number(&g, "general.sampling.penalty_repeat") == 1.125);
    gguf_close(&g);
    huggingface_folder_file(&f, "generation_config.json", "{\"temperature\": \"hot\", \"top_k\": -1}");
    open_good(&f, &g);
    assert_null(gguf_find(&g, "general.sampling.temp"));
    assert_null(gguf_find(&g, "general.sampling.top_k"));
    gguf_close(&g);
    huggingface_folder_file(&f, "generation_config.json", "{");
    rejected(&f, "/generation_config.json: invalid JSON");
    huggingface_folder_remove(&f);
}

static void embeddings_end_with_the_last_token(void **state) {
    (void)state;
    enum { PADDED = HUGGINGFACE_FOLDER_TOKENS + 4 };
    struct huggingface_folder f = huggingface_folder_new("");
    struct gguf g;
    float *rows = xcalloc(PADDED * 2, sizeof *rows);
    const size_t size = PADDED * 2 * sizeof *rows;
    safetensors_writer_tensor(&f.weights, "model.embed_tokens.weight", "F32", 2, (uint64_t[]){PADDED, 2}, rows, size);
    safetensors_writer_tensor(&f.weights, "lm_head.weight", "F32", 2, (uint64_t[]){PADDED, 2}, rows, size);
    safetensors_writer_tensor(&f.weights, "lm_head.bias", "F32", 1, (uint64_t[]){PADDED}, rows, PADDED * sizeof *rows);
    open_good(&f, &g);
    assert_int_equal(gguf_find(&g, "tokenizer.ggml.tokens")->count, HUGGINGFACE_FOLDER_TOKENS);
    assert_int_equal(gguf_tensor_find(&g, "token_embd.weight")->dims[1], HUGGINGFACE_FOLDER_TOKENS);
    assert_int_equal(gguf_tensor_find(&g, "output.weight")->dims[1], HUGGINGFACE_FOLDER_TOKENS);
    assert_int_equal(gguf_tensor_find(&g, "output.bias")->dims[0], HUGGINGFACE_FOLDER_TOKENS);
    gguf_close(&g);
    free(rows);
    huggingface_folder_remove(&f);
}

static void a_tied_output_is_left_out(void **state) {
    (void)state;
    const float row[2] = {1, 2};
    for (int tied = 0; tied < 2; tied++) {
        struct huggingface_folder f = huggingface_folder_new(tied ? "{\"tie_word_embeddings\": true}" : "");
        struct gguf g;
        safetensors_writer_tensor(&f.weights, "lm_head.weight", "F32", 2, (uint64_t[]){1, 2}, row, sizeof row);
        open_good(&f, &g);
        assert_int_equal(gguf_tensor_find(&g, "output.weight") == NULL, tied);
        gguf_close(&g);
        huggingface_folder_remove(&f);
    }
}

static void other_parts_of_multimodal_models_are_left_out(void **state) {
    (void)state;
    static const char *const names[] = {"vision_tower.x.weight", "multi_modal_projector.norm.weight",
                                        "model.layers.0.self_attn.rotary_emb.inv_freq",
                                        "language_model.model.norm.weight"};
    struct huggingface_folder f = huggingface_folder_new("");
    struct gguf g;
    for (int i = 0; i < 4; i++)
        safetensors_writer_tensor(&f.weights, names[i], "F32", 1, (uint64_t[]){1}, &(float){1}, 4);
    open_good(&f, &g);
    assert_int_equal(g.n_tensors, 1);
    assert_non_null(gguf_tensor_find(&g, "output_norm.weight"));
    gguf_close(&g);
    huggingface_folder_remove(&f);
}

// ---- folders ----

static void missing_files_are_named(void **state) {
    (void)state;
    struct huggingface_folder f = huggingface_folder_new("");
    char path[128];
    struct gguf g;
    struct status st = {0};
    assert_false(huggingface_open(&g, f.path, true, &st));
    assert_non_null(strstr(st.text, "has neither model.safetensors nor model.safetensors.index.json"));
    huggingface_folder_file(&f, "pytorch_model.bin", "x");
    assert_false(huggingface_open(&g, f.path, true, &st));
    assert_non_null(strstr(st.text, "pytorch_model.bin is not supported"));
    snprintf(path, sizeof path, "%s/tokenizer.json", f.path);
    assert_int_equal(unlink(path), 0);
    rejected(&f, "tokenizer.json");
    huggingface_folder_file(&f, "config.json", "[]");
    rejected(&f, "/config.json: not a JSON object");
    huggingface_folder_file(&f, "config.json", "{\"a\": 1,\n\"a\": 2}");
    rejected(&f, "/config.json: invalid JSON: line 2, column 3: duplicate object key near '\"a\"");
    snprintf(path, sizeof path, "%s/config.json", f.path);
    assert_int_equal(unlink(path), 0);
    rejected(&f, "folder has no config.json, not a Hugging Face model");
    huggingface_folder_remove(&f);
}

static void names_come_from_paths(void **state) {
    (void)state;
    char base[] = "/tmp/confab-hub-XXXXXX", path[160];
    static const char *const steps[] = {"models--some--Small-Llama--2b", "snapshots", "0123abcd"};
    assert_non_null(mkdtemp(base));
    strcpy(path, base);
    for (int i = 0; i < 3; i++) {
        strcat(strcat(path, "/"), steps[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    struct huggingface_folder f = huggingface_folder_new("");
    struct gguf g;
    open_good(&f, &g);
    text_is(&g, "general.name", strrchr(f.path, '/') + 1);
    gguf_close(&g);
    assert_int_equal(rename(f.path, path), 0); // over the empty folder
    snprintf(path + strlen(path), 2, "/");
    struct status st = {0};
    if (!huggingface_open(&g, path, true, &st)) fail_msg("%s", st.text);
    text_is(&g, "general.name", "2b"); // what follows the last "--"
    gguf_close(&g);
    tiny_huggingface_remove(path);
    for (int i = 0; i < 3; i++) *strrchr(path, '/') = 0, rmdir(path);
    rmdir(base);
}

static void any_path_of_a_model_opens_it(void **state) {
    (void)state;
    struct huggingface_folder f = huggingface_folder_new("");
    struct status st = {0};
    struct gguf g;
    size_t size;
    void *bytes = tiny_model_bytes((struct tiny_model_options){.format = BLOCK_BF16}, &size);
    assert_true(gguf_open_memory(&g, "tiny", bytes, size, &st));
    tiny_huggingface_write(f.path, &g, (struct tiny_huggingface_options){.model_type = "llama", .shards = 2});
    gguf_close(&g);
    free(bytes);
    static const char *const endings[] = {"", "/", "/config.json", "/model.safetensors.index.json",
                                          "/model-00001-of-00002.safetensors"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", f.path, endings[i]);
        struct model_file *m = model_file_open(path, &st);
        if (!m) fail_msg("%s: %s", path, st.text);
        const struct model_info *info = model_file_info(m);
        if (!info->has_weights) fail_msg("%s", info->weight_problem);
        assert_string_equal(info->family, "llama");
        assert_true(info->file_bytes > info->weight_bytes / 2 && info->n_layer == 2);
        model_file_close(m);
    }
    huggingface_folder_remove(&f);
    assert_null(model_file_open("/nowhere/model.safetensors", &st));
    assert_string_equal(st.text, "/nowhere/model.safetensors: No such file or directory");
}

// Nothing is converted to list models: shapes and formats are known, matrices read as zeros.
static void describing_converts_nothing(void **state) {
    (void)state;
    struct huggingface_folder f = huggingface_folder_new("");
    const uint8_t ones[4] = {0x38, 0x38, 0x38, 0x38};
    struct gguf g;
    struct status st = {0};
    for (int use = MODEL_FILES_RUN; use <= MODEL_FILES_DESCRIBE; use++) {
        safetensors_writer_tensor(&f.weights, "model.layers.0.mlp.up_proj.weight", "F8_E4M3", 2, (uint64_t[]){2, 2},
                                  ones, 4);
        open_good(&f, &g);
        gguf_close(&g);
        if (!model_files_open(&g, f.path, (enum model_files_use)use, &st)) fail_msg("%s", st.text);
        const struct gguf_tensor *t = gguf_tensor_find(&g, "blk.0.ffn_up.weight");
        assert_true(t->dims[0] == 2 && t->dims[1] == 2 && t->format->id == BLOCK_BF16);
        assert_int_equal(((const uint16_t *)t->data)[3], use == MODEL_FILES_RUN ? 0x3f80 : 0);
        gguf_close(&g);
    }
    huggingface_folder_remove(&f);
}

// Converted weights count as memory, whether described or loaded.
static void converted_weights_are_counted_once(void **state) {
    (void)state;
    struct huggingface_folder f = huggingface_folder_new("");
    struct status st = {0};
    struct gguf g;
    size_t size;
    const uint64_t available = 128 << 20;
    void *bytes =
        tiny_model_bytes((struct tiny_model_options){.n_embd = 1024, .n_ff = 2048, .n_context = 65536}, &size);
    assert_true(gguf_open_memory(&g, "tiny", bytes, size, &st));
    tiny_huggingface_write(f.path, &g,
                           (struct tiny_huggingface_options){.model_type = "llama", .quantisation = TINY_NF4});
    gguf_close(&g);
    free(bytes);
    struct model_file *described = model_file_open_header(f.path, false, &st), *there = model_file_open(f.path, &st);
    if (!described || !there) fail_msg("%s", st.text);
    const uint64_t matrices =
        2 * 4 * (2 * 1024 * 1024 + 2 * 512 * 1024 + 3 * 2048 * 1024ull); // bytes of the layers in F32
    const uint64_t converted = gguf_own_bytes(&there->gguf);
    struct model_memory before, after;
    const struct engine_params params = {.n_threads = 1};
    assert_true(local_engine_memory(described, &params, available, &before, &st));
    assert_true(local_engine_memory(there, &params, available - converted, &after, &st));
    assert_true(converted >= matrices && before.weights > converted && before.weights < matrices + matrices / 8);
    assert_true(before.total < available && before.kv_tokens > 2048);
    assert_int_equal(after.kv_tokens, before.kv_tokens);
    assert_int_equal(after.total, before.total);
    assert_int_equal(local_engine_tokens_that_fit(there, KV_F16, available - converted),
                     local_engine_tokens_that_fit(described, KV_F16, available));
    model_file_close(described);
    model_file_close(there);
    huggingface_folder_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_become_keys),
        cmocka_unit_test(layer_types_become_a_pattern),
        cmocka_unit_test(invalid_members_are_rejected),
        cmocka_unit_test(llama3_divisors_are_right),
        cmocka_unit_test(long_and_short_factors_are_imported),
        cmocka_unit_test(sampling_defaults_become_keys),
        cmocka_unit_test(embeddings_end_with_the_last_token),
        cmocka_unit_test(a_tied_output_is_left_out),
        cmocka_unit_test(other_parts_of_multimodal_models_are_left_out),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(names_come_from_paths),
        cmocka_unit_test(any_path_of_a_model_opens_it),
        cmocka_unit_test(describing_converts_nothing),
        cmocka_unit_test(converted_weights_are_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
