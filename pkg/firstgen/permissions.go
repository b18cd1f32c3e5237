package firstgen

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// Permissions returns the rules that the controller of the package needs: all verbs for its own CRDs, for the
// CRDs that it depends on, and for ConfigMaps, Events and Secrets. For a namespaced package the rules belong
// in a Role of each namespace in which it is installed, otherwise in a ClusterRole. The order is stable.
func (p *Package) Permissions() []rbacv1.PolicyRule {
	all := []string{rbacv1.VerbAll}
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps", "events", "secrets"}, Verbs: all,
	}}
	for _, r := range p.Resources {
		plural := r.CRD.Spec.Names.Plural
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{r.CRD.Spec.Group}, Resources: []string{plural, plural + "/status", plural + "/finalizers"},
			Verbs: all,
		})
	}
	for _, ref := range p.App.DependsOn {
		resources := []string{rbacv1.ResourceAll}
		if ref.Plural != "*" {
			resources = []string{ref.Plural, ref.Plural + "/status"}
		}
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{ref.Group}, Resources: resources, Verbs: all})
	}
	return rules
}
