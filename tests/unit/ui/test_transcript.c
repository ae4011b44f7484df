#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/transcript_scene.h"

static void say_numbers(struct scene *s, int n) {
    static char texts[64][16];
    for (int i = 0; i < n; i++) {
        sprintf(texts[i], "text %d", i);
        say(s, i % 2 ? VIEW_MODEL : VIEW_USER, texts[i]);
    }
}

static void test_messages_have_names_notes_and_versions(void **state) {
    (void)state;
    struct scene *s = scene_open(24, 9);
    say(s, VIEW_USER, "*not* markdown");
    struct view_message *m = say(s, VIEW_MODEL, "*markdown*");
    m->n_versions = 3, m->version = 2, m->note = "stopped";
    struct view_message *notice = say(s, VIEW_NOTICE, "a notice");
    check_drawn(s, "You\n*not* markdown\n\nGuide              ‹2/3›\nmarkdown\nstopped\n\n! a notice\n\n");
    notice->failed = true, notice->revision++;
    check_drawn(s, "You\n*not* markdown\n\nGuide              ‹2/3›\nmarkdown\nstopped\n\n✗ a notice\n\n");
    const struct hit *previous = frame_find(&s->frame, 19, 3), *next = frame_find(&s->frame, 23, 3);
    assert_int_equal(previous->kind, HIT_VERSION_PREVIOUS);
    assert_int_equal(next->kind, HIT_VERSION_NEXT);
    assert_int_equal(previous->number, 1);
    assert_int_equal(next->number, 1);
    scene_close(s);
}

static void test_follows_the_end_while_streaming(void **state) {
    (void)state;
    struct scene *s = scene_open(20, 4);
    say_numbers(s, 3);
    struct view_message *m = say(s, VIEW_MODEL, "one");
    m->streaming = true;
    check_drawn(s, "text 2\n\nGuide\none▌\n");
    retext(m, "one\n\ntwo\n\nthree");
    check_drawn(s, "\ntwo\n\nthree▌\n");
    assert_int_equal(s->below, TRANSCRIPT_AT_END);
    scene_close(s);
}

static void test_keeps_its_place_when_text_arrives_below(void **state) {
    (void)state;
    struct scene *s = scene_open(20, 4);
    say_numbers(s, 6);
    struct view_message *m = say(s, VIEW_MODEL, "one");
    m->streaming = true;
    draw(s);
    transcript_scroll(s->transcript, -3);
    check_drawn(s, "text 4\n\nGuide\ntext 5\n");
    assert_int_equal(s->below, TRANSCRIPT_MORE_BELOW);
    retext(m, "one two three four five six seven eight nine ten");
    check_drawn(s, "text 4\n\nGuide\ntext 5\n");
    assert_int_equal(s->below, TRANSCRIPT_NEW_BELOW);
    transcript_bottom(s->transcript);
    check_drawn(s, "Guide\none two three four\nfive six seven eight\nnine ten▌\n");
    assert_int_equal(s->below, TRANSCRIPT_AT_END);
    scene_close(s);
}

static void set_thinking(struct view_message *m, const char *thinking) {
    m->thinking = thinking, m->thinking_size = strlen(thinking);
    m->thinking_tokens = 1200, m->thinking_seconds = 62.25;
    m->revision++;
}

static void test_thinking_is_a_line_until_it_is_opened(void **state) {
    (void)state;
    struct scene *s = scene_open(36, 8);
    say(s, VIEW_USER, "q");
    struct view_message *m = say(s, VIEW_MODEL, "");
    m->streaming = true;
    assert_false(transcript_open_thinking(s->transcript));
    set_thinking(m, "*one*\n\n");
    check_drawn(s, "You\nq\n\nGuide\n▸ thinking… 1,200 tokens, 62.2 s\n\n\n\n");
    assert_int_equal(frame_find(&s->frame, 3, 4)->kind, HIT_THINKING);
    assert_true(transcript_open_thinking(s->transcript));
    check_drawn(s, "You\nq\n\nGuide\n▾ thinking… 1,200 tokens, 62.2 s\n│ *one*▌\n\n\n"); // no Markdown
    set_thinking(m, "*one*\n\ntwo");
    check_drawn(s, "You\nq\n\nGuide\n▾ thinking… 1,200 tokens, 62.2 s\n│ *one*\n│\n│ two▌\n");
    transcript_click_thinking(s->transcript, frame_find(&s->frame, 3, 4)->number);
    m->streaming = false;
    retext(m, "");
    check_drawn(s, "You\nq\n\nGuide\n▸ thought for 62.2 s, 1,200 tokens\n(no answer came)\n\n\n");
    retext(m, "*answer*");
    check_drawn(s, "You\nq\n\nGuide\n▸ thought for 62.2 s, 1,200 tokens\nanswer\n\n\n");
    canvas_resize(&s->canvas, 21, 8); // half a figure would be another one
    check_drawn(s, "You\nq\n\nGuide\n▸ thought for 62.2 s\nanswer\n\n\n");
    scene_close(s);
}

static void test_opened_thinking_comes_into_sight(void **state) {
    (void)state;
    struct scene *s = scene_open(20, 4);
    say_numbers(s, 3);
    struct view_message *m = say(s, VIEW_MODEL, "answer");
    set_thinking(m, "1\n2\n3\n4\n5\n6");
    check_drawn(s, "\nGuide\n▸ thought for 62.2 s\nanswer\n");
    transcript_open_thinking(s->transcript);
    check_drawn(s, "Guide\n▾ thought for 62.2 s\n│ 1\n│ 2\n");
    transcript_scroll(s->transcript, 1000);
    check_drawn(s, "│ 5\n│ 6\n\nanswer\n"); // the end, at which the transcript stops
    transcript_open_thinking(s->transcript);
    check_drawn(s, "\nGuide\n▸ thought for 62.2 s\nanswer\n");
    scene_close(s);
}

static void test_scrolling_stops_at_both_ends(void **state) {
    (void)state;
    struct scene *s = scene_open(20, 4);
    say_numbers(s, 4);
    draw(s);
    transcript_scroll(s->transcript, -1000);
    check_drawn(s, "You\ntext 0\n\nGuide\n");
    transcript_scroll(s->transcript, -5);
    check_drawn(s, "You\ntext 0\n\nGuide\n");
    transcript_pages(s->transcript, 1);
    check_drawn(s, "\nGuide\ntext 1\n\n");
    transcript_scroll(s->transcript, 1000);
    check_drawn(s, "text 2\n\nGuide\ntext 3\n");
    assert_int_equal(s->below, TRANSCRIPT_AT_END);
    transcript_top(s->transcript);
    check_drawn(s, "You\ntext 0\n\nGuide\n");
    scene_close(s);
}

static void test_every_chat_has_its_own_place(void **state) {
    (void)state;
    struct scene *s = scene_open(20, 4);
    say_numbers(s, 4);
    draw(s);
    transcript_top(s->transcript);
    draw(s);
    s->view.current = 1;
    s->messages[0].id = 100, s->messages[0].text = "other ", s->view.n_messages = 1;
    check_drawn(s, "You\nother\n\n\n");
    s->view.current = 0;
    s->messages[0].id = 1, s->messages[0].text = "text 0", s->view.n_messages = 4;
    check_drawn(s, "You\ntext 0\n\nGuide\n");
    scene_close(s);
}

static void test_a_resize_keeps_the_message_in_sight(void **state) {
    (void)state;
    struct scene *s = scene_open(40, 4);
    for (int i = 0; i < 10; i++) say(s, VIEW_USER, "words that will be wrapped when the pane is narrow");
    draw(s);
    transcript_scroll(s->transcript, -20);
    draw(s);
    canvas_resize(&s->canvas, 12, 4);
    draw(s);
    assert_int_not_equal(s->below, TRANSCRIPT_AT_END);
    canvas_resize(&s->canvas, 40, 4);
    draw(s);
    transcript_scroll(s->transcript, 17); // nearly the same way down again
    draw(s);
    assert_int_not_equal(s->below, TRANSCRIPT_AT_END);
    transcript_scroll(s->transcript, 6);
    draw(s);
    assert_int_equal(s->below, TRANSCRIPT_AT_END);
    scene_close(s);
}

static void test_a_resize_keeps_the_lines_in_sight_of_the_last_message(void **state) {
    (void)state;
    struct scene *s = scene_open(40, 4);
    char text[40 * 19 + 1];
    for (int i = 0; i < 40; i++) sprintf(text + i * 19, "line %02d that wraps\n", i);
    say(s, VIEW_USER, text);
    draw(s);
    transcript_scroll(s->transcript, -17);
    check_drawn(s, "line 19 that wraps\nline 20 that wraps\nline 21 that wraps\nline 22 that wraps\n");
    canvas_resize(&s->canvas, 12, 4);
    check_drawn(s, "line 19 that\nwraps\nline 20 that\nwraps\n");
    check_drawn(s, "line 19 that\nwraps\nline 20 that\nwraps\n");
    scene_close(s);
}

static void test_lays_out_only_what_changed_and_is_in_sight(void **state) {
    (void)state;
    struct scene *s = scene_open(20, 4);
    say_numbers(s, 40);
    draw(s);
    unsigned long first = transcript_layouts(s->transcript);
    assert_true(first <= 3); // not the forty
    draw(s);
    assert_int_equal(transcript_layouts(s->transcript), first);
    retext(&s->messages[39], "new");
    draw(s);
    assert_int_equal(transcript_layouts(s->transcript), first + 1);
    scene_close(s);
}

static void test_selects_messages_and_brings_them_into_sight(void **state) {
    (void)state;
    struct scene *s = scene_open(12, 4);
    say_numbers(s, 4);
    draw(s);
    assert_false(transcript_select_step(s->transcript, 1)); // below the last one there is the composer
    assert_true(transcript_select_step(s->transcript, -1));
    assert_int_equal(transcript_selected(s->transcript), 4);
    assert_true(transcript_select_step(s->transcript, -1));
    assert_true(transcript_select_step(s->transcript, -1)); // before anything is drawn
    check_drawn(s, "Guide\ntext 1\n\nYou\n");
    assert_true(transcript_select_step(s->transcript, -1));
    assert_false(transcript_select_step(s->transcript, -1));
    check_drawn(s, "You\ntext 0\n\nGuide\n");
    assert_true(transcript_select_step(s->transcript, 1));
    assert_true(transcript_select_step(s->transcript, 1));
    check_drawn(s, "\nYou\ntext 2\n\n");
    scene_close(s);
}

static void test_what_arrives_does_not_move_the_selected_message(void **state) {
    (void)state;
    struct scene *s = scene_open(12, 4);
    say_numbers(s, 2);
    s->messages[1].streaming = true;
    draw(s);
    transcript_select(s->transcript, 1);
    check_drawn(s, "You\ntext 0\n\nGuide\n");
    retext(&s->messages[1], "one\n\ntwo\n\nthree");
    check_drawn(s, "You\ntext 0\n\nGuide\n");
    assert_true(transcript_select_step(s->transcript, 1)); // the one that arrives is followed at its end
    draw(s);
    transcript_bottom(s->transcript);
    check_drawn(s, "\ntwo\n\nthree▌\n");
    scene_close(s);
}

static void test_a_long_selected_message_shows_its_beginning(void **state) {
    (void)state;
    struct scene *s = scene_open(12, 4);
    say(s, VIEW_USER, "a\nb\nc\nd\ne\nf");
    say(s, VIEW_MODEL, "end");
    draw(s);
    transcript_select_step(s->transcript, -1);
    transcript_select_step(s->transcript, -1);
    check_drawn(s, "You\na\nb\nc\n");
    scene_close(s);
}

static void test_another_version_takes_the_place_of_the_selected_one(void **state) {
    (void)state;
    struct scene *s = scene_open(12, 4);
    say_numbers(s, 3);
    draw(s);
    transcript_select(s->transcript, 2);
    draw(s);
    s->messages[1].id = 20;
    draw(s);
    assert_int_equal(transcript_selected(s->transcript), 20);
    s->view.n_messages = 1;
    draw(s);
    assert_int_equal(transcript_selected(s->transcript), 1);
    scene_close(s);
}

static void test_a_chat_that_opens_elsewhere_than_at_its_end_has_nothing_new(void **state) {
    (void)state;
    struct scene *s = scene_open(12, 4);
    say_numbers(s, 3);
    s->messages[0].edited = true; // it was being edited when the program ended
    s->view.editing = "your message";
    check_drawn(s, "You  (being…\ntext 0\n\nGuide\n");
    assert_int_equal(s->below, TRANSCRIPT_MORE_BELOW);
    retext(&s->messages[2], "more");
    draw(s);
    assert_int_equal(s->below, TRANSCRIPT_NEW_BELOW);
    scene_close(s);
}

static void test_notices_cannot_be_selected(void **state) {
    (void)state;
    struct scene *s = scene_open(20, 9);
    say(s, VIEW_USER, "q");
    say(s, VIEW_NOTICE, "failed");
    draw(s);
    assert_true(transcript_select_step(s->transcript, -1));
    assert_int_equal(transcript_selected(s->transcript), 1);
    scene_close(s);
}

static void test_shows_progress_before_the_first_token(void **state) {
    (void)state;
    struct scene *s = scene_open(50, 4);
    struct view_message *m = say(s, VIEW_MODEL, "");
    m->streaming = true;
    m->state = REQUEST_PREFILLING, m->prefill_done = 1024, m->prefill_total = 2048;
    check_drawn(s, "Guide\nreading 1,024 of 2,048 tokens ▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░\n\n\n");
    m->state = REQUEST_PENDING;
    check_drawn(s, "Guide\nwaiting for a place in the batch\n\n\n");
    m->streaming = false;
    check_drawn(s, "Guide\n(nothing was said)\n\n\n");
    scene_close(s);
}

static void test_an_empty_chat_says_what_to_do(void **state) {
    (void)state;
    struct scene *s = scene_open(70, 24);
    s->view.model_name = "TinyLlama";
    draw(s);
    char *text = canvas_as_text(&s->canvas);
    assert_non_null(strstr(text, "TinyLlama"));
    assert_non_null(strstr(text, ui_commands[COMMAND_HELP].help));
    free(text);
    scene_close(s);
}

static void test_every_size_down_to_nothing(void **state) {
    (void)state;
    struct scene *s = scene_open(30, 10);
    say_numbers(s, 3);
    say(s, VIEW_MODEL, "| a | b |\n|---|---|\n| 1 | 2 |\n\n- list\n\n```c\ncode\n```\n");
    for (int width = 30; width >= 0; width--)
        for (int height = 10; height >= 0; height -= 3) {
            canvas_resize(&s->canvas, width, height);
            draw(s);
            transcript_scroll(s->transcript, width % 2 ? -3 : 2);
        }
    scene_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_have_names_notes_and_versions),
        cmocka_unit_test(test_follows_the_end_while_streaming),
        cmocka_unit_test(test_keeps_its_place_when_text_arrives_below),
        cmocka_unit_test(test_thinking_is_a_line_until_it_is_opened),
        cmocka_unit_test(test_opened_thinking_comes_into_sight),
        cmocka_unit_test(test_scrolling_stops_at_both_ends),
        cmocka_unit_test(test_every_chat_has_its_own_place),
        cmocka_unit_test(test_a_resize_keeps_the_message_in_sight),
        cmocka_unit_test(test_a_resize_keeps_the_lines_in_sight_of_the_last_message),
        cmocka_unit_test(test_lays_out_only_what_changed_and_is_in_sight),
        cmocka_unit_test(test_selects_messages_and_brings_them_into_sight),
        cmocka_unit_test(test_what_arrives_does_not_move_the_selected_message),
        cmocka_unit_test(test_a_long_selected_message_shows_its_beginning),
        cmocka_unit_test(test_another_version_takes_the_place_of_the_selected_one),
        cmocka_unit_test(test_a_chat_that_opens_elsewhere_than_at_its_end_has_nothing_new),
        cmocka_unit_test(test_notices_cannot_be_selected),
        cmocka_unit_test(test_shows_progress_before_the_first_token),
        cmocka_unit_test(test_an_empty_chat_says_what_to_do),
        cmocka_unit_test(test_every_size_down_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
