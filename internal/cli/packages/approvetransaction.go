package packages

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/changepolicy"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// transactionWord is the argument before the name of a transaction.
const transactionWord = "transaction"

// transaction returns the name of the transaction that the arguments name, as "transaction NAME" or "transaction/NAME",
// or "".
func (c *ApproveCmd) transaction() string {
	switch {
	case len(c.Names) == 2 && c.Names[0] == transactionWord:
		return string(c.Names[1])
	case len(c.Names) == 1:
		if name, ok := strings.CutPrefix(string(c.Names[0]), transactionWord+"/"); ok {
			return name
		}
	}
	return ""
}

// approvedTransaction is the approval of a transaction by a user.
type approvedTransaction struct {
	Transaction string   `json:"transaction"`
	Plan        string   `json:"plan"`
	User        string   `json:"user"`
	ApprovedBy  []string `json:"approvedBy"`
	People      int32    `json:"people"`
}

// approveTransaction approves the plan of a transaction. It shows the plan as it is now: if it has changed, the manager
// plans the transaction again.
func (c *ApproveCmd) approveTransaction(env *terminal.Env, name string) (err error) {
	pl, err := c.open(env, c.ClusterFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pl.close()) }()
	t := &v1alpha1.Transaction{}
	if err := pl.Client.Get(env.Context, client.ObjectKey{Name: name}, t); err != nil {
		return apiserver.Classify(err, "read the transaction %s", name)
	}
	if !t.AwaitsPolicy() || t.Status.Policy.People == 0 {
		return operation.ErrNoApproval.New(
			nil, "the transaction %s waits for no approval: its phase is %s", name, cmp.Or(t.Status.Phase, "not known yet"),
		)
	}
	user, err := apiserver.User(env.Context, pl.Client)
	if err != nil {
		return apiserver.Classify(err, "read your name")
	}
	if user == t.Annotations[fence.AnnotationUser] {
		return operation.ErrNoApproval.New(nil, "you have created the transaction %s, and another user must approve it", name)
	}
	digest, err := c.showTransaction(env, pl, t)
	if err != nil {
		return err
	}
	if err := c.Consent(env, "approve the transaction "+name); err != nil {
		return err
	}
	people := t.Status.Policy.People
	if t, err = operation.ApproveTransaction(env.Context, pl.Client, t, digest, user); err != nil {
		return err
	}
	approvals, creator := t.Annotations[fence.AnnotationApprovals], t.Annotations[fence.AnnotationUser]
	out := approvedTransaction{
		Transaction: name, Plan: digest, User: user, People: people,
		ApprovedBy: changepolicy.Approvers(approvals, digest, creator),
	}
	return c.Print(env.Stdout, out, func(w io.Writer) {
		fmt.Fprintf(w, "transaction/%s approved (%d of %d)\n", terminal.Safe(name), len(out.ApprovedBy), out.People)
	})
}

// showTransaction writes the plan of a transaction, and returns its digest. Without access to the content, it is the
// plan of the manager, of which the packages are shown.
func (c *ApproveCmd) showTransaction(env *terminal.Env, pl *clusterPlanner, t *v1alpha1.Transaction) (string, error) {
	all, err := inventory.LoadNamed(env.Context, pl.Client)
	if err != nil {
		return "", err
	}
	o := operation.Operation{Engine: pl.Engine, Options: pl.Options, NeedsPlan: true}
	steps, err := o.TransactionSteps(env.Context, all, t)
	if err == nil {
		err = o.PlanTransaction(env.Context, steps)
	}
	created := cmp.Or(t.Annotations[fence.AnnotationUser], "a user without a name")
	fmt.Fprintf(env.Stderr, "transaction %s of %s needs an approval: %s\n", terminal.Safe(t.Name), terminal.Safe(created),
		terminal.Safe(strings.Join(t.Status.Policy.Reasons, ", ")))
	if operation.IsPlanUnavailable(err, nil) {
		for _, p := range t.Spec.Packages {
			name := v1.ObjectName(p.Kind, p.Name)
			fmt.Fprintf(env.Stderr, "  %s to %s\n", terminal.Safe(name), terminal.Safe(p.Spec.Package))
		}
		for _, p := range t.Spec.Remove {
			fmt.Fprintf(env.Stderr, "  uninstall %s\n", terminal.Safe(v1.ObjectName(p.Kind, p.Name)))
		}
		pl.Note("The consequences are not known here, because the change cannot be planned: %v", err)
		return t.Status.Policy.Plan, nil
	}
	if err != nil {
		return "", err
	}
	plans := operation.Plans(steps)
	writePlans(env.Stderr, plans)
	digest := planner.Agreement(plans)
	if digest != t.Status.Policy.Plan {
		pl.Note("The change has other consequences now than when the manager planned it. " +
			"The manager plans it again when enough people have approved these.")
	}
	return digest, nil
}
