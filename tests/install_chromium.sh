#!/bin/sh
# Install Debian's Chromium for the browser tests, if this machine has no browser they can use.
set -eu

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done

give_up() {
    echo "The browser tests need Chromium, which cannot be installed here: $1 Install it, then run this again." >&2
    exit 1
}

command -v apt-get >/dev/null || give_up "this machine has no apt-get."
if [ "$(id -u)" -eq 0 ]; then
    as_root="env"
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n env"
else
    give_up "that needs root, or sudo without a password."
fi

install() {
    $as_root DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends chromium >/dev/null
}

echo "Installing Chromium for the browser tests."
# The lists of packages may be missing or old.
install 2>/dev/null || { $as_root apt-get update --quiet >/dev/null && install; } || give_up "apt-get failed."
