//go:build !linux

package process

import (
	"context"
	"runtime"
)

// InitCommand is the argument with which the executable is run to start a program.
const InitCommand = "runtime-init"

// Init fails: programs run on Linux only.
func Init() error { return supported() }

func supported() error {
	return ErrProgramsUnsupported.New(nil, "cannot run programs on %s", runtime.GOOS)
}

type starter struct{}

func newStarter(Options) *starter { return &starter{} }

func (*starter) start(context.Context, *run) (*instance, error) { return nil, supported() }

func (*starter) close() {}

type instance struct {
	pid       int
	isolation string
	gone      chan struct{}
	exit      Exit
}

func (*instance) terminate() {}

func (*instance) kill() {}

func (*instance) excess(Spec) string { return "" }

func syncFiles(string) error { return nil }
