package bootstrap

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fence"
)

// Scope is the scope of a grant.
type Scope string

// Scopes of grants.
const (
	// Everywhere is the whole cluster.
	Everywhere Scope = "everywhere"
	// Within is the namespace of the manager.
	Within Scope = "in its namespace"
	// Default is the namespace "default", where an API server keeps the events of
	// objects that belong to no namespace.
	Default Scope = "in the namespace default"
)

// A Grant is a group of permissions that the manager needs for one purpose.
type Grant struct {
	// Name is one word for the purpose.
	Name  string
	Scope Scope
	// Reason explains in a sentence how the manager uses the permissions.
	Reason string
	Rules  []rbacv1.PolicyRule
}

var (
	// follow are the verbs for objects that are read from a cache.
	follow = []string{"list", "watch"}
	read   = []string{"get", "list", "watch"}
	write  = []string{"create", "update", "patch"}
)

const (
	packages     = "pkg.crossplane.io"
	transactions = "xpkg.dev"
	composition  = "apiextensions.crossplane.io"
	operations   = "ops.crossplane.io"
)

// Grants returns the permissions that every manager has. Each rule is required by a
// request that the manager makes. The permissions that it grants to runtimes are
// separate: see [Options.Grants].
func Grants() []Grant {
	return []Grant{
		{
			Name: "packages", Scope: Everywhere,
			Reason: "Watch packages and revisions, and update their status.",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("configurations"), follow),
				rule(packages, words("providers", "functions"), read),
				rule(packages, words("providers/status", "configurations/status", "functions/status"), words("update")),
			},
		},
		{
			Name: "dependencies", Scope: Everywhere,
			Reason: "Install dependencies and move them to the required version. A Provider is kept by a finalizer until its CRDs are gone.",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("providers", "configurations", "functions"), words("get", "create", "update")),
			},
		},
		{
			Name: "transactions", Scope: Everywhere,
			Reason: "Carry out transactions for users who may make the same changes: write and delete their packages, return them to their former state after a failure, " +
				"record the progress, and keep a transaction until it has ended. Follow the ChangePolicy, and report whether it is enforced.",
			Rules: []rbacv1.PolicyRule{
				rule(transactions, words("transactions"), slices.Concat(read, words("patch", "delete"))),
				rule(transactions, words("transactions/status"), words("patch")),
				rule(transactions, words("changepolicies"), read),
				rule(transactions, words("changepolicies/status"), words("patch")),
				rule(packages, words("providers", "configurations", "functions"), words("patch", "delete")),
			},
		},
		{
			Name: "revisions", Scope: Everywhere,
			Reason: "Create revisions, activate them, and garbage-collect old ones. Revision and package are read again before a runtime starts, and the revision before it releases objects.",
			Rules: []rbacv1.PolicyRule{
				rule(
					packages, words("providerrevisions", "configurationrevisions", "functionrevisions"),
					slices.Concat(words("create", "update", "delete"), read),
				),
				rule(
					packages, words("providerrevisions/status", "configurationrevisions/status", "functionrevisions/status"),
					words("update"),
				),
			},
		},
		{
			Name: "owners", Scope: Everywhere,
			Reason: "Set blockOwnerDeletion in owner references on clusters with the admission plugin OwnerReferencesPermissionEnforcement, such as OpenShift.",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("providers/finalizers", "configurations/finalizers", "functions/finalizers"), words("update")),
				rule(packages, words(
					"providerrevisions/finalizers", "configurationrevisions/finalizers", "functionrevisions/finalizers",
				), words("update")),
				rule(composition, words("compositeresourcedefinitions/finalizers"), words("update")),
			},
		},
		{
			Name: "lock", Scope: Everywhere,
			Reason: "Maintain the Lock, which other tools read.",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("locks"), slices.Concat(words("create", "update", "patch", "get"), follow)),
				rule(packages, words("locks/status"), words("update")),
			},
		},
		{
			Name: "settings", Scope: Everywhere,
			Reason: "Read the configuration of images and runtimes.",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("imageconfigs", "deploymentruntimeconfigs", "controllerconfigs"), follow),
			},
		},
		{
			Name: "crds", Scope: Everywhere,
			Reason: "Install the CRDs of packages and of the package API, correct drift, and trigger an API server that is slow to serve them. The CRDs of a deleted Provider are deleted while its runtime still runs, and without a conversion that fails.",
			Rules: []rbacv1.PolicyRule{
				rule("apiextensions.k8s.io", words("customresourcedefinitions"), slices.Concat(words("delete"), read, write)),
				rule("apiextensions.k8s.io", words("customresourcedefinitions/status"), words("patch")),
			},
		},
		{
			Name: "aggregation", Scope: Everywhere,
			Reason: "Refuse CRDs of a group and version that an aggregated API serves.",
			Rules:  []rbacv1.PolicyRule{rule("apiregistration.k8s.io", words("apiservices"), words("list"))},
		},
		{
			Name: "compositions", Scope: Everywhere,
			Reason: "Install the objects of Configurations for a composition engine, correct drift, and delete the definitions of a deleted package when its custom resources are gone or kept. Grant it and users the permissions for the resources of every XRD.",
			Rules: []rbacv1.PolicyRule{
				rule(composition, words("compositeresourcedefinitions", "compositions"), slices.Concat(read, write)),
				rule(composition, words("compositeresourcedefinitions"), words("delete")),
				rule(
					operations, words("operations", "cronoperations", "watchoperations"), slices.Concat(words("get", "list"), write),
				),
			},
		},
		{
			Name: "kinds", Scope: Everywhere,
			Reason: "Activate the kinds of Providers that policies select, show in definitions which kinds are active, and see in events which inactive kinds a composition needs.",
			Rules: []rbacv1.PolicyRule{
				rule("", words("events"), words("list", "watch")),
				rule(composition, words("managedresourcedefinitions"), slices.Concat(words("create", "update", "delete"), follow)),
				rule(composition, words("managedresourceactivationpolicies"), slices.Concat(read, write)),
				rule(
					composition, words("managedresourcedefinitions/status", "managedresourceactivationpolicies/status"), words("update"),
				),
			},
		},
		{
			Name: "webhooks", Scope: Everywhere,
			Reason: "Install the webhook configurations of packages, set their CA bundles, and remove configurations whose runtime does not serve.",
			Rules: []rbacv1.PolicyRule{
				rule(
					"admissionregistration.k8s.io", words("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
					slices.Concat(words("delete"), read, write),
				),
			},
		},
		{
			Name: "core", Scope: Everywhere,
			Reason: "Detect a Crossplane core that would write the same objects: whether its ServiceAccount may write packages, and the policy that denies it.",
			Rules: []rbacv1.PolicyRule{
				rule("authorization.k8s.io", words("subjectaccessreviews"), words("create")),
				named(rule(
					"admissionregistration.k8s.io", words("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
					words("get"),
				), crossplane.FenceName),
			},
		},
		{
			Name: "fences", Scope: Everywhere,
			Reason: "Maintain the policies that deny package runtimes the objects with which they could take over the manager, that deny users consents, transactions and approvals which they may not give, that deny deletions which lose custom resources, and, while a ChangePolicy exists, that deny changes of packages by others. " +
				"Without those of consents and transactions, the manager accepts no consents in annotations of packages. The list also shows whether another policy applies to the objects of packages, " +
				"so that an update of which it denies an object writes nothing.",
			Rules: []rbacv1.PolicyRule{
				rule(
					"admissionregistration.k8s.io", words("validatingadmissionpolicies", "validatingadmissionpolicybindings"), follow,
				),
				named(rule(
					"admissionregistration.k8s.io", words("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
					words("create", "patch"),
				),
					fence.RuntimesName, fence.ConsentsName, fence.TransactionsName, fence.ApprovalsName, fence.RemovalsName,
					fence.ChangesName),
				named(rule(
					"admissionregistration.k8s.io", words("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
					words("delete"),
				), fence.ChangesName),
			},
		},
		{
			Name: "cluster", Scope: Everywhere,
			Reason: "Identify the cluster by the UID of the namespace kube-system, for package caches that several clusters share.",
			Rules:  []rbacv1.PolicyRule{named(rule("", words("namespaces"), words("get")), "kube-system")},
		},
		{
			Name: "secrets", Scope: Within,
			Reason: "Read the pull secrets that packages and ImageConfigs reference, and watch their metadata (never their content).",
			Rules:  []rbacv1.PolicyRule{rule("", words("secrets"), read)},
		},
		{
			Name: "certificates", Scope: Within,
			Reason: "Maintain the certificates of runtimes and their CA.",
			Rules:  []rbacv1.PolicyRule{rule("", words("secrets"), words("create", "update"))},
		},
		{
			Name: "runtimes", Scope: Within,
			Reason: "Run package runtimes, each with its own ServiceAccount, and report problems of their pods. Determine the version of Crossplane, for packages that constrain it.",
			Rules: []rbacv1.PolicyRule{
				rule("apps", words("deployments"), slices.Concat(read, words("create", "update", "delete"))),
				rule("", words("serviceaccounts", "services"), slices.Concat(read, words("create", "update"))),
				rule("", words("pods"), words("list")),
			},
		},
		{
			Name: "endpoints", Scope: Within,
			Reason: "Prove that a runtime serves webhooks before the API server calls them.",
			Rules:  []rbacv1.PolicyRule{rule("discovery.k8s.io", words("endpointslices"), words("list"))},
		},
		{
			Name: "roles", Scope: Everywhere,
			Reason: "Grant runtimes and users permissions for the resources of packages. Without the verbs escalate and bind, the manager can only grant permissions that it holds itself.",
			Rules: []rbacv1.PolicyRule{
				rule(
					rbacv1.GroupName, words("clusterroles", "clusterrolebindings"),
					slices.Concat(read, words("create", "update", "patch", "delete")),
				),
			},
		},
		{
			Name: "roles-within", Scope: Within,
			Reason: "Grant namespaced permissions in the namespace of the runtimes.",
			Rules: []rbacv1.PolicyRule{
				rule(rbacv1.GroupName, words(
					"roles", "rolebindings",
				), slices.Concat(read, words("create", "update", "patch", "delete"))),
			},
		},
		{
			Name: "lease", Scope: Within,
			Reason: "Elect a leader among the replicas of the manager, and detect a second manager.",
			Rules: []rbacv1.PolicyRule{
				rule("coordination.k8s.io", words("leases"), words("create")),
				named(rule("coordination.k8s.io", words("leases"), words("get", "update")), Lease),
			},
		},
		{
			Name: "history", Scope: Within,
			Reason: "Record the generations of the installed packages.",
			Rules: []rbacv1.PolicyRule{
				rule("apps", words("controllerrevisions"), words("list", "create", "patch", "delete")),
			},
		},
		{
			Name: "events", Scope: Default,
			Reason: "Record events for packages.",
			Rules:  []rbacv1.PolicyRule{rule("events.k8s.io", words("events"), words("create", "patch"))},
		},
	}
}

// Lease is the name of the Lease of the manager.
const Lease = "xpkg-manager"

func words(w ...string) []string { return w }

func rule(group string, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func named(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	r.ResourceNames = names
	return r
}
