#!/bin/sh
# Lists the packages whose sources, without tests, use goroutines or locks.
set -eu
cd "$(dirname "$0")/.."
grep -rlE '^[[:space:]]*go (func|[a-z])|"sync(/atomic)?"|"golang.org/x/sync/' --include='*.go' --exclude='*_test.go' cmd internal pkg |
	grep -v -e /testdata/ | xargs -n1 dirname | sort -u | sed 's|^|./|'
