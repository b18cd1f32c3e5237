package planner

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Source reads the content of packages; fetch.Source implements it.
type Source = state.Content

// Cluster reads the parts of a cluster other than packages; see [NewCluster].
type Cluster interface {
	// Identity returns the UID of the namespace kube-system, or "" if the client may not read the
	// namespace.
	Identity(ctx context.Context) (types.UID, error)
	// Metadata returns the metadata of the existing objects among refs.
	Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error)
	// OwnedContent returns the owner references of all objects of the kinds that packages contain. Unlisted are the kinds
	// that the client may not list.
	OwnedContent(ctx context.Context) (owned apply.Owned, unlisted []plan.Ref, err error)
	// Preflight adds a refusal for each object that the API server would reject, or that breaks custom resources.
	Preflight(ctx context.Context, p plan.Plan, content apply.Content, breaks apply.Breaks) (plan.Plan, error)
	// CustomResources counts the custom resources of CRDs and XRDs, in the order of names, and identifies them if
	// requested, unless there are very many of a CRD. It omits those without custom resources.
	CustomResources(ctx context.Context, names []string, identify bool) ([]CustomResources, error)
	// Kinds returns the kinds of an API group that the API server serves.
	Kinds(ctx context.Context, group string) ([]apply.ServedKind, error)
	// ClusterScoped returns the cluster-scoped resources that the API server serves.
	ClusterScoped(ctx context.Context) (map[schema.GroupResource]bool, error)
}

// Planner plans operations on packages. It writes nothing.
type Planner struct {
	// Reader reads packages, revisions, ImageConfigs, the Lock and pull secrets. It must read from the API server: a plan
	// from a cache could delete objects that were just created.
	Reader  client.Reader
	Cluster Cluster
	Source  Source
	// Images reads the configurations of runtime images. Without it, a plan does not predict images
	// without a program.
	Images Images
	// Frontend is the API whose objects use packages, or nil.
	Frontend *frontend.API
	// DryRun is a client for dry runs, with which a plan asks the API server whether it accepts the Deployments of
	// runtimes. Without it, plans do not ask.
	DryRun client.Client
	// Registry looks up versions of dependencies. Without it, a plan does not list the
	// packages that would be installed as dependencies.
	Registry fetch.Lookup
	// Kinds selects packages for required kinds that no installed package provides. Without it, such kinds have no
	// provider.
	Kinds *provide.Finder
	// Namespace is the namespace of the manager.
	Namespace string
	// PermissionPolicy is the manager's policy for the permissions that packages request, as far as
	// the caller knows it.
	PermissionPolicy permission.PolicySource
	// Identify makes the plan of an uninstall identify the custom resources that it deletes, instead of only counting
	// them, so that those that are created later are recognized.
	Identify bool
}

// Options are what the plan of one change assumes and decides.
type Options struct {
	// After is the state in which the change is made.
	After State
	// ChangedTogether has the other packages that the same operation changes, in the form of
	// [Package.Short]. Their current requirements do not count as broken.
	ChangedTogether map[string]bool
	// RemovedTogether are the packages that the same operation deletes.
	RemovedTogether []v1.Package
	// Uses are the kinds that the packages of the same operation use.
	Uses []activation.Use
	// Provides are the kinds for which the package was selected. The plan fails if its content does not define them.
	Provides []dependency.KindRef
	// Upgrades is the policy of the manager for a package that requires another version of an installed one. Empty means
	// the policy that the manager announces in the Lock.
	Upgrades graph.Policy
	// AllowWebhooks makes the plan consent to webhooks that cover resources that the package does
	// not define.
	AllowWebhooks bool
	// AdoptObjects makes the plan let the package adopt the objects of users that it contains.
	AdoptObjects bool
	// OnDelete answers what happens to the custom resources of a package that is uninstalled. The zero value is the answer
	// in the annotations of the package.
	OnDelete revision.OnDelete
	// AcceptBreaks are the rules that the package may break for custom resources, as "CRD/RULE". A rule of a CRD that the
	// package does not contain has no effect.
	AcceptBreaks []string
	// ShowMaintained makes the plan of a package that an install object maintains show the changes. The plan is refused;
	// see [Plan.Maintained].
	ShowMaintained bool
	// Pin makes the plan write the reference with the digest that it was resolved to, so
	// that applying the plan later installs exactly the same content.
	Pin bool
}

// planning is the planning of one change.
type planning struct {
	*Planner
	Options
	// Cluster is the cluster in the state in which the change is made.
	Cluster Cluster
}

func (pl *Planner) start(o Options) *planning {
	return &planning{Planner: pl, Options: o, Cluster: releasedCluster{pl.Cluster, o.After.Released}}
}

// packages returns a reader of package contents that selects the kinds of Providers as the manager does after the
// operation.
func (pl *planning) packages() state.Packages {
	out := pl.Planner.packages()
	out.Kinds = state.Kinds{
		Reader: pl.Reader, Metadata: pl.Cluster.Metadata, InUse: InUse(pl.Cluster), Planned: pl.Uses,
	}
	return out
}

// packages returns a reader of package contents with the configuration of the manager.
func (pl *Planner) packages() state.Packages {
	return state.Packages{Content: pl.Source, Origins: pl.finder(), Namespace: pl.Namespace}
}

func (pl *Planner) finder() origin.Finder {
	return origin.Finder{Reader: pl.Reader, Namespace: pl.Namespace, LeavesSecrets: true}
}

// Rewrites returns a function that maps a repository to the location from which it is read.
func (pl *Planner) Rewrites(ctx context.Context) (func(repository string) string, error) {
	return pl.finder().Rewrites(ctx)
}

// HeldKinds returns the CRDs of an API group with the packages that hold them, for [provide.Finder].
func (pl *Planner) HeldKinds(ctx context.Context, group string) (map[string]string, error) {
	packages := map[string]string{}
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		if err := pl.Reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		for _, p := range list.Packages() {
			packages[holderName(p)] = oci.RepositoryName(p.PackageSpec().Package)
		}
	}
	return state.GroupHolders(ctx, pl.Cluster, group, func(kind, name string) string { return packages[kind+"/"+name] })
}

// CrossplaneConstraints returns a function that reports whether a constraint accepts the version of Crossplane in the
// cluster, for [provide.Finder]. It returns nil if the version is not known: a plan warns of that.
func (pl *Planner) CrossplaneConstraints(ctx context.Context) (func(constraint string) bool, error) {
	fits, err := pl.crossplane().Constraints(ctx)
	if err != nil {
		return nil, nil //nolint:nilerr // The user may not read Deployments.
	}
	return fits, nil
}

func (pl *Planner) crossplane() *crossplane.Checker {
	return &crossplane.Checker{Reader: pl.Reader, Namespace: pl.Namespace, Now: time.Now}
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrCustomResources,
		ErrDependentsBroken,
		ErrMaintained,
		ErrNotInstalled,
		ErrPlanDamaged,
		ErrPlanInvalid,
		ErrPlanMoved,
	}
}
