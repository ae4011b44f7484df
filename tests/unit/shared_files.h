// The models and vocabularies in ../shared, which a checkout may lack.
#ifndef CONFAB_TESTS_SHARED_FILES_H
#define CONFAB_TESTS_SHARED_FILES_H

// The path of ../shared/<name>, valid until the next call. Where it is absent: says so and skips the running test.
const char *shared_file(const char *name);

// All of ../shared/vocabs/<name>.<suffix>, which the caller frees; skips as above. A vocabulary's texts are in its
// "inp", each with the end below behind it; their ids are in its "out", a line for each.
char *shared_vocabulary_text(const char *name, const char *suffix);
#define SHARED_VOCABULARY_TEXT_END "\n__ggml_vocab_test__\n"

#endif
