// Package lane separates the exhaustive tests of `make test-full` from those of `make test`.
package lane

import (
	"os"
	"strings"
	"testing"
)

// Variable is the environment variable that selects the exhaustive tests with the value "full".
const Variable = "XPKG_TEST"

// IsFull reports whether the exhaustive tests run.
func IsFull() bool { return os.Getenv(Variable) == "full" }

// Full skips a test unless the exhaustive tests run. Bounded names the tests that prove the same promise in `make
// test`, each as FOLDER.TestName.
func Full(t testing.TB, bounded ...string) {
	t.Helper()
	if !IsFull() {
		t.Skipf("runs in make test-full; in make test, see %s", strings.Join(bounded, ", "))
	}
}
