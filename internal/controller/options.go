package controller

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/revisions"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Content reads the content of packages.
type Content = state.Content

// Dependencies configure the installation of dependencies.
type Dependencies = revisions.DependencyOptions

// Permissions configure the permissions that the manager grants to runtimes.
type Permissions = revisions.PermissionOptions

// IncreasePolicy is the policy for a version that requests more permissions.
type IncreasePolicy = revisions.IncreasePolicy

// The policies for more permissions.
const (
	AllowIncrease   = revisions.AllowIncrease
	ApproveIncrease = revisions.ApproveIncrease
)

// Options configure a manager.
type Options struct {
	// Config connects to the API server.
	Config *rest.Config
	// Content reads the content of packages.
	Content Content
	// Namespace is the namespace of package runtimes and their Secrets. Empty means DefaultNamespace.
	Namespace string
	// MakeNamespace creates that namespace if it does not exist and the manager has the permission,
	// as on a local control plane. If the manager runs in the cluster, its installation creates the
	// namespace.
	MakeNamespace bool
	// Poll is the interval between two lookups of a package with the pull policy Always. Zero means
	// a minute.
	Poll time.Duration
	// MetricsAddress is the address of the Prometheus metrics. Empty disables them.
	MetricsAddress string
	// HealthAddress is the address of /healthz and /readyz. Empty disables them.
	HealthAddress string
	// CrossplaneVersion is the version of Crossplane that packages must support. Empty means the
	// version of the Crossplane core in the namespace, if there is one.
	CrossplaneVersion string
	// Resync is the full resync interval. Zero means an hour.
	Resync time.Duration
	// ActivationDeadline is the maximum time in which a new revision must become healthy, and in which a
	// crash of its runtime still rolls it back. Zero means ten minutes. A negative value disables rollbacks.
	ActivationDeadline time.Duration
	// ConversionPatience is the time for which a failing conversion webhook may keep a CRD from being deleted. Zero means
	// two minutes.
	ConversionPatience time.Duration
	// Settle is the time that a runtime must run without a restart before it is available. Zero means the
	// default of the runtime.
	Settle time.Duration
	// InUse is called with the UID of the cluster and the contents that its packages need, at each
	// reconciliation of the Lock. It may be nil.
	InUse func(cluster string, contents []oci.Digest) error
	// TakeOver replaces the package API of another package manager.
	TakeOver bool
	// Dependencies make the manager install dependencies. They may be nil.
	Dependencies *Dependencies
	// Kinds is the choice of kinds of Providers without one, a value of activation.AnnotationKinds. Empty means all kinds
	// of a Provider that a user installed, and the used ones of a dependency.
	Kinds string
	// Permissions make the manager grant permissions to runtimes. They may be nil.
	Permissions *Permissions
	// FirstGeneration is the API of the first generation of packages.
	FirstGeneration Extension
	// KindSources returns the sources in which packages that provide the kinds of install objects are found, in a state
	// that is at most maxAge old. It may be nil.
	KindSources func(ctx context.Context, maxAge time.Duration) ([]provide.Source, error)
	// Log is the logger of the manager.
	Log *slog.Logger
	// CountInterval is the shortest time between two counts of the custom resources of a kind. Zero means a minute.
	CountInterval time.Duration
	// Unprotected lets users delete packages with custom resources, CRDs of packages, active revisions and the namespace
	// of the manager like any other object.
	Unprotected bool
	// LeaderElection lets one of several managers reconcile. Its Lease is in Namespace, unless it
	// names another namespace. If it is nil, no other manager may work on the cluster.
	LeaderElection *leader.Election
	// Runtimes chooses the runtime of each package. With the zero value, packages are healthy without
	// a runtime.
	Runtimes runtime.Choice
	// Images reads runtime images. It is required by the runtime Deployment.
	Images deployment.Images
	// RuntimePrivileges are the privileges that runtime configurations may use.
	RuntimePrivileges []manifests.Privilege
	// Processes run runtimes as processes. It is required by the runtime Process, and belongs to one
	// run of the manager.
	Processes Processes
	// CertificateOverlap is the time between the distribution of a new CA and its first signature, and
	// between the replacement of the last certificate of an old CA and the removal of that CA. Zero means a
	// day.
	CertificateOverlap time.Duration
	// Remote reports that the manager runs outside of the Pod network of the cluster, so that the API
	// server may reach an endpoint that the manager cannot reach.
	Remote bool
	// WebhookProbe is the interval between two probes of the webhooks of packages. Zero means
	// webhooks.DefaultInterval.
	WebhookProbe time.Duration
	// Contention limits the writes of an object that another client keeps changing. Zero means
	// contention.DefaultLimits.
	Contention contention.Limits
	// Now is the clock of the ChangePolicy. It may be nil.
	Now func() time.Time
	// Ready is called each time that the controllers have started and the Lock has been reconciled.
	// It may be nil.
	Ready func()
}

// Processes run package runtimes as processes of this machine.
// [github.com/xpkg-dev/xpkg/internal/runtime/processruntime.Host] implements it.
type Processes interface {
	// NewRuntime returns the runtime of the packages of a control plane.
	NewRuntime(c client.Client, config *rest.Config, namespace string, privileges []manifests.Privilege) runtime.Runtime
	// Changes returns the names of runtimes whose state has changed.
	Changes() <-chan string
}

// DefaultNamespace is Crossplane's namespace.
const DefaultNamespace = "crossplane-system"

const (
	defaultPoll               = time.Minute
	defaultActivationDeadline = 10 * time.Minute
	defaultConversionPatience = 2 * time.Minute
	defaultResync             = time.Hour
)

func (o Options) namespace() string { return cmp.Or(o.Namespace, DefaultNamespace) }

// StaticFences returns the fences of a manager with this name for the API server, which starts with them: policies and
// bindings that no client can change, by the names of their files.
func (o Options) StaticFences(username string) map[string]any {
	all := append(consent.Fences(), fence.Approvals(), fence.Runtimes(o.fenced()))
	if !o.Unprotected {
		all = append(all, fence.Removals(fence.Remover{Username: username, Namespace: o.namespace()}))
	}
	out := map[string]any{}
	for _, f := range all {
		out[f.Name+"-policy.json"], out[f.Name+"-binding.json"] = f.Static()
	}
	return out
}

// fenced returns the objects that runtimes must not write.
func (o Options) fenced() fence.Manager {
	m := fence.Manager{Namespace: o.namespace(), Lease: leader.DefaultLease}
	if e := o.LeaderElection; e != nil {
		m.Lease = cmp.Or(e.Name, m.Lease)
	}
	if p := o.Permissions; p != nil {
		m.PolicyConfigMap = p.Policy.ConfigMap
	}
	return m
}

func (o Options) now() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}

func (o Options) countInterval() time.Duration { return cmp.Or(o.CountInterval, time.Minute) }

func (o Options) contention() contention.Limits {
	return cmp.Or(o.Contention, contention.DefaultLimits)
}

func (o Options) poll() time.Duration { return cmp.Or(o.Poll, defaultPoll) }

func (o Options) resync() time.Duration { return cmp.Or(o.Resync, defaultResync) }

func (o Options) conversionPatience() time.Duration {
	return cmp.Or(o.ConversionPatience, defaultConversionPatience)
}

func (o Options) activationDeadline() time.Duration {
	return max(0, cmp.Or(o.ActivationDeadline, defaultActivationDeadline))
}
