package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Further labels by which the aggregated ClusterRoles of users select the roles of
// composite resources.
const (
	labelAggregateToBrowse  = "rbac.crossplane.io/aggregate-to-browse"
	labelAggregateToNSAdmin = "rbac.crossplane.io/aggregate-to-ns-admin"
	labelAggregateToNSEdit  = "rbac.crossplane.io/aggregate-to-ns-edit"
	labelAggregateToNSView  = "rbac.crossplane.io/aggregate-to-ns-view"
	// labelComposite on a role is the name of its XRD. Crossplane's RBAC manager matches it with annotations of namespaces
	// whose keys are as short as labels, so it matches no longer name.
	labelComposite = "rbac.crossplane.io/xrd"
)

// Composite describes the resources that a CompositeResourceDefinition defines.
type Composite struct {
	// Name of the XRD.
	Name string
	// Group and Plural identify the composite resource; Claim is the plural of its claim,
	// or empty. They come from a package and can be any text.
	Group, Plural, Claim string
}

// DeriveComposite returns the roles of a composite resource, ordered by name, as
// Crossplane's RBAC manager creates them: for the composition engine, and for users who
// edit, view or, without claims, browse. It returns no roles for a name that is invalid
// for a CRD: "*" would include all resources of the group.
func DeriveComposite(c Composite) []rbacv1.ClusterRole {
	if !isResource(c.Plural) || len(validation.IsDNS1123Subdomain(c.Group)) > 0 {
		return nil
	}
	if !isResource(c.Claim) {
		c.Claim = ""
	}
	both := []string{c.Plural, c.Plural + "/status"}
	finalizers := []string{c.Plural + "/finalizers"}
	if c.Claim != "" {
		both = append(both, c.Claim, c.Claim+"/status")
		finalizers = append(finalizers, c.Claim+"/finalizers")
	}
	rule := func(resources, verbs []string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{c.Group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.ClusterRole{
		c.role("browse", []string{labelAggregateToBrowse}, rule(both[:2:2], verbsView)),
		c.role("crossplane", []string{labelAggregateToCrossplane}, rule(both, verbsAll), rule(finalizers, verbsUpdate)),
		c.role(
			"edit", []string{labelAggregateToAdmin, labelAggregateToEdit, labelAggregateToNSAdmin, labelAggregateToNSEdit},
			rule(both, verbsAll),
		),
		c.role("view", []string{labelAggregateToView, labelAggregateToNSView}, rule(both, verbsView)),
	}
}

// isResource reports whether a name is valid as the plural of a CRD.
func isResource(name string) bool { return len(validation.IsDNS1035Label(name)) == 0 }

func (c Composite) role(to string, collectedBy []string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	meta := metav1.ObjectMeta{Name: "crossplane:composite:" + c.Name + ":aggregate-to-" + to, Labels: map[string]string{}}
	for _, l := range collectedBy {
		meta.Labels[l] = "true"
	}
	if to != "crossplane" {
		setName(&meta, labelComposite, c.Name)
	}
	return rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: meta, Rules: rules}
}

// setName sets a label to the name of an object. A name that no label can hold is the value of an annotation with the
// same key.
func setName(meta *metav1.ObjectMeta, label, name string) {
	if len(validation.IsValidLabelValue(name)) > 0 {
		meta.Annotations = map[string]string{label: name}
		return
	}
	meta.Labels[label] = name
}
