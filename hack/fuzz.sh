#!/bin/sh
# Runs every fuzz target for a while, two packages at a time: fuzz.sh [TIME], five seconds each by default.
# fuzz.sh TIME MODULE PACKAGE runs the targets of one package, one after another.
# Inputs that fail are kept in testdata/fuzz of the package, to be committed.
set -eu
cd "$(dirname "$0")/.."
time=${1:-5s}

# packages prints the module and the folder of each package that has targets, those with the most targets first.
packages() {
	for module in . controlplane; do
		(cd "$module" && grep -r '^func Fuzz' --include='*_test.go' . | grep -v '^./controlplane/') |
			sed -n "s|^\(.*\)/[^/]*_test.go:func Fuzz.*|$module \1|p"
	done | sort | uniq -c | sort -rn | sed 's/^ *[0-9]* //'
}

# Without a limit, the search for a smaller form of each interesting input takes up to a minute, and a target with large inputs runs nothing else.
# A target that is slow can be cut off by the end of its time, which the test calls a failure; a real one writes down its input.
run() {
	"$program" -test.run '^$' -test.fuzz "^$1\$" -test.fuzztime "$time" -test.parallel 1 -test.fuzzminimizetime 100x -test.fuzzcachedir "$cache" >"$log" 2>&1 && return
	grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"
}

if [ $# -le 1 ]; then
	packages | xargs -P 2 -L 1 sh hack/fuzz.sh "$time"
	exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$work/fuzz.test log=$work/log
cd "$2"
# One build serves all targets of the package. With -fuzz, the compiler adds the instrumentation that guides the search.
cache=$(go env GOCACHE)/fuzz/$(go list "$3")
go test -c -fuzz . -o "$program" "$3"
cd "$3"
for target in $(sed -n 's|^func \(Fuzz[A-Za-z0-9_]*\)(.*|\1|p' *_test.go); do
	if run "$target"; then
		echo "fuzz $2 $3 $target"
	else
		echo "fuzz $2 $3 $target failed:"
		cat "$log"
		exit 255 # xargs starts no other package.
	fi
done
