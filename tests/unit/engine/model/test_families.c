// Families: a tiny model of each computes the same as the reference engine. Some of its logits are in a golden file;
// with CONFAB_PEER set to that engine's program all are compared directly, and so are the default paths on quantised
// weights. UPDATE_GOLDEN=1 updates the golden file, once all families agree with the peer.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "tests/unit/cases.h"
#include "tests/unit/tiny_families.h"

enum { TOKENS = 60, PROBES = 6 };

static const char golden_path[] = "tests/unit/families.golden";

static void fill_ids(int32_t ids[TOKENS]) {
    for (int i = 0; i < TOKENS; i++) ids[i] = (i * i * 5 + i * 11 + 3) % 331;
}

// ---- logits ----

struct logits {
    int n_vocab;
    float *values; // [TOKENS, n_vocab]
};

static float *compute(struct model_file *m, bool exact, const char *name) {
    struct status st = {0};
    int32_t ids[TOKENS];
    struct engine_params params = {.n_threads = 1, .context = TOKENS, .kv_tokens = TOKENS, .options.exact = exact};
    struct engine *e = local_engine_open(m, &params, &st);
    if (!e) fail_msg("%s: %s", name, st.text);
    float *values = xmalloc((size_t)TOKENS * (size_t)model_file_info(m)->n_vocab * sizeof *values);
    fill_ids(ids);
    if (!engine_logits(e, ids, TOKENS, values, &st)) fail_msg("%s: %s", name, st.text);
    engine_close(e);
    return values;
}

static struct logits logits_of(const struct tiny_shape *shape, bool exact) {
    struct status st = {0};
    size_t size;
    void *bytes = tiny_shape_bytes(shape, &size);
    struct model_file *m = model_file_open_memory(shape->name, bytes, size, NULL, &st);
    if (!m) fail_msg("%s: %s", shape->name, st.text);
    if (!model_file_info(m)->has_weights) fail_msg("%s", model_file_info(m)->weight_problem);
    struct logits l = {.n_vocab = model_file_info(m)->n_vocab, .values = compute(m, exact, shape->name)};
    model_file_close(m);
    free(bytes);
    return l;
}

// Squared distance of rows [first, first + n) relative to the reference.
static double distance(const struct logits *l, const struct logits *reference, int first, int n) {
    double error = 0, size = 0;
    const size_t begin = (size_t)first * (size_t)l->n_vocab, end = begin + (size_t)n * (size_t)l->n_vocab;
    assert_int_equal(l->n_vocab, reference->n_vocab);
    for (size_t i = begin; i < end; i++) {
        double d = (double)l->values[i] - (double)reference->values[i];
        error += d * d;
        size += (double)reference->values[i] * (double)reference->values[i];
    }
    return error / size;
}

// ---- golden values ----

struct golden {
    double rms, probes[PROBES]; // of all logits; some logits, spread over positions and tokens
};

static struct golden measure(const struct logits *l) {
    struct golden g = {0};
    const size_t n = (size_t)TOKENS * (size_t)l->n_vocab;
    for (size_t i = 0; i < n; i++) g.rms += (double)l->values[i] * (double)l->values[i];
    g.rms = sqrt(g.rms / (double)n);
    for (int i = 0; i < PROBES; i++) {
        int position = i * (TOKENS - 1) / (PROBES - 1), token = (i * 97 + 5) % l->n_vocab;
        g.probes[i] = (double)l->values[(size_t)position * (size_t)l->n_vocab + (size_t)token];
    }
    return g;
}

static void write_golden(const struct golden *all) {
    FILE *f = fopen(golden_path, "w");
    assert_non_null(f);
    for (int i = 0; i < tiny_family_count; i++) {
        fprintf(f, "%s %.8g", tiny_families[i].name, all[i].rms);
        for (int k = 0; k < PROBES; k++) fprintf(f, " %.8g", all[i].probes[k]);
        fputc('\n', f);
    }
    fclose(f);
}

static bool read_golden(const char *name, struct golden *g) {
    FILE *f = fopen(golden_path, "r");
    char line[256], found[64];
    bool done = false;
    while (f && !done && fgets(line, sizeof line, f))
        done = sscanf(line, "%63s %lf %lf %lf %lf %lf %lf %lf", found, &g->rms, &g->probes[0], &g->probes[1],
                      &g->probes[2], &g->probes[3], &g->probes[4], &g->probes[5]) == PROBES + 2 &&
               !strcmp(found, name);
    if (f) fclose(f);
    return done;
}

static void check_golden(const char *name, const struct golden *now) {
    struct golden then;
    if (!read_golden(name, &then)) fail_msg("%s has no line for %s", golden_path, name);
    const double allowed = 1e-5 * then.rms;
    if (fabs(now->rms - then.rms) > allowed) fail_msg("%s: rms %.8g was %.8g", name, now->rms, then.rms);
    for (int i = 0; i < PROBES; i++)
        if (fabs(now->probes[i] - then.probes[i]) > allowed)
            fail_msg("%s: probe %d is %.8g, was %.8g", name, i, now->probes[i], then.probes[i]);
}

static void exact_logits_are_golden(void **state) {
    (void)state;
    for (int i = 0; i < tiny_family_count; i += CASE_STEP) {
        struct logits l = logits_of(&tiny_families[i], true);
        struct golden g = measure(&l);
        check_golden(tiny_families[i].name, &g);
        free(l.values);
    }
}

// ---- different storage of the same weights ----

static void check_same(struct tiny_shape shape, unsigned storage) {
    struct logits one = logits_of(&shape, true);
    shape.storage ^= storage;
    struct logits other = logits_of(&shape, true);
    if (memcmp(one.values, other.values, (size_t)TOKENS * (size_t)one.n_vocab * sizeof *one.values) != 0)
        fail_msg("%s: storage %u changes the logits by %g", shape.name, storage, distance(&one, &other, 0, TOKENS));
    free(one.values);
    free(other.values);
}

static void storage_makes_no_difference(void **state) {
    (void)state;
    for (int i = 0; i < tiny_family_count; i += CASE_STEP) {
        const struct tiny_shape *s = &tiny_families[i];
        check_same(*s, TINY_FUSED_QKV);
        if (s->experts && s->storage & TINY_SINGLE_EXPERTS) check_same(*s, TINY_SINGLE_EXPERTS);
        else if (s->experts) check_same(*s, TINY_FUSED_EXPERTS);
        if (s->experts && !(s->storage & TINY_FUSED_EXPERTS)) check_same(*s, TINY_SINGLE_EXPERTS);
        if (s->heads[0]) check_same(*s, TINY_PADDED);
    }
}

// ---- the default path ----

enum { FEW_LAYERS = 16 };

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// If two experts are nearly equal, 8-bit activations may choose the other one, which changes the row and, less and
// less, the rows that attend to it. So routed models are compared by the rows before the first such row, and most of
// the others must be near too; other models by all rows together.
static double default_distance(const struct tiny_shape *shape, const struct logits *l, const struct logits *exact) {
    const double rerouted = 1e-2;
    double rows[TOKENS];
    int first = 0;
    if (!shape->experts) return distance(l, exact, 0, TOKENS);
    for (int i = 0; i < TOKENS; i++) rows[i] = distance(l, exact, i, 1);
    while (first < TOKENS && rows[first] <= rerouted) first++;
    if (first < TOKENS)
        print_message("%s %s: row %d is rerouted\n", shape->name, block_formats[shape->format].name, first);
    qsort(rows, TOKENS, sizeof *rows, compare_doubles);
    return first && rows[TOKENS / 2] <= rerouted ? distance(l, exact, 0, first) : rows[TOKENS / 2];
}

// Noise adds up over layers: deeper models are allowed more.
static double default_limit(const struct tiny_shape *shape) {
    return shape->n_layer > FEW_LAYERS ? 1e-3 * shape->n_layer / FEW_LAYERS : 1e-3;
}

static void check_default(struct tiny_shape shape, enum block_id format) {
    shape.format = format;
    struct logits exact = logits_of(&shape, true), l = logits_of(&shape, false);
    double error = default_distance(&shape, &l, &exact);
    if (!(error <= default_limit(&shape)))
        fail_msg("%s %s: %g from exact", shape.name, block_formats[format].name, error);
    free(exact.values);
    free(l.values);
}

static void the_default_path_is_near(void **state) {
    (void)state;
    static const enum block_id formats[] = {BLOCK_F32, BLOCK_Q8_0, BLOCK_MXFP4};
    for (int i = 0; i < tiny_family_count; i += CASE_STEP)
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) check_default(tiny_families[i], formats[k]);
}

// Formats of 256 with rows that are not a multiple of 256, which files store in other formats.
static void formats_mix_in_a_file(void **state) {
    (void)state;
    static const enum block_id formats[] = {BLOCK_Q2_K, BLOCK_Q3_K, BLOCK_Q4_K, BLOCK_Q5_K, BLOCK_Q6_K, BLOCK_IQ4_XS};
    struct tiny_shape shapes[] = {tiny_families[0], tiny_families[0], tiny_families[0]};
    shapes[0].n_embd = 320, shapes[0].n_ff = 512, shapes[0].head_size = 32;
    shapes[1].n_embd = 256, shapes[1].n_ff = 330, shapes[1].n_head = 8, shapes[1].n_head_kv = 4,
    shapes[1].head_size = 32;
    shapes[2].n_embd = 512, shapes[2].n_ff = 288, shapes[2].n_head = 2, shapes[2].n_head_kv = 1,
    shapes[2].head_size = 256;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i += CASE_STEP) {
        shapes[i].n_layer = 2;
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) check_default(shapes[i], formats[k]);
    }
}

// ---- the peer ----

struct peer_files {
    char folder[64], model[96], ids[96], logits[96];
};

static struct peer_files open_files(void) {
    struct peer_files f = {.folder = "/tmp/confab-families-XXXXXX"};
    int32_t ids[TOKENS];
    if (!mkdtemp(f.folder)) fail_msg("%s cannot be made", f.folder);
    snprintf(f.model, sizeof f.model, "%s/model.gguf", f.folder);
    snprintf(f.ids, sizeof f.ids, "%s/ids", f.folder);
    snprintf(f.logits, sizeof f.logits, "%s/logits", f.folder);
    FILE *file = fopen(f.ids, "w");
    assert_non_null(file);
    fill_ids(ids);
    for (int i = 0; i < TOKENS; i++) fprintf(file, "%d ", ids[i]);
    fclose(file);
    return f;
}

static void close_files(const struct peer_files *f) {
    unlink(f->model);
    unlink(f->ids);
    unlink(f->logits);
    rmdir(f->folder);
}

// The peer's logits for a shape, stored in a form it can read.
static struct logits peer_logits(struct tiny_shape shape, const char *peer, const struct peer_files *files,
                                 int n_vocab) {
    char command[640];
    size_t size;
    shape.storage &= ~(unsigned)(TINY_FUSED_EXPERTS | TINY_SINGLE_EXPERTS);
    if (shape.heads[0]) shape.storage |= TINY_PADDED;
    void *bytes = tiny_shape_bytes(&shape, &size);
    FILE *f = fopen(files->model, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f)) fail_msg("%s cannot be written", files->model);
    free(bytes);
    snprintf(command, sizeof command, "'%s' logits %s %s %s > /dev/null", peer, files->model, files->ids,
             files->logits);
    if (system(command) != 0) fail_msg("%s: the peer failed", shape.name);
    const size_t n = (size_t)TOKENS * (size_t)n_vocab;
    struct logits l = {.n_vocab = n_vocab, .values = xmalloc(n * sizeof *l.values)};
    f = fopen(files->logits, "rb");
    if (!f || fread(l.values, sizeof *l.values, n, f) != n || fgetc(f) != EOF) fail_msg("%s: short", files->logits);
    fclose(f);
    return l;
}

static const char *peer_program(void) {
    const char *peer = getenv("CONFAB_PEER");
    if (peer) return peer;
    print_message("CONFAB_PEER names no reference engine: skipped\n");
    skip();
    return NULL;
}

static void exact_logits_agree_with_the_peer(void **state) {
    (void)state;
    const char *peer = peer_program();
    struct peer_files files = open_files();
    struct golden *golden = xcalloc((size_t)tiny_family_count, sizeof *golden);
    for (int i = 0; i < tiny_family_count; i++) {
        const struct tiny_shape *shape = &tiny_families[i];
        struct logits exact = logits_of(shape, true), theirs = peer_logits(*shape, peer, &files, exact.n_vocab);
        double error = distance(&exact, &theirs, 0, TOKENS);
        print_message("%-20s %.1e\n", shape->name, error);
        if (!(error <= 1e-6)) fail_msg("%s: %g from the peer", shape->name, error);
        golden[i] = measure(&exact);
        free(exact.values);
        free(theirs.values);
    }
    if (getenv("UPDATE_GOLDEN")) write_golden(golden);
    free(golden);
    close_files(&files);
}

static void the_default_path_is_as_near_as_the_peers(void **state) {
    (void)state;
    const char *peer = peer_program();
    struct peer_files files = open_files();
    for (int i = 0; i < tiny_family_count; i += CASE_STEP) {
        struct tiny_shape shape = tiny_families[i];
        shape.format = BLOCK_Q8_0;
        struct logits exact = logits_of(&shape, true), ours = logits_of(&shape, false);
        struct logits theirs = peer_logits(shape, peer, &files, exact.n_vocab);
        double error = default_distance(&shape, &ours, &exact), allowed = 2 * default_distance(&shape, &theirs, &exact);
        if (!(error <= allowed + 1e-6)) fail_msg("%s: %g from exact, the peer %g", shape.name, error, allowed / 2);
        free(exact.values);
        free(ours.values);
        free(theirs.values);
    }
    close_files(&files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_logits_agree_with_the_peer), cmocka_unit_test(the_default_path_is_as_near_as_the_peers),
        cmocka_unit_test(exact_logits_are_golden),          cmocka_unit_test(storage_makes_no_difference),
        cmocka_unit_test(the_default_path_is_near),         cmocka_unit_test(formats_mix_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
