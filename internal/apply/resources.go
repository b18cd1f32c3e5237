package apply

import (
	"path"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// resources maps the kinds of package objects and of runtime permissions to their plural names, so that no discovery
// of a cluster with thousands of kinds is needed to write a few objects.
var resources = map[schema.GroupKind]string{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               "customresourcedefinitions",
	{Group: "apiextensions.crossplane.io", Kind: "CompositeResourceDefinition"}:     "compositeresourcedefinitions",
	{Group: "apiextensions.crossplane.io", Kind: "Composition"}:                     "compositions",
	{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceDefinition"}:       "managedresourcedefinitions",
	{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceActivationPolicy"}: "managedresourceactivationpolicies",
	{Group: "ops.crossplane.io", Kind: "Operation"}:                                 "operations",
	{Group: "ops.crossplane.io", Kind: "CronOperation"}:                             "cronoperations",
	{Group: "ops.crossplane.io", Kind: "WatchOperation"}:                            "watchoperations",
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: "validatingwebhookconfigurations",
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   "mutatingwebhookconfigurations",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                       "clusterroles",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                "clusterrolebindings",
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                              "roles",
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                       "rolebindings",
}

// collection returns the path of all objects of the kind of ref, in its namespace.
func collection(ref plan.Ref) (string, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", ErrKindUnknown.New(err, "%s %s has the apiVersion %q", ref.Kind, ref.Name, ref.APIVersion)
	}
	plural, ok := resources[schema.GroupKind{Group: gv.Group, Kind: ref.Kind}]
	if !ok {
		return "", ErrKindUnknown.New(nil, "%s %s is of the kind %s", ref.Kind, ref.Name, kind(ref))
	}
	if ref.Namespace != "" {
		return path.Join("/apis", gv.Group, gv.Version, "namespaces", ref.Namespace, plural), nil
	}
	return path.Join("/apis", gv.Group, gv.Version, plural), nil
}
