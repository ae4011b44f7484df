// Plays every script of this folder, each in a process of its own, with nothing of the machine's own configuration.
// UPDATE_GOLDEN=1 writes the screens afresh; GOLDEN=name plays the scripts of that name only.
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "tests/golden/golden_home.h"
#include "tests/golden/golden_script.h"

static void play(void **state) {
    const char *path = *state;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        golden_home_clear_environment();
        exit(golden_script_play(path, getenv("UPDATE_GOLDEN")) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("%s", path);
}

int main(void) {
    glob_t found;
    const char *only = getenv("GOLDEN");
    char *pattern = xasprintf("tests/golden/%s.script", only ? only : "*");
    if (glob(pattern, 0, NULL, &found) != 0) panic("no scripts at %s", pattern);
    struct CMUnitTest *tests = xcalloc(found.gl_pathc, sizeof *tests);
    for (size_t i = 0; i < found.gl_pathc; i++)
        tests[i] = (struct CMUnitTest){
            .name = strrchr(found.gl_pathv[i], '/') + 1, .test_func = play, .initial_state = found.gl_pathv[i]};
    int failures = _cmocka_run_group_tests("golden", tests, found.gl_pathc, NULL, NULL);
    free(tests);
    globfree(&found);
    free(pattern);
    return failures;
}
