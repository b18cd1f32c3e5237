package ports_test

import (
	"net"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/ports"
)

func TestListen(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		l, err := ports.Listen("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		if port < ports.Lowest || port > ports.Highest || seen[port] {
			t.Errorf("port %d", port)
		}
		seen[port] = true
	}
}
