package bootstrap

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Scope is where a grant holds.
type Scope string

// The scopes.
const (
	// Everywhere is the whole cluster.
	Everywhere Scope = "everywhere"
	// Within is the namespace of the manager.
	Within Scope = "in its namespace"
	// Default is the namespace "default", where an API server keeps the events of
	// objects that belong to no namespace.
	Default Scope = "in the namespace default"
)

// A Grant is a group of rights that the manager needs for one purpose.
type Grant struct {
	// Name is one word for the purpose.
	Name  string
	Scope Scope
	// Reason says what the manager does with the rights, in a sentence.
	Reason string
	Rules  []rbacv1.PolicyRule
}

var (
	// follow is how objects are kept up with that are read from memory.
	follow = []string{"list", "watch"}
	read   = []string{"get", "list", "watch"}
	write  = []string{"create", "update", "patch"}
)

const (
	packages    = "pkg.crossplane.io"
	composition = "apiextensions.crossplane.io"
	operations  = "ops.crossplane.io"
)

// Grants are the rights that every manager has. Each rule is there because of a call
// that it makes; nothing is granted for later. What it gives to programs of packages
// it has to hold besides: see [Options.Grants].
func Grants() []Grant {
	return []Grant{
		{
			Name: "packages", Scope: Everywhere,
			Reason: "Follow what is to be installed, and say what has become of it.",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("configurations"), follow),
				rule(packages, words("providers", "functions"), read),
				rule(packages, words("providers/status", "configurations/status", "functions/status"), words("update")),
			},
		},
		{
			Name: "dependencies", Scope: Everywhere,
			Reason: "Install what packages need, and bring it to the version that they need. A Provider is kept until its definitions are gone.",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("providers", "configurations", "functions"), words("get", "create", "update")),
			},
		},
		{
			Name: "revisions", Scope: Everywhere,
			Reason: "Make a revision of each content, activate it, and collect old ones. Before a program is started, its revision and its package are read again, and so is a revision before it lets go of objects.",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("providerrevisions", "configurationrevisions", "functionrevisions"), slices.Concat(words("create", "update", "delete"), read)),
				rule(packages, words("providerrevisions/status", "configurationrevisions/status", "functionrevisions/status"), words("update")),
			},
		},
		{
			Name: "owners", Scope: Everywhere,
			Reason: "Own objects so that deleting a package waits for them, where the cluster checks who may say so (the admission plugin OwnerReferencesPermissionEnforcement, as on OpenShift).",
			Rules: []rbacv1.PolicyRule{
				rule(packages, words("providers/finalizers", "configurations/finalizers", "functions/finalizers"), words("update")),
				rule(packages, words("providerrevisions/finalizers", "configurationrevisions/finalizers", "functionrevisions/finalizers"), words("update")),
			},
		},
		{
			Name: "lock", Scope: Everywhere,
			Reason: "Write down which packages are installed, for the tools that read it.",
			Rules:  []rbacv1.PolicyRule{rule(packages, words("locks"), slices.Concat(words("create", "update"), follow))},
		},
		{
			Name: "settings", Scope: Everywhere,
			Reason: "Read how images are found, and how programs are configured.",
			Rules:  []rbacv1.PolicyRule{rule(packages, words("imageconfigs", "deploymentruntimeconfigs", "controllerconfigs"), follow)},
		},
		{
			Name: "definitions", Scope: Everywhere,
			Reason: "Install the definitions of packages and of the package API, bring back what others change in them, and wake an API server that is slow to serve them. Those of a Provider that was deleted are deleted while its program still runs.",
			Rules: []rbacv1.PolicyRule{
				rule("apiextensions.k8s.io", words("customresourcedefinitions"), slices.Concat(words("delete"), read, write)),
				rule("apiextensions.k8s.io", words("customresourcedefinitions/status"), words("patch")),
			},
		},
		{
			Name: "compositions", Scope: Everywhere,
			Reason: "Install what Configurations bring for a composition engine, and bring back what others change in it.",
			Rules: []rbacv1.PolicyRule{
				rule(composition, words("compositeresourcedefinitions", "compositions"), slices.Concat(read, write)),
				rule(composition, words("managedresourcedefinitions", "managedresourceactivationpolicies"), slices.Concat(words("get", "list"), write)),
				rule(operations, words("operations", "cronoperations", "watchoperations"), slices.Concat(words("get", "list"), write)),
			},
		},
		{
			Name: "webhooks", Scope: Everywhere,
			Reason: "Install the webhooks that packages bring, tell the API server which certificates to trust, and take away webhooks that no program answers any more.",
			Rules: []rbacv1.PolicyRule{
				rule("admissionregistration.k8s.io", words("validatingwebhookconfigurations", "mutatingwebhookconfigurations"), slices.Concat(words("delete"), read, write)),
			},
		},
		{
			Name: "cluster", Scope: Everywhere,
			Reason: "Tell this cluster from others that share a package cache, by the UID of the namespace kube-system.",
			Rules:  []rbacv1.PolicyRule{named(rule("", words("namespaces"), words("get")), "kube-system")},
		},
		{
			Name: "secrets", Scope: Within,
			Reason: "Read the pull secrets that packages and ImageConfigs name, and see when one appears. What is watched is their metadata, never their content.",
			Rules:  []rbacv1.PolicyRule{rule("", words("secrets"), read)},
		},
		{
			Name: "certificates", Scope: Within,
			Reason: "Keep the certificates of programs, and the authority that they come from.",
			Rules:  []rbacv1.PolicyRule{rule("", words("secrets"), words("create", "update"))},
		},
		{
			Name: "programs", Scope: Within,
			Reason: "Run the programs of packages, each as itself, and tell what is wrong with their pods. Find out which version of Crossplane runs, for packages that are made for certain ones.",
			Rules: []rbacv1.PolicyRule{
				rule("apps", words("deployments"), slices.Concat(read, words("create", "update", "delete"))),
				rule("", words("serviceaccounts", "services"), slices.Concat(read, words("create", "update"))),
				rule("", words("pods"), words("list")),
			},
		},
		{
			Name: "roles", Scope: Everywhere,
			Reason: "Give programs and people rights on what packages define. Nobody can give more than they have: without the verbs escalate and bind these rules add nothing to what the manager holds.",
			Rules: []rbacv1.PolicyRule{
				rule(rbacv1.GroupName, words("clusterroles", "clusterrolebindings"), slices.Concat(read, words("create", "update", "patch", "delete"))),
			},
		},
		{
			Name: "roles-within", Scope: Within,
			Reason: "Do the same for rights in the namespace of the programs.",
			Rules: []rbacv1.PolicyRule{
				rule(rbacv1.GroupName, words("roles", "rolebindings"), slices.Concat(read, words("create", "update", "patch", "delete"))),
			},
		},
		{
			Name: "lease", Scope: Within,
			Reason: "Agree with the other managers on which of them works.",
			Rules: []rbacv1.PolicyRule{
				rule("coordination.k8s.io", words("leases"), words("create")),
				named(rule("coordination.k8s.io", words("leases"), words("get", "update")), Lease),
			},
		},
		{
			Name: "events", Scope: Default,
			Reason: "Tell what has happened to packages.",
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
