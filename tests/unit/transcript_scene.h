// A transcript on a canvas of its own, over messages that a test says. Each program includes it in one file.
#ifndef CONFAB_TESTS_TRANSCRIPT_SCENE_H
#define CONFAB_TESTS_TRANSCRIPT_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/screen_text.h"
#include "ui/transcript.h"

struct scene {
    struct canvas canvas;
    struct view_frame frame;
    struct screen_view view;
    struct view_chat chats[2];
    struct view_message messages[64];
    struct transcript *transcript;
    enum transcript_below below;
};

static struct scene *scene_open(int width, int height) {
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    canvas_open(&s->canvas, width, height);
    s->chats[0] = (struct view_chat){.id = 11};
    s->chats[1] = (struct view_chat){.id = 22};
    s->view = (struct screen_view){.chats = s->chats, .n_chats = 2, .messages = s->messages, .model_short = "Guide"};
    s->transcript = transcript_open();
    return s;
}

static void scene_close(struct scene *s) {
    transcript_close(s->transcript);
    canvas_close(&s->canvas);
    free(s);
}

static struct view_message *say(struct scene *s, enum view_role role, const char *text) {
    int i = s->view.n_messages++;
    s->messages[i] = (struct view_message){.id = (uint64_t)i + 1,
                                           .revision = 1,
                                           .role = role,
                                           .text = text,
                                           .size = strlen(text),
                                           .version = 1,
                                           .n_versions = 1};
    return &s->messages[i];
}

static void retext(struct view_message *m, const char *text) {
    m->text = text, m->size = strlen(text);
    m->revision++;
}

static void draw(struct scene *s) {
    canvas_clear(&s->canvas);
    s->frame.canvas = &s->canvas;
    s->frame.view = &s->view;
    s->frame.n_hits = 0;
    s->below = transcript_draw(s->transcript, &s->frame, (struct rect){0, 0, s->canvas.width, s->canvas.height});
}

static inline void check_drawn(struct scene *s, const char *expected) {
    draw(s);
    char *text = canvas_as_text(&s->canvas);
    assert_string_equal(text, expected);
    free(text);
}

#endif
