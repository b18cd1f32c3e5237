package packages

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// ApproveCmd implements `xpkg approve`.
type ApproveCmd struct {
	Names []inventory.Name `arg:"" name:"name" complete:"package" help:"Packages with a pending approval, each as NAME, KIND/NAME or KIND NAME; or the word transaction, and the name of a transaction whose plan needs an approval."`
	Wait  time.Duration    `short:"w" placeholder:"DURATION" help:"Wait this long, such as 2m, until the packages are healthy."`
	terminal.ConsentFlag
	connection.ClusterFlags
	planFlags
	view.OutputFlag
}

// Validate returns an error for a name that is not valid.
func (c *ApproveCmd) Validate() error {
	if c.transaction() == "" {
		return inventory.ValidateNames(c.Names)
	}
	if c.Wait > 0 {
		return errors.New("--wait cannot be used with a transaction, which can start later")
	}
	return nil
}

// Run approves the permissions, the webhooks and the adoption of objects for which versions of packages
// wait, or the plan of a transaction. It approves exactly the changes that it shows, and asks once for all packages.
func (c *ApproveCmd) Run(env *terminal.Env) error {
	if name := c.transaction(); name != "" {
		return c.approveTransaction(env, name)
	}
	cluster, all, err := selection.Read(env.Context, c.ClusterFlags, inventory.Load)
	if err != nil {
		return err
	}
	var approvals []operation.Approval
	var pending []string
	for _, name := range c.Names {
		p, err := all.Find(name)
		if err != nil {
			return err
		}
		a, err := operation.PendingApproval(env.Context, cluster, p)
		if err != nil {
			return err
		}
		approvals = append(approvals, a)
		if !a.Empty() {
			pending = append(pending, inventory.ShortName(p))
			showApproval(env.Stderr, a)
		}
	}
	if len(pending) > 0 {
		if err := c.Consent(env, "approve these changes of "+strings.Join(pending, ", ")); err != nil {
			return err
		}
	}
	for _, a := range approvals {
		if err := a.Write(env.Context, cluster); err != nil {
			return err
		}
	}
	if err := c.print(env, approvals); err != nil || c.Wait == 0 {
		return err
	}
	return c.await(env, approvals)
}

// await waits until the approved packages are healthy.
func (c *ApproveCmd) await(env *terminal.Env, approvals []operation.Approval) error {
	_, engine, err := connect(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	var done []*operation.Done
	for _, a := range approvals {
		done = append(done, &operation.Done{Step: &operation.Step{Live: a.Of}, Object: a.Of})
	}
	_, err = operation.Operation{Engine: engine, Wait: c.Wait}.Await(env.Context, done)
	return err
}

// print writes the approval of one package, or a list of them.
func (c *ApproveCmd) print(env *terminal.Env, approvals []operation.Approval) error {
	var value any = approvals
	if len(approvals) == 1 {
		value = approvals[0]
	}
	return c.Print(env.Stdout, value, func(w io.Writer) {
		for _, a := range approvals {
			text := fmt.Sprintf("%s approved (%s)", inventory.ShortName(a.Of), a.Revision)
			if a.Empty() {
				text = inventory.ShortName(a.Of) + " has no pending approval"
			}
			fmt.Fprintln(w, text)
		}
	})
}

// showApproval writes the changes that wait for approval.
func showApproval(w io.Writer, a operation.Approval) {
	if len(a.Permissions) > 0 {
		fmt.Fprintf(w, "revision %s requests permissions that need approval:\n", terminal.Safe(a.Revision))
		for _, rule := range a.Permissions {
			fmt.Fprintf(w, "  + %s\n", terminal.Safe(rbac.DescribeEscalation(rule)))
		}
	}
	if len(a.Webhooks) > 0 {
		fmt.Fprintf(
			w, "webhooks of revision %s cover resources that the package does not define:\n", terminal.Safe(a.Revision),
		)
		for _, rule := range a.Webhooks {
			fmt.Fprintf(w, "  + %s\n", terminal.Safe(rule))
		}
	}
	if len(a.Objects) > 0 {
		fmt.Fprintf(w, "revision %s would adopt existing objects that belong to no package:\n", terminal.Safe(a.Revision))
		for _, name := range a.Objects {
			fmt.Fprintf(w, "  ~ %s\n", terminal.Safe(name))
		}
	}
}
