// A disk that fills up: a limit on the size of files stands for it.
#ifndef CONFAB_TESTS_UNIT_FULL_DISK_H
#define CONFAB_TESTS_UNIT_FULL_DISK_H

#include <stddef.h>

// Until full_disk_end no file of this process, or of one that it starts, can grow beyond so many bytes.
void full_disk_begin(size_t bytes);
void full_disk_end(void);

#endif
