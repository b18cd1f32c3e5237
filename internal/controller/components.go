package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/controller/compositeroles"
	"github.com/xpkg-dev/xpkg/internal/controller/definitions"
	"github.com/xpkg-dev/xpkg/internal/controller/establishment"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/fences"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/lock"
	"github.com/xpkg-dev/xpkg/internal/controller/orphans"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/controller/packages"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/controller/revisions"
	"github.com/xpkg-dev/xpkg/internal/controller/rootca"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/controller/transactions"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// components are the values that several controllers share.
type components struct {
	options     Options
	manager     ctrl.Manager
	api         kube.API
	guard       *crossplane.Guard
	packages    state.Packages
	known       *state.Dependencies
	runtimes    *runtimes.Set
	ca          *certificates.Store
	rollback    revision.RollbackPolicy
	installed   packageapi.Installed
	overwritten *packageapi.Overwritten
	metrics     *metrics
	held        *transactions.Held
	counter     planner.Cluster
	// watchesFences and missingFences are set by setupFences.
	watchesFences bool
	missingFences []string
	// changes is the fence of changes, or nil if the manager cannot maintain it.
	changes *fence.Fence
}

// newComponents returns the components for the controllers of mgr.
func newComponents(
	o Options, mgr ctrl.Manager, cluster *apply.Cluster, installed packageapi.Installed, set *runtimes.Set,
	counter planner.Cluster, metrics *metrics,
) *components {
	c, live, namespace := mgr.GetClient(), mgr.GetAPIReader(), o.namespace()
	overwritten := &packageapi.Overwritten{}
	guard := &crossplane.Guard{
		Reader: live, Client: c, Namespace: namespace, Now: time.Now,
		Role: crossplane.Role{Permissions: o.Permissions != nil, Runtimes: o.Runtimes.Uses(runtime.Deployment)},
	}
	reporter := &status.Reporter{
		Client: c, Events: mgr.GetEventRecorder("xpkg"), Writes: &expectations.Versions{Now: time.Now},
		CountFailure: func(code string) { metrics.failures.WithLabelValues(code).Inc() }, Now: time.Now,
		Blocked: func(ctx context.Context, kind string) error { return cmp.Or(overwritten.Of(kind), guard.Check(ctx)) },
	}
	return &components{
		held: transactions.NewHeld(), counter: counter, options: o, manager: mgr, guard: guard, runtimes: set,
		installed:   installed,
		overwritten: overwritten, metrics: metrics,
		api: kube.API{
			Client: c, Live: live, Cluster: cluster, Revisions: &state.LiveRevisions{Reader: live}, Status: reporter,
		},
		packages: state.Packages{
			Content: o.Content, Origins: origin.Finder{Reader: c, Secrets: live, Namespace: namespace}, Namespace: namespace,
			Kinds: state.Kinds{
				Reader: mgr.GetCache(), Metadata: watch.LiveDefinitions(c), InUse: planner.InUse(counter),
				Default: &o.Kinds,
			},
		},
		known: &state.Dependencies{Content: o.Content},
		ca: &certificates.Store{
			Client: c, Namespace: namespace, Now: time.Now, Random: rand.Reader, Overlap: o.CertificateOverlap,
			Settled: rootca.Distribution{Client: c, Cluster: cluster, Namespace: namespace}.IsComplete,
		},
		rollback: revision.RollbackPolicy{Deadline: o.activationDeadline(), Now: time.Now, Classify: classifyFailure},
	}
}

// setupControllers registers all controllers. The controller of the Lock calls ready after its first reconciliation.
func (c *components) setupControllers(ctx context.Context, ready func()) error {
	if err := c.setupFences(ctx); err != nil {
		return err
	}
	if err := c.setupPackages(ctx); err != nil {
		return err
	}
	if err := c.setupConversions(); err != nil {
		return err
	}
	if err := c.setupCompositeRoles(); err != nil {
		return err
	}
	if err := c.setupDefinitions(); err != nil {
		return err
	}
	if err := c.setupPackageAPI(); err != nil {
		return err
	}
	if err := c.setupExtension(); err != nil {
		return err
	}
	if err := c.setupRuntimes(); err != nil {
		return err
	}
	if err := c.setupLock(ctx, ready); err != nil {
		return err
	}
	if err := c.setupOrphans(); err != nil {
		return err
	}
	return c.setupTransactions(ctx)
}

// crossplane returns the version of Crossplane that packages are checked against.
func (c *components) crossplane() *crossplane.Checker {
	return &crossplane.Checker{
		Configured: c.options.CrossplaneVersion, Reader: c.api.Live, Namespace: c.options.namespace(), Now: time.Now,
	}
}

// setupPackages registers the controllers of packages and of revisions, two for each kind of package.
func (c *components) setupPackages(ctx context.Context) error {
	o, reserved := c.options, reservations.New()
	checks := &revisions.Checks{
		Crossplane:  c.crossplane(),
		Permissions: o.Permissions, Held: &permission.ManagerRules{Client: c.api.Client, Log: o.Log}, Poll: o.poll(),
		CountInterval: o.countInterval(), Consents: c.consents, WatchesConsents: c.watchesFences,
	}
	dependencies := &revisions.Dependencies{Known: c.known, Options: o.Dependencies}
	tracker := &establishment.Tracker{}
	if err := tracker.Watch(ctx, c.manager.GetCache()); err != nil {
		return err
	}
	// An external runtime need not run.
	runs := func(provider string) bool {
		name := o.Runtimes.Of(v1.ProviderKind, provider)
		return name == runtime.Deployment || name == runtime.Process
	}
	counts := packages.NewCounts(c.api.Client, c.counter, runs, o.countInterval())
	if err := c.manager.Add(counts); err != nil {
		return fmt.Errorf("count custom resources: %w", err)
	}
	for _, kind := range v1.PackageKinds() {
		p := &packages.Reconciler{
			Kind: kind, API: c.api, Resolver: &packages.Resolver{Packages: c.packages, Poll: o.poll()},
			Rollback: c.rollback, Runtimes: c.runtimes, Reservations: reserved, APIChanges: c.overwritten.Changes(),
			Holder: c.held.By, Held: c.held.Changes(kind), Counter: c.counter, Counts: counts, Unprotected: o.Unprotected,
		}
		if err := p.SetupWithManager(c.manager, o.Log); err != nil {
			return fmt.Errorf("controller of %s: %w", kind, err)
		}
		r := &revisions.Reconciler{
			Kind: kind, API: c.api, Packages: c.packages, Checks: checks, Dependencies: dependencies,
			APIChanges: c.overwritten.Changes(),
			Objects:    &revisions.Objects{Reservations: reserved, CountWrites: c.metrics.countWrites, Establishment: tracker},
			Runtimes: &revisions.Runtimes{
				Set: c.runtimes, Certificates: c.ca, Prober: webhooks.Prober{Reader: c.api.Live, Remote: o.Remote},
				SettleTime: o.Settle,
			},
		}
		if err := r.SetupWithManager(ctx, c.manager, o.Log); err != nil {
			return fmt.Errorf("controller of %sRevision: %w", kind, err)
		}
	}
	return nil
}

// setupCompositeRoles registers the controller of the roles of XRDs if the manager grants permissions.
func (c *components) setupCompositeRoles() error {
	if c.options.Permissions == nil {
		return nil
	}
	r := &compositeroles.Reconciler{
		Cache: c.api.Client, Cluster: c.api.Cluster, Events: c.api.Status.Events, Guard: c.guard.Check,
		// The manifests of missing permissions are not logged: `xpkg doctor` prints one for all XRDs.
		Held:         &permission.ManagerRules{Client: c.api.Client, Log: slog.New(slog.DiscardHandler)},
		CountFailure: c.api.Status.CountFailure,
	}
	return r.SetupWithManager(c.manager, c.options.Log)
}

// setupDefinitions registers the controllers of the definitions of kinds, and of the policies that activate them.
func (c *components) setupDefinitions() error {
	cache := c.manager.GetCache()
	d := &definitions.Reconciler{
		Cache: cache, Client: c.api.Client, Packages: c.packages, Guard: c.guard.Check, Now: c.api.Time,
	}
	p := &definitions.Policies{
		Cache: cache, Client: c.api.Client, Events: c.api.Status.Events, Guard: c.guard.Check, Now: c.api.Time,
	}
	return errors.Join(d.SetupWithManager(c.manager, c.options.Log), p.SetupWithManager(c.manager, c.options.Log))
}

// setupPackageAPI registers the controller of the CRDs of the package API.
func (c *components) setupPackageAPI() error {
	r := &packageapi.Reconciler{
		Cluster: c.api.Cluster, Cache: c.api.Client, Installed: c.installed, Events: c.api.Status.Events,
		Overwritten: c.overwritten,
	}
	return r.SetupWithManager(c.manager, c.options.Log)
}

// setupFences installs the fences, before a runtime starts, and registers their controllers. Without runtimes, there is
// no fence for them.
func (c *components) setupFences(ctx context.Context) error {
	r := fences.Reconciler{Client: c.api.Client, Live: c.api.Live, Fences: append(consent.Fences(), fence.Approvals())}
	username, err := c.username(ctx)
	if err != nil {
		return err
	}
	switch {
	case c.options.Unprotected:
		if err := c.unprotect(ctx); err != nil {
			return err
		}
	case username != "":
		r.Fences = append(r.Fences, fence.Removals(fence.Remover{Username: username, Namespace: c.options.namespace()}))
	}
	if len(c.runtimes.Used()) > 0 {
		r.Fences = append(r.Fences, fence.Runtimes(c.options.fenced()))
	}
	c.watchesFences, err = r.Install(ctx, c.options.Log)
	c.missingFences = r.Missing
	if err != nil || !c.watchesFences {
		return err
	}
	if username != "" {
		c.changes = new(fence.Changes(username))
	}
	return r.SetupWithManager(c.manager, c.options.Log)
}

// unprotect deletes the guard of removals.
func (c *components) unprotect(ctx context.Context) error {
	policy, binding := fence.Removals(fence.Remover{}).Objects()
	for _, o := range []client.Object{binding, policy} {
		if err := c.api.Client.Delete(ctx, o); err != nil && !fences.IsUnavailable(err) {
			return err
		} else if apierrors.IsForbidden(err) {
			c.options.Log.WarnContext(ctx, "deletions are still protected by a policy; delete it with "+
				"`kubectl delete validatingadmissionpolicy,validatingadmissionpolicybinding "+fence.RemovalsName+"`")
		}
	}
	return nil
}

// username returns the name that the API server has for the manager, or "" if it does not tell.
func (c *components) username(ctx context.Context) (string, error) {
	api, err := authenticationclient.NewForConfig(c.options.Config)
	if err != nil {
		return "", err
	}
	self, err := api.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if fences.IsUnavailable(err) { // Kubernetes serves it longer than admission policies.
		c.options.Log.WarnContext(ctx, "the policies that protect packages cannot be installed, because the name of the manager is not known",
			"error", err.Error())
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the name of the manager: %w", err)
	}
	return self.Status.UserInfo.Username, nil
}

// consents returns the gap of the fence of consents.
func (c *components) consents(ctx context.Context) (consent.Gap, error) {
	return consent.Check(ctx, c.fenceReader())
}

// fenceReader returns the reader of fences: their watch, if there is one, because the manager then has no other
// permission.
func (c *components) fenceReader() client.Reader {
	if c.watchesFences {
		return c.api.Client
	}
	return c.api.Live
}

// setupConversions registers the controller of CRDs that cannot be deleted because of their conversion webhook.
func (c *components) setupConversions() error {
	r := packages.Conversions{
		Client: c.api.Client, Live: c.api.Live, Now: time.Now, Patience: c.options.conversionPatience(),
	}
	return r.SetupWithManager(c.manager, c.options.Log)
}

// setupRuntimes registers the relay of changes of processes, and the controller of the CA if runtimes are used.
func (c *components) setupRuntimes() error {
	if c.runtimes.Changes != nil {
		if err := c.manager.Add(crmanager.RunnableFunc(c.runtimes.RelayChanges)); err != nil {
			return fmt.Errorf("watch processes: %w", err)
		}
	}
	if len(c.runtimes.Used()) == 0 {
		return nil
	}
	r := rootca.Reconciler{Certificates: c.ca, Namespace: c.options.namespace(), Now: time.Now}
	return r.SetupWithManager(c.manager, c.options.Log)
}

// setupLock registers the controller of the Lock. It calls ready after its first reconciliation.
func (c *components) setupLock(ctx context.Context, ready func()) error {
	// The UID of the namespace kube-system identifies the cluster in a package cache that several
	// clusters share.
	var system corev1.Namespace
	if err := c.api.Live.Get(
		ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system,
	); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("identify the cluster: %w", err)
	}
	o := c.options
	r := &lock.Reconciler{
		Client: c.api.Client, Dependencies: c.known, Writes: c.api.Status.Writes, Guard: c.guard.Check, Now: metav1.Now,
		Announcements: announcements(o), Reconciled: ready,
		InUse: func(contents []oci.Digest) error {
			if o.InUse == nil {
				return nil
			}
			return o.InUse(string(system.UID), contents)
		},
	}
	return r.SetupWithManager(c.manager, o.Log)
}

// setupOrphans registers the controller of orphaned dependencies if the manager removes them.
func (c *components) setupOrphans() error {
	if d := c.options.Dependencies; d == nil || d.Removal != graph.RemoveOrphans {
		return nil
	}
	return orphans.New(orphans.Config{
		Client: c.api.Client, Live: c.api.Live, Cluster: c.counter, Frontend: c.options.FirstGeneration.API,
		Packages: c.packages, Dependencies: c.known,
		Events: c.api.Status.Events, Now: time.Now, Guard: c.guard.Check, RollbackWindow: c.rollback.Remaining,
	}).SetupWithManager(c.manager, c.options.Log)
}

// announcements returns the annotations of the Lock from which plans read the configuration of the
// manager.
func announcements(o Options) map[string]string {
	var upgrades graph.Policy
	var removal graph.RemovalPolicy
	if d := o.Dependencies; d != nil {
		upgrades, removal = d.UpgradePolicy(), d.Removal
	}
	out := lock.Announcements(upgrades, removal, o.Permissions != nil && o.Permissions.Namespaced, o.Permissions != nil &&
		o.Permissions.Increase == ApproveIncrease, o.Runtimes, o.RuntimePrivileges)
	if o.Kinds != "" {
		out[activation.AnnotationKinds] = o.Kinds
	}
	if o.LeaderElection != nil {
		// The claim survives a deletion of the Lock.
		out[leader.AnnotationNamespace] = o.namespace()
	}
	return out
}

// classifyFailure returns the kind of failure that a reason of the Ready condition stands for.
func classifyFailure(reason v1.ConditionReason) revision.Failure {
	name := string(reason)
	is := func(has func(errcode.Code) bool) bool {
		return slices.ContainsFunc(slices.Concat(apply.Codes(), check.Codes(), runtime.Codes(), runtimedefaults.Codes()),
			func(c errcode.Code) bool {
				return c.Name == name && has(c)
			})
	}
	switch {
	case is(func(c errcode.Code) bool { return c.Final }):
		return revision.Final
	case is(func(c errcode.Code) bool { return c.Refusal }) ||
		slices.ContainsFunc(unmet(), func(c errcode.Code) bool { return c.Name == name }):
		return revision.Refused
	case name == apply.ErrPartial.Name:
		return revision.Partial
	case name == runtime.ReasonCrashLoop:
		return revision.CrashLoop
	case runtime.IsRuntimeFailure(name):
		return revision.RuntimeFailure
	}
	return revision.Transient
}

// unmet returns the codes of failures that depend on other objects of the cluster: a revision is not healthy until they
// change. Most are of checks before its first write. A quota, and the permissions of the manager, can also stop it
// later, such as at its runtime.
func unmet() []errcode.Code {
	return append(slices.Concat(graph.Codes(), certificates.Codes()),
		apply.ErrForbidden, apply.ErrKindNotServed, apply.ErrQuota, crossplane.ErrVersion,
		manifests.ErrPrivileges, rbac.ErrPermissionDenied, rbac.ErrPolicyUnreadable, runtime.ErrRuntimeConfig)
}
