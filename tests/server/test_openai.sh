#!/bin/sh
# `confab serve` as OpenAI's own client sees it, the npm package.
. "$(dirname "$0")/serve.sh"
client openai 7.59.0 openai.mjs
