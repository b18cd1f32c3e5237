package controller

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/controller/fences"
	"github.com/xpkg-dev/xpkg/internal/controller/generations"
	"github.com/xpkg-dev/xpkg/internal/controller/transactions"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/provide"
)

// kindAge is the age up to which lists of kinds are used again.
const kindAge = time.Minute

// setupTransactions registers the controllers of transactions and of the history of the packages, if the manager has
// the permissions of the manifests of this version. Its clients read from the API server: the decisions of a
// transaction are those of a command, which has no cache.
func (c *components) setupTransactions(ctx context.Context) error {
	cfg := c.manager.GetConfig()
	live, err := client.New(cfg, client.Options{
		Scheme: c.manager.GetScheme(), Mapper: c.manager.GetRESTMapper(), HTTPClient: c.manager.GetHTTPClient(),
	})
	if err != nil {
		return err
	}
	// The manifests that grant the permissions for these objects contain their fences.
	for _, needed := range []struct {
		fence string
		list  client.ObjectList
		what  string
	}{
		{fence.TransactionsName, &v1alpha1.TransactionList{}, "them"},
		{fence.ApprovalsName, &v1alpha1.ChangePolicyList{}, "ChangePolicies"},
	} {
		if !slices.Contains(c.missingFences, needed.fence) {
			continue
		}
		if err := live.List(ctx, needed.list, client.Limit(1)); apierrors.IsForbidden(err) {
			c.options.Log.Warn("the manager carries out no transactions, because it may not read " + needed.what +
				": apply the manifests of `xpkg bootstrap` again")
			return nil
		} else if err != nil {
			return err
		}
	}
	planned, err := planner.NewCluster(cfg)
	if err != nil {
		return err
	}
	r := &transactions.Reconciler{
		Client: live, Cache: c.api.Client, Objects: c.api.Cluster, Guard: c.guard.Check, Held: c.held,
		NewPlanner: func() *planner.Planner { return c.newPlanner(live, planned) },
		Consents:   c.requires(consent.CheckTransactions),
		Approvals:  c.requires(consent.CheckApprovals), Now: c.options.now(),
	}
	if err := r.SetupWithManager(c.manager, c.options.Log); err != nil {
		return err
	}
	changes := &fences.Changes{Client: c.api.Client, Fence: c.changes}
	if err := changes.SetupWithManager(c.manager, c.options.Log); err != nil {
		return err
	}
	history := &generations.Reconciler{
		Client: c.api.Client, Live: c.api.Live, Namespace: c.options.namespace(), Now: time.Now, Log: c.options.Log,
	}
	return history.SetupWithManager(c.manager)
}

// requires returns a function that fails if a check of the fences finds a gap.
func (c *components) requires(
	check func(context.Context, client.Reader) (consent.Gap, error),
) func(context.Context) error {
	return func(ctx context.Context) error {
		gap, err := check(ctx, c.fenceReader())
		if err != nil || gap == (consent.Gap{}) {
			return err
		}
		return operation.ErrNoTransactions.New(nil, "%s", gap.Why).WithDo("%s", gap.Fix)
	}
}

// newPlanner returns a planner with the configuration of the manager.
func (c *components) newPlanner(live client.Client, cluster planner.Cluster) *planner.Planner {
	o := c.options
	pl := &planner.Planner{
		Reader: live, Cluster: cluster, Source: o.Content, Frontend: o.FirstGeneration.API,
		DryRun: client.NewDryRunClient(live), Namespace: o.namespace(), Identify: true,
		Kinds: &provide.Finder{},
	}
	pl.Images, _ = o.Content.(planner.Images)
	if o.Dependencies != nil {
		pl.Registry = o.Dependencies.Registry
	}
	if o.Permissions != nil {
		pl.PermissionPolicy = o.Permissions.Policy
	}
	if o.KindSources != nil {
		pl.Kinds.Load = func(ctx context.Context) ([]provide.Source, error) { return o.KindSources(ctx, kindAge) }
	}
	pl.Kinds.Crossplane, pl.Kinds.Held = pl.CrossplaneConstraints, pl.HeldKinds
	return pl
}
