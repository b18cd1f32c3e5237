//go:build unix

package program_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// firstKey is where a script keeps the registry $FIRST.
type firstKey struct{}

// openFirst starts a registry other than the one of the control plane, which can be closed: $FIRST,
// and $FIRST_NAME as part of a repository.
func openFirst(t testing.TB, e *testscript.Env) error {
	t.Helper()
	target, err := url.Parse("http://" + cluster.Registry(t))
	if err != nil {
		return err
	}
	server := port.Serve(t, httputil.NewSingleHostReverseProxy(target))
	address := strings.TrimPrefix(server.URL, "http://")
	e.Values[firstKey{}] = server
	e.Setenv("FIRST", address)
	e.Setenv("FIRST_NAME", strings.ReplaceAll(address, ":", "-"))
	return nil
}

// closeFirst takes that registry off the network: "closeregistry $FIRST".
func closeFirst(ts *testscript.TestScript, neg bool, args []string) {
	server, ok := ts.Value(firstKey{}).(*httptest.Server)
	if neg || !ok || len(args) != 1 || server.URL != "http://"+args[0] {
		ts.Fatalf("usage: closeregistry $FIRST")
	}
	server.Close()
}
