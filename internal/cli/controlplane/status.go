package controlplane

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// StatusCmd implements `xpkg status`.
type StatusCmd struct {
	flags.DataDirFlag
	view.ListOutputFlag
}

// Run prints the status of a control plane. It fails if none runs, if it is not ready yet, or if a component does not
// respond, so that scripts can check it.
func (c *StatusCmd) Run(env *terminal.Env) error {
	dir, err := c.RunningDir()
	if err != nil {
		return err
	}
	report, err := up.Examine(env.Context, dir)
	if err != nil {
		return err
	}
	var parts []string
	for _, check := range report.Checks {
		parts = append(parts, check.Name)
	}
	if err := c.PrintText(env.Stdout, report, parts, func(w io.Writer) { writeReport(w, report) }); err != nil {
		return err
	}
	if !report.Running {
		return terminal.ExitCode(errcode.NotFound.Exit)
	}
	if !report.Ready {
		return terminal.ExitCode(errcode.Unhealthy.Exit)
	}
	for _, check := range report.Checks {
		if !check.Healthy {
			return terminal.ExitCode(errcode.Unhealthy.Exit)
		}
	}
	return nil
}

func writeReport(w io.Writer, r up.Report) {
	if !r.Running {
		fmt.Fprintf(w, "No control plane runs in %s. Start one with `%s`.\n", r.DataDir, datadir.StartCommand(r.DataDir))
		return
	}
	if !r.Ready {
		fmt.Fprintf(w, "The control plane in %s is starting, process %d.\n", r.DataDir, r.PID)
		return
	}
	fmt.Fprintf(
		w, "Running since %s, process %d, data in %s\n\n", terminal.Age(r.State.Started, time.Now()), r.PID, r.DataDir,
	)
	var rows [][]string
	for _, check := range r.Checks {
		state := "healthy"
		if !check.Healthy {
			state = "unhealthy: " + check.Error
		}
		took := ""
		if check.Took > 0 {
			took = check.Took.Round(time.Millisecond).String()
		}
		rows = append(rows, []string{check.Name, check.Address, state, took})
	}
	view.WriteTable(w, []string{"PART", "ADDRESS", "STATE", "ANSWERED IN"}, rows)
	for _, check := range r.Checks {
		if check.Fix != "" {
			fmt.Fprintf(w, "\n%s: %s\n", check.Name, terminal.SafeText(check.Fix))
		}
	}
	fmt.Fprintf(w,
		"\nPushes to %s require a token, which xpkg reads from the data directory. For docker, crane or skopeo:\n  %s\n",
		r.State.Registry, up.LoginCommand(r.State))
	fmt.Fprintln(w)
	rows = nil
	for _, folder := range slices.Sorted(maps.Keys(r.Sizes)) {
		rows = append(rows, []string{folder, terminal.Size(r.Sizes[folder])})
	}
	view.WriteTable(w, []string{"FOLDER", "SIZE"}, rows)
}
