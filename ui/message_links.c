#include "ui/message_links.h"

#include <md4c.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/flow.h"

struct finding {
    struct message_link *links;
    int count, depth; // depth: of links that are open
    struct flow text;
};

static int ignore_block(MD_BLOCKTYPE type, void *detail, void *user) { return (void)type, (void)detail, (void)user, 0; }

static int enter_span(MD_SPANTYPE type, void *detail, void *user) {
    struct finding *f = user;
    (void)detail;
    if (type == MD_SPAN_A && !f->depth++) flow_clear(&f->text);
    return 0;
}

static int leave_span(MD_SPANTYPE type, void *detail, void *user) {
    struct finding *f = user;
    if (type != MD_SPAN_A || --f->depth) return 0;
    const MD_ATTRIBUTE *address = &((MD_SPAN_A_DETAIL *)detail)->href;
    if (!address->size) return 0;
    f->links = xrealloc(f->links, (size_t)(f->count + 1) * sizeof *f->links);
    f->links[f->count++] = (struct message_link){xstrndup(f->text.size ? f->text.text : "", f->text.size),
                                                 xstrndup(address->text, address->size)};
    return 0;
}

static int add_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user) {
    struct finding *f = user;
    const bool line_break = type == MD_TEXT_BR || type == MD_TEXT_SOFTBR;
    if (f->depth) flow_add(&f->text, (struct style){0}, line_break ? " " : text, line_break ? 1 : size);
    return 0;
}

int message_links_find(const char *text, size_t size, struct message_link **out) {
    static const MD_PARSER parser = {
        .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_PERMISSIVEURLAUTOLINKS | MD_FLAG_NOHTML,
        .enter_block = ignore_block,
        .leave_block = ignore_block,
        .enter_span = enter_span,
        .leave_span = leave_span,
        .text = add_text,
    };
    struct finding f = {0};
    char *source = xmalloc(size + 2); // md4c reads a byte beyond a text that ends in an open link
    memcpy(source, text, size);
    memcpy(source + size, "\n", 2);
    md_parse(source, (MD_SIZE)size + 1, &parser, &f);
    free(source);
    flow_free(&f.text);
    *out = f.links;
    return f.count;
}

void message_links_free(struct message_link *links, int count) {
    for (int i = 0; i < count; i++) free(links[i].text), free(links[i].address);
    free(links);
}
