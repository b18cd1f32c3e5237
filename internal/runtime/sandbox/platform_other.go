//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

// InitCommand is the argument with which the executable is run as init.
const InitCommand = "runtime-init"

// Init fails: runtimes run on Linux only.
func Init() error { return supported() }

func supported() error {
	return ErrProgramsUnsupported.New(nil, "cannot run programs on %s", runtime.GOOS)
}

type launcher struct{}

func newLauncher(Options) *launcher { return &launcher{} }

func (*launcher) start(context.Context, *run) (*instance, error) { return nil, supported() }

func (*launcher) close() {}

type instance struct {
	pid       int
	isolation string
	gone      chan struct{}
	exit      Exit
}

func (*instance) terminate() {}

func (*instance) kill() {}

func (*instance) excess(Spec) string { return "" }
