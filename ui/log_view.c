#include "ui/log_view.h"

#include <stdio.h>
#include <time.h>

#include "ui/filter.h"

static const struct {
    enum theme_role role;
    const char *mark, *shown; // with those that are more serious
} levels[LOG_LEVEL_COUNT] = {
    [LOG_LEVEL_ERROR] = {ROLE_BAD, "! ", "errors"},
    [LOG_LEVEL_WARNING] = {ROLE_WARN, "* ", "warnings and errors"},
    [LOG_LEVEL_INFO] = {ROLE_TEXT, "", "info and above"},
    [LOG_LEVEL_DEBUG] = {ROLE_DIM, "", "all levels"},
};

enum theme_role log_view_role(enum log_level level) { return levels[level].role; }
const char *log_view_mark(enum log_level level) { return levels[level].mark; }

static enum log_level least_serious(const struct log_view *v) { return (enum log_level)(LOG_LEVEL_DEBUG - v->hidden); }

const char *log_view_level(const struct log_view *v) { return levels[least_serious(v)].shown; }

void log_view_next_level(struct log_view *v, int step) {
    v->hidden = (v->hidden + step + LOG_LEVEL_DEBUG) % LOG_LEVEL_DEBUG;
    v->back = 0;
}

static bool has_words(const struct log_entry *e, const char *words) {
    char text[sizeof e->module + sizeof e->text + 16];
    snprintf(text, sizeof text, "%s %s %s", log_level_name(e->level), e->module, e->text);
    return filter_matches(words, text);
}

int log_view_find(const struct log_view *v, const struct screen_view *view, const char *words, int out[LOG_RING]) {
    int n = 0;
    for (int i = 0; i < view->n_log; i++)
        if (view->log[i].level <= least_serious(v) && has_words(&view->log[i], words)) out[n++] = i;
    return n;
}

int log_view_unread_errors(const struct log_view *v, const struct screen_view *view) {
    int n = 0;
    for (int i = 0; i < view->n_log; i++)
        n += view->log[i].level == LOG_LEVEL_ERROR && view->log[i].number >= v->unread;
    return n;
}

void log_view_time(const struct log_entry *e, char out[16]) {
    const time_t seconds = (time_t)(e->at / 1000000000);
    struct tm local;
    out[0] = 0;
    if (localtime_r(&seconds, &local)) strftime(out, 16, "%H:%M:%S", &local);
}
