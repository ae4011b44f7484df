#include "app/base/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/base/clock.h"

#define INTERVAL     0.1 // seconds between updates
#define SETTLED      1.0 // seconds before the time left can be estimated
#define BAR          24  // columns
#define SCREEN_WIDTH 80  // if the terminal's width is unknown

struct progress progress_begin(void) {
    double now = clock_seconds();
    return (struct progress){.shown = isatty(STDERR_FILENO), .start = now, .last = now - INTERVAL};
}

static int screen_width(void) {
    struct winsize size;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : SCREEN_WIDTH;
}

static void time_left(double elapsed, double done, char out[32]) {
    *out = 0;
    if (elapsed < SETTLED || done <= 0) return;
    int seconds = (int)(elapsed / done * (1 - done) + 0.5);
    if (seconds < 60) snprintf(out, 32, "%d s left", seconds);
    else snprintf(out, 32, "%d min %02d s left", seconds / 60, seconds % 60);
}

void progress_draw(struct progress *p, double done, const char *what) {
    double now = clock_seconds();
    if (!p->shown || now - p->last < INTERVAL) return;
    char bar[BAR + 1], left[32], line[512];
    int filled = (int)(done * BAR);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)(filled < BAR ? filled : BAR));
    bar[BAR] = 0;
    time_left(now - p->start, done, left);
    int length = snprintf(line, sizeof line, "[%s] %3.0f %%  %-14s  %s", bar, 100 * done, left, what);
    int room = screen_width() - 1;
    fprintf(stderr, "\r\033[K%.*s", length < room ? length : room, line);
    fflush(stderr);
    p->drawn = true;
    p->last = now;
}

void progress_clear(struct progress *p) {
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
    p->last = 0;
}
