#!/bin/sh
# Runs a command in a hostile environment: without HOME, with a private umask, with the
# kubeconfig of another cluster, with a proxy that does not respond, and with open
# descriptors of files that no child process may read.
set -eu
# Nothing can be downloaded later, because of the proxy.
(cd "$(dirname "$0")/.." && go mod download && cd examples/function-greet && go mod download)
work=$(mktemp -d "${TMPDIR:-/tmp}/xpkg-hostile.XXXXXX")
trap 'rm -rf "$work"' EXIT
umask 077
cat >"$work/kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: production
clusters: [{name: production, cluster: {server: "https://127.0.0.1:9", insecure-skip-tls-verify: true}}]
contexts: [{name: production, context: {cluster: production, user: admin}}]
users: [{name: admin, user: {token: secret}}]
END
echo "secret of another program" >"$work/secret"

# The tools that compile need their caches, which they find below HOME otherwise.
GOPATH=$(go env GOPATH) GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE)
export GOPATH GOCACHE GOMODCACHE
# So does the unpacked corpus of real packages.
unpack="$(dirname "$0")/../../shared/corpus/unpack"
if [ -z "${XPKG_CORPUS:-}" ] && [ -x "$unpack" ]; then
	XPKG_CORPUS=$("$unpack")
	export XPKG_CORPUS
fi
KUBECONFIG=$work/kubeconfig
export KUBECONFIG
for proxy in HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy; do
	export "$proxy=http://127.0.0.1:9"
done
# kubectl would write its cache into the working directory.
export KUBECACHEDIR="$work/kubectl"
unset HOME NO_PROXY no_proxy XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR DOCKER_CONFIG
exec 5<"$work/secret" 6>>"$work/secret" 7<"$work"
"$@"
