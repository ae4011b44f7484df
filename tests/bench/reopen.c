// reopen MODEL [TOKENS [PAIRS [THREADS]]]: a chat of TOKENS (4000) tokens goes on after its engine was closed and
// opened again, in turn by reading it again and from the disk, PAIRS (5) times on THREADS (2). Prints seconds from
// asking to the first token of the next answer, without what opening the model takes; and the same with saved files
// that are not in the page cache. CONFAB_REOPEN: the folder for saved files (a new one in /tmp).
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/bench/bench.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/metrics.h"
#include "engine/model_file.h"

enum { MESSAGE = 20, MOST_PAIRS = 50 }; // MESSAGE: tokens that the next question adds
#define OWNER 1

struct reopen {
    struct model_file *file;
    struct engine_params params;
    const char *folder;
    int32_t *ids; // [n_tokens + MESSAGE]
    int n_tokens;
    int32_t first; // token of the next answer; −1: not known
};

// Seconds to the first token after the first n tokens, in an engine of its own; *n_reused of them were found.
static double ask(struct reopen *r, bool from_disk, int n, int32_t *token, int *n_reused) {
    struct engine_params p = r->params;
    struct status st = {0};
    if (from_disk) p.hibernation = (struct engine_hibernation){.folder = r->folder, .budget = (uint64_t)64 << 30};
    struct engine *e = local_engine_open(r->file, &p, &st);
    struct engine_client *c = e ? engine_client_open(e, &st) : NULL;
    if (!c) panic("%s", st.text);
    struct request_params q = {.conversation = 1,
                               .disk_owner = OWNER,
                               .ids = r->ids,
                               .n_ids = n,
                               .sampling = sampling_default(),
                               .max_tokens = 1,
                               .ignore_end = true};
    q.sampling.temperature = 0;
    const double start = clock_seconds();
    double seconds = 0;
    struct engine_event event;
    engine_submit(c, &q);
    for (bool ended = false; !ended && engine_wait(c, &event, -1);) {
        if (event.kind == EVENT_TEXT && event.token >= 0) *token = event.token, seconds = clock_seconds() - start;
        if (event.kind != EVENT_STATE) continue;
        if (event.state == REQUEST_FAILED) panic("%s", event.text);
        *n_reused = event.n_reused;
        ended = event.state >= REQUEST_FINISHED;
    }
    engine_client_close(c);
    engine_close(e);
    return seconds;
}

static double next_answer(struct reopen *r, bool from_disk) {
    int n_reused = 0;
    int32_t token = -1;
    const double seconds = ask(r, from_disk, r->n_tokens + MESSAGE, &token, &n_reused);
    if (from_disk && n_reused < r->n_tokens - 64) panic("%d of %d tokens were found", n_reused, r->n_tokens);
    if (r->first >= 0 && token != r->first) panic("token %d instead of %d", token, r->first);
    r->first = token;
    return seconds;
}

// The saved files' bytes; out of the page cache, where the system allows it.
static double drop_from_cache(const char *folder) {
    double bytes = 0;
    struct stat info;
    DIR *dir = opendir(folder);
    for (const struct dirent *d; dir && (d = readdir(dir));) {
        const int fd = openat(dirfd(dir), d->d_name, O_RDONLY);
        if (fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode)) {
            bytes += (double)info.st_size;
            fsync(fd);
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        }
        if (fd >= 0) close(fd);
    }
    if (dir) closedir(dir);
    return bytes;
}

static void remove_saved(const char *folder) {
    local_engine_remove_saved(folder, OWNER);
    rmdir(folder);
}

static void measure(struct reopen *r, int n_pairs) {
    double again[MOST_PAIRS], cached[MOST_PAIRS], cold[MOST_PAIRS], ratios[MOST_PAIRS], colder[MOST_PAIRS];
    int32_t token;
    int n_reused;
    ask(r, true, r->n_tokens, &token, &n_reused); // saved when it is closed
    const double bytes = drop_from_cache(r->folder);
    printf("%d tokens, %.1f MiB on disk\n%12s%12s%12s   seconds to the first token\n", r->n_tokens, bytes / (1 << 20),
           "read again", "from disk", "uncached");
    for (int i = 0; i < n_pairs; i++) {
        again[i] = next_answer(r, false);
        cached[i] = next_answer(r, true);
        drop_from_cache(r->folder);
        cold[i] = next_answer(r, true);
        ratios[i] = again[i] / cached[i], colder[i] = again[i] / cold[i];
        printf("%12.3f%12.4f%12.4f\n", again[i], cached[i], cold[i]);
        fflush(stdout);
    }
    printf("%12.3f%12.4f%12.4f   medians\n", bench_median(again, n_pairs), bench_median(cached, n_pairs),
           bench_median(cold, n_pairs));
    printf("%12s%12.1f%12.1f   times as soon, medians of pairs\n", "", bench_median(ratios, n_pairs),
           bench_median(colder, n_pairs));
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 5) {
        fprintf(stderr, "usage: reopen MODEL [TOKENS [PAIRS [THREADS]]]\n");
        return 2;
    }
    const int n_tokens = argc > 2 ? atoi(argv[2]) : 4000, n_pairs = argc > 3 ? atoi(argv[3]) : 5;
    struct status st = {0};
    char made[] = "/tmp/confab-reopen-XXXXXX";
    const char *given = getenv("CONFAB_REOPEN");
    struct reopen r = {.n_tokens = n_tokens, .first = -1, .folder = given ? given : mkdtemp(made)};
    if (n_tokens < 100 || n_pairs < 1 || n_pairs > MOST_PAIRS) panic("TOKENS or PAIRS is out of range");
    if (!r.folder || !(r.file = model_file_open(argv[1], &st))) panic("%s", st.text);
    const uint32_t n_vocab = (uint32_t)model_file_info(r.file)->n_vocab;
    r.params = (struct engine_params){.n_threads = argc > 4 ? atoi(argv[4]) : 2, .kv_tokens = n_tokens + 256};
    r.ids = xmalloc((size_t)(n_tokens + MESSAGE) * sizeof *r.ids);
    uint32_t random = 1;
    for (int i = 0; i < n_tokens + MESSAGE; i++) {
        random = random * 1664525u + 1013904223u;
        r.ids[i] = (int32_t)((random >> 8) % n_vocab);
    }
    measure(&r, n_pairs);
    remove_saved(r.folder);
    model_file_close(r.file);
    free(r.ids);
    return 0;
}
