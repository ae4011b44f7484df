// Man: manual pages from templates (man/*.in) and the program's own tables, so that the pages cannot drift from the program.
#ifndef CONFAB_APP_MAN_H
#define CONFAB_APP_MAN_H

#include <stdio.h>

#include "engine/base/status.h"

// Copies a template; a line that is just @commands@, @settings@ or @keys@ becomes that table.
bool man_write(FILE *out, const char *template_path, struct status *st);

#endif
