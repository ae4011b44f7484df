// Chats as a page of HTML. All text is escaped, HTML in a message is text too, and the page loads nothing: images
// become links, and links lead to the web or to mail only.
#include <md4c.h>
#include <string.h>

#include "app/session/export.h"

static const char style[] =
    ":root { color-scheme: light dark; --ground: #fdfdfc; --text: #1d1d1f; --dim: #6b6b70; --line: #d9d9d6;\n"
    "  --own: #eef3fa; --code: #f3f3f0; --link: #0a58b5 }\n"
    "@media (prefers-color-scheme: dark) { :root { --ground: #17181b; --text: #e4e4e2; --dim: #9a9aa0;\n"
    "  --line: #35363b; --own: #1f2733; --code: #222327; --link: #7db4f5 } }\n"
    "body { background: var(--ground); color: var(--text); font: 16px/1.55 system-ui, sans-serif;\n"
    "  max-width: 46rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word }\n"
    "h1 { font-size: 1.5rem; line-height: 1.25; margin: 2.5rem 0 0 }\n"
    "h2 { font-size: .9rem; margin: 0 0 .4rem; color: var(--dim) }\n"
    "h3, h4, h5, h6 { font-size: 1.05rem; margin: 1.2rem 0 .4rem }\n"
    "article { margin: 1.4rem 0 }\n"
    "article.you { background: var(--own); border-radius: .5rem; padding: .8rem 1rem }\n"
    ".plain { white-space: pre-wrap; margin: 0 }\n"
    ".dim { color: var(--dim); font-size: .9rem }\n"
    "pre, code { font-family: ui-monospace, monospace; font-size: .9em; background: var(--code) }\n"
    "code { padding: .1em .3em; border-radius: .25rem }\n"
    "pre { padding: .8rem 1rem; border-radius: .5rem; overflow-x: auto } pre code { padding: 0 }\n"
    "blockquote { margin: .8rem 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--dim) }\n"
    "table { border-collapse: collapse; display: block; overflow-x: auto }\n"
    "th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left }\n"
    "hr { border: 0; border-top: 1px solid var(--line) }\n"
    "a { color: var(--link) }\n";

static void escape(FILE *out, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '&') fputs("&amp;", out);
        else if (c == '<') fputs("&lt;", out);
        else if (c == '>') fputs("&gt;", out);
        else if (c == '"') fputs("&quot;", out);
        else if (c == '\'') fputs("&#39;", out);
        else if (c >= 0x20 || c == '\n' || c == '\t') putc(c, out); // other controls mean nothing there
    }
}

static void escape_text(FILE *out, const char *text) { escape(out, text, strlen(text)); }

// ---- Markdown to HTML ----

struct page {
    FILE *out;
    bool linked[32]; // of nested links and images, whether they are links
    int depth;
};

static bool leads_out(const MD_ATTRIBUTE *to) {
    static const char *const schemes[] = {"http://", "https://", "mailto:"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (to->size > strlen(schemes[i]) && !strncasecmp(to->text, schemes[i], strlen(schemes[i]))) return true;
    return false;
}

static void open_link(struct page *p, const MD_ATTRIBUTE *to) {
    const bool link = to->text && leads_out(to) && p->depth < 1; // links do not nest
    if (p->depth < 32) p->linked[p->depth] = link;
    p->depth++;
    if (!link) return;
    fputs("<a rel=\"noreferrer noopener\" href=\"", p->out);
    escape(p->out, to->text, to->size);
    fputs("\">", p->out);
}

static void close_link(struct page *p) {
    p->depth--;
    if (p->depth < 32 && p->linked[p->depth]) fputs("</a>", p->out);
}

// The elements of blocks and spans; NULL: none.
static const char *const block_tags[] = {
    [MD_BLOCK_QUOTE] = "blockquote",
    [MD_BLOCK_UL] = "ul",
    [MD_BLOCK_OL] = "ol",
    [MD_BLOCK_LI] = "li",
    [MD_BLOCK_P] = "p",
    [MD_BLOCK_TABLE] = "table",
    [MD_BLOCK_TR] = "tr",
    [MD_BLOCK_THEAD] = "thead",
    [MD_BLOCK_TBODY] = "tbody",
    [MD_BLOCK_TH] = "th",
    [MD_BLOCK_TD] = "td",
};
static const char *const span_tags[] = {
    [MD_SPAN_EM] = "em", [MD_SPAN_STRONG] = "strong", [MD_SPAN_CODE] = "code", [MD_SPAN_DEL] = "del"};
#define TAG(tags, type) ((size_t)(type) < sizeof(tags) / sizeof *(tags) ? (tags)[type] : NULL)

// Below the headings of the page.
static int level(void *detail) {
    const int asked = (int)((MD_BLOCK_H_DETAIL *)detail)->level + 2;
    return asked > 6 ? 6 : asked;
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *context) {
    FILE *out = ((struct page *)context)->out;
    if (type == MD_BLOCK_H) fprintf(out, "<h%d>", level(detail));
    else if (type == MD_BLOCK_CODE) fputs("<pre><code>", out);
    else if (type == MD_BLOCK_HR) fputs("<hr>\n", out);
    else if (type == MD_BLOCK_OL) fprintf(out, "<ol start=\"%u\">", ((MD_BLOCK_OL_DETAIL *)detail)->start);
    else if (TAG(block_tags, type)) fprintf(out, "<%s>", TAG(block_tags, type));
    return 0;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *context) {
    FILE *out = ((struct page *)context)->out;
    if (type == MD_BLOCK_H) fprintf(out, "</h%d>\n", level(detail));
    else if (type == MD_BLOCK_CODE) fputs("</code></pre>\n", out);
    else if (TAG(block_tags, type)) fprintf(out, "</%s>\n", TAG(block_tags, type));
    return 0;
}

static int enter_span(MD_SPANTYPE type, void *detail, void *context) {
    struct page *p = context;
    if (type == MD_SPAN_A) open_link(p, &((MD_SPAN_A_DETAIL *)detail)->href);
    else if (type == MD_SPAN_IMG) open_link(p, &((MD_SPAN_IMG_DETAIL *)detail)->src);
    else if (TAG(span_tags, type)) fprintf(p->out, "<%s>", TAG(span_tags, type));
    return 0;
}

static int leave_span(MD_SPANTYPE type, void *detail, void *context) {
    struct page *p = context;
    (void)detail;
    if (type == MD_SPAN_A || type == MD_SPAN_IMG) close_link(p);
    else if (TAG(span_tags, type)) fprintf(p->out, "</%s>", TAG(span_tags, type));
    return 0;
}

// An entity, as md4c recognises them, is one in HTML too.
static int text(MD_TEXTTYPE type, const MD_CHAR *chars, MD_SIZE size, void *context) {
    FILE *out = ((struct page *)context)->out;
    if (type == MD_TEXT_BR) fputs("<br>\n", out);
    else if (type == MD_TEXT_SOFTBR) putc('\n', out);
    else if (type == MD_TEXT_ENTITY) fwrite(chars, 1, size, out);
    else if (type != MD_TEXT_NULLCHAR) escape(out, chars, size);
    return 0;
}

static void markdown(FILE *out, const char *source, size_t size) {
    struct page page = {.out = out};
    const MD_PARSER parser = {.flags =
                                  MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_PERMISSIVEAUTOLINKS | MD_FLAG_NOHTML,
                              .enter_block = enter_block,
                              .leave_block = leave_block,
                              .enter_span = enter_span,
                              .leave_span = leave_span,
                              .text = text};
    md_parse(source, (MD_SIZE)size, &parser, &page);
}

// ---- the page ----

void export_html_begin(FILE *out, const char *title) {
    fputs("<!DOCTYPE html>\n<html lang=\"\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
          "<title>",
          out);
    escape_text(out, title);
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
}

static void html_message(FILE *out, const struct message *m) {
    const bool own = m->role == MESSAGE_USER;
    fprintf(out, "<article%s>\n<h2>", own ? " class=\"you\"" : "");
    escape_text(out, export_author(m));
    fputs("</h2>\n", out);
    if (m->thinking_size) {
        fputs("<details class=\"dim\"><summary>Thinking</summary>\n<p class=\"plain\">", out);
        escape(out, m->thinking, m->thinking_size);
        fputs("</p></details>\n", out);
    }
    if (own) {
        fputs("<p class=\"plain\">", out);
        escape(out, m->text, m->size);
        fputs("</p>\n", out);
    } else {
        markdown(out, m->text, m->size);
    }
    if (m->state != MESSAGE_COMPLETE && m->note) {
        fputs("<p class=\"dim\">", out);
        escape_text(out, m->note);
        fputs("</p>\n", out);
    }
    fputs("</article>\n", out);
}

void export_html_chat(FILE *out, const struct conversation *c) {
    char made[32];
    fputs("<h1>", out);
    escape_text(out, export_title(c));
    fputs("</h1>\n", out);
    if (*export_time(c->created, made)) fprintf(out, "<p class=\"dim\">%s</p>\n", made);
    for (int m = c->first; m >= 0; m = c->messages[m].chosen) html_message(out, &c->messages[m]);
}

void export_html_end(FILE *out) { fputs("</body>\n</html>\n", out); }
