package rbac

import (
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrPermissionEscalation is the code for a package that requests, without approval, permissions that amount
// to control of the cluster.
var ErrPermissionEscalation = errcode.Code{
	Name: "PermissionEscalation", Class: errcode.Invalid, Approval: true,
	Cause: "The package requests permissions that amount to control of the whole cluster, such as running commands in every pod. They need approval, also in the first version of a package.",
	Fix:   "Review the permissions, then approve the revision with `xpkg approve` and the name of the package, or have the administrator allow them by name in the permission policy.",
}

// matches reports whether a grant includes the escalation, or a part of it.
func (e *escalation) matches(g grant) bool {
	if !slices.ContainsFunc(e.verbs, func(v string) bool {
		return (g.verb == star || v == star || g.verb == v) && !(e.bounds(g.name) && slices.Contains(e.boundedByName, v))
	}) {
		return false
	}
	if g.url != "" {
		return slices.ContainsFunc(e.urls, func(u string) bool { return urlCovers(u, g.url) || urlCovers(g.url, u) })
	}
	return slices.ContainsFunc(e.targets, func(t target) bool {
		return (g.group == star || t.hasGroup(g.group)) &&
			slices.ContainsFunc(t.resources, func(r string) bool { return overlaps(g.resource, r) })
	})
}

// bounds reports whether a name limits the permission to an object that is not one of the exceptions.
func (e *escalation) bounds(name string) bool {
	return name != "" && !slices.ContainsFunc(e.unbounded, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return matched || err != nil
	})
}

func (t target) hasGroup(group string) bool {
	suffix, isPattern := strings.CutPrefix(t.group, star)
	return t.group == group || isPattern && strings.HasSuffix(group, suffix)
}

// hasAll reports whether the target includes all resources of a group.
func (t target) hasAll(group string) bool {
	return t.hasGroup(group) && slices.Contains(t.resources, star)
}

// listedSubresources are the subresources that targets list.
var listedSubresources = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, e := range escalations {
		for _, t := range e.targets {
			for _, r := range t.resources {
				if _, sub, found := strings.Cut(r, "/"); found {
					out[sub] = true
				}
			}
		}
	}
	return out
})

// overlaps reports whether the resource of a grant and the resource of a target have a part in common. "*/scale" and
// "pods/*" are patterns, although the API server does not know the latter.
func overlaps(granted, listed string) bool {
	if granted == star {
		return true
	}
	plural, sub, isSub := strings.Cut(granted, "/")
	// The permission for finalizers only allows an object to delay the deletion of its owner.
	if sub == "finalizers" {
		return false
	}
	listedPlural, listedSub, listedIsSub := strings.Cut(listed, "/")
	switch {
	case listed == star:
		return true
	case plural != star && plural != listedPlural:
		return false
	case listedIsSub:
		return isSub && (sub == star || sub == listedSub)
	}
	return !listedSubresources()[sub]
}

// isHarmless reports whether a grant for Kubernetes itself is known to be harmless.
func isHarmless(g grant) bool {
	_, sub, _ := strings.Cut(g.resource, "/")
	return g.url != "" || slices.Contains(verbsView, g.verb) || isDangerous(g.verb) || sub == "finalizers" ||
		g.group != star && !isKubernetesGroup(g.group) ||
		slices.ContainsFunc(harmless, func(e escalation) bool {
			return (slices.Contains(e.verbs, star) || slices.Contains(e.verbs, g.verb)) &&
				slices.ContainsFunc(e.targets, func(t target) bool {
					return t.group == g.group && (t.hasAll(g.group) || slices.Contains(t.resources, g.resource))
				})
		})
}

// escalationsOfGrant returns the escalations that a grant includes, in the order of the table.
func escalationsOfGrant(g grant) []*escalation {
	var out []*escalation
	for i := range escalations {
		if escalations[i].matches(g) {
			out = append(out, &escalations[i])
		}
	}
	if len(out) == 0 && !isHarmless(g) {
		out = append(out, &unlisted)
	}
	return out
}

// allowedBy reports whether a rule of an allow list names the permission: its group and,
// unless all resources of the group escalate, its resource.
func (e *escalation) allowedBy(allow []Rule, g grant) bool {
	if g.url != "" {
		return slices.ContainsFunc(
			allow, func(r Rule) bool { return slices.Contains(r.NonResourceURLs, g.url) && r.covers(g) },
		)
	}
	whole := slices.ContainsFunc(e.targets, func(t target) bool { return t.hasAll(g.group) })
	return g.group != star && slices.ContainsFunc(allow, func(r Rule) bool {
		named := !strings.Contains(g.resource, star) && slices.Contains(r.Resources, g.resource)
		return slices.Contains(r.APIGroups, g.group) && (whole || named) && r.covers(g)
	})
}

// Requested returns the requested permissions of a runtime that it has neither as every package of its kind, nor
// already: cluster-wide or in its namespace.
func Requested(everywhere, within []rbacv1.PolicyRule, in Input) []rbacv1.PolicyRule {
	if len(in.Requests) == 0 || in.Kind == Configuration {
		return nil
	}
	usual := in
	usual.Requests = nil
	types := union(in.Defined, in.Family)
	if in.Kind != Provider {
		types = nil
	}
	usualEverywhere, usualWithin := usual.system(types)
	wantEverywhere, wantWithin := in.requested()
	haveEverywhere := slices.Concat(everywhere, usualEverywhere)
	return slices.Concat(
		Missing(haveEverywhere, wantEverywhere),
		Missing(slices.Concat(haveEverywhere, within, usualWithin), wantWithin),
	)
}

// Escalating returns the requested permissions of a runtime that need approval:
// permissions that amount to control of the cluster, unless the allow list names them,
// the package defines the resources, every package of the kind gets them, or the runtime
// has them already, cluster-wide or in its namespace.
func Escalating(allow []Rule, everywhere, within []rbacv1.PolicyRule, in Input) []rbacv1.PolicyRule {
	own := typeRules(union(in.Defined, in.Family), verbsAll)
	var out []rbacv1.PolicyRule
	budget := maxGrants
	for _, rule := range Requested(slices.Concat(everywhere, own), within, in) {
		n := count(rule, budget)
		if n > budget {
			out = append(out, rule)
			continue
		}
		budget -= n
		for _, g := range grants(rule) {
			if slices.ContainsFunc(
				escalationsOfGrant(g), func(e *escalation) bool { return !e.policyOnly && !e.allowedBy(allow, g) },
			) {
				out = append(out, ruleOfGrant(g))
			}
		}
	}
	return canonical(out)
}

func ruleOfGrant(g grant) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{g.verb}}
	if g.url != "" {
		rule.NonResourceURLs = []string{g.url}
		return rule
	}
	rule.APIGroups, rule.Resources = []string{g.group}, []string{g.resource}
	if g.name != "" {
		rule.ResourceNames = []string{g.name}
	}
	return rule
}

// reasons returns what a rule allows a runtime to do, for each escalation that it includes, in the order of the table.
func reasons(rule rbacv1.PolicyRule) []string {
	if count(rule, maxGrants) > maxGrants {
		return []string{"obtain more permissions than can be listed"}
	}
	found := map[*escalation]bool{}
	for _, g := range grants(rule) {
		for _, e := range escalationsOfGrant(g) {
			found[e] = true
		}
	}
	var out []string
	for i := range escalations {
		if e := &escalations[i]; found[e] && !slices.Contains(out, e.reason) {
			out = append(out, e.reason)
		}
	}
	if found[&unlisted] {
		out = append(out, unlisted.reason)
	}
	return out
}

// Escalates reports whether a rule includes a permission that amounts to control of the cluster.
func Escalates(rule rbacv1.PolicyRule) bool { return len(reasons(rule)) > 0 }

// DescribeEscalation describes a rule with the escalations that it includes.
func DescribeEscalation(rule rbacv1.PolicyRule) string {
	why := reasons(rule)
	if len(why) == 0 {
		return Describe(rule)
	}
	return Describe(rule) + ", to " + strings.Join(why, ", or ")
}

// EscalationError returns an error with the code PermissionEscalation for rules that
// [Escalating] returns, with the command that approves them; nil if there are none.
func EscalationError(rules []rbacv1.PolicyRule, approval string) error {
	if len(rules) == 0 {
		return nil
	}
	lines := make([]string, len(rules))
	for i, rule := range rules {
		lines[i] = DescribeEscalation(rule)
	}
	return ErrPermissionEscalation.New(
		errors.New("it requests "+list(lines)), "the package requests permissions that amount to control of the cluster",
	).
		WithDo(
			"Review the permissions and approve them with %s, or have the administrator allow them by name in the permission policy.",
			approval,
		)
}
