// Fuzzes answers: the first byte is the width, the second says in what pieces the rest comes. The layout of a text that
// grows must be that of the text laid out at once, and what is taken out of it lies within it.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/screen_text.h"
#include "ui/markdown.h"
#include "ui/message_blocks.h"
#include "ui/message_links.h"

enum { CHECKS = 8, MOST = 1 << 15 };

static const char *const answers[] = {
    "2\4# Title\n\nSome *text* with `code`, **bold** ~~struck~~ and a [link](http://x.y \"T\").\n\n> quoted\n> > "
    "more\n",
    "\50\1```c\nint main(void) {\n    return 0; /* open\n}\n```\n\n~~~\nnever closed\n\nstill",
    "\36\71. one\n\n   more\n\n2. two\n   - nested\n     ```sh\n     make\n     ```\n- [ ] open\n- [x] done\n",
    "\24\3| a | b |\n|:-:|--:|\n| 1 | `2|3` |\n| four \\| five | \xe6\x97\xa5\xe6\x9c\xac |\n\nAfter\n",
    "\60\2So \\(x^2 \\le y\\), $a_1$ and\n\\[\na + b \\\\\n= c\n\\]\nthen $$y$$.\n",
    "\44\5See [one][1], [Two]\xc2\xb9[^n]!\n\n[1]: http://a.b\n[two]: <c.d> \"Title\"\n[^n]: A *note*[^m]\n    goes "
    "on.\n"
    "\n[^m]: ![p][1]\n",
    "\12\6![a](data:image/png;base64,AAAA) [![b](c)](d) <http://e.f> https://g.h &amp; &#65; <b>x</b>\n---\n***\n",
};

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= sizeof answers / sizeof *answers) return NULL;
    *size = strlen(answers[k]);
    return (uint8_t *)xstrdup(answers[k]);
}

static void check_layout(struct markdown *grown, const char *text, size_t size, struct markdown_options o) {
    struct markdown fresh = {0};
    markdown_layout(&fresh, text, size, o);
    char *a = lines_as_text(&grown->lines, o.width), *b = lines_as_text(&fresh.lines, o.width);
    if (strcmp(a, b)) panic("grown:\n%s\nat once:\n%s", a, b);
    free(a);
    free(b);
    markdown_free(&fresh);
}

static void grow(const char *text, size_t size, size_t piece, int width) {
    struct markdown_options o = {.width = width, .streaming = true};
    struct markdown m = {0};
    const size_t every = size / CHECKS + 1;
    for (size_t n = 0, next = 0; n < size; n += piece) {
        markdown_layout(&m, text, n, o);
        if (n < next) continue;
        check_layout(&m, text, n, o);
        next = n + every;
    }
    o.streaming = false;
    markdown_layout(&m, text, size, o);
    check_layout(&m, text, size, o);
    markdown_free(&m);
}

static void take_out(const char *text, size_t size) {
    struct message_link *links;
    struct message_block b = {0};
    const int n_links = message_links_find(text, size, &links);
    message_links_free(links, n_links);
    for (size_t end = 0; message_block_next(text, size, end, &b); end = b.end) {
        char name[64];
        size_t block_size;
        if (b.start < end || b.end <= b.start || b.end > size) panic("a block from %zu to %zu", b.start, b.end);
        free(message_block_text(text, &b, &block_size));
        if (b.kind == BLOCK_CODE) message_block_file_name(text, &b, name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > MOST) return 0;
    char *text = exact_copy(data + 2, size - 2);
    grow(text, size - 2, 1 + data[1] % 64, 1 + data[0] % 100);
    take_out(text, size - 2);
    free(text);
    return 0;
}
