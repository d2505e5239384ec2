# The client and the Node that runs it; what is for other systems stays behind.
set -eu
install -D node_modules/node-linux-*/bin/node "$1/bin/node"
rm -rf node_modules/node-linux-* node_modules/.bin/node
rm -rf node_modules/node-pty/prebuilds/darwin-* node_modules/node-pty/prebuilds/win32-*
mv node_modules "$1"
ln -s ../node_modules/.bin/qwen "$1/bin/qwen"
