#!/bin/sh
# compare.sh PEER MODEL [OUT]: compares confab with a reference engine. The two run in turn, so that a machine that
# slows down slows both. Prints a Markdown table for tests/bench/records.md. An empty PEER, or one that fails, leaves
# confab alone.
#
# `PEER bench MODEL THREADS` must print lines "prefill N  N tok/s" and "decode K sequences  N tok/s", and
# `PEER logits MODEL IDS FILE` must write the logits of all positions as 32-bit floats. Results are saved in the folder
# OUT after every run, and reused if the script is run again. From the environment:
#   PAIRS=5 THREADS=2 SECONDS_EACH=6   number of pairs of runs, threads, seconds that confab measures for
#   POSITIONS=32                       positions at which to compare logits with the exact path's; 0: none
#   RUN=                               a prefix for timed commands, such as `flock FILE`
#   DEVICE= ONLY=                      passed to confab as --device and --only
#   BANDWIDTH= TERAFLOPS=              the device's, in GB/s and 10^12 operations/s: the limits, if DEVICE is not the
#                                      processor, whose limits confab measures itself
#   SECONDS_IN_ALL=0                   no further pair is begun if it would take longer; 0: no limit
#   PEER_SECONDS=0                     a run of PEER that takes longer has failed; 0: no limit
# `make build/release/tests/bench/logits_distance` builds the program that compares logits.
set -eu
peer=$1 model=$2
name=$(basename "$model" .gguf)
out=${3:-build/bench/compare-$name}
pairs=${PAIRS:-5} threads=${THREADS:-2} seconds=${SECONDS_EACH:-6} positions=${POSITIONS:-32}
device=${DEVICE:-} only=${ONLY:-}
confab=${CONFAB:-./confab}
distance=${BUILD:-build/release}/tests/bench/logits_distance
mkdir -p "$out"

# save FILE COMMAND…: saves the complete output, unless FILE exists.
save() {
    saved=$1
    shift
    [ -s "$saved" ] || { "$@" > "$saved.part" && mv "$saved.part" "$saved"; }
}

start=$(date +%s)
pair=1
while [ "$pair" -le "$pairs" ]; do
    if [ -n "$peer" ]; then
        # shellcheck disable=SC2086 # RUN is several words
        save "$out/peer-$pair.txt" ${RUN:-} timeout --foreground "${PEER_SECONDS:-0}" \
            "$peer" bench "$model" "$threads" || {
            echo "compare.sh: '$peer bench' failed, measuring confab alone" >&2
            peer=
        }
    fi
    # shellcheck disable=SC2086
    save "$out/ours-$pair.json" ${RUN:-} "$confab" bench --json --accuracy 0 --seconds "$seconds" -t "$threads" \
        ${device:+--device "$device"} ${only:+--only "$only"} -m "$model"
    elapsed=$(($(date +%s) - start))
    [ "${SECONDS_IN_ALL:-0}" -eq 0 ] || [ $((elapsed + elapsed / pair)) -le "$SECONDS_IN_ALL" ] || break
    pair=$((pair + 1))
done

# ---- accuracy: both compared with confab's exact path ----

# logits FILE COMMAND…: runs the command with FILE as its last argument, unless FILE exists.
logits() {
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
    logits "$out/ours.logits" "$confab" logits ${device:+--device "$device"} "$model" "$out/ids"
    [ -z "$peer" ] || logits "$out/peer.logits" "$peer" logits "$model" "$out/ids"
    n_vocab=$(($(wc -c < "$out/exact.logits") / 4 / count))
    for who in ours ${peer:+peer}; do
        save "$out/$who.accuracy" "$distance" "$n_vocab" "$out/exact.logits" "$out/$who.logits"
    done
fi

# ---- the table ----
{
    for file in "$out"/peer-[0-9]*.txt; do
        [ ! -s "$file" ] || awk -v pair="$(basename "$file" .txt)" '
        BEGIN { sub("peer-", "", pair) }
        $1 == "prefill" || $1 == "decode" { print "peer", pair, $1 $2, $(NF - 1) }' "$file"
    done
    for file in "$out"/ours-[0-9]*.json; do
        [ ! -s "$file" ] || awk -v pair="$(basename "$file" .json)" '
        BEGIN { sub("ours-", "", pair) }
        { key = $1; value = $2; gsub(/[":,]/, "", key); gsub(/[",]/, "", value) }
        key == "name" { name = value }
        key == "tokens_per_second" { print "ours", pair, name, value }
        key == "limit_tokens_per_second" { print "limit", pair, name, value }
        key == "bytes_per_token" { print "bytes", pair, name, value }
        key == "operations_per_token" { print "operations", pair, name, value }
        key == "first_token_seconds" { print "other", pair, key, value }
        key == "peak_memory_bytes" { print "other", pair, key, value / 1048576 }
        key == "backend" { backend = $0; sub(/^[^:]*: "/, "", backend); sub(/".*/, "", backend) }
        key == "backend" { print "backend", backend }
        key == "processor" { sub(/^[^:]*: "/, ""); sub(/".*/, ""); print "processor", $0 }' "$file"
    done
    for who in ours peer; do
        [ ! -s "$out/$who.accuracy" ] || echo "accuracy $who $(cat "$out/$who.accuracy")"
    done
} | awk -v title="$(date +%Y-%m-%d): $name" -v threads="$threads" \
    -v commit="$(git describe --always --dirty 2> /dev/null)" \
    -v device="$device" -v bandwidth="${BANDWIDTH:-0}" -v teraflops="${TERAFLOPS:-0}" \
    -v settings="${device:+DEVICE=$device }${only:+ONLY=$only }PAIRS=$pairs THREADS=$threads SECONDS_EACH=$seconds" \
    -v command="tests/bench/compare.sh PEER $(basename "$model")" '
function median(list, n,    i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return !n ? 0 : n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
# What the device allows; 0: unknown.
function device_limit(name, p,    memory, compute) {
    if ((("bytes", name, p) in value) && value["bytes", name, p] > 0)
        memory = bandwidth * 1e9 / value["bytes", name, p]
    if ((("operations", name, p) in value) && value["operations", name, p] > 0)
        compute = teraflops * 1e12 / value["operations", name, p]
    return memory > 0 && (compute <= 0 || memory < compute) ? memory : compute + 0
}
function rate(n, list) { return n ? sprintf("%.1f", median(list, n)) : "-" }
function percent(n, list) { return n ? sprintf("%.0f %%", median(list, n)) : "-" }
$1 == "backend" { sub(/^backend /, ""); backend = $0; next }
$1 == "processor" { sub(/^processor /, ""); processor = $0; next }
$1 == "accuracy" { positions = $3; same[$2] = $4; divergence[$2] = $5; error[$2] = $6; next }
$1 == "other" { other[$3, ++n_other[$3]] = $4; next }
{ value[$1, $3, $2] = $4 } # the last line of a run counts; earlier ones are warm-ups
$1 == "ours" && !seen[$3]++ { names[++n_names] = $3 }
$2 > n_pairs { n_pairs = $2 }
END {
    printf "## %s\n\n`%s`, commit %s, %s, %d threads; ", title, settings " " command, commit, processor, threads
    if (device != "" && device != "cpu") printf "%s; ", backend
    printf "medians of %d pair%s, ratios and shares per pair.\n\n", n_pairs, n_pairs == 1 ? "" : "s"
    print "| work | confab | reference | ratio | limit | confab, share of limit | reference, share of limit |"
    print "|---|---|---|---|---|---|---|"
    for (k = 1; k <= n_names; k++) {
        name = names[k]; n = both = limits = peer_limits = 0
        for (p = 1; p <= n_pairs; p++) {
            if (!(("ours", name, p) in value)) continue
            ours[++n] = value["ours", name, p] + 0
            most = value["limit", name, p] + 0
            if (device != "" && device != "cpu") most = device_limit(name, p)
            if (most) { limit[++limits] = most; share[limits] = 100 * ours[n] / most }
            if (!(("peer", name, p) in value)) continue
            peer[++both] = value["peer", name, p] + 0
            ratio[both] = ours[n] / peer[both]
            if (most) peer_share[++peer_limits] = 100 * peer[both] / most
        }
        printf "| %s | %s | %s ", name, rate(n, ours), rate(both, peer)
        printf "| %s ", both ? sprintf("%.2f", median(ratio, both)) : "-"
        printf "| %s ", limits ? sprintf("%.0f", median(limit, limits)) : "-"
        printf "| %s | %s |\n", percent(limits, share), percent(peer_limits, peer_share)
    }
    n = n_other["first_token_seconds"]
    for (i = 1; i <= n; i++) {
        first[i] = other["first_token_seconds", i] + 0
        peak[i] = other["peak_memory_bytes", i] + 0
    }
    printf "\nconfab: first token %.2f s after the start of loading (short prompt), ", median(first, n)
    printf "peak memory %.0f MiB.\n", median(peak, n)
    if (positions) {
        printf "Accuracy compared with the exact path, %d positions: ", positions
        printf "same top token %.1f %%, divergence %.2e nats, ", 100 * same["ours"], divergence["ours"]
        printf "logits error %.2e.\n", error["ours"]
        if ("peer" in same) {
            printf "The reference: %.1f %%, %.2e nats, ", 100 * same["peer"], divergence["peer"]
            printf "%.2e.\n", error["peer"]
        }
    }
}' | tee "$out/table.part"
mv "$out/table.part" "$out/table.md"
