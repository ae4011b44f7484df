#include "engine/serve/encoder.h"

#include <stdlib.h>

#include "engine/base/system.h"

void encoding_run(struct encoding *e, const struct model_file *file) {
    if (!atomic_load(&e->unwanted)) prompt_source_encode(file, &e->source, &e->tokens, &e->outcome);
}

void encoding_free(struct encoding *e) {
    prompt_source_free(&e->source);
    free(e->tokens.ids);
    e->tokens = (struct token_list){0};
}

static void append(struct encoding **line, struct encoding *last) {
    while (*line) line = &(*line)->next;
    *line = last;
}

// Puts what has come into two lines, persons' and programs', and waits where both are empty. False: the end has come.
static bool line_up(struct encoder *e, struct encoding *lines[2]) {
    for (struct encoding *next; queue_wait(&e->queue, &next, lines[0] || lines[1] ? 0 : -1);) {
        if (!next) return false;
        append(&lines[next->background], next);
    }
    return true;
}

static void *encoder_main(void *argument) {
    struct encoder *e = argument;
    struct encoding *lines[2] = {NULL, NULL};
    for (bool open = true; (open = open && line_up(e, lines)) || lines[0] || lines[1];) {
        struct encoding **line = &lines[!lines[0]], *next = *line;
        *line = next->next;
        encoding_run(next, e->file);
        e->done(e->context, next);
        atomic_fetch_sub(&e->n_waiting, 1);
    }
    return NULL;
}

bool encoder_open(struct encoder *e, struct status *st) {
    if (!queue_open(&e->queue, sizeof(struct encoding *), st)) return false;
    return e->running = system_start_thread(&e->thread, encoder_main, e, st);
}

void encoder_close(struct encoder *e) {
    if (e->running) {
        queue_push(&e->queue, &(struct encoding *){NULL});
        pthread_join(e->thread, NULL);
    }
    queue_close(&e->queue);
    *e = (struct encoder){0};
}

void encoder_push(struct encoder *e, struct encoding *encoding) {
    atomic_fetch_add(&e->n_waiting, 1);
    queue_push(&e->queue, &encoding);
}

bool encoder_is_last(const struct encoder *e) { return atomic_load(&e->n_waiting) == 1; }
bool encoder_idle(const struct encoder *e) { return !atomic_load(&e->n_waiting); }
