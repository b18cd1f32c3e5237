// Package prerequisite decides how a test handles a missing prerequisite, such as
// a program or a kernel feature.
package prerequisite

import (
	"os"
	"testing"
)

// AllowMissing is the environment variable that turns missing prerequisites into
// skipped tests in CI as well.
const AllowMissing = "XPKG_ALLOW_MISSING"

// Missing ends the test because of a missing prerequisite. In CI (the environment
// variable CI is set) it fails the test, unless XPKG_ALLOW_MISSING is set. On other
// machines it skips the test. The format states the prerequisite and how to get it.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" && os.Getenv(AllowMissing) == "" {
		t.Fatalf(format+" (set "+AllowMissing+"=1 to skip such tests in CI)", args...)
	}
	t.Skipf(format, args...)
}
