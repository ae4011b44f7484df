#!/bin/sh
# Runs test programs one after the other: a line for each, the whole output of those that fail, and at the end one line
# that counts the single tests: "N passed, N failed, N skipped". Exit status 1 when one failed.
#
# A program that dies, hangs for TEST_SECONDS or fails without saying which test counts as one failed test.
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

count() { # of cmocka's summary lines: count WORD
    awk -v word="$1" '$0 ~ "^\\[ +" word " +\\] [0-9]+ test\\(s\\)" { n += $4 } END { print n + 0 }' "$log"
}

for program in "$@"; do
    timeout "${TEST_SECONDS:-600}" "$program" > "$log" 2>&1 < /dev/null
    status=$?
    p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
    if [ $((p + f + s)) = 0 ] && [ $status = 0 ]; then p=1; fi # not a cmocka program: one test
    if [ $f = 0 ] && [ $status != 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    note=
    if [ $s != 0 ]; then note=", $s skipped"; fi
    if [ $f = 0 ]; then
        echo "ok      $program ($p passed$note)"
    else
        echo "FAILED  $program ($p passed, $f failed$note; exit status $status)"
        cat "$log"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
