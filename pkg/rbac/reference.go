package rbac

import (
	"fmt"
	"io"
	"strings"
)

// Reference writes the table of the permissions that amount to control of the cluster as Markdown.
func Reference(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Permissions that amount to control of the cluster\n\n" +
		"A package that requests one of these permissions waits for approval; see [package permissions](../guides/permissions.md).\n" +
		"A resource includes its subresources unless another line lists them, but not `finalizers`. `*` in a request includes everything.\n" +
		"The name of an object limits a permission only where the table says so.\n\n" +
		"| permission | with it, a runtime can |\n|---|---|\n")
	for _, e := range escalations {
		fmt.Fprintf(&b, "| %s | %s |\n", e.permission(), e.reason)
	}
	fmt.Fprintf(
		&b, "| every other verb than get, list and watch in the groups of Kubernetes, except those below | %s |\n",
		unlisted.reason,
	)
	b.WriteString("\n## Harmless permissions for Kubernetes\n\n| permission | reason |\n|---|---|\n")
	for _, e := range harmless {
		fmt.Fprintf(&b, "| %s | %s |\n", e.permission(), e.reason)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// permission returns the verbs and the resources of an escalation in Markdown.
func (e *escalation) permission() string {
	verbs := strings.Join(e.verbs, ", ")
	if e.verbs[0] == star {
		verbs = "all verbs"
	}
	var groups, parts []string
	for _, t := range e.targets {
		if t.resources[0] == star {
			groups = append(groups, "`"+t.group+"`")
			continue
		}
		in := ""
		if t.group != groupCore {
			in = " in `" + t.group + "`"
		}
		parts = append(parts, "`"+strings.Join(t.resources, "`, `")+"`"+in)
	}
	if len(groups) > 0 {
		parts = append(parts, "everything in "+strings.Join(groups, ", "))
	}
	if len(e.urls) > 0 {
		parts = append(parts, "the URLs `"+strings.Join(e.urls, "`, `")+"`")
	}
	text := verbs + ": " + strings.Join(parts, "; ")
	if len(e.boundedByName) > 0 {
		text += ", except named ones other than `" + strings.Join(e.unbounded, "`, `") + "`"
	}
	if e.policyOnly {
		text += " (only the permission policy can allow it)"
	}
	return text
}
