#!/bin/sh
# compare.sh PEER MODEL [PAIRS] [THREADS]: confab against a reference engine, in turn, so that a drifting machine slows both.
#
# PEER is a program that answers `PEER bench MODEL THREADS` with lines "prefill 512  N tok/s" and "decode K sequences  N
# tok/s". Prints, for each kind of work, the median of both and the median of the ratios pair by pair.
set -eu
peer=$1 model=$2 pairs=${3:-5} threads=${4:-2}
confab=${CONFAB:-./confab}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

pair=1
while [ "$pair" -le "$pairs" ]; do
    "$peer" bench "$model" "$threads" | awk -v pair="$pair" '$1 == "prefill" || $1 == "decode" { print "peer", pair, $1 $2, $(NF - 1) }' >> "$log"
    "$confab" bench -t "$threads" -m "$model" | awk -v pair="$pair" '/^(prefill|decode)[0-9]/ { print "ours", pair, $1, $2 }' >> "$log"
    pair=$((pair + 1))
done

awk -v pairs="$pairs" '
function median(list, n,    i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
{ sub(/,/, "", $4); value[$1, $3, $2] = $4; if (!seen[$3]++) names[++n_names] = $3 } # a later line of a run replaces a warm-up
END {
    printf "%-12s %10s %10s %8s\n", "tokens/s", "confab", "peer", "ratio"
    for (k = 1; k <= n_names; k++) {
        name = names[k]; n = 0
        for (p = 1; p <= pairs; p++)
            if ((("ours", name, p) in value) && (("peer", name, p) in value)) {
                n++
                ours[n] = value["ours", name, p] + 0; peer[n] = value["peer", name, p] + 0; ratio[n] = ours[n] / peer[n]
            }
        if (n) printf "%-12s %10.1f %10.1f %8.2f\n", name, median(ours, n), median(peer, n), median(ratio, n)
    }
}' "$log"
