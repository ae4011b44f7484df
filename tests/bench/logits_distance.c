// logits_distance N_VOCAB EXACT OTHER: compares two files of logits, 32-bit floats [positions][N_VOCAB], like `confab
// bench`. Prints the number of positions, the share with the same top token, the divergence in nats, and the error.
#include <stdio.h>
#include <stdlib.h>

#include "app/bench/bench.h"
#include "engine/base/reader.h"

int main(int argc, char **argv) {
    struct status st = {0};
    struct mapping exact = {0}, other = {0};
    struct bench_distance d = {0};
    const int n_vocab = argc == 4 ? atoi(argv[1]) : 0;
    if (n_vocab < 1) {
        fprintf(stderr, "usage: logits_distance N_VOCAB EXACT OTHER\n");
        return 2;
    }
    const size_t row = (size_t)n_vocab * sizeof(float);
    bool sound = mapping_open(&exact, argv[2], &st) && mapping_open(&other, argv[3], &st);
    if (sound && (exact.size % row || exact.size != other.size))
        sound = status_fail(&st, STATUS_FORMAT, "%s, %s: not the same number of rows of %d floats", argv[2], argv[3],
                            n_vocab);
    for (size_t at = 0; sound && at < exact.size; at += row)
        bench_distance_add(&d, (const float *)(const void *)(exact.data + at),
                           (const float *)(const void *)(other.data + at), n_vocab);
    const struct bench_accuracy a = bench_distance_mean(&d);
    if (sound) printf("%d %.4f %.3e %.3e\n", a.positions, a.same_top, a.divergence, a.error);
    else fprintf(stderr, "logits_distance: %s\n", st.text);
    mapping_close(&exact);
    mapping_close(&other);
    return !sound;
}
