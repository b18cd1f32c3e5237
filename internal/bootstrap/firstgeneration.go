package bootstrap

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// FirstGenerationRules returns the rules of the API of the first generation of packages: the install objects, the
// Providers that the manager maintains for them, and the controllers that run in their namespaces.
func FirstGenerationRules() []rbacv1.PolicyRule {
	const group, earlier = "packages.crossplane.io", "stacks.crossplane.io"
	return []rbacv1.PolicyRule{
		rule(group, words("clusterpackageinstalls", "packageinstalls"), slices.Concat(read, words("update"))),
		rule(group, words("packages"), slices.Concat(read, words("create", "update", "delete"))),
		rule(group, words("clusterpackageinstalls/status", "packageinstalls/status", "packages/status"), words("update")),
		rule(
			group, words("clusterpackageinstalls/finalizers", "packageinstalls/finalizers", "packages/finalizers"),
			words("update"),
		),
		// The manager reads StackDefinitions in both groups, and grants this to templating controllers.
		{APIGroups: []string{
			group, earlier,
		}, Resources: words("stackdefinitions"), Verbs: slices.Concat(read, words("create", "update", "delete"))},
		rule(group, words("stackdefinitions/finalizers"), words("update")),
		rule(packages, words("providers"), words("delete")),
		rule(packages, words("deploymentruntimeconfigs"), words("get", "create", "update", "delete")),
		rule("apps", words("deployments"), slices.Concat(words("get", "list"), words("create", "update", "delete"))),
		// A Package without a controller keeps neither a ServiceAccount nor roles.
		rule("", words("serviceaccounts"), words("get", "create", "update", "delete")),
		rule("", words("pods"), words("list")),
		rule("", words("secrets"), words("get")),
		rule(rbacv1.GroupName, words("roles", "rolebindings"), words("get", "list", "create", "update", "patch", "delete")),
		rule("events.k8s.io", words("events"), words("create", "patch")),
	}
}

// anyPackageInNamespaces lets the manager grant the controllers of namespaces any permission there.
func anyPackageInNamespaces() rbacv1.PolicyRule {
	return rule(rbacv1.GroupName, words("roles"), words("escalate", "bind"))
}
