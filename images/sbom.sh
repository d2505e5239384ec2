#!/bin/sh
# Writes what is in an image, as CycloneDX: its Debian packages, as the image has them, and its Python
# packages with their hashes, as `pip --require-hashes` took them.
#
#   images/sbom.sh OUT TOOLS          for every image of the council, built before; TOOLS is a bin folder
set -eu

out=$1 tools=$2
here=$(dirname "$0")
mkdir -p "$out"

bill() {  # IMAGE REQUIREMENTS...
  image=$1; shift
  container=$(docker create "$image")
  docker export "$container" |
    "$tools/debsbom" generate -r - -t cdx --distro-name "$image" -o "$out/$image.debian" 2>/dev/null
  docker rm "$container" >/dev/null
  for set in "$@"; do
    "$tools/cyclonedx-py" requirements "$here/requirements/$set.txt" --output-reproducible \
      -o "$out/$image.python.$set.cdx.json"
  done
  echo "$out/$image"
}

bill consilium-arbiter consilium
bill consilium-egress consilium
bill consilium-console consilium
bill consilium-model consilium model
bill consilium-llm seat llm
