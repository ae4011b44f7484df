// Export and import: what confab writes comes back; what others write is read; what is hostile is refused or harmless.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/export.h"
#include "app/session/import.h"
#include "engine/base/panic.h"

struct imported {
    struct conversation chats[8];
    int count;
    struct import_counts counts;
    struct status status;
};

static void keep(void *context, struct conversation *found) {
    struct imported *i = context;
    assert_true(i->count < 8);
    i->chats[i->count++] = *found;
}

static bool import_bytes(struct imported *i, const char *text, size_t size) {
    struct settings initial = settings_default();
    *i = (struct imported){0};
    return import_text((struct span){text, size}, &initial, keep, i, &i->counts, &i->status);
}

static struct imported import(const char *text) {
    struct imported i;
    if (!import_bytes(&i, text, strlen(text))) fail_msg("%s", i.status.text);
    return i;
}

static struct imported refuse(const char *text, const char *reason) {
    struct imported i;
    assert_false(import_bytes(&i, text, strlen(text)));
    if (!strstr(i.status.text, reason)) fail_msg("'%s' does not say '%s'", i.status.text, reason);
    return i;
}

static void forget(struct imported *i) {
    for (int c = 0; c < i->count; c++) conversation_close(&i->chats[c]);
}

static void assert_text(const struct conversation *c, int message, enum message_role role, const char *text) {
    assert_true(message < c->count);
    assert_int_equal(c->messages[message].role, role);
    assert_string_equal(c->messages[message].text, text);
}

static struct conversation talk(void) {
    struct conversation c;
    struct settings s = settings_default();
    conversation_open(&c, 1, &s);
    setting_parse(&c.settings, SETTING_system, "Be brief.\nAlways.", NULL);
    sampling_set(&c.settings.sampling, KNOB_temperature, 0.25);
    static const char asked[] = "What is <b>Rust</b> & \"C\"?",
                      said[] = "# A language\n\n**Safe** <script>a()</script>";
    conversation_add(&c, -1, MESSAGE_USER, asked, strlen(asked));
    int one = conversation_add(&c, 0, MESSAGE_MODEL, said, strlen(said));
    int two = conversation_add(&c, 0, MESSAGE_MODEL, "Iron oxide \xe2\x9c\x93", 14);
    conversation_think(&c, one, "chemistry or code?", 18, 2);
    conversation_set_model(&c, one, "Tiny 1B");
    conversation_note(&c, two, "stopped, 3 tokens");
    conversation_name(&c, two, "chemistry");
    conversation_use(&c, two, USE_PINNED);
    c.messages[two].state = MESSAGE_STOPPED;
    c.messages[two].created = 1790000000123, c.messages[two].ended = 1790000000456;
    conversation_add(&c, two, MESSAGE_USER, "More", 4);
    conversation_choose(&c, one);
    conversation_rename(&c, "Rust");
    conversation_tag(&c, "#work, later");
    c.created = 1790000000000, c.used = 1790000001000;
    c.pinned = true;
    return c;
}

static char *document(enum export_format format) {
    struct conversation c = talk();
    size_t size;
    char *text = export_document(&c, format, &size);
    assert_int_equal(strlen(text), size);
    conversation_close(&c);
    return text;
}

static void test_own_json_brings_everything_back(void **state) {
    (void)state;
    char *text = document(EXPORT_JSON);
    struct imported i = import(text);
    const struct conversation *c = &i.chats[0];
    assert_int_equal(i.count, 1);
    assert_int_equal(i.counts.messages, 4);
    assert_string_equal(c->title, "Rust");
    assert_true(c->named && c->pinned && !c->archived);
    assert_string_equal(c->tags, "work later");
    assert_string_equal(c->settings.system, "Be brief.\nAlways.");
    assert_true(c->settings.sampling.temperature == 0.25f);
    assert_true(c->created == 1790000000000 && c->used == 1790000001000);
    assert_text(c, 0, MESSAGE_USER, "What is <b>Rust</b> & \"C\"?");
    assert_int_equal(conversation_last(c), 1); // the path that was shown
    assert_string_equal(c->messages[1].thinking, "chemistry or code?");
    assert_true(c->messages[1].thinking_seconds == 2);
    assert_string_equal(c->messages[1].model, "Tiny 1B");
    assert_text(c, 2, MESSAGE_MODEL, "Iron oxide \xe2\x9c\x93");
    assert_string_equal(c->messages[2].name, "chemistry");
    assert_string_equal(c->messages[2].note, "stopped, 3 tokens");
    assert_int_equal(c->messages[2].use, USE_PINNED);
    assert_int_equal(c->messages[2].state, MESSAGE_STOPPED);
    assert_true(c->messages[2].created == 1790000000123 && c->messages[2].ended == 1790000000456);
    assert_int_equal(c->messages[3].parent, 2);
    forget(&i);
    free(text);
}

static void test_several_chats_stand_one_behind_the_other(void **state) {
    (void)state;
    char *one = document(EXPORT_JSON), *two = xasprintf("\xef\xbb\xbf%s\n%s", one, one);
    struct imported i = import(two);
    assert_int_equal(i.count, 2);
    forget(&i);
    free(one), free(two);
}

static void test_markdown_has_the_path_that_is_shown(void **state) {
    (void)state;
    char *text = document(EXPORT_MARKDOWN);
    assert_ptr_equal(strstr(text, "# Rust\n\n"), text);
    assert_non_null(strstr(text, "## You\n\nWhat is <b>Rust</b>"));
    assert_non_null(strstr(text, "## Tiny 1B\n\n<details>"));
    assert_null(strstr(text, "Iron oxide"));
    free(text);
}

static void test_markdown_closes_a_block_of_code_that_was_stopped(void **state) {
    (void)state;
    struct conversation c;
    struct settings s = settings_default();
    size_t size;
    conversation_open(&c, 1, &s);
    conversation_add(&c, -1, MESSAGE_USER, "Code", 4);
    conversation_add(&c, 0, MESSAGE_MODEL, "````c\n```\nint x;", 16);
    conversation_add(&c, 1, MESSAGE_USER, "On", 2);
    char *text = export_document(&c, EXPORT_MARKDOWN, &size);
    assert_non_null(strstr(text, "int x;\n\n````\n\n## You"));
    free(text);
    conversation_close(&c);
}

static void test_html_escapes_what_was_said(void **state) {
    (void)state;
    char *text = document(EXPORT_HTML);
    assert_non_null(strstr(text, "<title>Rust</title>"));
    assert_non_null(strstr(text, "What is &lt;b&gt;Rust&lt;/b&gt; &amp; &quot;C&quot;?"));
    assert_non_null(strstr(text, "<h3>A language</h3>"));
    assert_non_null(strstr(text, "<strong>Safe</strong> &lt;script&gt;"));
    assert_null(strstr(text, "<script"));
    assert_non_null(strstr(text, "prefers-color-scheme: dark"));
    free(text);
}

static void test_html_has_links_to_the_web_alone(void **state) {
    (void)state;
    static const char said[] = "[a](https://x.org/?a=1&b=\"2\") [b](javascript:alert(1)) ![c](file:///etc/passwd)";
    struct conversation c;
    struct settings s = settings_default();
    size_t size;
    conversation_open(&c, 1, &s);
    conversation_add(&c, -1, MESSAGE_MODEL, said, strlen(said));
    char *text = export_document(&c, EXPORT_HTML, &size);
    assert_non_null(strstr(text, "href=\"https://x.org/?a=1&amp;b=&quot;2&quot;\">a</a> b c</p>"));
    assert_null(strstr(text, "javascript:"));
    assert_null(strstr(text, "passwd"));
    assert_null(strstr(text, "<img"));
    free(text);
    conversation_close(&c);
}

static void test_files_are_named_after_titles(void **state) {
    (void)state;
    struct conversation c = talk();
    conversation_rename(&c, "../etc: a/b \"c\"");
    char *name = export_file_name(&c, 12, EXPORT_HTML);
    assert_string_equal(name, "000012-etc-a-b-c.html");
    free(name);
    conversation_rename(&c, "///");
    name = export_file_name(&c, 0, EXPORT_JSON);
    assert_string_equal(name, "chat.json");
    free(name);
    conversation_rename(&c, "漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢");
    name = export_file_name(&c, 12, EXPORT_HTML);
    assert_string_equal(name, "000012-漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢.html");
    free(name);
    assert_int_equal(export_format_of("/a.b/c.HTML"), EXPORT_HTML);
    assert_int_equal(export_format_of("/a.md/c"), EXPORT_FORMAT_COUNT);
    conversation_close(&c);
}

static void test_openai_lists_are_read(void **state) {
    (void)state;
    struct imported i = import("[{\"role\":\"system\",\"content\":\"Be brief\"},{\"role\":\"user\",\"content\":\"Hi\"},"
                               "{\"role\":\"tool\",\"content\":\"42\"},{\"role\":\"assistant\",\"content\":"
                               "[{\"type\":\"text\",\"text\":\"One\"},{\"type\":\"image_url\"},\"Two\"]}]");
    assert_int_equal(i.count, 1);
    assert_int_equal(i.counts.skipped, 1);
    assert_string_equal(i.chats[0].settings.system, "Be brief");
    assert_int_equal(i.chats[0].count, 2);
    assert_text(&i.chats[0], 0, MESSAGE_USER, "Hi");
    assert_text(&i.chats[0], 1, MESSAGE_MODEL, "One\n\nTwo");
    assert_int_equal(i.chats[0].messages[1].parent, 0);
    forget(&i);
}

static void test_openai_requests_are_read_a_line_each(void **state) {
    (void)state;
    struct imported i = import("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"title\":\"First\"}\n"
                               "{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n");
    assert_int_equal(i.count, 2);
    assert_string_equal(i.chats[0].title, "First");
    assert_string_equal(i.chats[1].title, "b");
    forget(&i);
    i = import("[{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]},{\"messages\":[]}]");
    assert_int_equal(i.count, 1); // an empty one is none
    forget(&i);
}

static void test_open_webui_is_read(void **state) {
    (void)state;
    struct imported i = import(
        "[{\"id\":\"x\",\"title\":\"Oslo\",\"pinned\":true,\"created_at\":1700000000,\"chat\":{\"title\":\"Other\","
        "\"params\":{\"system\":\"Travel\"},\"history\":{\"currentId\":\"c\",\"messages\":{"
        "\"b\":{\"id\":\"b\",\"parentId\":\"a\",\"role\":\"assistant\",\"content\":\"One\",\"model\":\"m:1\"},"
        "\"a\":{\"id\":\"a\",\"parentId\":null,\"role\":\"user\",\"content\":\"Trip\",\"timestamp\":1700000001},"
        "\"e\":{\"id\":\"e\",\"parentId\":\"a\",\"role\":\"assistant\",\"content\":\"\"},"
        "\"c\":{\"id\":\"c\",\"parentId\":\"b\",\"role\":\"user\",\"content\":\"Go on\"},"
        "\"d\":{\"id\":\"d\",\"parentId\":\"e\",\"role\":\"user\",\"content\":\"Again\"}}}}}]");
    const struct conversation *c = &i.chats[0];
    assert_int_equal(i.count, 1);
    assert_string_equal(c->title, "Oslo");
    assert_true(c->pinned && c->created == 1700000000000);
    assert_string_equal(c->settings.system, "Travel");
    assert_int_equal(c->count, 4);
    assert_text(c, 0, MESSAGE_USER, "Trip"); // before what stood before it
    assert_true(c->messages[0].created == 1700000001000);
    assert_text(c, 1, MESSAGE_MODEL, "One");
    assert_string_equal(c->messages[1].model, "m:1");
    assert_string_equal(c->messages[conversation_last(c)].text, "Go on");
    assert_text(c, 3, MESSAGE_USER, "Again");
    assert_int_equal(c->messages[3].parent, 0); // what it followed said nothing
    forget(&i);
}

static void test_librechat_is_read(void **state) {
    (void)state;
    struct imported i = import(
        "{\"conversationId\":\"x\",\"title\":\"T\",\"options\":{\"promptPrefix\":\"P\"},\"messagesTree\":[{"
        "\"messageId\":\"1\",\"parentMessageId\":\"00000000\",\"isCreatedByUser\":true,\"text\":\"Q\",\"children\":[{"
        "\"messageId\":\"2\",\"parentMessageId\":\"1\",\"isCreatedByUser\":false,\"text\":\"A\",\"model\":\"gpt\","
        "\"createdAt\":\"2026-01-02T03:04:05.678Z\",\"children\":[]}]}]}"
        "{\"messages\":[{\"messageId\":\"1\",\"isCreatedByUser\":true,\"text\":\"\",\"content\":[{\"type\":\"text\","
        "\"text\":{\"value\":\"Q2\"}}]}]}");
    assert_int_equal(i.count, 2);
    assert_string_equal(i.chats[0].title, "T");
    assert_string_equal(i.chats[0].settings.system, "P");
    assert_text(&i.chats[0], 1, MESSAGE_MODEL, "A");
    assert_int_equal(i.chats[0].messages[1].parent, 0);
    assert_true(i.chats[0].messages[1].created == 1767323045000);
    assert_text(&i.chats[1], 0, MESSAGE_USER, "Q2");
    forget(&i);
}

static void test_messages_in_a_circle_are_left_out(void **state) {
    (void)state;
    struct imported i = import("{\"format\":\"confab\",\"version\":1,\"last\":3,\"messages\":["
                               "{\"id\":1,\"parent\":2,\"text\":\"a\"},{\"id\":2,\"parent\":1,\"text\":\"b\"},"
                               "{\"id\":3,\"parent\":3,\"text\":\"c\"},{\"id\":4,\"parent\":99,\"text\":\"d\"},"
                               "{\"id\":4,\"text\":\"twice\"},{\"id\":5,\"parent\":1,\"text\":\"e\"},7]}");
    assert_int_equal(i.chats[0].count, 2);
    assert_text(&i.chats[0], 0, MESSAGE_USER, "d");
    assert_text(&i.chats[0], 1, MESSAGE_USER, "twice");
    assert_int_equal(i.counts.skipped, 1);
    forget(&i);
}

static void test_hostile_members_are_harmless(void **state) {
    (void)state;
    struct imported i =
        import("{\"format\":\"confab\",\"version\":1,\"title\":7,\"created\":-5,\"used\":1e300,\"settings\":\"x\\nmax-"
               "tokens = 9\","
               "\"sampling\":\"temp=hot top-p=0.5 \",\"messages\":[{\"id\":1,\"role\":\"root\",\"state\":\"streaming\","
               "\"text\":\"a\\u0000b\",\"tokens\":1e12,\"created\":\"x\",\"use\":[],\"name\":\"n\\nm\"}]}");
    const struct conversation *c = &i.chats[0];
    assert_string_equal(c->messages[0].text, "a\xef\xbf\xbd"
                                             "b");
    assert_int_equal(c->messages[0].tokens, 0);
    assert_int_equal(c->messages[0].state, MESSAGE_STOPPED);
    assert_string_equal(c->messages[0].name, "n");
    assert_true(c->created == 0 && c->used > 0);
    assert_int_equal(c->settings.max_tokens, 9);
    assert_true(c->settings.sampling.top_p == 0.5f);
    forget(&i);
}

static void test_mistakes_name_their_line(void **state) {
    (void)state;
    struct imported i =
        refuse("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n\n{\"messages\": oops}", "line 3");
    assert_int_equal(i.count, 1); // the one before is kept
    forget(&i);
    refuse("", "no JSON");
    refuse("7", "line 1");
    refuse("{\"a\":1}", "no chat of a known form");
    refuse("[{\"messages\":[]},3]", "element 1");
    refuse("{\"format\":\"confab\",\"version\":2,\"messages\":[]}", "newer confab");
    refuse("{\"format\":\"confab\",\"version\":1}", "messages");
    refuse("{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", "line 1");
}

static void test_depth_and_number_of_values_are_limited(void **state) {
    (void)state;
    char *deep = xmalloc(100001);
    memset(deep, '[', 100000);
    deep[100000] = 0;
    refuse(deep, "depth");
    free(deep);
    const size_t size = (size_t)40 << 20;
    char *many = xmalloc(size + 1);
    memset(many, ',', size);
    many[0] = '[', many[size] = 0;
    refuse(many, "too many JSON values");
    free(many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_json_brings_everything_back),
        cmocka_unit_test(test_several_chats_stand_one_behind_the_other),
        cmocka_unit_test(test_markdown_has_the_path_that_is_shown),
        cmocka_unit_test(test_markdown_closes_a_block_of_code_that_was_stopped),
        cmocka_unit_test(test_html_escapes_what_was_said),
        cmocka_unit_test(test_html_has_links_to_the_web_alone),
        cmocka_unit_test(test_files_are_named_after_titles),
        cmocka_unit_test(test_openai_lists_are_read),
        cmocka_unit_test(test_openai_requests_are_read_a_line_each),
        cmocka_unit_test(test_open_webui_is_read),
        cmocka_unit_test(test_librechat_is_read),
        cmocka_unit_test(test_messages_in_a_circle_are_left_out),
        cmocka_unit_test(test_hostile_members_are_harmless),
        cmocka_unit_test(test_mistakes_name_their_line),
        cmocka_unit_test(test_depth_and_number_of_values_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
