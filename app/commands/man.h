// Man: generates the manual pages from templates (man/*.in) and the program's tables.
#ifndef CONFAB_APP_MAN_H
#define CONFAB_APP_MAN_H

#include <stdio.h>

#include "engine/base/status.h"

// Copies a template, replacing the lines @commands@, @settings@, @keys@, @roles@ and @metrics@ with those tables.
bool man_write(FILE *out, const char *template_path, struct status *st);

#endif
