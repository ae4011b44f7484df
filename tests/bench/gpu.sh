#!/bin/sh
# gpu.sh [PEER]: measures confab on a GPU, in turn with a reference engine if one is given, then on the processor of the
# same machine, and prints Markdown tables for tests/bench/records.md. PEER: see compare.sh.
#
# Models are of real shapes with random weights. The most important steps come first; a step that would not fit in the
# time left is skipped, and the tables say so. They are printed at the end, and saved in OUT after every step together
# with all results. From the environment:
#   SECONDS_IN_ALL=600        time for everything
#   GPU_FOLDER=build/bench    where models are made, unless they are there: 37 GB; /dev/shm is fast
#   OUT=build/bench/gpu-…     where results are saved
#   DEVICE=                   name from `confab devices` (default: the first that is not the processor)
#   BANDWIDTH= TERAFLOPS=     the device's by its data sheet, in GB/s and 10^12 dense 16-bit operations/s: the limits
#                             (default: known for a few devices)
#   PAIRS=5 SECONDS_EACH=3    number of pairs of runs of a model, seconds that confab measures in each for
#   CPU_PEER=                 a reference engine for the processor
#   SMALL=1                   small models and short times, to try the script on any machine
#   WORKS=                    what is measured on the device, as for `confab bench --only`
set -eu
peer=${1:-}
confab=${CONFAB:-./confab}
build=${BUILD:-build/release}
write_model=$build/tests/bench/write_model
folder=${GPU_FOLDER:-build/bench}
out=${OUT:-build/bench/gpu-$(date +%Y-%m-%d-%H%M)}
all=${SECONDS_IN_ALL:-600}
here=$(dirname "$0")
begun=$(date +%s)

if [ ! -x "$confab" ] || [ ! -x "$write_model" ]; then make confab "$write_model"; fi
mkdir -p "$folder" "$out"
device=${DEVICE:-$("$confab" devices | awk 'NR > 1 && $1 ~ /[0-9]$/ { print $1; exit }')}
[ -n "$device" ] || { echo "gpu.sh: no device but the processor" >&2; exit 1; }
description=$("$confab" devices | awk -v name="$device" '$1 == name { sub(/^[^ ]* +/, ""); sub(/  .*/, ""); print }')
case $description in # GB/s, 10^12 operations/s
*H200*) known='4800 989' ;;
*H100*PCIe*) known='2000 756' ;;
*H100*) known='3350 989' ;;
*) known= ;;
esac
BANDWIDTH=${BANDWIDTH:-${known% *}} TERAFLOPS=${TERAFLOPS:-${known#* }}
export BANDWIDTH TERAFLOPS

works=${WORKS:-prefill512,prefill4096,decode1,decode8,decode16}
pairs=${PAIRS:-5} seconds=${SECONDS_EACH:-3} starts=3 peer_seconds=60
llama=llama3-8b experts=gpt-oss-20b tiny=tinyllama-1.1b
if [ -n "${SMALL:-}" ]; then
    works=${WORKS:-decode1,decode2}
    pairs=${PAIRS:-1} seconds=${SECONDS_EACH:-0.1} starts=1 peer_seconds=10
    llama=llama3-small experts=gpt-oss-small tiny=tinyllama-small
fi

# ---- steps ----

# Seconds left for steps: ten are for the tables.
left() {
    rest=$((all - 10 - ($(date +%s) - begun)))
    echo $((rest > 0 ? rest : 0))
}

# limited COMMAND…: ends it when the time is over.
limited() {
    limit=$(left)
    [ "$limit" -ge 1 ] || return 124 # as timeout does
    timeout "$limit" "$@"
}

# step SECONDS NAME COMMAND…: runs a step that needs at least so many seconds, or notes why it did not.
step() {
    need=$1 name=$2
    shift 2
    [ -z "${SMALL:-}" ] || need=$((need / 4))
    rest=$(left)
    if [ "$rest" -lt "$need" ]; then
        note="skipped: $rest s left, it needs $need"
    else
        echo "gpu.sh: $name ($rest s left)" >&2
        note=
        "$@" 2> "$out/log.part" || note="failed (exit status $?): $(tail -n 1 "$out/log.part" | cut -c 1-200)"
        case $note in *'status 124'*) note='stopped: out of time' ;; esac
        cat "$out/log.part" >> "$out/log"
    fi
    [ -z "$note" ] || echo "- $name: $note" | tee -a "$out/notes.md" >&2
    tables > "$out/table.part" && mv "$out/table.part" "$out/table.md"
}

# Sets model to the path of a model, which it makes unless it is there.
make_model() {
    model=$folder/$1-$2.gguf
    [ -s "$model" ] || { limited "$write_model" "$1" "$model.part" "$2" && mv "$model.part" "$model"; }
}

# compare NAME SHAPE TYPE THREADS DEVICE WORKS PEER SECONDS: saves what compare.sh prints in NAME/table.md.
compare() {
    make_model "$2" "$3" || return
    limited env DEVICE="$5" ONLY="$6" THREADS="$4" PAIRS="$pairs" SECONDS_EACH="$seconds" POSITIONS=0 \
        SECONDS_IN_ALL="$8" PEER_SECONDS="$peer_seconds" \
        "$here/compare.sh" "$7" "$model" "$out/$1" > /dev/null && return
    status=$? # a table of the complete pairs
    env PAIRS=0 POSITIONS=0 DEVICE="$5" "$here/compare.sh" '' "$model" "$out/$1" > /dev/null 2>&1 || :
    return "$status"
}

# rows NAME CELLS: the rows of a table of compare.sh, behind these cells.
rows() {
    [ ! -s "$out/$1/table.md" ] || sed -n "s#^| \([pd][re][a-z]*[0-9]\)#| $2 | \1#p" "$out/$1/table.md"
}

on_gpu() { # SHAPE TYPE SECONDS
    failed=0
    compare "gpu-$1-$2" "$1" "$2" "$(nproc)" "$device" "$works" "$peer" "$3" || failed=$?
    runs=$(find "$out/gpu-$1-$2" -name 'ours-*.json' -size +0 | wc -l)
    rows "gpu-$1-$2" "$1 $2 | $runs" >> "$out/gpu.rows"
    return "$failed"
}

# Caches of pipelines, the driver's too, are empty for the first start. The peer computes the logits of two tokens.
second_start() { # SHAPE TYPE
    make_model "$1" "$2" || return
    cache=$(mktemp -d) failed=0
    echo 1 400 > "$out/ids"
    limited env DEVICE="$device" XDG_CACHE_HOME="$cache" "$here/first_token.sh" "$model" 1 > "$out/first" &&
        limited env DEVICE="$device" XDG_CACHE_HOME="$cache" "$here/first_token.sh" "$model" "$starts" \
            ${peer:+"$peer" logits "$model" "$out/ids" "$out/logits"} > "$out/second" || failed=$?
    rm -rf "$cache" "$out/logits"
    [ "$failed" -eq 0 ] || return "$failed"
    awk -v cells="$1 $2" '
        $1 == "confab" { seconds[++n] = $2; mebibytes = $4 }
        $1 == "peer" && $2 > 0 { peer = $2 }
        END { printf "| %s | %s | %s | %s | %s |\n", cells, seconds[1], seconds[2], peer ? peer : "-", mebibytes }
    ' "$out/first" "$out/second" >> "$out/start.rows"
}

on_processor() { # SHAPE TYPE THREADS WORKS SECONDS
    failed=0
    compare "cpu-$1-$2-$3" "$1" "$2" "$3" cpu "$4" "${CPU_PEER:-}" "$5" || failed=$?
    rows "cpu-$1-$2-$3" "$1 $2 | $3" >> "$out/cpu.rows"
    return "$failed"
}

# ---- tables ----

tables() {
    processor=$("$confab" devices | awk '$1 == "cpu" { sub(/^[^ ]* +/, ""); sub(/  .*/, ""); print }')
    echo "## $(date +%Y-%m-%d): models of random weights on a GPU"
    echo
    commit=$(git describe --always --dirty 2> /dev/null || echo unknown)
    echo "\`${SMALL:+SMALL=1 }tests/bench/gpu.sh${peer:+ PEER}\`, commit $commit; $description; $processor, $(nproc)" \
        "threads. Medians; ratios and shares per pair."
    [ -z "$BANDWIDTH" ] || echo "Limits by the device's data sheet: $BANDWIDTH GB/s, ${TERAFLOPS:-?}e12 operations/s."
    if [ -s "$out/gpu.rows" ]; then
        printf '\n| model | pairs | work | confab | reference | ratio | limit | confab, share of limit | '
        printf 'reference, share of limit |\n|---|---|---|---|---|---|---|---|---|\n'
        cat "$out/gpu.rows"
    fi
    if [ -s "$out/start.rows" ]; then
        printf '\nFrom the start of the process to the first byte of the answer, file in the page cache:\n\n'
        printf '| model | confab, no pipelines cached: s | confab, second start: s | reference, second start: s | '
        printf 'confab: MiB |\n|---|---|---|---|---|\n'
        cat "$out/start.rows"
    fi
    if [ -s "$out/cpu.rows" ]; then
        printf '\nOn the processor:\n\n'
        printf '| model | threads | work | confab | reference | ratio | limit | confab, share of limit | '
        printf 'reference, share of limit |\n|---|---|---|---|---|---|---|---|---|\n'
        cat "$out/cpu.rows"
    fi
    [ ! -s "$out/notes.md" ] || { echo && cat "$out/notes.md"; }
}

# ---- all of it ----

rm -f "$out"/*.rows "$out/notes.md" "$out/log"
threads=$(nproc)

step 30 "$llama Q4_K_M" on_gpu "$llama" Q4_K_M 80
step 40 "$experts MXFP4" on_gpu "$experts" MXFP4 90
step 20 "$tiny Q4_K_M" on_gpu "$tiny" Q4_K_M 60
for model_type in "$llama Q4_K_M" "$experts MXFP4" "$tiny Q4_K_M"; do
    # shellcheck disable=SC2086 # two words
    step 20 "$model_type, start" second_start $model_type
done
step 40 "$experts MXFP4, $threads threads" on_processor "$experts" MXFP4 "$threads" decode1 45
for threads in 1 2 4 8 16; do
    [ "$threads" -gt "$(nproc)" ] ||
        step 12 "$tiny Q4_K_M, $threads threads" on_processor "$tiny" Q4_K_M "$threads" decode1,prefill512 8
done
for type in Q4_0 Q8_0; do
    step 20 "$tiny $type" on_gpu "$tiny" "$type" 35
    step 35 "$llama $type" on_gpu "$llama" "$type" 45
done
cat "$out/table.md"
echo "gpu.sh: saved in $out" >&2
