// Package session runs terminal sessions that are written as scripts.
package session

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
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

// Expand is the command "expand FILE…", which replaces the variables in files by their values.
func Expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: expand FILE…")
	}
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(os.Expand(ts.ReadFile(name), ts.Getenv)), 0o644))
	}
}
