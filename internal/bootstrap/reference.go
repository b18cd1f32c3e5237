package bootstrap

import (
	"fmt"
	"io"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Reference writes a page with every right of the manager and the reason for it, as
// Markdown.
func Reference(w io.Writer) error {
	_, err := fmt.Fprint(w, "# Rights of the manager\n\n",
		"`xpkg bootstrap` and the Helm chart give the manager these rights and no others. Each is there because of a call\n",
		"that the manager makes; tests run the manager with exactly these, and without each of the groups.\n")
	if err != nil {
		return err
	}
	for _, g := range Grants() {
		if _, err := fmt.Fprintf(w, "\n## %s\n\n%s These rights hold %s.\n\n| API group | resources | verbs |\n|---|---|---|\n", g.Name, g.Reason, g.Scope); err != nil {
			return err
		}
		for _, r := range g.Rules {
			if _, err := fmt.Fprintf(w, "| %s | %s | %s |\n", groupOf(r), resourcesOf(r), strings.Join(r.Verbs, ", ")); err != nil {
				return err
			}
		}
	}
	return nil
}

func groupOf(r rbacv1.PolicyRule) string {
	if group := strings.Join(r.APIGroups, ", "); group != "" {
		return "`" + group + "`"
	}
	return "core"
}

func resourcesOf(r rbacv1.PolicyRule) string {
	resources := "`" + strings.Join(r.Resources, "`, `") + "`"
	if len(r.ResourceNames) > 0 {
		resources += " named `" + strings.Join(r.ResourceNames, "`, `") + "`"
	}
	return resources
}
