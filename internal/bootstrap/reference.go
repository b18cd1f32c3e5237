package bootstrap

import (
	"fmt"
	"io"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Reference writes a page with every permission of the manager and its reason, as
// Markdown.
func Reference(w io.Writer) error {
	_, err := fmt.Fprint(w, "# Permissions of the manager\n\n",
		"`xpkg bootstrap` and the Helm chart grant the manager exactly these permissions. Each is required by a call\n",
		"that the manager makes; tests run the manager with exactly these, and without each of the groups. The groups\n",
		"package-groups, orphans, first-generation, policy and any-package are there with --package-group GROUP, --dependency-removal Orphans,\n",
		"--first-generation, --permission-policy NAME and --package-group '*'; with --namespaced the first and the last hold in its namespace.\n",
		"Without --namespaced, the role "+CustomResources+" lets the manager count, judge and migrate custom resources of packages:\n",
		"it collects the roles that let users edit them, and grants nothing else.\n")
	if err != nil {
		return err
	}
	chosen := append(Options{
		PackageGroups: []string{"GROUP"}, PermissionPolicy: "NAME", RemoveOrphans: true, FirstGeneration: true,
	}.Grants(), Options{PackageGroups: []string{rbacv1.APIGroupAll}}.Grants()...)
	for _, g := range unique(chosen) {
		if _, err := fmt.Fprintf(
			w, "\n## %s\n\n%s These permissions apply %s.\n\n| API group | resources | verbs |\n|---|---|---|\n", g.Name,
			g.Reason, g.Scope,
		); err != nil {
			return err
		}
		for _, r := range g.Rules {
			if _, err := fmt.Fprintf(
				w, "| %s | %s | %s |\n", groupOf(r), resourcesOf(r), strings.Join(r.Verbs, ", "),
			); err != nil {
				return err
			}
		}
	}
	return nil
}

// unique keeps the first grant of each name.
func unique(all []Grant) []Grant {
	seen := map[string]bool{}
	var out []Grant
	for _, g := range all {
		if !seen[g.Name] {
			out = append(out, g)
		}
		seen[g.Name] = true
	}
	return out
}

func groupOf(r rbacv1.PolicyRule) string {
	groups := make([]string, len(r.APIGroups))
	for i, g := range r.APIGroups {
		if groups[i] = "`" + g + "`"; g == "" {
			groups[i] = "core"
		}
	}
	return strings.Join(groups, ", ")
}

func resourcesOf(r rbacv1.PolicyRule) string {
	resources := "`" + strings.Join(r.Resources, "`, `") + "`"
	if len(r.ResourceNames) > 0 {
		resources += " named `" + strings.Join(r.ResourceNames, "`, `") + "`"
	}
	return resources
}
