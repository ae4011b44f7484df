// Base modules: checked arithmetic, reader, status, arena, UTF-8, queue, files.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/machine_memory.h"
#include "engine/base/output_file.h"
#include "engine/base/panic.h"
#include "engine/base/process_memory.h"
#include "engine/base/queue.h"
#include "engine/base/reader.h"
#include "engine/base/text_line.h"
#include "engine/base/utf8.h"
#include "tests/unit/temporary_folder.h"

// The sanitizers' allocators abort at huge sizes unless told to return NULL like malloc.
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

// ---- arithmetic ----

static void arithmetic_that_overflows_is_refused(void **state) {
    (void)state;
    uint64_t out;
    assert_true(checked_add(UINT64_MAX - 1, 1, &out));
    assert_true(out == UINT64_MAX);
    assert_false(checked_add(UINT64_MAX, 1, &out));
    assert_true(checked_mul(1ull << 32, (1ull << 32) - 1, &out));
    assert_false(checked_mul(1ull << 32, 1ull << 32, &out));
    assert_true(checked_align(33, 32, &out) && out == 64);
    assert_true(checked_align(64, 32, &out) && out == 64);
    assert_true(checked_align(0, 32, &out) && out == 0);
    assert_false(checked_align(UINT64_MAX - 5, 32, &out));
}

// ---- reader ----

static void reader_reads_little_endian(void **state) {
    (void)state;
    const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    struct reader r = reader_over(data, sizeof data);
    assert_int_equal(reader_u8(&r), 1);
    assert_int_equal(reader_u32(&r), 0x05040302);
    assert_true(reader_u64(&r) == 0x0d0c0b0a09080706ull);
    assert_int_equal(reader_left(&r), 4);
    struct span rest = reader_bytes(&r, 4);
    assert_memory_equal(rest.data, data + 13, 4);
    assert_non_null(reader_bytes(&r, 0).data);
    assert_false(reader_failed(&r));
}

static void reader_stays_failed_with_its_first_message(void **state) {
    (void)state;
    const uint8_t data[6] = {1};
    struct reader r = reader_over(data, sizeof data);
    assert_int_equal(reader_u32(&r), 1);
    assert_int_equal(reader_u32(&r), 0);
    assert_true(reader_failed(&r));
    assert_non_null(strstr(r.status.text, "expected 4 bytes at offset 4, got 2"));
    assert_int_equal(reader_left(&r), 0);
    assert_int_equal(reader_u8(&r), 0);
    assert_null(reader_bytes(&r, 0).data);
    assert_false(reader_fail(&r, "another"));
    assert_null(strstr(r.status.text, "another"));
}

static void reader_refuses_absurd_counts(void **state) {
    (void)state;
    const uint8_t data[16] = {0};
    struct reader r = reader_over(data, sizeof data);
    assert_ptr_equal(reader_items(&r, 4, 4), data);
    assert_null(reader_items(&r, UINT64_MAX / 2, 4));
    assert_non_null(strstr(r.status.text, "is too large"));
    r = reader_over(data, sizeof data);
    assert_null(reader_items(&r, UINT64_MAX, 1));
    assert_true(reader_failed(&r));
}

static void spans_compare_and_copy(void **state) {
    (void)state;
    struct span s = {"llama\0x", 5};
    assert_true(span_equals(s, "llama"));
    assert_false(span_equals(s, "llam"));
    assert_false(span_equals(s, "llama2"));
    assert_true(span_equals((struct span){NULL, 0}, ""));
    char *copy = span_copy(s), *empty = span_copy((struct span){NULL, 0});
    assert_string_equal(copy, "llama");
    assert_string_equal(empty, "");
    free(copy);
    free(empty);
}

// ---- status ----

static void status_is_one_clean_line(void **state) {
    (void)state;
    struct status st = {0};
    assert_false(status_fail(&st, STATUS_FORMAT, "key %s", "a\nb\x1b[2J\xff\u202e\u2066é"));
    assert_string_equal(st.text, "key a?b?[2J???????é");
    assert_false(status_prefix(&st, "%s", "model.gguf"));
    assert_string_equal(st.text, "model.gguf: key a?b?[2J???????é");
    assert_int_equal(st.code, STATUS_FORMAT);
    assert_false(status_fail(NULL, STATUS_IO, "ignored"));
}

static void status_cuts_long_texts_at_a_character(void **state) {
    (void)state;
    char text[1200] = "x";
    while (strlen(text) < 1100) strcat(text, "é");
    struct status st = {0};
    status_fail(&st, STATUS_IO, "%s", text);
    assert_int_equal(strlen(st.text), sizeof st.text - 1);
    uint32_t code;
    for (size_t at = 0; at < strlen(st.text);) {
        at += utf8_decode(st.text + at, strlen(st.text) - at, &code);
        assert_int_not_equal(code, UTF8_REPLACEMENT);
    }
    status_prefix(&st, "%s", text);
    assert_true(strlen(st.text) < sizeof st.text);
}

// ---- arena ----

static void arena_gives_zeroed_aligned_memory(void **state) {
    (void)state;
    struct arena a = {0};
    for (int round = 0; round < 3; round++) {
        for (size_t size = 1; size < 3000; size += 37) {
            unsigned char *p = arena_alloc(&a, size);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
            memset(p, 0xaa, size);
        }
        arena_free(&a);
        assert_int_equal(a.used, 0);
    }
    unsigned char *large = arena_alloc(&a, 1 << 20);
    assert_int_equal(large[(1 << 20) - 1], 0);
    arena_free(&a);
    assert_null(a.chunks);
}

static void arena_copies_and_prints(void **state) {
    (void)state;
    struct arena a = {0};
    char *copy = arena_copy(&a, "hello", 4);
    assert_string_equal(copy, "hell");
    assert_string_equal(arena_printf(&a, "%s %d", copy, 7), "hell 7");
    assert_string_equal(arena_printf(&a, "%s", ""), "");
    arena_free(&a);
}

static void arena_refuses_outside_counts_with_a_status(void **state) {
    (void)state;
    struct arena a = {0};
    struct status st = {0};
    assert_null(arena_array(&a, UINT64_MAX / 8, 16, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    st = (struct status){0};
    assert_null(arena_array(&a, 1ull << 62, 1, &st));
    assert_int_equal(st.code, STATUS_MEMORY);
    st = (struct status){0};
    assert_non_null(arena_array(&a, 0, 16, &st));
    assert_non_null(arena_array(&a, 10, 16, &st));
    assert_int_equal(st.code, STATUS_OK);
    arena_free(&a);
}

static void regions_are_zeroed_and_page_aligned(void **state) {
    (void)state;
    size_t size = (5 << 20) + 3;
    unsigned char *p = region_alloc(size);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 4096, 0);
    assert_int_equal(p[0] | p[size - 1], 0);
    p[0] = p[size - 1] = 1;
    region_free(p, size);
    assert_null(region_alloc(0));
    assert_null(region_alloc(SIZE_MAX - 100));
    region_free(NULL, 100);
}

// ---- text lines ----

static void check_escaped(const char *text, const char *escaped) {
    char *line = text_line_escape(text), *again = text_line_unescape(span_of(line));
    assert_string_equal(line, escaped);
    assert_string_equal(again, text);
    free(line), free(again);
}

static void a_text_takes_one_line_and_comes_back(void **state) {
    (void)state;
    check_escaped("", "");
    check_escaped("two\nlines\n", "two\\nlines\\n");
    check_escaped("a\\n is no newline", "a\\\\n is no newline");
    char *typed = text_line_unescape(span_of("C:\\data\\"));
    assert_string_equal(typed, "C:\\data\\");
    free(typed);
}

static void a_line_is_split_at_the_first_equals_sign(void **state) {
    (void)state;
    struct text_line l = text_line_split(span_of(" \tkey =  a = b # c \r"));
    assert_true(l.assignment && !l.blank);
    assert_true(span_equals(l.key, "key") && span_equals(l.value, "a = b # c"));
    l = text_line_split(span_of(" word "));
    assert_true(!l.assignment && !l.blank && span_equals(l.key, "word"));
    assert_true(text_line_split(span_of("  # key = value")).blank);
    assert_true(text_line_split(span_of(" \t\r")).blank);
    assert_true(text_line_split(span_of("")).blank);
    l = text_line_split(span_of("="));
    assert_true(l.assignment && !l.key.size && !l.value.size);
}

// ---- UTF-8 ----

static void utf8_round_trips_every_code_point(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char text[4];
        uint32_t back;
        size_t n = utf8_encode(code, text);
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        assert_int_equal(n, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
        assert_int_equal(utf8_decode(text, n, &back), n);
        assert_int_equal(back, surrogate ? UTF8_REPLACEMENT : code);
        assert_int_equal(utf8_incomplete(text, n), 0);
        for (size_t cut = 1; cut < n; cut++) assert_int_equal(utf8_incomplete(text, cut), cut);
    }
    char text[4];
    assert_int_equal(utf8_encode(0x110000, text), 3); // U+FFFD
}

static void utf8_knows_what_is_never_shown(void **state) {
    (void)state;
    static const uint32_t hidden[] = {0,      0x1b,   0x7f,   0x9b,   0x61c,  0x200e, 0x200f,  0x2028,
                                      0x2029, 0x202e, 0x2066, 0x2069, 0xfff9, 0xfffb, 0x1ffff, 0xfffe};
    static const uint32_t shown[] = {' ',    '~',    0xa0,   0xad,   0x200b, 0x200d,
                                     0x2027, 0x202f, 0x2065, 0x206a, 0xfffd, 0x1f600};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) assert_true(utf8_is_hidden(hidden[i]));
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) assert_false(utf8_is_hidden(shown[i]));
    for (uint32_t code = 0; code < 0x110000; code++) {
        uint32_t mark = utf8_mark(code);
        if ((mark != 0) != utf8_is_hidden(code) || utf8_is_hidden(mark) != (mark == 0))
            fail_msg("mark of U+%04X", code);
    }
    assert_int_equal(utf8_mark(0x1b), 0x241b);
    assert_int_equal(utf8_mark(0x7f), 0x2421);
    assert_int_equal(utf8_mark(0x202e), 0x2426);
    assert_int_equal(utf8_mark(0x1ffff), UTF8_REPLACEMENT);
}

static void utf8_consumes_the_invalid_prefix(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size, used;
    } cases[] = {
        {"\x80", 1, 1},             // a lone continuation byte
        {"\xc0\xaf", 2, 1},         // overlong
        {"\xe0\x80\x80", 3, 1},     // overlong
        {"\xf0\x80\x80\x80", 4, 1}, // overlong
        {"\xed\xa0\x80", 3, 1},     // surrogate
        {"\xf4\x90\x80\x80", 4, 1}, // beyond U+10FFFF
        {"\xf8\x88\x80\x80", 4, 1}, // five bytes
        {"\xe2\x82", 2, 2},         // truncated
        {"\xe2\x82"
         "A",
         3, 2},
        {"\xf0\x9f\x98"
         "A",
         4, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t code;
        assert_int_equal(utf8_decode(cases[i].text, cases[i].size, &code), cases[i].used);
        assert_int_equal(code, UTF8_REPLACEMENT);
    }
}

// Cleans text whole and in pieces of every size; both must agree.
static void check_stream(const char *text, size_t size, const char *expected) {
    char out[600];
    for (size_t piece = 1; piece <= size + 1; piece++) {
        struct utf8_stream s = {0};
        size_t n = 0;
        for (size_t at = 0; at < size; at += piece) {
            size_t length = size - at < piece ? size - at : piece, before = n;
            n += utf8_stream_push(&s, text + at, length, out + n);
            assert_true(n - before <= 3 * (length + 4));
        }
        n += utf8_stream_finish(&s, out + n);
        assert_int_equal(n, strlen(expected));
        assert_memory_equal(out, expected, n);
    }
}

static void utf8_stream_joins_split_characters(void **state) {
    (void)state;
    check_stream("aé世😀z", 11, "aé世😀z");
    check_stream("\xf0\x9f\x98", 3, "\ufffd");
    check_stream("\xf0\x9f\xf0\x9f\x98\x80", 6, "\ufffd😀");
    check_stream("\xe2\x82\xc3\xa9", 4, "\ufffdé");
    check_stream("\x80\xffok\xc3", 5, "\ufffd\ufffdok\ufffd");
    check_stream("\xed\xa0\x80.", 4, "\ufffd\ufffd\ufffd.");
}

static void utf8_stream_of_any_bytes_does_not_depend_on_the_split(void **state) {
    (void)state;
    static const uint8_t likely[] = {'a', 0x80, 0x9f, 0xa0, 0xbf, 0xc2, 0xc3, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xff, 0x98};
    uint64_t random = 88172645463325252ull;
    for (int round = 0; round < 2000; round++) {
        char text[24], whole[120];
        for (size_t i = 0; i < sizeof text; i++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            text[i] = (char)likely[(random >> 33) % sizeof likely];
        }
        struct utf8_stream s = {0};
        size_t n = utf8_stream_push(&s, text, sizeof text, whole);
        n += utf8_stream_finish(&s, whole + n);
        whole[n] = 0;
        check_stream(text, sizeof text, whole);
        uint32_t code;
        for (size_t at = 0, used; at < n; at += used) {
            used = utf8_decode(whole + at, n - at, &code);
            if (code == UTF8_REPLACEMENT) assert_memory_equal(whole + at, "\ufffd", 3); // written, not copied
        }
    }
}

// ---- queue ----

static bool is_readable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void queue_keeps_order_while_it_grows(void **state) {
    (void)state;
    struct queue q;
    assert_true(queue_open(&q, sizeof(int), NULL));
    int in = 0, out = 0, item;
    for (int round = 1; round < 60; round++) {
        for (int i = 0; i < round; i++, in++) queue_push(&q, &in);
        for (int i = 0; i < round / 2; i++, out++) {
            assert_true(queue_pop(&q, &item));
            assert_int_equal(item, out);
        }
    }
    assert_true(is_readable(q.fd));
    for (; out < in; out++) {
        assert_true(queue_wait(&q, &item, 0));
        assert_int_equal(item, out);
    }
    assert_false(queue_pop(&q, &item));
    assert_false(queue_wait(&q, &item, 1));
    assert_false(is_readable(q.fd));
    queue_close(&q);
}

enum { PRODUCERS = 4, ITEMS = 5000 };

static struct queue shared;

static void *produce(void *argument) {
    int producer = *(int *)argument;
    for (int i = 0; i < ITEMS; i++) queue_push(&shared, &(int){producer * ITEMS + i});
    return NULL;
}

static void queue_carries_items_between_threads(void **state) {
    (void)state;
    assert_true(queue_open(&shared, sizeof(int), NULL));
    pthread_t threads[PRODUCERS];
    int ids[PRODUCERS], next[PRODUCERS] = {0}, item;
    for (int i = 0; i < PRODUCERS; i++) {
        ids[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &ids[i]), 0);
    }
    for (int i = 0; i < PRODUCERS * ITEMS; i++) {
        assert_true(queue_wait(&shared, &item, -1));
        int producer = item / ITEMS;
        assert_in_range(producer, 0, PRODUCERS - 1);
        assert_int_equal(item % ITEMS, next[producer]++); // the order of each producer is kept
    }
    for (int i = 0; i < PRODUCERS; i++) pthread_join(threads[i], NULL);
    assert_false(is_readable(shared.fd));
    queue_close(&shared);
}

static bool readable(const struct queue *q) { return poll(&(struct pollfd){.fd = q->fd, .events = POLLIN}, 1, 0) == 1; }

static void queue_tells_of_held_items_at_once(void **state) {
    (void)state;
    struct queue q;
    int item;
    assert_true(queue_open(&q, sizeof(int), NULL));
    queue_hold(&q);
    queue_push(&q, &(int){1});
    queue_push(&q, &(int){2});
    assert_false(readable(&q));
    assert_true(queue_pop(&q, &item)); // whoever looks finds them
    queue_release(&q);
    assert_true(readable(&q));
    assert_true(queue_pop(&q, &item));
    assert_int_equal(item, 2);
    assert_false(readable(&q));
    queue_hold(&q);
    queue_release(&q);
    assert_false(readable(&q));
    queue_push(&q, &(int){3});
    queue_hold(&q);
    queue_push(&q, &(int){4});
    assert_true(readable(&q));
    queue_release(&q);
    assert_true(queue_pop(&q, &item) && queue_pop(&q, &item));
    assert_false(readable(&q));
    queue_close(&q);
}

// ---- panic ----

static void restore_terminal(void) { dprintf(STDERR_FILENO, "restored\n"); }

static void panic_restores_prints_and_exits(void **state) {
    (void)state;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        panic_set_hook(restore_terminal);
        panic("page %d is lost", 7);
    }
    close(ends[1]);
    char text[100] = "";
    size_t n = 0;
    for (ssize_t got; (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0;) n += (size_t)got;
    close(ends[0]);
    assert_string_equal(text, "restored\nconfab: page 7 is lost\n");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

// ---- memory ----

static void files_in_memory_count_as_free(void **state) {
    (void)state;
    static const struct {
        const char *max, *current, *stat;
        uint64_t left;
    } cases[] = {
        {"max\n", "900\n", "", UINT64_MAX},
        {"1000\n", "900\n", "anon 100\nfile 800\n", 100},
        {"1000\n", "900\n", "anon 100\nfile 800\nshmem 50\ninactive_file 700\nactive_file 50\n", 850},
        {"1000\n", "1000\n", "inactive_file 0\nactive_file 0\n", 1}, // 0 would mean unknown
        {"1000\n", "1200\n", "inactive_file 100\n", 1},
        {"1000\n", "300\n", "active_file 400\n", 1000}, // the files are not read at the same moment
    };
    char folder[] = "/tmp/confab-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_true(machine_memory_group_free(folder) == UINT64_MAX);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        temporary_folder_write(folder, "memory.max", cases[i].max);
        temporary_folder_write(folder, "memory.current", cases[i].current);
        temporary_folder_write(folder, "memory.stat", cases[i].stat);
        uint64_t left = machine_memory_group_free(folder);
        if (left != cases[i].left) fail_msg("case %zu: %llu", i, (unsigned long long)left);
    }
    temporary_folder_remove(folder);
}

// ---- files, clock ----

static char *temporary(const char *text, size_t size) {
    char *path = xstrdup("/tmp/confab-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(write(fd, text, size) == (ssize_t)size);
    close(fd);
    return path;
}

static void files_are_mapped_and_read(void **state) {
    (void)state;
    char *path = temporary("some\0bytes", 10);
    struct mapping m;
    struct status st = {0};
    assert_true(mapping_open(&m, path, &st));
    assert_int_equal(m.size, 10);
    assert_memory_equal(m.data, "some\0bytes", 10);
    mapping_close(&m);
    assert_null(m.data);
    size_t size;
    char *text = file_read(path, 10, &size, &st);
    assert_non_null(text);
    assert_int_equal(size, 10);
    assert_memory_equal(text, "some\0bytes", 11); // the NUL after it
    free(text);
    assert_null(file_read(path, 9, &size, &st));
    assert_int_equal(st.code, STATUS_LIMIT);
    unlink(path);
    free(path);
}

static void large_files_are_read_whole(void **state) {
    (void)state;
    size_t size = 200000, got;
    char *data = xmalloc(size);
    for (size_t i = 0; i < size; i++) data[i] = (char)(i % 251);
    char *path = temporary(data, size);
    struct status st = {0};
    char *text = file_read(path, SIZE_MAX, &got, &st);
    assert_int_equal(got, size);
    assert_memory_equal(text, data, size);
    free(text);
    free(data);
    unlink(path);
    free(path);
}

// Of two writers of a file the first one wins, unless the other may replace it.
static void an_output_file_leaves_what_came_meanwhile(void **state) {
    (void)state;
    char folder[] = "/tmp/confab-test-XXXXXX", path[100], *text;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    struct output_file first, second, third;
    struct status st = {0};
    size_t size;
    assert_true(output_file_open(&first, path, false, &st) && output_file_open(&second, path, false, &st));
    assert_true(output_file_open(&third, path, true, &st));
    assert_true(output_file_write(&first, "1", 1, &st) && output_file_write(&second, "2", 1, &st));
    assert_true(output_file_write(&third, "3", 1, &st) && output_file_keep(&first, &st));
    assert_false(output_file_keep(&second, &st));
    assert_non_null(strstr(st.text, "already exists"));
    text = file_read(path, 10, &size, &st);
    assert_string_equal(text, "1");
    free(text);
    assert_true(output_file_keep(&third, &st));
    text = file_read(path, 10, &size, &st);
    assert_string_equal(text, "3");
    free(text);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); // nothing is left behind
}

static void check_not_mapped(const char *path, const char *why) {
    struct mapping m;
    struct status st = {0};
    assert_false(mapping_open(&m, path, &st));
    assert_null(m.data);
    assert_non_null(strstr(st.text, path));
    assert_non_null(strstr(st.text, why));
}

static void what_cannot_be_mapped_says_so(void **state) {
    (void)state;
    check_not_mapped("/nonexistent/model.gguf", "No such file");
    check_not_mapped("/tmp", "not a regular file");
    char *path = temporary("", 0);
    check_not_mapped(path, "empty");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    check_not_mapped(path, "not a regular file"); // without waiting for a writer
    size_t size;
    struct status st = {0};
    assert_null(file_read_regular(path, 100, &size, &st));
    assert_non_null(strstr(st.text, "not a regular file"));
    unlink(path);
    assert_null(file_read_regular(path, 100, &size, &st));
    assert_non_null(strstr(st.text, "No such file"));
    free(path);
    assert_null(file_read("/nonexistent/text", 100, &size, &st));
    assert_int_equal(st.code, STATUS_IO);
    assert_null(file_read("/tmp", 100, &size, &st));
}

static void the_clock_can_be_frozen(void **state) {
    (void)state;
    uint64_t before = clock_ns();
    assert_true(clock_ns() >= before);
    clock_freeze(5000000000u);
    assert_true(clock_ns() == 5000000000u);
    assert_true(clock_seconds() == 5.0);
    clock_freeze(0);
    assert_true(clock_ns() >= before);
}

static void memory_that_is_written_is_resident(void **state) {
    (void)state;
    const size_t size = 64 << 20;
    uint64_t before = process_memory_resident();
    assert_true(before > 0);
    char *bytes = xmalloc(size);
    memset(bytes, 1, size);
    assert_int_equal(bytes[size - 1], 1);
    assert_true(process_memory_resident() >= before + size / 2);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_that_overflows_is_refused),
        cmocka_unit_test(reader_reads_little_endian),
        cmocka_unit_test(reader_stays_failed_with_its_first_message),
        cmocka_unit_test(reader_refuses_absurd_counts),
        cmocka_unit_test(spans_compare_and_copy),
        cmocka_unit_test(status_is_one_clean_line),
        cmocka_unit_test(status_cuts_long_texts_at_a_character),
        cmocka_unit_test(arena_gives_zeroed_aligned_memory),
        cmocka_unit_test(arena_copies_and_prints),
        cmocka_unit_test(arena_refuses_outside_counts_with_a_status),
        cmocka_unit_test(regions_are_zeroed_and_page_aligned),
        cmocka_unit_test(a_text_takes_one_line_and_comes_back),
        cmocka_unit_test(a_line_is_split_at_the_first_equals_sign),
        cmocka_unit_test(utf8_round_trips_every_code_point),
        cmocka_unit_test(utf8_knows_what_is_never_shown),
        cmocka_unit_test(utf8_consumes_the_invalid_prefix),
        cmocka_unit_test(utf8_stream_joins_split_characters),
        cmocka_unit_test(utf8_stream_of_any_bytes_does_not_depend_on_the_split),
        cmocka_unit_test(queue_keeps_order_while_it_grows),
        cmocka_unit_test(queue_carries_items_between_threads),
        cmocka_unit_test(queue_tells_of_held_items_at_once),
        cmocka_unit_test(panic_restores_prints_and_exits),
        cmocka_unit_test(files_in_memory_count_as_free),
        cmocka_unit_test(files_are_mapped_and_read),
        cmocka_unit_test(large_files_are_read_whole),
        cmocka_unit_test(an_output_file_leaves_what_came_meanwhile),
        cmocka_unit_test(what_cannot_be_mapped_says_so),
        cmocka_unit_test(memory_that_is_written_is_resident),
        cmocka_unit_test(the_clock_can_be_frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
