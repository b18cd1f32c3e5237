package doctor

import (
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// Facts are the values that the checks need.
type Facts struct {
	// Unread maps the names of checks to the reasons why their facts could not be read.
	Unread map[string]string
	// Namespace is the namespace of the manager.
	Namespace string
	// Version is the version of the API server, and Minor its minor version, or zero if it is unknown.
	Version string
	Minor   int
	// Lacking lists the missing permissions for the installation.
	Lacking []string
	// Cores are the Crossplane cores of all namespaces.
	Cores []crossplane.Core
	// Leases are the Leases of managers.
	Leases []Lease
	// Now is the time of the reads.
	Now time.Time
	// Fenced reports that the policy exists that protects the manager from package runtimes.
	Fenced bool
	// FenceChanged reports that the policy or its binding is not the one of this version of xpkg.
	FenceChanged bool
	// ConsentGap is the reason why the manager accepts no consents in annotations of packages, or zero.
	ConsentGap consent.Gap
	// WithoutRuntimes reports that the manager has announced that it starts no runtime of any package.
	WithoutRuntimes bool
	// FormerRuntimes are the Deployments of packages that the manager does not run as Deployments any more.
	FormerRuntimes []FormerRuntime
	// Definitions are the CRDs of the package API.
	Definitions []Definition
	// Webhooks are the webhooks that call a Service.
	Webhooks []Webhook
	// Registries are the registries of the installed packages.
	Registries []Registry
	// Escalation are the verbs with which the manager can grant any permission.
	Escalation []string
	// Packages are the installed packages.
	Packages []Package
	// XRDs are the XRDs of a cluster in which Crossplane core runs.
	XRDs []XRD
	// FirstGeneration are the install objects, and the Packages that users created.
	FirstGeneration []Package
}

// installed reports whether xpkg has installed the package API.
func (f Facts) installed() bool {
	return slices.ContainsFunc(f.Definitions, func(d Definition) bool { return d.IsOwn })
}

// Lease is the Lease of a manager.
type Lease struct {
	Namespace, Holder string
	Expires           time.Time
}

// FormerRuntime is a Deployment that the manager made for the runtime of a package, and does not manage any more.
type FormerRuntime struct {
	// Namespace and Deployment name the Deployment.
	Namespace, Deployment string
	// Owner is the revision, or the Package of the first generation, that the Deployment belongs to.
	Owner string
	// Chosen is how the runtime runs now.
	Chosen runtime.Name
}

// Definition is a CRD of the package API.
type Definition struct {
	Name string
	// Exists reports that the cluster has the CRD, IsOwn that xpkg has written it, and IsCurrent that it has
	// the content of this version.
	Exists, IsOwn, IsCurrent bool
}

// Webhook is a webhook that calls a Service.
type Webhook struct {
	// Configuration is the kind and the name of the configuration, as in kubectl.
	Configuration string
	Name          string
	// Service is the namespace and the name of the Service.
	Service string
	// Blocks reports that the API server rejects requests while the webhook does not serve.
	Blocks bool
	// Endpoints is the number of ready endpoints of the Service.
	Endpoints int
}

// Package is an installed package, or an object of the first generation: an install object, or a Package that a user
// created.
type Package struct {
	Kind string
	// Namespace is empty for an installed package.
	Namespace, Name string
	Ready           bool
	Reason, Message string
	// Fix is the remedy for the reason, or empty if it is unknown.
	Fix string
	// Describe is the command that describes an install object without a package, which xpkg describe cannot describe.
	Describe string
	// Waiting reports that the package waits for another one, or for the approval or the activation by a user, and has not
	// failed.
	Waiting bool
	// Resume is the command that resumes the reconciliation of a paused package.
	Resume string
}

// Registry is a registry of installed packages.
type Registry struct {
	Host string
	// Error is the reason why it does not respond, or empty.
	Error string
}
