#!/bin/sh
# `make install` installs all that a person needs, `make uninstall` removes it, and `make deb` packs it.
. "$(dirname "$0")/../server/serve.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
variant=$(basename "$build")
root=$folder/root
# As it was built: nothing is built while other tests run it.
make() { env -u MAKEFLAGS make -s -C "$top" -o "build/$variant/confab" "VARIANT=$variant" "DESTDIR=$root" "$@"; }

installs() {
    make install PREFIX=/usr || return 1
    for file in bin/confab share/man/man1/confab.1 share/man/man1/confab-server.1 share/man/man5/confab.5 \
        share/man/man7/confab-keys.7 share/man/man7/confab-metrics.7 share/applications/confab.desktop \
        share/bash-completion/completions/confab share/zsh/site-functions/_confab \
        share/fish/vendor_completions.d/confab.fish; do
        [ -s "$root/usr/$file" ] || { echo "$file is missing"; return 1; }
    done
    [ "$(find "$root" -type f | wc -l)" = 10 ] && [ -z "$(find "$root" -type f ! -name confab -perm /111)" ]
}
runs() {
    (cd / && "$root/usr/bin/confab" --version) > "$folder/version" || return 1
    cat "$folder/version"
    grep -qE '^confab [0-9.]+( \([0-9a-z.-]+\))?$' "$folder/version" && grep -q '^cpu: .' "$folder/version"
}
pages_are_well_formed() {
    for page in "$root"/usr/share/man/man?/*; do
        groff -man -ww -z "$page" > "$folder/warnings" 2>&1
        [ ! -s "$folder/warnings" ] || { cat "$folder/warnings"; return 1; }
        sed -n '/^\.SH SEE ALSO/,$ s/^\.BR \(confab[a-z\\-]*\) (\(.\)).*/\1.\2/p' "$page" > "$folder/also"
        for name in $(tr -d '\\' < "$folder/also"); do
            ls "$root"/usr/share/man/man?/"$name" > /dev/null || return 1
        done
    done
}
readme_names_pages() {
    for page in $(grep -o 'man/confab[a-z-]*\.[0-9]' "$top/README.md"); do
        [ -s "$top/$page" ] || { echo "$page is missing"; return 1; }
    done
}
uninstalls() { make uninstall PREFIX=/usr && [ -z "$(find "$root" -type f)" ]; }
packs() {
    package=$(env -u MAKEFLAGS make -s -C "$top" -o "build/$variant/confab" "VARIANT=$variant" deb | tail -1)
    dpkg-deb -f "$top/$package" Depends | grep -q 'libsqlite3' || return 1
    dpkg-deb -c "$top/$package" > "$folder/contents"
    for file in bin/confab share/man/man1/confab-server.1.gz share/doc/confab/copyright \
        share/zsh/vendor-completions/_confab; do
        grep -q " ./usr/$file\$" "$folder/contents" || { echo "$file is missing"; return 1; }
    done
    if command -v lintian > /dev/null; then lintian --allow-root --fail-on error "$top/$package"; fi
    lint=$?
    rm "$top/$package"
    return $lint
}

check "make install" installs
check "the program runs elsewhere" runs
if command -v groff > /dev/null; then check "manual pages" pages_are_well_formed; fi
check "the pages that README names" readme_names_pages
check "make uninstall" uninstalls
if command -v dpkg-shlibdeps > /dev/null; then check "make deb" packs; fi
report
