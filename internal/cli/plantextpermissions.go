package cli

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/preview"
	"github.com/xpkg-dev/xpkg/internal/rights"
)

// permissions tell what a package's program may do besides, and what not any more.
func (t planText) permissions(p *preview.Permissions) {
	if p == nil {
		return
	}
	t.title("permissions of the program")
	t.rules("+", p.Added)
	t.rules("-", p.Removed)
	if p.Denied != "" {
		t.row("refuse", p.Denied)
	}
}

func (t planText) rules(sign string, all []rbacv1.PolicyRule) {
	for i, rule := range all {
		if t.most > 0 && i == t.most {
			t.row(sign, more(len(all)-i))
			return
		}
		t.row(sign, rights.Describe(rule))
	}
}
