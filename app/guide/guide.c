#include "app/guide/guide.h"

// Laid down by the assembler file that the Makefile makes (guide_data.S).
extern const char guide_begin[], guide_end[], guide_template_text[];

const char *const guide_questions[GUIDE_QUESTIONS] = {
    "How many chats can run at once?",
    "What does the KV cache box show?",
    "What does temperature do?",
};

const void *guide_data(size_t *size) {
    *size = (size_t)(guide_end - guide_begin);
    return guide_begin;
}

const char *guide_template(void) { return guide_template_text; }
