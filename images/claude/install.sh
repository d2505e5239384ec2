# One program; what npm puts in front of it needs Node and only looks for it.
set -eu
install -D node_modules/@anthropic-ai/claude-code-linux-*/claude "$1/bin/claude"
