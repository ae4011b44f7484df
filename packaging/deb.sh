#!/bin/sh
# Makes the Debian package of what `make` has built: `make deb` calls it.
set -eu
command -v dpkg-shlibdeps > /dev/null || { echo "make deb needs dpkg-dev."; exit 1; }
folder=build/deb
root=$folder/root
doc=$root/usr/share/doc/confab
rm -rf $folder
${MAKE:-make} --no-print-directory install DESTDIR=$root PREFIX=/usr ZSH_FUNCTIONS=share/zsh/vendor-completions > /dev/null
strip --strip-unneeded --remove-section=.comment --remove-section=.note $root/usr/bin/confab
find $root/usr/share/man -type f -exec gzip -9n {} +

version=$(sed -n 's/^#define CONFAB_VERSION "\(.*\)"/\1/p' app/commands/command.h)
date=$(git log -1 --format=%cD 2> /dev/null || date -R)
commit=$(git log -1 --date=format:%Y%m%d --format=%cd.%h 2> /dev/null) && version=$version+git$commit
maintainer="${DEBFULLNAME:-The authors of confab} <${DEBEMAIL:-nobody@confab.invalid}>"
architecture=$(dpkg --print-architecture)
mkdir -p $doc $root/DEBIAN $folder/debian
cp packaging/copyright $doc/copyright
printf 'confab (%s) unstable; urgency=medium\n\n  * Built from the sources.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$date" | gzip -9n > $doc/changelog.gz

# The libraries that the program is linked with; it opens those of Vulkan and OpenBLAS itself.
printf 'Source: confab\n\nPackage: confab\nArchitecture: any\n' > $folder/debian/control
depends=$(cd $folder && dpkg-shlibdeps -O root/usr/bin/confab | sed -n 's/^shlibs:Depends=//p')
cat > $root/DEBIAN/control << END
Package: confab
Version: $version
Section: utils
Priority: optional
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk $root/usr | cut -f1)
Depends: $depends
Recommends: libvulkan1
Suggests: mesa-vulkan-drivers, libopenblas0
Description: chat with language models that run on your own machine
 confab is a chat in the terminal with its own inference engine: it computes
 GGUF files and Hugging Face folders on the processor and, by Vulkan, on GPUs.
 Several conversations are answered at once, in one batch, and panes show the
 engine at work: throughput, KV cache, latency, memory.
 .
 It also answers other programs over HTTP, by the APIs of OpenAI, Anthropic
 and Ollama. A small model that knows confab is built in.
END
(cd $root && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2 > DEBIAN/md5sums)
chmod -R u=rwX,go=rX $root
package=build/confab_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zgzip --build $root $package > /dev/null
rm -rf $folder
echo "$package"
