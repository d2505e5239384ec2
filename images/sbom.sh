#!/bin/sh
# Writes what is in an image, as CycloneDX: its Debian packages, as the image has them, and its Python
# packages with their hashes, as `pip --require-hashes` took them, and the npm packages of a client, as npm
# wrote them down in the image when it had installed them.
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
  if [ -f "$here/${image#consilium-}/package-lock.json" ]; then
    docker cp "$container:/opt/client/bill.json" "$out/$image.npm.cdx.json" >/dev/null 2>&1
  fi
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
for lock in "$here"/*/package-lock.json; do
  client=$(basename "$(dirname "$lock")")
  if docker image inspect "consilium-$client" >/dev/null 2>&1; then
    bill "consilium-$client" seat
  else
    echo "consilium-$client is not built: docker compose --profile '*' build" >&2
  fi
done
