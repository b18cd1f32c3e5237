package apply

import (
	"context"
	"encoding/json"
	"path"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Object is a live object with its content.
type Object struct {
	plan.Live
	// JSON is the complete object.
	JSON []byte
	// Writer is the field manager other than plan.FieldManager that wrote the content last, and WrittenAt the
	// time of that write. They are empty if the managed fields contain none.
	Writer    string
	WrittenAt time.Time
}

// Object reads an object with its content. Use it for the few objects whose content is compared, and Metadata
// for the objects of packages.
func (c *Cluster) Object(ctx context.Context, ref plan.Ref) (o Object, exists bool, err error) {
	folder, err := collection(ref)
	if err != nil {
		return o, false, err
	}
	raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, folder, ref.Name)
	if apierrors.IsNotFound(err) && !notServed(err) {
		return o, false, nil
	}
	if err != nil {
		return o, false, classify(err, "read %s %s", ref.Kind, ref.Name)
	}
	o, err = decode(ref, raw)
	return o, err == nil, err
}

// Labelled returns the objects of a kind that have a label, in one call. Use it like Object for few objects. Their JSON
// has no apiVersion and no kind, because the API server omits both in a list.
func (c *Cluster) Labelled(
	ctx context.Context, kind schema.GroupVersionKind, label string,
) (map[plan.Ref]Object, error) {
	ref := plan.Ref{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}
	path, err := collection(ref)
	if err != nil {
		return nil, err
	}
	raw, err := c.get(ctx, runtime.ContentTypeJSON, map[string]string{"labelSelector": label}, path)
	if err != nil {
		return nil, classify(err, "list %s with the label %s", ref.Kind, label)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, ErrContent.New(err, "list %s with the label %s", ref.Kind, label)
	}
	out := make(map[plan.Ref]Object, len(list.Items))
	for _, item := range list.Items {
		o, err := decode(ref, item)
		if err != nil {
			return nil, err
		}
		out[o.Ref] = o
	}
	return out, nil
}

// decode returns the object of a response. It takes the name and the namespace from the object.
func decode(ref plan.Ref, raw []byte) (Object, error) {
	var m partial
	if err := json.Unmarshal(raw, &m); err != nil {
		return Object{}, ErrContent.New(err, "read %s %s", ref.Kind, ref.Name)
	}
	ref.Name, ref.Namespace = m.Metadata.Name, m.Metadata.Namespace
	o := Object{Live: m.live(ref), JSON: raw}
	for _, f := range m.Metadata.ManagedFields {
		if f.Subresource == "" && f.Manager != plan.FieldManager && f.Fields.content &&
			(o.Writer == "" || f.Time.After(o.WrittenAt)) {
			o.Writer, o.WrittenAt = f.Manager, f.Time
		}
	}
	return o, nil
}

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
