# One program. Voices, and tools for a sandbox that cannot be made within a seat's fences, stay behind.
set -eu
install -D node_modules/@openai/codex-linux-*/vendor/*/bin/codex "$1/bin/codex"
