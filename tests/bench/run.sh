#!/bin/sh
# run.sh MODEL…: measures each model with `confab bench`, beside its figures of the run before, and keeps the figures in
# build/bench/DATE-TIME: MODEL.json each, and all tables in tables.txt. RECORD=1 keeps them in tests/bench/records too.
# BENCH_OPTIONS are more options of `confab bench`, such as --long or -t 1.
set -eu
confab=${CONFAB:-./confab}
folder=${BENCH_FOLDER:-build/bench}
stamp=$(date +%Y-%m-%d-%H%M)
commit=$(git describe --always --dirty 2> /dev/null || echo 'not known')
out=$folder/$stamp
mkdir -p "$out"

for model; do
    name=$(basename "$model" .gguf)
    earlier=$(ls "$folder"/*/"$name.json" 2> /dev/null | sort | tail -n 1)
    set -- bench -m "$model" ${BENCH_OPTIONS:-}
    "$confab" "$@" --note "commit $commit: confab $*" --save "$out/$name.json" ${earlier:+--compare "$earlier"} > "$out/table.part"
    cat "$out/table.part"
    echo
    cat "$out/table.part" >> "$out/tables.txt"
    echo >> "$out/tables.txt"
done
rm "$out/table.part"
echo "kept in $out"
if [ -n "${RECORD:-}" ]; then
    mkdir -p tests/bench/records
    cp -R "$out" tests/bench/records/
    echo "and in tests/bench/records/$stamp"
fi
