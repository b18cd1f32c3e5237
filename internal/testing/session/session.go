// Package session runs terminal sessions that are written as scripts.
package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

// InTurn returns a test for [testscript.RunT] whose scripts run one after the other, because they change the same
// control plane.
func InTurn(t *testing.T) testscript.T { return inTurn{t} }

type inTurn struct{ *testing.T }

func (inTurn) Parallel() {}

func (t inTurn) Run(name string, run func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { run(inTurn{t}) })
}

func (inTurn) Verbose() bool { return testing.Verbose() }

// Scripts returns the scripts in a folder: all of them in the full lane, and the named ones otherwise.
func Scripts(t *testing.T, folder string, bounded ...string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("%d scripts in %s: %v", len(all), folder, err)
	}
	if lane.IsFull() {
		return all
	}
	for i, name := range bounded {
		bounded[i] = filepath.Join(folder, name+".txtar")
	}
	return bounded
}

// Expand is the command "expand FILE…", which replaces the variables in files by their values.
func Expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: expand FILE…")
	}
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(os.Expand(ts.ReadFile(name), ts.Getenv)), 0o644))
	}
}
