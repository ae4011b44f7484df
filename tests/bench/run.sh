#!/bin/sh
# run.sh MODEL…: measures each model with `confab bench`, compares it with the run before, and saves the results in
# build/bench/DATE-TIME: MODEL.json for each, and all tables in tables.txt. RECORD=1 also saves them in
# tests/bench/records. BENCH_OPTIONS: more options for `confab bench`, such as --long or -t 1.
set -eu
confab=${CONFAB:-./confab}
folder=${BENCH_FOLDER:-build/bench}
stamp=$(date +%Y-%m-%d-%H%M)
commit=$(git describe --always --dirty 2> /dev/null || echo unknown)
out=$folder/$stamp
mkdir -p "$out"

for model; do
    name=$(basename "$model" .gguf)
    earlier=$(ls "$folder"/*/"$name.json" 2> /dev/null | sort | tail -n 1)
    set -- bench -m "$model" ${BENCH_OPTIONS:-}
    "$confab" "$@" --note "commit $commit: confab $*" --save "$out/$name.json" ${earlier:+--compare "$earlier"} \
        > "$out/table.part"
    cat "$out/table.part"
    echo
    cat "$out/table.part" >> "$out/tables.txt"
    echo >> "$out/tables.txt"
done
rm "$out/table.part"
echo "saved in $out"
if [ -n "${RECORD:-}" ]; then
    mkdir -p tests/bench/records
    cp -R "$out" tests/bench/records/
    echo "also saved in tests/bench/records/$stamp"
fi
