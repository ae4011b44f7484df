# What the tests of `confab serve` share; they source it. It starts a server with the built-in model, with a home of its
# own, on a port that is free: $url. Its end prints what tests/run.sh counts.
set -u
confab=${CONFAB:-./confab}
build=${BUILD:-build/release}
folder=$(mktemp -d)
export XDG_CONFIG_HOME="$folder/config" XDG_DATA_HOME="$folder/data" XDG_STATE_HOME="$folder/state"
passed=0 failed=0 server=

serve() { # OPTIONS: of the server
    : > "$folder/serve.out"
    "$confab" serve -p 0 "$@" > "$folder/serve.out" 2>&1 &
    server=$!
    tries=0
    until grep -q '^[^ ]*: http' "$folder/serve.out"; do
        tries=$((tries + 1))
        if [ $tries = 200 ] || ! kill -0 $server 2> /dev/null; then
            cat "$folder/serve.out"
            exit 1
        fi
        sleep 0.1
    done
    url=$(sed -n 's/^[^ ]*: \(http.*\)\/v1$/\1/p' "$folder/serve.out")
}

stop() {
    kill "$server" && wait "$server"
    stopped=$?
    server=
    return $stopped
}

finish() {
    if [ -n "$server" ]; then kill "$server" 2> /dev/null; fi
    rm -rf "$folder"
}
trap finish EXIT

check() { # NAME COMMAND...: the test NAME holds if the command succeeds
    name=$1
    shift
    if "$@" > "$folder/check" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "[  FAILED  ] $name"
        cat "$folder/check"
    fi
}

skip_all() { # WHY
    echo "skipped: $1"
    echo "[  SKIPPED ] 1 test(s)"
    exit 0
}

client() { # PACKAGE VERSION SCRIPT: of npm, fetched once, for all builds
    npm=$(dirname "$build")/npm
    command -v node > /dev/null && command -v npm > /dev/null || skip_all "no Node.js"
    if [ ! -d "$npm/$1-$2" ]; then
        timeout 120 npm install --silent --no-audit --no-fund --fetch-retries 0 --prefix "$npm/$1-$2.part" "$1@$2" \
            > "$folder/npm" 2>&1 || skip_all "npm cannot fetch $1@$2"
        mv "$npm/$1-$2.part" "$npm/$1-$2"
    fi
    serve
    node "$(dirname "$0")/$3" "$(cd "$npm/$1-$2" && pwd)" "$url"
}

report() {
    echo "[  PASSED  ] $passed test(s)."
    if [ $failed = 0 ]; then exit 0; fi
    echo "[  FAILED  ] $failed test(s)"
    exit 1
}
