#!/bin/sh
# The main job, as a newcomer would type it: folders of YAML become healthy
# packages on a control plane that xpkg starts itself. Everything lives in a
# temporary folder, and nothing is left running at the end.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/tmp}/xpkg-demo.XXXXXX")
registry=127.0.0.1:15000
PATH=$PWD/bin:$PATH
export KUBECONFIG="$work/data/kubeconfig"

finish() {
	code=$?
	trap - EXIT INT TERM
	xpkg down --data-dir "$work/data" >/dev/null 2>&1 || true
	[ "$code" -eq 0 ] || { echo "the demo failed; the log of the control plane:" >&2; tail -n 30 "$work"/data/logs/*.log >&2 || true; }
	rm -rf "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

run() {
	printf '\n$ %s\n' "$(echo "$*" | sed "s|$work|\$DEMO|g")"
	"$@"
}

run xpkg up --detach --data-dir "$work/data"
for example in provider-hello function-greet configuration-hello; do
	kind=${example%%-*}
	folder=examples/$example
	[ ! -d "$folder/package" ] || folder=$folder/package
	run xpkg build -f "$folder" -o "$work/$example.xpkg"
	run xpkg push -f "$work/$example.xpkg" "$registry/examples/$example:v0.1.0"
	run xpkg install "$kind" "$registry/examples/$example:v0.1.0" "$example" --wait 2m
done
run xpkg list
run xpkg tree
run xpkg status --data-dir "$work/data"
run xpkg down --data-dir "$work/data"

if xpkg status --data-dir "$work/data" >/dev/null 2>&1; then
	echo "something is still running" >&2
	exit 1
fi
printf '\nEvery example is healthy, and nothing is left running.\n'
