#!/bin/sh
# Runs every fuzz target for a while: fuzz.sh [TIME], five seconds each by default.
# Inputs that fail are kept in testdata/fuzz of the package, to be committed.
set -eu
cd "$(dirname "$0")/.."
time=${1:-5s}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A target that is slow can be cut off by the end of its time, which go test calls
# a failure; a real one writes down its input.
run() {
	go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" -parallel 2 "./$2" >"$log" 2>&1 && return
	grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"
}

for module in . controlplane; do
	(cd "$module" && grep -rl '^func Fuzz' --include='*_test.go' . | grep -v '^./controlplane/' | xargs -n1 dirname | sort -u) | while read -r dir; do
		sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$module/$dir"/*_test.go | while read -r target; do
			echo "fuzz $module/$dir $target"
			(cd "$module" && run "$target" "$dir") || { cat "$log"; exit 1; }
		done
	done
done
