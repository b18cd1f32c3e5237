package prerequisite_test

import (
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
)

// recorder records how a test ends.
type recorder struct {
	testing.TB
	failed, skipped bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.failed = true }
func (r *recorder) Skipf(string, ...any)  { r.skipped = true }

func TestMissingPrerequisiteFailsInCIOnly(t *testing.T) {
	for name, test := range map[string]struct {
		ci, allow string
		fails     bool
	}{
		"OtherMachine": {"", "", false},
		"CI":           {"true", "", true},
		"AllowedInCI":  {"true", "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CI", test.ci)
			t.Setenv(prerequisite.AllowMissing, test.allow)
			r := &recorder{TB: t}
			prerequisite.Missing(r, "docker-registry is not installed")
			// A real Fatalf ends the test; this one continues to Skipf.
			if r.failed != test.fails {
				t.Errorf("failed = %t, want %t", r.failed, test.fails)
			}
		})
	}
}
