// The models and vocabularies in ../shared, which a checkout may lack.
#ifndef CONFAB_TESTS_SHARED_FILES_H
#define CONFAB_TESTS_SHARED_FILES_H

// The path of ../shared/<name>, valid until the next call. Where it is absent: says so and skips the running test.
const char *shared_file(const char *name);

#endif
