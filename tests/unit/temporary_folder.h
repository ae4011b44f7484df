// Folders of tests on the disk, and their removal.
#ifndef CONFAB_TESTS_TEMPORARY_FOLDER_H
#define CONFAB_TESTS_TEMPORARY_FOLDER_H

// A new folder for all tests of a program, which the teardown of their group removes; NULL where none can be made.
const char *temporary_folder_make(void);
// The same, and the programs that are started keep their configuration, data and log there: nobody's own count. Their
// cache is the user's, for the pipelines of devices there, which take minutes to build.
const char *temporary_folder_make_home(void);
int temporary_folder_teardown(void **state);

// A file in any folder, in place of the one that may be there.
void temporary_folder_write(const char *folder_path, const char *name, const char *text);

// Removes any folder with all that is in it. 0, or what a teardown gives back after a failure.
int temporary_folder_remove(const char *path);

#endif
