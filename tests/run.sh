#!/bin/sh
# Runs test programs, as many at once as there are processors (JOBS=n: n): a line for each as it ends, the whole output
# of those that fail, and at the end one line that counts the single tests: "N passed, N failed, N skipped". Exit status
# 1 when one failed.
#
# A program that dies, hangs for TEST_SECONDS or fails without saying which test counts as one failed test.

count() { # of cmocka's summary lines: count WORD LOG
    awk -v word="$1" '$0 ~ "^\\[ +" word " +\\] [0-9]+ test\\(s\\)" { n += $4 } END { print n + 0 }' "$2"
}

run_one() { # FOLDER PROGRAM: leaves the three counts in a file of the folder
    program=$2
    log=$1/$(echo "$program" | tr / _)
    timeout "${TEST_SECONDS:-600}" "$program" > "$log" 2>&1 < /dev/null
    status=$?
    p=$(count PASSED "$log") f=$(count FAILED "$log") s=$(count SKIPPED "$log")
    if [ $((p + f + s)) = 0 ] && [ $status = 0 ]; then p=1; fi # not a cmocka program: one test
    if [ "$f" = 0 ] && [ $status != 0 ]; then f=1; fi
    note=
    if [ "$s" != 0 ]; then note=", $s skipped"; fi
    if [ "$f" = 0 ]; then
        echo "ok      $program ($p passed$note)"
    else
        { echo "FAILED  $program ($p passed, $f failed$note; exit status $status)"; cat "$log"; } > "$log.failed"
        cat "$log.failed"
    fi
    echo "$p $f $s" > "$log.count"
}

if [ "${1:-}" = --one ]; then
    run_one "$2" "$3"
    exit 0
fi
# Tests compare bits, which OpenBLAS does not promise where confab chooses it.
if [ -z "${CONFAB_CPU:-}" ] && "${CONFAB:-./confab}" devices 2> /dev/null | grep -q OpenBLAS; then
    export CONFAB_CPU=scalar
fi
folder=$(mktemp -d)
export XDG_STATE_HOME="$folder/state" # nobody's own log
tests=$(cd "$(dirname "$0")" && pwd)
export LSAN_OPTIONS="suppressions=$tests/leaks_of_drivers.txt:print_suppressions=0:${LSAN_OPTIONS:-}"
export TSAN_OPTIONS="suppressions=$tests/races_of_drivers.txt:print_suppressions=0:${TSAN_OPTIONS:-}"
trap 'rm -rf "$folder"' EXIT
printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -n 1 "$0" --one "$folder"
cat "$folder"/*.count | awk -v programs=$# '
    { passed += $1; failed += $2; skipped += $3 }
    END {
        failed += programs - NR # those that nothing is known of
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0
    }'
