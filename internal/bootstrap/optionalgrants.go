package bootstrap

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Grants returns all permissions of the manager: the fixed ones, and the ones that follow
// from the options.
func (o Options) Grants() []Grant {
	all := Grants()
	scope := Everywhere
	if o.Namespaced {
		scope = Within
	}
	switch {
	case slices.Contains(o.PackageGroups, rbacv1.APIGroupAll):
		roles := "clusterroles"
		if o.Namespaced {
			roles = "roles"
		}
		all = append(all, Grant{
			Name: "any-package", Scope: scope,
			Reason: "Grant runtimes any permission in any group. This makes the manager equivalent to an administrator.",
			Rules: []rbacv1.PolicyRule{
				rule(rbacv1.GroupName, words(roles), words("escalate", "bind")),
			},
		})
	case len(o.PackageGroups) > 0:
		all = append(all, Grant{
			Name: "package-groups", Scope: scope,
			Reason: "Hold the permissions that runtimes are granted, for resources of the allowed API groups.",
			Rules: append([]rbacv1.PolicyRule{{
				APIGroups: slices.Sorted(slices.Values(o.PackageGroups)), Resources: []string{rbacv1.ResourceAll},
				Verbs: []string{rbacv1.VerbAll},
			}}, rbac.Common()...),
		})
	}
	if o.RemoveOrphans {
		all = append(all, Grant{
			Name: "orphans", Scope: Everywhere,
			Reason: "Delete dependencies that no package needs any longer.",
			Rules:  []rbacv1.PolicyRule{rule(packages, words("providers", "configurations", "functions"), words("delete"))},
		})
	}
	if o.FirstGeneration {
		rules := FirstGenerationRules()
		if slices.Contains(o.PackageGroups, rbacv1.APIGroupAll) {
			rules = append(rules, anyPackageInNamespaces())
		}
		all = append(all, Grant{
			Name: "first-generation", Scope: Everywhere,
			Reason: "Serve the API packages.crossplane.io: maintain Providers for ClusterPackageInstalls, and run the controllers of PackageInstalls and Packages in their namespaces, with the pull secrets there.",
			Rules:  rules,
		})
	}
	if o.PermissionPolicy != "" {
		all = append(all, Grant{
			Name: "policy", Scope: Within,
			Reason: "Read and watch the policy that limits permission requests of packages.",
			Rules:  []rbacv1.PolicyRule{named(rule("", words("configmaps"), read), o.PermissionPolicy)},
		})
	}
	return all
}

// chosenArgs returns the arguments of the manager that follow from the same options.
func (o Options) chosenArgs() []string {
	var args []string
	if o.PermissionPolicy != "" {
		args = append(args, "--permission-policy=configmap/"+o.PermissionPolicy)
	}
	if o.Namespaced {
		args = append(args, "--namespaced")
	}
	if o.FirstGeneration {
		args = append(args, "--first-generation")
	}
	for _, index := range o.Indexes {
		args = append(args, "--index="+index)
	}
	if o.IndexKeys != "" {
		args = append(args, "--index-key="+indexKeysMount+"/"+indexKeysFile)
	}
	if o.RemoveOrphans {
		args = append(args, "--dependency-removal=Orphans")
	}
	return args
}
