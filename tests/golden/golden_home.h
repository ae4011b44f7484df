// Golden home: the surroundings of a chat that is tested: nothing of the machine's own configuration, and where files
// are needed a home folder of the test's own.
#ifndef CONFAB_TESTS_GOLDEN_HOME_H
#define CONFAB_TESTS_GOLDEN_HOME_H

void golden_home_clear_environment(void); // no home, no programs, no display; an xterm in UTF-8
char *golden_home_open(void);             // makes the folder, which is HOME from now on
void golden_home_close(char *home);       // removes it with all that is in it; NULL: nothing to do

#endif
