#!/bin/sh
# The arrows between folders: fails on an #include that the table does not allow. Run from the project's root.
#
# A folder may always include its own headers. tests/ may include everything.
set -eu
find engine ui app -name '*.[ch]' | sort | xargs grep -n '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' | awk '
BEGIN {
    allow["engine/base"] = allow["engine/stages.h"] = allow["engine/backend_options.h"] = ""
    allow["engine/message.h"] = allow["engine/sampling.h"] = ""
    allow["engine/grammar.h"] = "engine/base"
    allow["engine/quantize.h"] = allow["engine/device.h"] = "engine/base"
    allow["engine/model_file.h"] = "engine/base engine/message.h engine/sampling.h"
    allow["engine/engine.h"] = "engine/base engine/message.h engine/sampling.h"
    allow["engine/metrics.h"] = "engine/engine.h engine/stages.h"
    allow["engine/distribution.h"] = "engine/engine.h"
    allow["engine/engine_ops.h"] = "engine/base engine/engine.h engine/metrics.h engine/distribution.h"
    allow["engine/engine.c"] = allow["engine/engine_ops.h"] " engine/engine_ops.h engine/device.h"
    allow["engine/sampling.c"] = "engine/sampling.h"
    allow["engine/local_engine.h"] = "engine/engine.h engine/model_file.h engine/backend_options.h"
    public = "engine/base engine/message.h engine/sampling.h engine/model_file.h engine/backend_options.h" \
             " engine/engine.h engine/local_engine.h engine/metrics.h engine/quantize.h engine/stages.h" \
             " engine/device.h engine/distribution.h engine/grammar.h"

    allow["engine/format"] = "engine/base"
    allow["engine/text"] = "engine/base engine/format"
    allow["engine/grammar"] = "engine/base engine/grammar.h"
    allow["engine/answer"] = public " engine/text"
    allow["engine/model"] = public " engine/format engine/text engine/answer"
    allow["engine/quantize"] = "engine/base engine/format engine/model engine/quantize.h"
    allow["engine/backend.h"] = "engine/base engine/model engine/stages.h engine/backend_options.h engine/device.h"
    allow["engine/vulkan"] = allow["engine/backend.h"] " engine/format engine/backend.h"
    allow["engine/cpu"] = allow["engine/backend.h"] " engine/format engine/backend.h"
    allow["engine/serve"] = public " engine/engine_ops.h engine/text engine/answer engine/model engine/backend.h" \
                            " engine/grammar"

    allow["ui"] = public " ui/draft.h"
    allow["app/base"] = public " ui"
    allow["app/guide"] = public " app/base ui"
    allow["app/session"] = public " app/base ui/draft.h"
    allow["app/models"] = public " app/base app/guide"
    allow["app/bench"] = public " app/base app/models"
    allow["app/server"] = public " app/base app/session app/models"
    allow["app/chat"] = public " app/base app/bench app/guide app/models app/server app/session ui"
    allow["app/commands"] = allow["app/chat"] " app/chat"
    allow["app"] = "app/commands"
    allow["ui/draft.h"] = ""
}
# The part of the tree that a path belongs to: a header with a line of its own, FOLDER/FOLDER, or the first folder.
function part(path,   names, n) {
    if (path in allow) return path
    n = split(path, names, "/")
    return n > 2 ? names[1] "/" names[2] : names[1]
}
{
    split($0, field, ":")
    split($0, quoted, "\"")
    from = part(field[1])
    to = part(quoted[2])
    files++
    if (from != to) arrow[from, to] = 1
    if (from == to || index(" " allow[from] " ", " " to " ")) next
    printf "%s:%s: %s may not include %s\n", field[1], field[2], from, quoted[2]
    bad++
}
# Parts that lead nowhere are taken away until none is left; what stays goes round in a circle.
END {
    do {
        delete leads
        removed = n_arrows = 0
        for (a in arrow) { split(a, pair, SUBSEP); leads[pair[1]] = 1 }
        for (a in arrow) {
            split(a, pair, SUBSEP)
            if (pair[2] in leads) n_arrows++
            else { delete arrow[a]; removed++ }
        }
    } while (removed)
    if (n_arrows)
        for (a in arrow) { split(a, pair, SUBSEP); printf "in or into a circle: %s -> %s\n", pair[1], pair[2]; bad++ }
    if (bad) exit 1
    printf "includes: %d arrows, all allowed, no circle\n", files
}'
