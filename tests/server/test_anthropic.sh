#!/bin/sh
# `confab serve` as Anthropic's own client sees it, the npm package.
. "$(dirname "$0")/serve.sh"
client @anthropic-ai/sdk 1.14.0 anthropic.mjs
