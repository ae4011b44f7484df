#!/bin/sh
# Command lines complete in bash, zsh and fish, with the scripts of packaging/.
. "$(dirname "$0")/../server/serve.sh"
mkdir -p "$folder/bin" "$folder/here"
ln -s "$(readlink -f "$confab")" "$folder/bin/confab"
export PATH="$folder/bin:$PATH"
completions=$(cd "$(dirname "$0")/../../packaging" && pwd)
cd "$folder/here" && touch schema.json model.gguf

# A line, and how it is completed: a command, an option, a model, a device, a type, a choice, a file, a model's file.
cat > "$folder/lines" << 'END'
confab ru|confab run
confab serve --allow-h|confab serve --allow-host
confab run -m gu|confab run -m guide
confab --device=c|confab --device=cpu
confab quantize a b Q8|confab quantize a b Q8_0
confab bench --kv-type bf|confab bench --kv-type bf16
confab run --json-schema sch|confab run --json-schema schema.json
confab show mod|confab show model.gguf
END
cut -d '|' -f 2 "$folder/lines" > "$folder/wanted"

bash_completes() {
    cat > "$folder/bash" << 'END'
complete_line() { # as readline calls it: = parts words, and with no candidate names of files are completed
    COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
    read -ra COMP_WORDS <<< "${1//=/ = }"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _confab 2> /dev/null # there is no completion whose options it could change
    local word=${COMP_WORDS[COMP_CWORD]}
    if [ ${#COMPREPLY[@]} = 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi
    echo "${1%"$word"}${COMPREPLY[*]}"
}
. "$1/confab.bash"
while IFS='|' read -r line wanted; do complete_line "$line"; done < "$2"
END
    bash "$folder/bash" "$completions" "$folder/lines" | diff "$folder/wanted" -
}
zsh_completes() {
    cat > "$folder/zsh" << 'END'
zmodload zsh/zpty
zpty shell zsh -f -i
tell() { zpty -w -n shell "$1"; repeat 500 { [[ -s $2 ]] && break; zpty -r -t shell text; sleep 0.02 } }
tell "fpath=($1 \$fpath); autoload -U compinit; compinit -u -D
show() { print -r -- \${BUFFER% } > $3/line }; zle -N show; bindkey '^T' show; print ready > $3/ready
" $3/ready
while IFS='|' read -r line wanted; do
    rm -f $3/line
    tell "$line"$'\t\x14' $3/line
    cat $3/line
    tell $'\x15' $3/line
done < $2
END
    zsh -f "$folder/zsh" "$completions" "$folder/lines" "$folder" | diff "$folder/wanted" -
}
fish_completes() {
    while IFS='|' read -r line wanted; do
        found=$(fish --no-config -c "source $completions/confab.fish; complete -C '$line'" | cut -f 1)
        echo "${line% *} $found"
    done < "$folder/lines" | diff "$folder/wanted" -
}
titles_of_chats() {
    echo '[{"role":"user","content":"Trip to Oslo"},{"role":"assistant","content":"By train."}]' > chat.json
    confab import chat.json > /dev/null
    confab complete -- export Tr | grep -q '^Trip to Oslo'
}

check "bash" bash_completes
for shell in zsh fish; do
    if command -v $shell > /dev/null; then
        check $shell ${shell}_completes
    else
        echo "skipped: no $shell"
        skipped=$((${skipped:-0} + 1))
    fi
done
check "titles of chats" titles_of_chats
if [ -n "${skipped:-}" ]; then echo "[  SKIPPED ] $skipped test(s)"; fi
report
