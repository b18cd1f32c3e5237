package graph

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// A dependency at a prerelease names the constraint that accepts it.
func TestPrereleaseOfADependencyIsExplained(t *testing.T) {
	status := DependencyStatus{State: Incompatible}
	status.Dependency = dependency.Dependency{Package: "r.example/acme/base", Constraint: ">=v0.14.36"}
	status.Installed.Version = "v0.16.0-feat-something.0"
	err := Describe([]DependencyStatus{status}, func(Node) string { return "" }).Err(1, false)
	if err == nil || !strings.Contains(err.Error(), "it is a prerelease") ||
		!strings.Contains(err.Error(), ">=v0.14.36-0") {
		t.Errorf("got %v", err)
	}
	status.Installed.Version = "v0.13.0"
	err = Describe([]DependencyStatus{status}, func(Node) string { return "" }).Err(1, false)
	if err == nil || strings.Contains(err.Error(), "prerelease") {
		t.Errorf("a release: got %v", err)
	}
}
