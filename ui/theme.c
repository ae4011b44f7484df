#include "ui/theme.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/reader.h"
#include "engine/base/text_line.h"

struct theme_file {
    const char *name, *text;
};
extern const struct theme_file theme_builtin[]; // made from themes/*.theme by the Makefile; ends with a NULL name

static const struct {
    const char *key;
    enum theme_role parent;
} theme_roles[ROLE_COUNT] = {
#define X(id, role_key, role_parent, help) [id] = {role_key, role_parent},
    THEME_ROLES(X)
#undef X
};

// ---- gradients: interpolated in OKLab, where equal steps look equal ----

struct lab {
    double l, a, b;
};

static double channel_linear(uint8_t v) {
    double c = v / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static uint8_t channel_encode(double c) {
    double v = c <= 0.0031308 ? 12.92 * c : 1.055 * pow(c, 1 / 2.4) - 0.055;
    return (uint8_t)lround(255 * fmin(fmax(v, 0), 1));
}

static struct lab colour_lab(struct theme_colour c) {
    double r = channel_linear(c.red), g = channel_linear(c.green), b = channel_linear(c.blue);
    double l = cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    double m = cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    double s = cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return (struct lab){0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
                        1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
                        0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

static struct theme_colour lab_colour(struct lab c) {
    double l = c.l + 0.3963377774 * c.a + 0.2158037573 * c.b;
    double m = c.l - 0.1055613458 * c.a - 0.0638541728 * c.b;
    double s = c.l - 0.0894841775 * c.a - 1.2914855480 * c.b;
    l = l * l * l, m = m * m * m, s = s * s * s;
    return (struct theme_colour){.red = channel_encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
                                 .green = channel_encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
                                 .blue = channel_encode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

static void gradient_make(struct theme_colour steps[THEME_STEPS], struct theme_colour from, struct theme_colour to) {
    struct lab a = colour_lab(from), b = colour_lab(to);
    bool flat = from.own || to.own;
    for (int i = 0; i < THEME_STEPS; i++) {
        double t = (double)i / (THEME_STEPS - 1);
        steps[i] =
            flat ? from : lab_colour((struct lab){a.l + t * (b.l - a.l), a.a + t * (b.a - a.a), a.b + t * (b.b - a.b)});
    }
    steps[0] = from;
    steps[THEME_STEPS - 1] = flat ? from : to;
}

// ---- parsing ----

// What a theme file says, before missing roles have fallen back.
struct theme_draft {
    struct {
        bool set, end_set;
        struct theme_colour colour, end;
    } roles[ROLE_COUNT];
};

static int role_find(struct span key) {
    for (int i = 0; i < ROLE_COUNT; i++)
        if (span_equals(key, theme_roles[i].key)) return i;
    return -1;
}

static bool colour_parse(struct span text, struct theme_colour *out) {
    if (text.size < 2 || text.data[0] != '"' || text.data[text.size - 1] != '"') return false;
    struct span s = {text.data + 1, text.size - 2};
    *out = (struct theme_colour){.own = true};
    if (s.size == 0) return true;
    if (s.size != 7 || s.data[0] != '#') return false;
    unsigned value = 0;
    for (int i = 1; i < 7; i++) {
        const char *digits = "0123456789abcdef", *d = s.data[i] ? strchr(digits, s.data[i] | 0x20) : NULL;
        if (!d) return false;
        value = value << 4 | (unsigned)(d - digits);
    }
    *out = (struct theme_colour){.red = (uint8_t)(value >> 16), .green = (uint8_t)(value >> 8), .blue = (uint8_t)value};
    return true;
}

static bool draft_line(struct theme_draft *d, struct span line, const char *name, int number, struct status *st) {
    static const char suffix[] = ".end";
    struct text_line l = text_line_split(line);
    if (l.blank) return true;
    if (!l.assignment)
        return status_fail(st, STATUS_FORMAT, "theme %s, line %d: no '=' (want role = \"#RRGGBB\")", name, number);
    struct span key = l.key, value = l.value;
    size_t tail = sizeof suffix - 1;
    bool end = key.size > tail && memcmp(key.data + key.size - tail, suffix, tail) == 0;
    if (end) key.size -= tail;
    int role = role_find(key);
    int key_shown = key.size < 60 ? (int)key.size : 60, value_shown = value.size < 60 ? (int)value.size : 60;
    if (role < 0)
        return status_fail(st, STATUS_FORMAT, "theme %s, line %d: no such role: %.*s", name, number, key_shown,
                           key.data);
    if (!colour_parse(value, end ? &d->roles[role].end : &d->roles[role].colour))
        return status_fail(st, STATUS_FORMAT, "theme %s, line %d: %s: not a colour: %.*s (want \"#RRGGBB\" or \"\")",
                           name, number, theme_roles[role].key, value_shown, value.data);
    *(end ? &d->roles[role].end_set : &d->roles[role].set) = true;
    return true;
}

static void role_resolve(struct theme *t, const struct theme_draft *d, int role) {
    int parent = theme_roles[role].parent;
    if (parent != role) role_resolve(t, d, parent);
    bool set = d->roles[role].set, end_set = d->roles[role].end_set;
    if (set) t->colours[role] = d->roles[role].colour;
    else t->colours[role] = parent != role ? t->colours[parent] : (struct theme_colour){.own = true};
    if (!set && !end_set && parent != role) memcpy(t->gradients[role], t->gradients[parent], sizeof t->gradients[role]);
    else gradient_make(t->gradients[role], t->colours[role], end_set ? d->roles[role].end : t->colours[role]);
}

bool theme_parse(struct theme *t, const char *name, const char *text, size_t size, struct status *st) {
    struct theme_draft draft = {0};
    int number = 1;
    for (size_t at = 0; at < size; number++) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - text) - at : size - at;
        if (!draft_line(&draft, (struct span){text + at, length}, name, number, st)) return false;
        at += length + 1;
    }
    *t = (struct theme){0};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (int role = 0; role < ROLE_COUNT; role++) role_resolve(t, &draft, role);
    return true;
}

// ---- where themes lie ----

enum { THEME_FILE_LIMIT = 64 * 1024 };

static const struct theme_file *builtin_find(const char *name) {
    for (const struct theme_file *f = theme_builtin; f->name; f++)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}

// A name that is also a file's base name, and may be shown.
static bool name_valid(const char *name) {
    size_t size = strlen(name);
    if (size == 0 || size >= sizeof((struct theme *)0)->name || name[0] == '.') return false;
    for (size_t i = 0; i < size; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '/') return false;
    return true;
}

static struct {
    char **names; // user themes, sorted
    int count;
} found;

static int name_compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void folder_scan(void) {
    for (int i = 0; i < found.count; i++) free(found.names[i]);
    found.count = 0;
    char *folder = path_config("themes");
    DIR *dir = folder ? opendir(folder) : NULL;
    free(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".theme") != 0) continue;
        *dot = 0;
        if (!name_valid(e->d_name) || builtin_find(e->d_name)) continue;
        found.names = xrealloc(found.names, (size_t)(found.count + 1) * sizeof *found.names);
        found.names[found.count++] = xstrdup(e->d_name);
    }
    if (dir) closedir(dir);
    if (found.count) qsort(found.names, (size_t)found.count, sizeof *found.names, name_compare);
}

const char *theme_list_built_in(int index) {
    if (index <= 0) return index == 0 ? THEME_DEFAULT : NULL;
    int n = 1;
    for (const struct theme_file *f = theme_builtin; f->name; f++)
        if (strcmp(f->name, THEME_DEFAULT) != 0 && n++ == index) return f->name;
    return NULL;
}

const char *theme_list(int index) {
    if (index == 0) folder_scan();
    const char *built_in = theme_list_built_in(index);
    if (built_in || index < 0) return built_in;
    int n = 0;
    while (theme_list_built_in(n)) n++;
    return index - n < found.count ? found.names[index - n] : NULL;
}

static bool theme_load_file(struct theme *t, const char *name, bool *exists, struct status *st) {
    *exists = false;
    char *folder = path_config("themes");
    if (!folder) return false;
    char *path = xasprintf("%s/%s.theme", folder, name);
    free(folder);
    *exists = !access(path, R_OK);
    size_t size;
    char *text = *exists ? file_read(path, THEME_FILE_LIMIT, &size, st) : NULL;
    bool ok = text && theme_parse(t, name, text, size, st);
    if (text && !ok) status_prefix(st, "%s", path);
    free(text);
    free(path);
    return ok;
}

static bool theme_load_builtin(struct theme *t, const char *name, struct status *st) {
    const struct theme_file *f = builtin_find(name);
    if (f) return theme_parse(t, name, f->text, strlen(f->text), st);
    return status_fail(st, STATUS_USAGE, "unknown theme '%.64s'", name);
}

bool theme_load(struct theme *t, const char *name, struct status *st) {
    bool exists = false;
    if (name_valid(name) && theme_load_file(t, name, &exists, st)) return true;
    if (!exists && theme_load_builtin(t, name, st)) return true;
    if (!theme_load_builtin(t, THEME_DEFAULT, NULL)) panic("the default theme is broken");
    return false;
}
