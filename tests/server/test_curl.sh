#!/bin/sh
# `confab serve` as curl sees it, with the built-in model, and a copy of it as a second one.
command -v curl > /dev/null || { echo "skipped: no curl"; echo "[  SKIPPED ] 1 test(s)"; exit 0; }
. "$(dirname "$0")/serve.sh"
mkdir -p "$XDG_DATA_HOME/confab/models"
cp "$(dirname "$0")/../../app/guide/guide.gguf" "$XDG_DATA_HOME/confab/models/second.gguf"
serve
question='"messages":[{"role":"user","content":"How do I quit?"}]'

ask() { curl -sS --max-time 60 "$url/v1/chat/completions" -d "{$question$1}"; }
has() { # TEXT COMMAND...
    text=$1
    shift
    "$@" > "$folder/has" 2>&1
    grep -qF -- "$text" "$folder/has" || { echo "no '$text' in:"; cat "$folder/has"; return 1; }
}
same_as_run() {
    "$confab" run --seed 5 'How do I quit?' > "$folder/run"
    ask ',"seed":5' > "$folder/whole"
    ask ',"seed":5,"stream":true' | sed -n 's/.*"content":"\([^"]*\)".*/\1/p' | tr -d '\n' > "$folder/streamed"
    printf '%s' "$(cat "$folder/run")" | cmp - "$folder/streamed" && has "$(cat "$folder/run")" cat "$folder/whole"
}
sixteen_at_once() {
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do ask ',"seed":5' > "$folder/one$i" & all="${all:-} $!"; done
    wait $all
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do has 'Ctrl+Q leaves confab' cat "$folder/one$i" || return 1; done
}
models_beside_each_other() {
    both=
    for m in second guide; do ask ',"seed":5,"model":"'$m'"' > "$folder/by-$m" & both="$both $!"; done
    wait $both
    for m in second guide; do
        has 'Ctrl+Q leaves confab' cat "$folder/by-$m" && has '"model":"'$m'"' cat "$folder/by-$m" || return 1
        has '"name":"'$m'"' curl -sS "$url/api/ps" || return 1
        has 'vllm:num_requests_running{model_name="'$m'"}' curl -sS "$url/metrics" || return 1
    done
    has '"unload"' curl -sS "$url/api/generate" -d '{"model":"second","keep_alive":0}' || return 1
    has '"guide"' curl -sS "$url/api/ps" && ! grep -q second "$folder/has"
}
refuses_loose_keys() {
    echo key > "$folder/keys"
    chmod 644 "$folder/keys"
    has 'others can read the keys' "$confab" serve -p 0 --api-keys "$folder/keys"
}
takes_keys() {
    chmod 600 "$folder/keys"
    serve --api-keys "$folder/keys"
    has invalid_api_key ask '' && has '"guide"' curl -sS -H 'Authorization: Bearer key' "$url/v1/models"
}

check "health" has '"ok"' curl -sS "$url/health"
check "models are listed" has '"id":"guide"' curl -sS "$url/v1/models"
check "answers are those of confab run" same_as_run
check "sixteen clients at once" sixteen_at_once
check "two models beside each other" models_beside_each_other
check "a length that is given" has '"finish_reason":"length"' ask ',"max_tokens":3'
check "a value that is out of range" has '"param":"temperature"' ask ',"temperature":9'
check "a foreign host" has 'not allowed' curl -sS -H 'Host: evil.example' "$url/health"
check "a port that is taken" has 'in use' "$confab" serve -p "${url##*:}"
check "it stops when it is told" stop
check "keys that others can read" refuses_loose_keys
check "keys" takes_keys
report
