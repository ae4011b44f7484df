#!/bin/sh
# compare.sh PEER MODEL [OUT]: confab against a reference engine, in turn, so that a drifting machine slows both; rows of a
# Markdown table for tests/bench/records.md.
#
# PEER answers `PEER bench MODEL THREADS` with lines "prefill 512  N tok/s" and "decode K sequences  N tok/s", and
# `PEER logits MODEL IDS FILE` with the logits of all positions, 32-bit floats. Every run is kept in OUT, a folder, as soon
# as it is through; called again with the same one, what is there is not measured again. From the environment:
#   PAIRS=5 THREADS=2 SECONDS_EACH=6   runs of each in turn, their threads, the time that confab measures
#   POSITIONS=32                       of a text whose logits are compared with the exact path's; 0: none
#   RUN=                               put before every run that is timed, such as `flock FILE`
# `make build/release/tests/bench/logits_distance` builds what compares the logits.
set -eu
peer=$1 model=$2
name=$(basename "$model" .gguf)
out=${3:-build/bench/compare-$name}
pairs=${PAIRS:-5} threads=${THREADS:-2} seconds=${SECONDS_EACH:-6} positions=${POSITIONS:-32}
confab=${CONFAB:-./confab}
distance=${BUILD:-build/release}/tests/bench/logits_distance
mkdir -p "$out"

# keep FILE COMMAND…: its output, whole or not at all.
keep() {
    kept=$1
    shift
    [ -s "$kept" ] && return
    "$@" > "$kept.part"
    mv "$kept.part" "$kept"
}

pair=1
while [ "$pair" -le "$pairs" ]; do
    keep "$out/peer-$pair.txt" ${RUN:-} "$peer" bench "$model" "$threads"
    keep "$out/ours-$pair.json" ${RUN:-} "$confab" bench --json --accuracy 0 --seconds "$seconds" -t "$threads" -m "$model"
    pair=$((pair + 1))
done

# ---- accuracy: both against our exact path ----
logits() { # FILE COMMAND… writes it, its last argument
    [ -s "$1" ] && return
    written=$1
    shift
    "$@" "$written.part" > "$written.log"
    mv "$written.part" "$written"
}
if [ "$positions" -gt 0 ]; then
    head -c 6000 LICENSE > "$out/text"
    "$confab" tokenize "$model" "$out/text" | tr ' ' '\n' | head -n "$positions" > "$out/ids"
    count=$(wc -l < "$out/ids")
    logits "$out/exact.logits" "$confab" logits --exact "$model" "$out/ids"
    logits "$out/ours.logits" "$confab" logits "$model" "$out/ids"
    logits "$out/peer.logits" "$peer" logits "$model" "$out/ids"
    n_vocab=$(($(wc -c < "$out/exact.logits") / 4 / count))
    for who in ours peer; do
        keep "$out/$who.accuracy" "$distance" "$n_vocab" "$out/exact.logits" "$out/$who.logits"
    done
fi

# ---- the table ----
{
    for file in "$out"/peer-[0-9]*.txt; do
        awk -v pair="$(basename "$file" .txt)" '$1 == "prefill" || $1 == "decode" { sub("peer-", "", pair); print "peer", pair, $1 $2, $(NF - 1) }' "$file"
    done
    for file in "$out"/ours-[0-9]*.json; do
        awk -v pair="$(basename "$file" .json)" '
        BEGIN { sub("ours-", "", pair) }
        { key = $1; value = $2; gsub(/[":,]/, "", key); gsub(/[",]/, "", value) }
        key == "name" { name = value }
        key == "tokens_per_second" { print "ours", pair, name, value }
        key == "limit_tokens_per_second" { print "limit", pair, name, value }
        key == "first_token_seconds" { print "figure", pair, key, value }
        key == "peak_memory_bytes" { print "figure", pair, key, value / 1048576 }
        key == "processor" { sub(/^[^:]*: "/, ""); sub(/".*/, ""); print "processor", $0 }' "$file"
    done
    for who in ours peer; do
        [ ! -s "$out/$who.accuracy" ] || echo "accuracy $who $(cat "$out/$who.accuracy")"
    done
} | awk -v title="$(date +%Y-%m-%d): $name" -v threads="$threads" -v commit="$(git describe --always --dirty 2> /dev/null)" \
    -v command="PAIRS=$pairs THREADS=$threads SECONDS_EACH=$seconds tests/bench/compare.sh PEER $(basename "$model")" '
function median(list, n,    i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return !n ? 0 : n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
$1 == "processor" { sub(/^processor /, ""); processor = $0; next }
$1 == "accuracy" { positions = $3; same[$2] = $4; divergence[$2] = $5; error[$2] = $6; next }
$1 == "figure" { figure[$3, ++n_figure[$3]] = $4; next }
{ value[$1, $3, $2] = $4 } # a later line of a run replaces a warm-up
$1 == "ours" && !seen[$3]++ { names[++n_names] = $3 }
$2 > most { most = $2 }
END {
    printf "## %s\n\n`%s`, commit %s, %s, %d threads; medians of %d pairs, ratio and shares pair by pair.\n\n", title, command, commit, processor, threads, most
    print "| work | confab | reference | ratio | limit | confab of it | reference of it |\n|---|---|---|---|---|---|---|"
    for (k = 1; k <= n_names; k++) {
        name = names[k]; n = 0
        for (p = 1; p <= most; p++)
            if ((("ours", name, p) in value) && (("peer", name, p) in value)) {
                n++
                ours[n] = value["ours", name, p] + 0; peer[n] = value["peer", name, p] + 0; ratio[n] = ours[n] / peer[n]
                limit[n] = value["limit", name, p] + 0
                share[n] = limit[n] ? 100 * ours[n] / limit[n] : 0; peer_share[n] = limit[n] ? 100 * peer[n] / limit[n] : 0
            }
        if (n) printf "| %s | %.1f | %.1f | %.2f | %.0f | %.0f %% | %.0f %% |\n", name, median(ours, n), median(peer, n), median(ratio, n), median(limit, n), median(share, n), median(peer_share, n)
    }
    for (i = 1; i <= n_figure["first_token_seconds"]; i++) { first[i] = figure["first_token_seconds", i] + 0; peak[i] = figure["peak_memory_bytes", i] + 0 }
    printf "\nconfab: first token of a short prompt %.2f s after loading began, peak memory of the run %.0f MiB.\n", median(first, i - 1), median(peak, i - 1)
    if (positions) {
        printf "Accuracy against the exact path, %d positions of a text: ", positions
        printf "same top %.1f %% (reference %.1f %%), divergence %.2e nats (%.2e), error of the logits %.2e (%.2e).\n", 100 * same["ours"], 100 * same["peer"], divergence["ours"], divergence["peer"], error["ours"], error["peer"]
    }
}' | tee "$out/table.part"
mv "$out/table.part" "$out/table.md"
