//go:build unix

// Package program_test runs xpkg as a user does: the real program, a real control
// plane, real processes. What reads like a session at a terminal is a script in
// testdata; what a script cannot do is a test in Go.
//
// One control plane serves all scripts of a test binary, so each of them uses names
// of its own. Tests that kill or restart a control plane start one of their own.
package program_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asReaper {
		os.Exit(reap(os.Stdin, os.Args[2]))
	}
	// The client of the tests has nothing to say that a failed test does not.
	log.SetLogger(logr.Discard())
	code := m.Run()
	if err := finish(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
