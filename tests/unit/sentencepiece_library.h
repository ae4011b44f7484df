// libsentencepiece as tests use it: to train small models, and to say what their ids are.
#ifndef CONFAB_TESTS_SENTENCEPIECE_LIBRARY_H
#define CONFAB_TESTS_SENTENCEPIECE_LIBRARY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// A model file; options as spm_train takes them. NULL when it fails; the caller frees.
char *sentencepiece_train(const char *options, const char *const *sentences, size_t n_sentences, size_t *size);
// NULL when the library refuses the file.
struct sentencepiece_model *sentencepiece_open(const char *model, size_t size);
void sentencepiece_close(struct sentencepiece_model *s);
// The ids of a text, at most n of them; returns how many there are.
size_t sentencepiece_encode(const struct sentencepiece_model *s, const char *text, size_t size, int *ids, size_t n);

#ifdef __cplusplus
}
#endif

#endif
