#!/bin/sh
# The arrows between folders: fails on an #include that the table does not allow. Run from the project's root.
#
# A folder may always include its own headers. tests/ may include everything.
set -eu
find engine ui app -name '*.[ch]' | sort | xargs grep -n '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' | awk '
BEGIN {
    allow["app"] = "ui engine/engine.h engine/base"
    allow["ui"] = "engine/engine.h engine/base"
    allow["engine/backend_options.h"] = ""
    allow["engine/stages.h"] = ""
    allow["engine/engine.h"] = "engine/base engine/stages.h engine/backend_options.h"
    allow["engine/backend.h"] = "engine/base engine/model engine/stages.h engine/backend_options.h"
    allow["engine"] = "engine/base engine/format engine/text engine/model engine/serve engine/cpu engine/backend.h engine/engine.h"
    allow["engine/base"] = ""
    allow["engine/format"] = "engine/base"
    allow["engine/text"] = "engine/base engine/format"
    allow["engine/model"] = "engine/base engine/format"
    allow["engine/serve"] = "engine/base engine/model engine/backend.h engine/engine.h"
    allow["engine/cpu"] = "engine/base engine/model engine/format engine/backend.h"
}
# The part of the tree that a path belongs to: one of the public headers, engine/FOLDER, or the first folder.
function part(path,   names, n) {
    if (path in allow) return path
    n = split(path, names, "/")
    return names[1] == "engine" && n > 2 ? names[1] "/" names[2] : names[1]
}
{
    split($0, field, ":")
    split($0, quoted, "\"")
    from = part(field[1])
    to = part(quoted[2])
    files++
    if (from == to || index(" " allow[from] " ", " " to " ")) next
    printf "%s:%s: %s may not include %s\n", field[1], field[2], from, quoted[2]
    bad++
}
END {
    if (bad) exit 1
    printf "includes: %d arrows, all allowed\n", files
}'
