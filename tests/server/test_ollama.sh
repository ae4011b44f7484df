#!/bin/sh
# `confab serve` as Ollama's own client sees it, the npm package.
. "$(dirname "$0")/serve.sh"
client ollama 0.6.4 ollama.mjs
