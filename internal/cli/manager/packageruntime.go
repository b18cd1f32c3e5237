package manager

import (
	"runtime"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	programs "github.com/xpkg-dev/xpkg/internal/runtime"
)

// LocalRuntime is who runs programs on a control plane of this machine.
func LocalRuntime() programs.Name {
	if runtime.GOOS == "linux" {
		return programs.Process
	}
	return programs.External
}

// ParseRuntimeChoice reads the flag --package-runtime. What it leaves open is as without the flag.
func ParseRuntimeChoice(flag string, standard programs.Name) (programs.Choice, error) {
	if flag == "" {
		return programs.Everywhere(standard), nil
	}
	choice, err := programs.ParseChoice(flag, standard)
	if err != nil {
		return programs.Choice{}, terminal.ErrUsage.New(err, "cannot use --package-runtime %q", flag).
			WithDo("Give one of Deployment, Process, External and None, or pairs such as Provider=External;Function/greet=None.")
	}
	return choice, nil
}
