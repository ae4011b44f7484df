# Completes confab's command line in bash. The program itself says what there is: see `confab complete --help`.
_confab()
{
    local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} word done files= words
    read -ra words <<< "$line"
    if [[ $line == *[[:blank:]] ]]; then words+=(''); fi
    # bash takes what = and : part for words of their own: of the candidates it wants what follows.
    word=${words[-1]}
    if [[ $current == [=:] ]]; then done=$word; else done=${word%"$current"}; fi
    COMPREPLY=()
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        if [[ -z $word ]]; then files=yes; else COMPREPLY+=("$(printf %q "${word#"$done"}")"); fi
    done < <("${words[0]}" complete -- "${words[@]:1}" 2> /dev/null)
    if [[ -z $files ]]; then compopt +o default; fi
} && complete -o default -F _confab confab
