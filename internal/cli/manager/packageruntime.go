package manager

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

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

// Runtimes are the values of --package-runtime for a manager in a cluster, and LocalRuntimes those for the local
// control plane, which has no nodes for Deployments.
var (
	Runtimes      = append([]programs.Name{programs.Deployment}, LocalRuntimes...)
	LocalRuntimes = []programs.Name{programs.Process, programs.External, programs.None}
)

// ParseRuntimeChoice parses the flag --package-runtime, which may have the allowed values. Omitted parts have the
// default of the flag.
func ParseRuntimeChoice(flag string, standard programs.Name, allowed []programs.Name) (programs.Choice, error) {
	if flag == "" {
		return programs.Everywhere(standard), nil
	}
	choice, err := programs.ParseChoice(flag, standard)
	for _, n := range Runtimes {
		if err == nil && choice.Uses(n) && !slices.Contains(allowed, n) {
			err = fmt.Errorf("the control plane has no nodes for a %s", n)
		}
	}
	if err != nil {
		return programs.Choice{}, terminal.ErrUsage.New(err, "cannot use --package-runtime %q", flag).
			WithDo("Use %s, or pairs such as Provider=External;Function/greet=None.", alternatives(allowed))
	}
	return choice, nil
}

// alternatives joins at least two names: "A, B or C".
func alternatives(names []programs.Name) string {
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
