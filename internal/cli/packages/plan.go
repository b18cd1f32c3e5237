package packages

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/plantext"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrPlanWrite is the code for a plan that cannot be saved.
var ErrPlanWrite = errcode.Code{
	Name: "PlanWrite", Class: errcode.Usage,
	Cause: "The file of --out cannot be written.",
	Fix:   "Use a file in an existing folder that is writable.",
}

// PlanCmd implements `xpkg plan`.
type PlanCmd struct {
	Install    planInstallCmd    `cmd:"" help:"Show the changes of an install. Exits with code 2 if there are any."`
	Update     planUpdateCmd     `cmd:"" aliases:"upgrade" help:"Show the changes of an update. Exits with code 2 if there are any."`
	Uninstall  planUninstallCmd  `cmd:"" help:"Show the deletions of an uninstall. Exits with code 2 if there are any."`
	Rollback   planRollbackCmd   `cmd:"" help:"Show the changes of a rollback. Exits with code 2 if there are any."`
	Autoremove planAutoremoveCmd `cmd:"" help:"Show the deletions of xpkg autoremove. Exits with code 2 if there are any."`
	Sync       planSyncCmd       `cmd:"" help:"Show the changes of xpkg sync. Exits with code 2 if there are any."`
}

// planOutput selects the output of a plan.
type planOutput struct {
	Out string `placeholder:"FILE" help:"Save the plan for xpkg apply in this file, in this folder under a generated name, or on standard output with -."`
	connection.ClusterFlags
	planFlags
	planFormat
	// isDryRun is set if --dry-run of another command shows the plan.
	isDryRun bool
}

// planFormat is the -o flag of plans.
type planFormat struct {
	Output string `short:"o" enum:",json,yaml,markdown" default:"" placeholder:"json|yaml|markdown" help:"Print the plan as JSON or YAML, or as Markdown for a pull request."`
}

// print writes plans, whose JSON is raw, in the selected format.
func (f planFormat) print(w io.Writer, raw []byte, plans ...*planner.Plan) error {
	write := func(w io.Writer) { writePlans(w, plans) }
	if f.Output == "markdown" {
		f.Output, write = "", func(w io.Writer) { plantext.WriteMarkdown(w, plans...) }
	}
	return view.OutputFlag{Output: view.ObjectFormat(f.Output)}.Print(w, json.RawMessage(raw), write)
}

// check fails if both the saved and the printed plan would be written to standard output.
func (o planOutput) check() error {
	if o.Output != "" && fileutil.IsStdout(o.Out) {
		return terminal.ErrUsage.New(nil, "both --out %s and -o %s write to standard output", o.Out, o.Output).
			WithDo("Omit -o, or use a file with --out.")
	}
	return nil
}

// show saves plans, unless one is refused, and prints them: a list, or the plan of one package. It returns the exit
// code for pending changes, or the error of a plan that is refused or breaks other packages.
func (o planOutput) show(env *terminal.Env, one bool, plans []*planner.Plan) error {
	encode, name := func() ([]byte, error) { return planner.EncodeList(plans) }, planner.ListFileName
	how := afterDryRun
	if one {
		encode, name = func() ([]byte, error) { return planner.Encode(plans[0]) },
			func(p []*planner.Plan) string { return p[0].FileName() }
		if !o.isDryRun {
			how = fmt.Sprintf("use --yes with `xpkg %s`", plans[0].Operation)
		}
		how = toContinue(plans[0], how)
	}
	raw, err := encode()
	if err != nil {
		return err
	}
	var refused, needs error
	pending := false
	for _, p := range plans {
		refused, needs = cmp.Or(refused, p.RefusalError()), cmp.Or(needs, p.ConsentError())
		pending = pending || !one || p.HasChanges()
	}
	if o.Out != "" && refused == nil {
		apply, err := keepPlan(env, o.Out, name(plans), raw, needs != nil)
		if err != nil {
			return err
		}
		how = "run `" + apply + "`"
	}
	err = o.print(env.Messages(o.Out), raw, plans...)
	switch {
	case err != nil:
		return err
	case refused != nil && (o.Out != "" || !errors.Is(refused, planner.ErrMaintained)):
		return refused
	case needs != nil:
		return adviseYes(needs, how)
	case pending:
		return terminal.ChangesPending
	}
	return nil
}

// keepPlan writes the content of a plan file to a file, or to a folder under the given name. It returns the command
// that applies it, with --yes if it needs consent.
func keepPlan(env *terminal.Env, file, name string, raw []byte, consent bool) (apply string, err error) {
	info, err := os.Stat(file)
	if err == nil && info.IsDir() && !fileutil.IsStdout(file) || strings.HasSuffix(file, string(os.PathSeparator)) {
		file = filepath.Join(file, name)
	}
	apply = "xpkg apply " + wording.ShellWord(file)
	if consent {
		apply += " --yes"
	}
	err = env.WriteOutput(file, ErrPlanWrite, func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
	if err != nil || fileutil.IsStdout(file) {
		return apply, err
	}
	_, err = fmt.Fprintf(env.Stderr, "saved as %s; apply it with `%s`\n", terminal.Safe(file), terminal.Safe(apply))
	return apply, err
}

// review returns the review that shows the plan of a change.
func (o *planOutput) review() review {
	return review{dryRun: true, save: o, ClusterFlags: o.ClusterFlags}
}

type planInstallCmd struct {
	installArgs
	planOutput
}

// Run prints the plan of an install.
func (c *planInstallCmd) Run(env *terminal.Env) error {
	return c.install(env, c.planOutput.review(), c.planFlags)
}

type planUpdateCmd struct {
	updateArgs
	All bool `help:"Plan the update of every package that a user installed to the newest version that is compatible with all others."`
	planOutput
}

// Validate returns an error if no package is given.
func (c *planUpdateCmd) Validate() error {
	if len(c.Packages) == 0 && !c.All {
		return errNoName
	}
	return nil
}

// Run prints the plan of an update.
func (c *planUpdateCmd) Run(env *terminal.Env) error {
	if c.All {
		return c.updateAll(env, c.planOutput.review(), c.planFlags)
	}
	targets, err := c.targets(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	return c.update(env, c.planOutput.review(), c.planFlags, targets)
}

type planUninstallCmd struct {
	Names []inventory.Name `arg:"" name:"name" complete:"package" help:"Packages to uninstall, each as NAME, KIND/NAME or KIND NAME."`
	OnDeleteFlag
	planOutput
}

// Validate returns an error for a name that is not valid.
func (c *planUninstallCmd) Validate() error { return inventory.ValidateNames(c.Names) }

// Run prints the plan of an uninstall.
func (c *planUninstallCmd) Run(env *terminal.Env) error {
	r := c.planOutput.review()
	r.one = len(c.Names) == 1
	return r.uninstall(env, c.planFlags, c.Names, c.OnDelete)
}

type planRollbackCmd struct {
	rollbackArgs
	planOutput
}

// Run prints the plan of a rollback.
func (c *planRollbackCmd) Run(env *terminal.Env) error {
	return c.rollBack(env, c.planOutput.review(), c.planFlags)
}

type planAutoremoveCmd struct{ planOutput }

// Run prints the plans of the deletion of all orphans.
func (c *planAutoremoveCmd) Run(env *terminal.Env) error {
	return c.planOutput.review().autoremove(env, c.planFlags)
}

type planSyncCmd struct {
	syncArgs
	Transaction bool `help:"Print a Transaction for a GitOps tool instead of the plan. The manager makes the change as a whole; applying it again changes nothing."`
	planOutput
}

// Run prints the plans of a sync, or a transaction that makes it.
func (c *planSyncCmd) Run(env *terminal.Env) error {
	r := c.planOutput.review()
	r.needsPlan = true
	if !c.Transaction {
		return c.syncArgs.run(env, r, c.planFlags)
	}
	if c.Out != "" || c.Output != "" {
		return terminal.ErrUsage.New(nil, "--transaction cannot be used with --out or -o").
			WithDo("Omit them: the Transaction is printed as YAML.")
	}
	r.show = func(steps []*operation.Step) error {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(operation.DeclarativeTransaction(steps))
		if err != nil {
			return err
		}
		return view.OutputFlag{Output: "yaml"}.Print(env.Stdout, withoutEmpty(raw), nil)
	}
	return c.syncArgs.run(env, r, c.planFlags)
}

// withoutEmpty removes the empty objects from one, as an author would write it.
func withoutEmpty(o map[string]any) map[string]any {
	for key, value := range o {
		switch value := value.(type) {
		case nil:
			delete(o, key)
		case map[string]any:
			if len(withoutEmpty(value)) == 0 {
				delete(o, key)
			}
		case []any:
			for _, item := range value {
				if m, ok := item.(map[string]any); ok {
					withoutEmpty(m)
				}
			}
		}
	}
	return o
}

// readPlans reads a saved plan, or the saved plans of several packages.
func readPlans(env *terminal.Env, file string) (plans []*planner.Plan, isList bool, err error) {
	in, err := env.OpenInput(file)
	if err != nil {
		return nil, false, ErrPlanRead.New(err, "cannot read the plan")
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, planner.MaxSize+1))
	if err != nil {
		return nil, false, ErrPlanRead.New(err, "cannot read the plan")
	}
	if plans, isList, err = planner.Decode(raw); err != nil {
		return nil, false, fmt.Errorf("%s: %w", file, err)
	}
	return plans, isList, nil
}

// ErrPlanRead is the code for a plan that cannot be read.
var ErrPlanRead = errcode.Code{
	Name: "PlanNotFound", Class: errcode.NotFound,
	Cause: "The file of the plan does not exist or cannot be read.",
	Fix:   "Check the path, or make a plan with a command such as `xpkg plan update provider/boats --out plan.json`.",
}
