// Package noproxy runs tests without the HTTP proxies of the environment.
package noproxy

import (
	"os"
	"strings"
	"testing"
)

// Main unsets the proxies of the environment, and runs the tests of a package. It is for tests
// whose registries on this machine have the names of other hosts, to which a proxy cannot connect.
// TestMain must call it, because a process reads the proxies only once.
func Main(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		for _, variable := range []string{name, strings.ToLower(name)} {
			if err := os.Unsetenv(variable); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}
