package compose

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/composition/comptest"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// TestCmd implements `xpkg test`.
type TestCmd struct {
	Paths               []string      `arg:"" optional:"" name:"path" help:"Folder of the package or of the Project, or files and folders in it with tests. Default is this folder."`
	Update              bool          `help:"Write the expected files that differ, and those of tests without assertions, in place of comparing them."`
	Coverage            bool          `help:"List the steps, resources and patches that no test exercises."`
	JUnit               string        `name:"junit" placeholder:"FILE" help:"Write the results to a file in the XML of JUnit too."`
	Functions           string        `placeholder:"FILE" help:"File, or folder with files, with Functions that you run yourself. Those among the examples are known without it."`
	FunctionAnnotations []string      `short:"a" sep:"none" placeholder:"KEY=VALUE" help:"Annotation that replaces the one of every Function. Can be repeated."`
	Timeout             time.Duration `default:"1m" placeholder:"DURATION" help:"Time in which the functions must start. Default is 1m."`
	author.TemplatingFlag
	dependencies.ContentsFlags
	view.OutputFlag
	location.FolderFlags
}

// Run runs the tests of a package, and fails if one does not pass.
func (c *TestCmd) Run(env *terminal.Env) error {
	if len(c.Paths) == 0 {
		c.Paths = []string{"."}
	}
	t, err := c.open()
	if err != nil {
		return err
	}
	report, err := t.run(env)
	if err != nil {
		return err
	}
	if c.JUnit != "" {
		if err := env.WriteOutput(c.JUnit, archive.ErrCannotWrite, report.WriteJUnit); err != nil {
			return err
		}
	}
	err = c.Print(env.Stdout, report, func(w io.Writer) { writeResults(w, report, c.Coverage) })
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "%s\n", summary(report))
	if report.Count(comptest.Failed)+report.Count(comptest.Error) > 0 {
		return terminal.ExitCode(errcode.Invalid.Exit)
	}
	return nil
}

// writeResults writes a line for each test, with its differences or its error.
func writeResults(w io.Writer, report comptest.Report, coverage bool) {
	var fixes []string
	for _, r := range report.Results {
		line := fmt.Sprintf("%-8s%s", r.Verdict, r.File)
		if r.Name != "" {
			line += ": " + r.Name
		}
		if r.Code != "" {
			line += ": " + r.Code
			if fix := r.Code + ": " + r.Fix; !slices.Contains(fixes, fix) {
				fixes = append(fixes, fix)
			}
		}
		if r.Message != "" {
			line += ": " + r.Message
		}
		if r.Updated {
			line += " (updated)"
		}
		fmt.Fprintln(w, strings.ReplaceAll(terminal.Safe(line), "\n", "\n        "))
		for _, d := range r.Differences {
			fmt.Fprintf(w, "        %s\n", terminal.SafeLine(d.String()))
		}
	}
	if coverage && len(report.Coverage.Missing) > 0 {
		fmt.Fprintf(w, "\nNot exercised:\n  %s\n", terminal.Safe(strings.Join(report.Coverage.Missing, "\n  ")))
	}
	if len(fixes) > 0 {
		slices.Sort(fixes)
		fmt.Fprintf(w, "\nWhat to do:\n  %s\n", terminal.Safe(strings.Join(fixes, "\n  ")))
	}
}

// summary returns the numbers of a report.
func summary(r comptest.Report) string {
	var parts []string
	for _, v := range []comptest.Verdict{comptest.Passed, comptest.Failed, comptest.Error, comptest.Skipped} {
		if n := r.Count(v); n > 0 {
			word := string(v)
			if v == comptest.Error {
				word = "could not run"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return fmt.Sprintf("%s: %s; %d of %s of compositions exercised", wording.Count(len(r.Results), "test"), strings.Join(parts, ", "),
		r.Coverage.Exercised, wording.Count(r.Coverage.Total, "part"))
}

// exists reports whether a file exists.
func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}
