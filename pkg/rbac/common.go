package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	groupCore         = ""
	groupCoordination = "coordination.k8s.io"
	groupEvents       = "events.k8s.io"
)

// Common returns the default rules of every provider, in the form of Crossplane's RBAC
// manager. A package can declare smaller needs.
func Common() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{groupCore, groupCoordination},
			Resources: []string{"configmaps", "events", "leases", "secrets"},
			Verbs:     slices.Clone(verbsAll),
		},
		{APIGroups: []string{groupEvents}, Resources: []string{"events"}, Verbs: slices.Clone(verbsAll)},
	}
}

// rules returns the rules for Secrets, ConfigMaps, Events and Leases. In namespaced mode
// all of them apply to one namespace.
//
// Runtimes write events through events.k8s.io; Crossplane's RBAC manager does not allow
// this (crossplane/crossplane#7469).
func (n Needs) rules(namespaced bool) (everywhere, within []rbacv1.PolicyRule) {
	if n.full() {
		if namespaced {
			return nil, Common()
		}
		return Common(), nil
	}
	for _, need := range []struct {
		reach    Reach
		groups   []string
		resource string
	}{
		{n.Secrets, []string{groupCore}, "secrets"},
		{n.ConfigMaps, []string{groupCore}, "configmaps"},
		{n.Events, []string{groupCore, groupEvents}, "events"},
		{n.Leases, []string{groupCoordination}, "leases"},
	} {
		rule := rbacv1.PolicyRule{APIGroups: need.groups, Resources: []string{need.resource}, Verbs: need.reach.verbs()}
		switch {
		case need.reach == Nothing:
		case need.reach == OwnNamespace || namespaced:
			within = append(within, rule)
		default:
			everywhere = append(everywhere, rule)
		}
	}
	return canonical(everywhere), canonical(within)
}

func (n Needs) full() bool {
	for _, r := range []Reach{n.Secrets, n.ConfigMaps, n.Events, n.Leases} {
		if r != "" && r != Everything {
			return false
		}
	}
	return true
}

func (r Reach) verbs() []string {
	switch r {
	case Reading:
		return verbsView
	case Recording:
		return verbsRecord
	default:
		return verbsAll
	}
}
