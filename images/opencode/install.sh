# One program.
set -eu
install -D node_modules/opencode-linux-*/bin/opencode "$1/bin/opencode"
