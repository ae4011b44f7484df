#include "ui/message_links.h"

#include <md4c.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/markdown.h"

struct finding {
    struct references references;
    struct message_link *links;
    int count, depth; // depth: of links and images that are open
    struct flow text;
};

static void add_link(struct finding *f, const char *text, size_t text_size, const char *address, size_t size) {
    f->links = xrealloc(f->links, (size_t)(f->count + 1) * sizeof *f->links);
    f->links[f->count++] = (struct message_link){xstrndup(text, text_size), xstrndup(address, size)};
}

static int ignore_block(MD_BLOCKTYPE type, void *detail, void *user) { return (void)type, (void)detail, (void)user, 0; }

static const MD_ATTRIBUTE *address_of(MD_SPANTYPE type, const void *detail) {
    return type == MD_SPAN_A     ? &((const MD_SPAN_A_DETAIL *)detail)->href
           : type == MD_SPAN_IMG ? &((const MD_SPAN_IMG_DETAIL *)detail)->src
                                 : NULL;
}

static int enter_span(MD_SPANTYPE type, void *detail, void *user) {
    struct finding *f = user;
    if (!address_of(type, detail)) return 0;
    if (!f->depth++) flow_clear(&f->text);
    if (type == MD_SPAN_IMG) flow_add_text(&f->text, (struct style){0}, "image: ");
    return 0;
}

static int leave_span(MD_SPANTYPE type, void *detail, void *user) {
    struct finding *f = user;
    const MD_ATTRIBUTE *address = address_of(type, detail);
    if (!address) return 0;
    struct reference *r = references_find(&f->references, address->text, address->size);
    f->depth--;
    if (r) references_use(&f->references, r, 0);
    if (r && r->note) return 0;
    if (r) add_link(f, f->text.text, f->text.size, f->references.text + r->content, r->content_size);
    else if (address->size) add_link(f, f->text.size ? f->text.text : "", f->text.size, address->text, address->size);
    return 0;
}

static int add_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user) {
    struct finding *f = user;
    const bool line_break = type == MD_TEXT_BR || type == MD_TEXT_SOFTBR;
    if (f->depth) flow_add(&f->text, (struct style){0}, line_break ? " " : text, line_break ? 1 : size);
    return 0;
}

// The text without its definitions, and behind it the footnotes.
static void prepare(struct finding *f, struct flow *source, const char *text, size_t size) {
    struct markdown_fence fence = {0};
    struct markdown_prepare part = {.references = &f->references, .to = size, .table = MARKDOWN_NO_TABLE};
    references_scan(&f->references, text, size, 0, fence);
    references_hide(&f->references);
    references_add(&f->references, source, text, size);
    markdown_prepare(source, &part, &fence);
    for (int i = 0; i < f->references.n; i++) {
        const struct reference *r = &f->references.at[i];
        if (!r->note) continue;
        part.from = r->content, part.to = r->content + r->content_size, fence = (struct markdown_fence){0};
        flow_add_text(source, (struct style){0}, "\n\n");
        markdown_prepare(source, &part, &fence);
    }
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
    struct flow source = {0};
    prepare(&f, &source, text, size);
    md_parse(source.text, (MD_SIZE)source.size, &parser, &f);
    for (int i = 0; i < f.references.n; i++) { // what nothing refers to is shown as it is
        const struct reference *r = &f.references.at[i];
        if (!r->note && r->user == REFERENCES_NONE)
            add_link(&f, text + r->label, r->label_size, text + r->content, r->content_size);
    }
    references_free(&f.references);
    flow_free(&source);
    flow_free(&f.text);
    *out = f.links;
    return f.count;
}

void message_links_free(struct message_link *links, int count) {
    for (int i = 0; i < count; i++) free(links[i].text), free(links[i].address);
    free(links);
}
