package rbac

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels by which the aggregated ClusterRoles of users select the roles of packages.
const (
	labelAggregateToCrossplane = "rbac.crossplane.io/aggregate-to-crossplane"
	labelAggregateToAdmin      = "rbac.crossplane.io/aggregate-to-admin"
	labelAggregateToEdit       = "rbac.crossplane.io/aggregate-to-edit"
	labelAggregateToView       = "rbac.crossplane.io/aggregate-to-view"
	// labelSystem on the role of a runtime is the name of its revision.
	labelSystem = "rbac.crossplane.io/system"
)

const (
	suffixEdit   = ":aggregate-to-edit"
	suffixView   = ":aggregate-to-view"
	suffixSystem = ":system"
)

var (
	verbsAll    = []string{rbacv1.VerbAll}
	verbsView   = []string{"get", "list", "watch"}
	verbsRecord = []string{"create", "patch", "update"}
	verbsUpdate = []string{"update"}
	// verbsSystem are the verbs of runtimes, which create and change objects. Users and the
	// garbage collector delete them.
	verbsSystem = []string{"create", "get", "list", "patch", "update", "watch"}
)

// Derive returns the roles and bindings of a revision, with the names, labels and rules
// of Crossplane's RBAC manager. The result does not depend on the order of the input
// lists.
//
// A Provider whose revision defines resources has a role for its runtime and two
// aggregated roles for users. A Provider or Function that defines none has a role only
// for its requests, and a Configuration has no role because it has no runtime. A Provider
// without a runtime has only the aggregated roles. [Reserved] resources are ignored.
func Derive(in Input) Set {
	types := union(in.Defined, in.Family)
	if in.Kind != Provider {
		types = nil
	}
	if in.Kind == Configuration || len(types) == 0 && len(in.Requests) == 0 {
		return Set{}
	}
	var set Set
	set.aggregateRoles(in, types)
	if in.NoRuntime {
		return set
	}
	everywhere, within := in.system(types)
	set.bindCluster(in, everywhere)
	set.bindNamespace(in, within)
	return set
}

// RuntimeRules returns the rules of a revision's runtime: cluster-wide, and in the namespace
// of the runtime.
func RuntimeRules(in Input) (everywhere, within []rbacv1.PolicyRule) {
	set := Derive(in)
	for _, r := range set.ClusterRoles {
		if r.Name == in.name(suffixSystem) {
			everywhere = r.Rules
		}
	}
	for _, r := range set.Roles {
		if r.Name == in.name(suffixSystem) {
			within = r.Rules
		}
	}
	return everywhere, within
}

// Names returns the names of all roles and bindings that a revision can have,
// cluster-wide or in a namespace.
func Names(kind, revision string) (roles, bindings []string) {
	in := Input{Kind: kind, Revision: revision}
	return []string{in.name(suffixEdit), in.name(suffixView), in.name(suffixSystem)}, []string{in.name(suffixSystem)}
}

// aggregateRoles adds the roles of users, which are effective once an aggregating role is
// bound. Namespaced roles are not aggregated; they are bound individually.
func (s *Set) aggregateRoles(in Input, types []schema.GroupResource) {
	local, global := in.divide(types)
	for _, role := range []struct {
		suffix string
		labels map[string]string
		verbs  []string
	}{
		{suffixEdit, map[string]string{
			labelAggregateToCrossplane: "true", labelAggregateToAdmin: "true", labelAggregateToEdit: "true",
		}, verbsAll},
		{suffixView, map[string]string{labelAggregateToView: "true"}, verbsView},
	} {
		if len(global) > 0 {
			s.ClusterRoles = append(s.ClusterRoles, in.clusterRole(role.suffix, role.labels, typeRules(global, role.verbs)))
		}
		if len(local) > 0 {
			s.Roles = append(s.Roles, in.role(role.suffix, nil, typeRules(local, role.verbs)))
		}
	}
}

func (in Input) clusterRole(suffix string, labels map[string]string, rules []rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: in.name(suffix), Labels: labels},
		Rules:      rules,
	}
}

func (in Input) role(suffix string, labels map[string]string, rules []rbacv1.PolicyRule) rbacv1.Role {
	return rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.name(suffix), Labels: labels},
		Rules:      rules,
	}
}

func (in Input) name(suffix string) string {
	return "crossplane:" + strings.ToLower(in.Kind) + ":" + in.Revision + suffix
}

// system returns the rules of the runtime: cluster-wide, and in the namespace of the
// runtime.
func (in Input) system(types []schema.GroupResource) (everywhere, within []rbacv1.PolicyRule) {
	local, global := in.divide(types)
	everywhere, within = systemRules(global), systemRules(local)
	if in.SafeStart && in.Kind == Provider {
		everywhere = append(everywhere, rbacv1.PolicyRule{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: verbsView,
		})
	}
	if in.Kind == Provider {
		e, w := in.Needs.rules(in.Namespaced)
		everywhere, within = append(everywhere, e...), append(within, w...)
	}
	e, w := in.requested()
	return append(everywhere, e...), append(within, w...)
}

// divide splits the resources into those granted in one namespace and those granted
// cluster-wide.
func (in Input) divide(types []schema.GroupResource) (local, global []schema.GroupResource) {
	for _, t := range types {
		if in.Namespaced && !in.ClusterScoped[t] {
			local = append(local, t)
		} else {
			global = append(global, t)
		}
	}
	return local, global
}

// systemRules returns the rules for resources and for their finalizers, which an
// admission plugin can require for setting owners. Finalizers are listed for each resource: the
// wildcard "*/finalizers" of a group would include resources of other packages.
func systemRules(types []schema.GroupResource) []rbacv1.PolicyRule {
	if len(types) == 0 {
		return nil
	}
	return append(typeRules(types, verbsSystem), finalizerRules(types)...)
}

// finalizerRules returns one rule for each group, with the finalizers of its resources.
func finalizerRules(types []schema.GroupResource) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, len(types))
	for i, t := range types {
		rules[i] = rbacv1.PolicyRule{
			APIGroups: []string{t.Group}, Resources: []string{t.Resource + "/finalizers"}, Verbs: verbsUpdate,
		}
	}
	return canonical(rules)
}

// typeRules returns one rule for each group, with its resources and their status.
func typeRules(types []schema.GroupResource, verbs []string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for i, t := range types {
		if i == 0 || types[i-1].Group != t.Group {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{t.Group}, Verbs: slices.Clone(verbs)})
		}
		last := &rules[len(rules)-1]
		last.Resources = append(last.Resources, t.Resource, t.Resource+"/status")
	}
	return rules
}

// union merges lists, sorted by group and plural, without duplicates and reserved
// resources.
func union(lists ...[]schema.GroupResource) []schema.GroupResource {
	all := slices.DeleteFunc(slices.Concat(lists...), Reserved)
	slices.SortFunc(all, func(a, b schema.GroupResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	return slices.Compact(all)
}

// requested returns the requests of the package. In namespaced mode they apply to the
// namespace, except for cluster-scoped resources and URLs.
func (in Input) requested() (everywhere, within []rbacv1.PolicyRule) {
	if !in.Namespaced {
		return canonical(in.Requests), nil
	}
	for _, rule := range in.Requests {
		e, w := in.confine(rule)
		everywhere, within = append(everywhere, e...), append(within, w...)
	}
	return canonical(everywhere), canonical(within)
}

func (in Input) confine(rule rbacv1.PolicyRule) (everywhere, within []rbacv1.PolicyRule) {
	if len(rule.NonResourceURLs) > 0 {
		everywhere = append(everywhere, rbacv1.PolicyRule{NonResourceURLs: rule.NonResourceURLs, Verbs: rule.Verbs})
	}
	for _, group := range rule.APIGroups {
		var local, global []string
		for _, resource := range rule.Resources {
			plural, _, _ := strings.Cut(resource, "/")
			if in.ClusterScoped[schema.GroupResource{Group: group, Resource: plural}] {
				global = append(global, resource)
			} else {
				local = append(local, resource)
			}
		}
		one := rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: rule.Verbs, ResourceNames: rule.ResourceNames}
		everywhere, within = appendFor(everywhere, one, global), appendFor(within, one, local)
	}
	return everywhere, within
}

func appendFor(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule, resources []string) []rbacv1.PolicyRule {
	if len(resources) == 0 {
		return rules
	}
	rule.Resources = resources
	return append(rules, rule)
}
