package manager

import (
	"runtime"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	programs "github.com/xpkg-dev/xpkg/internal/runtime"
)

// LocalRuntime runs package runtimes on the local control plane.
func LocalRuntime() programs.Name {
	if runtime.GOOS == "linux" {
		return programs.Process
	}
	return programs.External
}

// ParseRuntimeChoice parses the flag --package-runtime. Omitted parts have the default of the flag.
func ParseRuntimeChoice(flag string, standard programs.Name) (programs.Choice, error) {
	if flag == "" {
		return programs.Everywhere(standard), nil
	}
	choice, err := programs.ParseChoice(flag, standard)
	if err != nil {
		return programs.Choice{}, terminal.ErrUsage.New(err, "cannot use --package-runtime %q", flag).
			WithDo("Use Deployment, Process, External or None, or pairs such as Provider=External;Function/greet=None.")
	}
	return choice, nil
}
