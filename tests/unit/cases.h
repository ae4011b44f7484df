// Cases: how many of many alike a test takes.
//
// The thread sanitizer makes computing some twenty times as slow, and the races that it looks for do not depend on each
// format and family: under it a loop over cases takes every CASE_STEP-th.
#ifndef CONFAB_TESTS_CASES_H
#define CONFAB_TESTS_CASES_H

#ifdef __SANITIZE_THREAD__
enum { CASE_STEP = 5 };
#else
enum { CASE_STEP = 1 };
#endif

#endif
