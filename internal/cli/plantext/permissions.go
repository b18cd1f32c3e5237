package plantext

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// permissions writes the changes of the permissions of the package's runtime.
func (t *page) permissions(p *planner.Permissions) { t.permissionsOf("the runtime", p) }

func (t *page) permissionsOf(name string, p *planner.Permissions) {
	if p == nil {
		return
	}
	if len(p.CompositeRoles) > 0 {
		t.title("roles of composite resources")
		for _, role := range p.CompositeRoles {
			t.row(string(plan.Create), "ClusterRole "+role)
		}
	}
	if len(p.Added)+len(p.Removed) > 0 {
		t.title("permissions of " + name)
	}
	t.rules("+", p.Added)
	t.rules("-", p.Removed)
	if len(p.Foreign) > 0 {
		t.title("permissions of " + name + " to write objects that neither the package nor its dependencies define")
		t.rules("foreign", p.Foreign)
	}
	if len(p.NeedsApproval) > 0 {
		title := "permissions that amount to control of the cluster and wait for `xpkg approve`"
		if !slices.ContainsFunc(p.NeedsApproval, rbac.Escalates) {
			title = "added permissions that wait for `xpkg approve`"
		}
		t.title(title)
		for _, rule := range p.NeedsApproval {
			t.row("approve", rbac.DescribeEscalation(rule))
		}
	}
}

func (t *page) rules(sign string, all []rbacv1.PolicyRule) {
	for i, rule := range all {
		if t.most > 0 && i == t.most {
			t.row(sign, more(len(all)-i))
			return
		}
		t.row(sign, rbac.Describe(rule))
	}
}

// webhooks writes the webhook rules for resources that the package does not define.
func (t *page) webhooks(w *planner.Webhooks) {
	if w == nil {
		return
	}
	t.title("webhooks for resources of others")
	for _, rule := range w.Outside {
		sign := "+"
		if slices.Contains(w.Unallowed, rule) {
			sign = "refuse"
		}
		t.row(sign, rule)
	}
}
