// File fault: handles SIGBUS, which reading a mapped model file raises when the file has shrunk or its disk fails. The
// program exits with a message instead of what looks like a crash.
#ifndef CONFAB_APP_FILE_FAULT_H
#define CONFAB_APP_FILE_FAULT_H

// From now on a failing read ends the program with status 1 and one line that names the file. Call it before the screen
// takes over the terminal, so that the terminal is restored first. NULL: no file yet.
void file_fault_watch(const char *path);

#endif
