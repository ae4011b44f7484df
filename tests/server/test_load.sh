#!/bin/sh
# `confab serve` with the built-in model under load: clients that all ask at once, for many different prompts, and
# cancel 30 % of their requests. LOAD_REQUESTS: how many requests (300); from 5,000 on its memory is looked at, too.
command -v curl > /dev/null || { echo "skipped: no curl"; echo "[  SKIPPED ] 1 test(s)"; exit 0; }
. "$(dirname "$0")/serve.sh"
load=$build/tests/bench/serve_load requests=${LOAD_REQUESTS:-300}
[ -x "$load" ] || skip_all "no $load"

figure() { curl -sS "$url/metrics" | awk -v name="$1" 'index($1, name) == 1 { sum += $2 } END { print sum + 0 }'; }
pages() { figure "confab_pages{model_name=\"guide\",state=\"$1\"}"; }
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$server/status"; } # KiB
is() { [ "$1" = "$2" ] || { echo "$1, expected $2"; return 1; }; }
said() { sed -n "s/.* $1 \([0-9]*\).*/\1/p" "$folder/load"; } # by the client: said NAME

# More at once than there is room for in the KV cache.
ask() { "$load" -c 32 -n "$1" -p 5 -P 60 -a 48 -x 30 -v 16000 -s "$2" "${url##*:}" > "$folder/load"; }
all_are_answered() {
    ask $((requests / 2)) 1 && is "$(said failed)" 0 || return 1
    before=$(memory)
    ask $((requests / 2)) 2 && is "$(said failed)" 0
}
a_third_is_cancelled() {
    cat "$folder/load"
    # Fewer than 30 % where answers come faster than a client leaves.
    [ "$(said cancelled)" -gt $((requests / 30)) ] && [ "$(said cancelled)" -lt $((requests / 5)) ]
}
nothing_runs() {
    tries=0
    until [ "$(figure vllm:num_requests_running)" = 0 ] && [ "$(figure vllm:num_requests_waiting)" = 0 ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || return 1
        sleep 0.1
    done
}
pages_are_back() { is "$(pages used)" 0 && is $(($(pages free) + $(pages cached))) "$n_pages"; }
memory_is_flat() {
    after=$(memory)
    echo "$before KiB after half of the requests, $after KiB at the end"
    [ "$after" -lt $((before + before / 50)) ]
}
# Clients that come together, with 1,900 tokens in common and 20 of their own.
begins_alike() { "$load" -c 8 -n 8 -k 1900 -p 20 -P 20 -a 4 -v 16000 "${url##*:}" > "$folder/load"; }
computed_once() {
    begins_alike && is "$(said failed)" 0 && is "$(said prompt)" $((8 * 1920)) && is "$(said cached)" $((7 * 1900))
}

serve --kv-tokens 1024
n_pages=$(pages free)
check "requests of 32 clients" all_are_answered
check "some are cancelled" a_third_is_cancelled
check "nothing runs any more" nothing_runs
check "all pages are free or cached again" pages_are_back
[ "$requests" -lt 5000 ] || check "memory stays as it is" memory_is_flat
check "it stops when it is told" stop
serve
check "what all prompts begin with is computed once" computed_once
report
