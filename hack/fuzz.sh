#!/bin/sh
# Runs every fuzz target for a while, two at a time: fuzz.sh [TIME], five seconds each by default.
# fuzz.sh TIME MODULE FOLDER TARGET runs one target.
# Inputs that fail are kept in testdata/fuzz of the package, to be committed.
set -eu
cd "$(dirname "$0")/.."
time=${1:-5s}

# targets prints the module, the folder and the name of each target.
targets() {
	for module in . controlplane; do
		(cd "$module" && grep -r '^func Fuzz' --include='*_test.go' . | grep -v '^./controlplane/') |
			sed -n "s|^\(.*\)/[^/]*_test.go:func \(Fuzz[A-Za-z0-9_]*\)(.*|$module \1 \2|p"
	done | sort
}

# A target that is slow can be cut off by the end of its time, which go test calls
# a failure; a real one writes down its input.
run() {
	cd "$1"
	go test -run '^$' -fuzz "^$3\$" -fuzztime "$time" -parallel 1 "$2" >"$log" 2>&1 && return
	grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"
}

if [ $# -le 1 ]; then
	targets | xargs -P 2 -L 1 sh hack/fuzz.sh "$time"
	exit
fi
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if run "$@"; then
	echo "fuzz $*"
else
	echo "fuzz $* failed:"
	cat "$log"
	exit 255 # xargs starts no other target.
fi
