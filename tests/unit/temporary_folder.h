// What a test leaves behind on the disk.
#ifndef CONFAB_TESTS_TEMPORARY_FOLDER_H
#define CONFAB_TESTS_TEMPORARY_FOLDER_H

// Removes a folder with all that is in it. 0, or what a teardown gives back after a failure.
int temporary_folder_remove(const char *path);

#endif
