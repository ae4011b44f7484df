#!/bin/sh
# serve_load.sh REFERENCE MODEL [OUT]: `confab serve` under load, in turn with a reference server, so that a machine
# that slows down slows both. Prints a Markdown table for tests/bench/records.md. REFERENCE is the path of llama.cpp's
# llama-server; where it is empty or is not there, confab is measured alone.
#
# Each pair starts both servers afresh and asks both for the same: completions of prompts of 20 to 600 made-up tokens,
# answers of 64, one after the other for each of N clients. What a pair measured is saved in the folder OUT, and reused
# if the script is run again. From the environment:
#   CLIENTS="1 4 16 64" REQUESTS="6 16 48 96"  numbers of clients, and of requests for each
#   PAIRS=1 THREADS=2                          pairs of runs; threads of each server
#   LOW=20 HIGH=600 ANSWER=64 COMMON=0         tokens: of prompts, of answers, and that all prompts begin with
#   CANCELLED=0                                percent of the requests that are cancelled amid their answers
#   REFERENCE_FLAGS=                           more flags for the reference, such as `-fa off`
#   SECONDS_IN_ALL=0                           no further run is begun if the last of its kind tells that it would take
#                                              longer; 0: no limit
# `make build/release/tests/bench/serve_load` builds the client. Needs curl.
set -eu
reference=$1 model=$2
out=${3:-build/bench/serve-$(basename "$model" .gguf)}
confab=${CONFAB:-./confab} load=${BUILD:-build/release}/tests/bench/serve_load
clients=${CLIENTS:-1 4 16 64} requests=${REQUESTS:-6 16 48 96} pairs=${PAIRS:-1} threads=${THREADS:-2}
low=${LOW:-20} high=${HIGH:-600} answer=${ANSWER:-64} common=${COMMON:-0}
port=${PORT:-18423} start=$(date +%s) server=
context=$(((common + high + answer + 63) / 32 * 32)) # of a client
mkdir -p "$out"
if [ ! -x "$reference" ]; then
    echo "serve_load.sh: no reference server at '$reference', measuring confab alone" >&2
    reference=
fi

stop() {
    [ -z "$server" ] || { kill "$server" 2> /dev/null; wait "$server" 2> /dev/null; } || true
    server=
}
trap stop EXIT

serve() { # WHO CLIENTS: on $port; $server is its process
    if [ "$1" = confab ]; then
        "$confab" serve -p "$port" -m "$model" -t "$threads" -c "$context" --kv-tokens $((context * $2)) \
            > "$out/confab.log" 2>&1 &
    else
        # shellcheck disable=SC2086 # REFERENCE_FLAGS are several words
        "$reference" --port "$port" -m "$model" -t "$threads" -tb "$threads" -np "$2" -c $((context * $2)) -cb \
            --no-webui ${REFERENCE_FLAGS:-} > "$out/reference.log" 2>&1 &
    fi
    server=$!
    tries=0
    until curl -sf "http://127.0.0.1:$port/health" > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] && kill -0 $server 2> /dev/null || { tail -n 5 "$out/$1.log" >&2; exit 1; }
        sleep 0.2
    done
}

processor() { awk -v ticks="$(getconf CLK_TCK)" '{ print ($14 + $15) / ticks }' "/proc/$server/stat"; } # seconds
memory() { awk '/^VmHWM/ { print $2 / 1024 }' "/proc/$server/status"; }                                  # MiB

measure() { # WHO CLIENTS REQUESTS FILE
    serve "$1" "$2"
    "$load" -c 2 -n 2 -p 40 -P 40 -a 4 -s 99 "$port" > /dev/null # whatever is prepared at first
    before=$(processor)
    "$load" -c "$2" -n "$3" -p "$low" -P "$high" -k "$common" -a "$answer" -x "${CANCELLED:-0}" "$port" > "$4.part"
    echo "processor $(processor) $before memory $(memory)" >> "$4.part"
    stop
    mv "$4.part" "$4"
}

pair=1
while [ "$pair" -le "$pairs" ]; do
    set -- $requests
    for n in $clients; do
        for who in confab ${reference:+reference}; do
            file=$out/$who-$n-$pair.txt
            [ ! -s "$file" ] || continue
            began=$(date +%s)
            last=$(cat "$out/$who-$n.seconds" 2> /dev/null || echo 0)
            [ "${SECONDS_IN_ALL:-0}" -eq 0 ] || [ $((began - start + last)) -le "$SECONDS_IN_ALL" ] || continue
            measure "$who" "$n" "$1" "$file"
            echo $(($(date +%s) - began)) > "$out/$who-$n.seconds"
        done
        shift
    done
    pair=$((pair + 1))
done

# ---- the table ----
for who in confab reference; do
    for n in $clients; do
        for file in "$out/$who-$n"-[0-9]*.txt; do
            [ ! -s "$file" ] || awk -v who=$who -v n="$n" -v pair="$(basename "$file" .txt)" '
            BEGIN { sub(/.*-/, "", pair) }
            /^clients/ { for (i = 1; i < NF; i += 2) print who, n, pair, $i, got[$i] = $(i + 1) }
            /^processor/ { print who, n, pair, "work", got["tokens"] / ($2 - $3); print who, n, pair, "memory", $5 }' \
                "$file"
        done
    done
done | awk -v title="$(date +%Y-%m-%d): serving $(basename "$model" .gguf)" -v threads="$threads" \
    -v clients="$clients" -v prompts="$((common + low)) to $((common + high))" -v common="$common" \
    -v answer="$answer" -v commit="$(git describe --always --dirty 2> /dev/null)" '
function median(list, n,    i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return !n ? 0 : n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
{ value[$1, $2, $4, $3] = $5; if ($3 > pairs) pairs = $3 }
# Medians of both, and of the ratios of the pairs.
function row(n, label, key, format,    p, a, b, r, ours, peer, ratio, has_ours, has_peer) {
    a = b = r = 0
    for (p = 1; p <= pairs; p++) {
        has_ours = ("confab", n, key, p) in value
        has_peer = ("reference", n, key, p) in value
        if (has_ours) ours[++a] = value["confab", n, key, p] + 0
        if (has_peer) peer[++b] = value["reference", n, key, p] + 0
        if (has_ours && has_peer && peer[b]) ratio[++r] = ours[a] / peer[b]
    }
    if (!a && !b) return
    printf "| %d | %s | %s ", n, label, a ? sprintf(format, median(ours, a)) : "-"
    printf "| %s | %s ", b ? sprintf(format, median(peer, b)) : "-", r ? sprintf("%.2f", median(ratio, r)) : "-"
    printf "| %d |\n", r
}
END {
    printf "## %s\n\n`tests/bench/serve_load.sh REFERENCE MODEL`, commit %s, %d threads, ", title, commit, threads
    printf "prompts of %s tokens%s, answers of %d. ", prompts, common ? " (" common " in common)" : "", answer
    print "Medians; ratios per pair.\n"
    print "| clients | | confab | reference | ratio | pairs |\n|--:|---|--:|--:|--:|--:|"
    count = split(clients, list, " ")
    for (i = 1; i <= count; i++) {
        n = list[i]
        row(n, "requests", "requests", "%d")
        row(n, "tokens/s", "tokens_per_second", "%.1f")
        row(n, "tokens per second of processor", "work", "%.1f")
        row(n, "first token, median, s", "first_p50", "%.2f")
        row(n, "first token, p99, s", "first_p99", "%.2f")
        row(n, "between tokens, median, s", "next_p50", "%.3f")
        row(n, "between tokens, p99, s", "next_p99", "%.3f")
        row(n, "between tokens, longest, s", "next_most", "%.3f")
        row(n, "prompt tokens found in the cache", "cached", "%d")
        row(n, "peak memory, MiB", "memory", "%.0f")
        row(n, "failed", "failed", "%d")
    }
}' | tee "$out/table.part"
mv "$out/table.part" "$out/table.md"
