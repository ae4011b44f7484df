#!/bin/sh
# Every command line of README and of the manual's pages is run, in a folder that has what they name: the built-in model
# as model.gguf, a schema, a chat. What is asked of the server of the examples goes to a real one, at another port.
. "$(dirname "$0")/../server/serve.sh"
command -v curl > /dev/null || skip_all "no curl"
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(readlink -f "$build") confab=$(readlink -f "$confab")
mkdir -p "$folder/bin" "$folder/here" "$XDG_CONFIG_HOME/confab"
cd "$folder/here" || exit 1

# What stands in for others: a change in a repository, the built-in model, in another format too.
printf '#!/bin/sh\necho "-an old line"; echo "+a new line"\n' > "$folder/bin/git"
chmod +x "$folder/bin/git"
ln -s "$confab" "$folder/bin/confab"
ln -s "$confab" confab
export PATH="$folder/bin:$PATH" TERM=xterm-256color
printf 'max-tokens = 60\ntemp = 0\n' > "$XDG_CONFIG_HOME/confab/config"
cp "$top/app/guide/guide.gguf" model.gguf
confab quantize --requantize model.gguf model-f16.gguf F16 > /dev/null
echo '[{"role":"user","content":"Trip to Oslo"},{"role":"assistant","content":"By train."}]' > conversations.json
echo '{"type":"object","properties":{"name":{"type":"string","maxLength":20}},"required":["name"]}' > person.json
confab import conversations.json > /dev/null
make -s -C "$top" help > "$folder/help"

# Of the command lines below: those that are not run as they stand.
#   help    a target of make, which is one that `make help` lists
#   screen  opens the chat: on a terminal of its own, left with Ctrl+Q
#   stdin   reads a message from standard input
#   serve   starts the server that the lines behind it ask
#   short   measures: for a moment only
cat > "$folder/kinds" << 'END'
make |help
confab -m |screen
./confab --plain|stdin
confab serve |serve
./confab serve |serve
./confab bench |short
END

kind_of() { # LINE
    while IFS='|' read -r begin kind; do
        case $1 in "$begin"*) echo "$begin" >> "$folder/kinds.seen"; echo "$kind"; return;; esac
    done < "$folder/kinds"
}
on_a_terminal() { # LINE
    for second in 1 2 3 4 5 6 7 8 9; do sleep 1; printf '\021'; done | timeout 60 script -qec "$1" /dev/null
}
start() { # LINE: OPTIONS of the server's, but for the port
    if [ -n "$server" ]; then stop; fi
    eval "serve $(echo "$1" | sed 's/.*confab serve//; s/ --port 8080//')"
}
ask() { # LINE
    eval "$(echo "$1" | sed "s,http://localhost:8080,$url,; s/^curl/curl -sSf --max-time 60/")"
}
run_line() { # LINE
    case $(kind_of "$1") in
        help) grep -q "^  make $(echo "$1" | cut -d ' ' -f 2) " "$folder/help";;
        screen) on_a_terminal "$1";;
        stdin) echo "How do I quit?" | sh -c "$1";;
        short) sh -c "$1 --seconds 0.1 --accuracy 0";;
        *) case $1 in curl*) ask "$1";; *) sh -ec "$1" < /dev/null;; esac;;
    esac
}
all_kinds_are_needed() {
    cut -d '|' -f 1 "$folder/kinds" | while IFS= read -r begin; do
        grep -qxF -- "$begin" "$folder/kinds.seen" && continue
        echo "no command line begins with '$begin' any more"
        return 1
    done
}

for paper in "$top/README.md" "$top"/man/*.in; do
    awk -f "$top/tests/papers/commands.awk" "$paper" > "$folder/commands"
    if grep -q '^curl' "$folder/commands" && [ -z "$server" ]; then serve; fi
    while IFS= read -r line <&3; do
        if [ "$(kind_of "$line")" = serve ]; then start "$line"
        else check "$(basename "$paper"): $line" run_line "$line"; fi
    done 3< "$folder/commands"
done
check "every kind of command line" all_kinds_are_needed

# The examples for libraries, of the versions that the tests in tests/server have fetched.
example() { # PACKAGE WORDS: the example of the package in the page, whose output has WORDS
    awk -v package="$1" '
        /^\.EX/ { text = ""; next }
        /^\.EE/ { if (index(text, "from \047" package "\047")) print text; next }
        { gsub(/\\-/, "-"); gsub(/\\\(aq/, "\047"); text = text $0 "\n" }' "$top/man/confab-server.1.in" |
        sed "s,http://localhost:8080,$url," > example.mjs
    node example.mjs > output && cat output && grep -qF -- "$2" output
}
start "confab serve"
for package in openai @anthropic-ai/sdk ollama; do
    modules=$(ls -d "$(dirname "$build")/npm/$package"-*/node_modules 2> /dev/null | tail -1)
    if [ -n "$modules" ]; then
        ln -sfn "$modules" node_modules
        check "the example for $package" example $package 'Ctrl+Q'
    else
        echo "skipped: $package is not there"
        skipped=$((${skipped:-0} + 1))
    fi
done

# The paths that confab-server(1) names, and the routes that there are.
routes_are_named() {
    sed -n 's/^    {"[A-Z]*", "\(.*\)", \(.*\)},/\1 \2/p' "$top/app/server/routes.c" > "$folder/routes"
    [ -s "$folder/routes" ] || return 1
    sed 's/\\-/-/g' "$top/man/confab-server.1.in" > "$folder/page"
    while read -r path answer; do
        case "$path $answer" in *unsupported | "/ "*) continue;; esac
        grep -qF -- "$path" "$folder/page" || { echo "$path is not named"; return 1; }
    done < "$folder/routes"
}
paths_are_there() {
    grep -oE '(GET|POST|\.I|\.IR) "?(GET |POST )?/[a-z0-9_/]+' "$folder/page" > "$folder/named"
    for path in $(grep -oE '/[a-z0-9_/]+' "$folder/named" | sort -u); do
        case $path in */) path=${path}guide;; esac # NAME
        status=$(curl -s -o "$folder/reply" -w '%{http_code}' "$url$path")
        [ "$status" != 404 ] || { echo "$path: 404"; cat "$folder/reply"; return 1; }
    done
}
check "confab-server(1) names every route" routes_are_named
check "confab-server(1) names only paths that are there" paths_are_there
if [ -n "${skipped:-}" ]; then echo "[  SKIPPED ] $skipped test(s)"; fi
report
