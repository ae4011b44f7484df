#!/bin/sh
# `confab serve` as OpenAI's own client sees it: the npm package, which is fetched once into the build's folder.
. "$(dirname "$0")/serve.sh"
package=openai@7.59.0
command -v node > /dev/null && command -v npm > /dev/null || skip_all "no Node.js"
if [ ! -d "$build/npm/node_modules/openai" ]; then
    timeout 120 npm install --silent --no-audit --no-fund --prefix "$build/npm" $package > "$folder/npm" 2>&1 ||
        skip_all "npm cannot fetch $package"
fi
serve
node "$(dirname "$0")/openai.mjs" "$(cd "$build/npm" && pwd)" "$url"
