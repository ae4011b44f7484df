#!/bin/sh
# `confab serve` as Ollama's own client sees it, the npm package.
. "$(dirname "$0")/serve.sh"
mkdir -p "$XDG_DATA_HOME/confab/models"
cp "$(dirname "$0")/../../app/guide/guide.gguf" "$XDG_DATA_HOME/confab/models/small.gguf"
client ollama 0.6.4 ollama.mjs
