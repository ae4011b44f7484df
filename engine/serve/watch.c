#include "engine/serve/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/answer/answer.h"
#include "engine/base/panic.h"

struct noted {
    uint64_t conversation; // 0: nothing was noted
    int32_t drawn;
    float *logits; // [n_vocab]
    int n_recent;
    int32_t recent[SAMPLER_WINDOW]; // the tokens before
};

struct watch {
    pthread_mutex_t lock;
    int n_vocab;
    bool news;                       // `coming` is later than `own`
    struct noted *coming, *own;      // the engine's thread writes the one, under the lock; the client has the other
    struct sampler_scratch *scratch; // the client's; NULL: it has not asked yet
};

static struct noted *noted_new(int n_vocab) {
    struct noted *n = xcalloc(1, sizeof *n);
    n->logits = xcalloc((size_t)n_vocab, sizeof *n->logits);
    return n;
}

static void noted_free(struct noted *n) {
    free(n->logits);
    free(n);
}

struct watch *watch_open(int n_vocab) {
    struct watch *w = xcalloc(1, sizeof *w);
    *w = (struct watch){.n_vocab = n_vocab, .coming = noted_new(n_vocab), .own = noted_new(n_vocab)};
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

void watch_close(struct watch *w) {
    if (!w) return;
    noted_free(w->coming);
    noted_free(w->own);
    if (w->scratch) sampler_scratch_close(w->scratch);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void watch_note(struct watch *w, uint64_t conversation, const struct sampler_input *in, int32_t drawn) {
    pthread_mutex_lock(&w->lock);
    struct noted *n = w->coming;
    n->conversation = conversation;
    n->drawn = drawn;
    n->n_recent = in->n_tokens < SAMPLER_WINDOW ? in->n_tokens : SAMPLER_WINDOW;
    memcpy(n->recent, in->tokens + in->n_tokens - n->n_recent, (size_t)n->n_recent * sizeof *n->recent);
    memcpy(n->logits, in->logits, (size_t)w->n_vocab * sizeof *n->logits);
    w->news = true;
    pthread_mutex_unlock(&w->lock);
}

static void take_news(struct watch *w) {
    pthread_mutex_lock(&w->lock);
    struct noted *coming = w->coming;
    if (w->news) w->coming = w->own, w->own = coming;
    w->news = false;
    pthread_mutex_unlock(&w->lock);
}

static void name_candidate(const struct tokenizer *t, struct distribution_candidate *c) {
    answer_token_text(t, c->id, c->text, sizeof c->text);
}

bool watch_explain(struct watch *w, const struct tokenizer *t, const struct sampling *s, struct distribution *out) {
    take_news(w);
    if (!w->own->conversation) return false;
    if (!w->scratch) w->scratch = sampler_scratch_open(w->n_vocab);
    const struct sampler_input in = {w->own->logits, w->n_vocab, w->own->recent, w->own->n_recent};
    sampler_explain(s, w->scratch, &in, w->own->drawn, out);
    out->conversation = w->own->conversation;
    name_candidate(t, &out->drawn);
    for (int i = 0; i < out->n; i++) name_candidate(t, &out->candidates[i]);
    return true;
}
