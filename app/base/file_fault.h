// File fault: what becomes of a model file that shrinks, or whose disk fails, while it is mapped. Reading what is no
// longer there raises SIGBUS; that is no crash of ours and does not look like one.
#ifndef CONFAB_APP_FILE_FAULT_H
#define CONFAB_APP_FILE_FAULT_H

// From now on a read that fails ends the program with one line that names the file, and status 1. A terminal that is
// taken after the first call is given back first. NULL: no file yet.
void file_fault_watch(const char *path);

#endif
