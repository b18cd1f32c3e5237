//go:build unix

// Package program_test runs the xpkg binary with a control plane and processes. Terminal sessions
// are scripts in testdata; other tests are in Go.
//
// One control plane serves all scripts of a test binary, so each of them uses its own names.
// Tests that kill or restart a control plane start their own.
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
	// The log of the client adds nothing to a failed test.
	log.SetLogger(logr.Discard())
	code := m.Run()
	if err := finish(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
