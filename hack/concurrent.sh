#!/bin/sh
# Lists the packages whose sources, without tests, use goroutines or locks. The registry of `xpkg up` is
# excluded: olareg v0.1.2 reads the field dirRepo.exists without its lock.
set -eu
cd "$(dirname "$0")/.."
grep -rlE '^[[:space:]]*go (func|[a-z])|"sync(/atomic)?"|"golang.org/x/sync/' --include='*.go' --exclude='*_test.go' cmd internal pkg |
	grep -v -e /testdata/ -e ^internal/up/registry/ | xargs -n1 dirname | sort -u | sed 's|^|./|'
