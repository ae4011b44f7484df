# Completes confab's command line in fish. The program itself says what there is: see `confab complete --help`.
function __confab_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in ($words[1] complete -- $words[2..] "$word" 2>/dev/null)
        if string match -q \t'*' -- $line
            __fish_complete_path (string replace -r -- '^--[^=]*=' '' $word)
        else
            echo $line
        end
    end
end
complete -c confab -f -a '(__confab_complete)'
