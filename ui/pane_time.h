// What the pane of the time and its roofline share.
#ifndef CONFAB_UI_PANE_TIME_H
#define CONFAB_UI_PANE_TIME_H

#include "ui/pane.h"

enum time_limit { LIMIT_COMPUTE, LIMIT_MEMORY, LIMIT_CACHE };

// The share, at most 1, of the limit that work is nearer to; 0 when neither is known, and of the caches, whose limit is
// not.
double time_limit_share(const struct view_time *t, const struct stage_work *w, enum time_limit *limit);

// Achieved operations a second over operations for each byte read, both logarithmic, under the roof of the two limits:
// a mark for decode and for prefill, a point for each stage.
void view_roofline(struct view_frame *f, struct rect r, const struct view_time *t);

#endif
