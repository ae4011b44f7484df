// What the pane of the time and its roofline share.
#ifndef CONFAB_UI_VIEW_TIME_H
#define CONFAB_UI_VIEW_TIME_H

#include "ui/view.h"

// The share of the limit that work is nearer to, which is memory's or that of computing; 0 when neither is known.
double time_limit_share(const struct view_time *t, const struct stage_work *w, bool *by_memory);

// Achieved operations a second over operations for each byte read, both logarithmic, under the roof of the two limits:
// a mark for decode and for prefill, a point for each stage.
void view_roofline(struct view_frame *f, struct rect r, const struct view_time *t);

#endif
