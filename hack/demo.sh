#!/bin/sh
# Build, publish and install the example packages on a temporary control plane of xpkg up,
# with their runtimes as processes. All files are in a temporary folder, and no process is
# left running.
#
# With XPKG_CORE, the image, archive or executable of Crossplane core, the demo also composes a
# resource.
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

# greet creates a Greeting and waits until the provider has made it ready.
greet() {
	run kubectl apply -f - <<-END
		apiVersion: hello.xpkg.dev/v1alpha1
		kind: Greeting
		metadata: {name: $1}
		spec: {name: $1, language: $2}
	END
	run kubectl wait "greeting/$1" --for condition=Ready --timeout 1m
}

# program prints the process ID of the provider that was started last.
program() {
	sed -n 's/.*program started.* program=provider-hello-[^ ]* pid=\([0-9]*\).*/\1/p' "$work/data/logs/up.log" | tail -n 1
}

# pem prints a part of the client certificate of the provider.
pem() {
	kubectl get secret provider-hello-tls-client --namespace crossplane-system -o "go-template={{index .data \"$1\" | base64decode}}"
}

# call calls the function as a composition engine does.
call() {
	run "$work/call-function" --target "$endpoint" --tls-certs-dir "$work/tls" "$@" <<-END
		{"input": {"resource": "greeting", "nameFrom": "spec.guest", "languageFrom": "spec.language"},
		 "observed": {"composite": {"resource": {"spec": {"guest": "world", "language": "es"}}}}}
	END
}

# The flags are those of the other programs, with which it shares compiled packages.
CGO_ENABLED=0 go build -C examples/function-greet -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$work/call-function" ./cmd/call-function

set -- --detach --data-dir "$work/data"
[ -z "${XPKG_CORE:-}" ] || set -- "$@" --with-core "$XPKG_CORE"
run xpkg up "$@"
for example in provider-hello function-greet configuration-hello; do
	kind=${example%%-*}
	folder=examples/$example
	[ ! -d "$folder/package" ] || folder=$folder/package
	set --
	[ ! -d "examples/$example/cmd" ] || set -- --embed-go-program "examples/$example/cmd/$example"
	run xpkg build -f "$folder" -o "$work/$example.xpkg" "$@"
	run xpkg push -f "$work/$example.xpkg" "$registry/examples/$example:v0.1.0"
	# The composition refers to the function by the name that it has as a dependency.
	name=$example
	[ "$kind" != function ] || name=examples-$example
	run xpkg install "$kind" "$registry/examples/$example:v0.1.0" "$name" --wait 2m
done
run xpkg list
run xpkg tree

greet world fr
run kubectl get greetings

if [ -n "${XPKG_CORE:-}" ]; then
	run kubectl apply -f - <<-END
		apiVersion: hello.xpkg.dev/v1alpha1
		kind: XWelcome
		metadata: {name: crew}
		spec: {guest: crew, language: es}
	END
	run kubectl wait xwelcome/crew --for condition=Ready --timeout 1m
	run kubectl get xwelcome/crew -o 'jsonpath={.status.message}{"\n"}'
else
	printf '\nThe XRD of configuration-hello is not established, because the control plane has no Crossplane core.\n'
	printf 'With XPKG_CORE, the image, archive or executable of Crossplane core, this demo also composes a resource.\n'
fi

first=$(program)
run kill -9 "$first"
greet again de
if [ "$(program)" = "$first" ]; then
	echo "the provider was not restarted" >&2
	exit 1
fi
run kubectl get greetings

endpoint=$(kubectl get functionrevisions -o jsonpath='{.items[0].status.endpoint}')
mkdir "$work/tls"
for part in tls.crt tls.key ca.crt; do
	pem "$part" >"$work/tls/$part"
done
call
if call --anonymous; then
	echo "the function serves a client without a certificate" >&2
	exit 1
fi

run xpkg logs provider/provider-hello --tail 3 --data-dir "$work/data"
run xpkg status --data-dir "$work/data"
run xpkg down --data-dir "$work/data"

if xpkg status --data-dir "$work/data" >/dev/null 2>&1; then
	echo "a process is still running" >&2
	exit 1
fi
printf '\nAll examples are healthy. The provider restarted after it was killed, and the function\nrejected a client without a certificate. No process is left running.\n'
