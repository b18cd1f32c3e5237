package composition

import (
	"cmp"
	"maps"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
)

const (
	// nameAnnotation is the name of a composed resource in its composition.
	nameAnnotation = "crossplane.io/composition-resource-name"
	// compositeLabel is the composite resource at the top that a resource belongs to.
	compositeLabel = "crossplane.io/composite"
	// claimNameLabel and claimNamespaceLabel are the claim that a composed resource belongs to.
	claimNameLabel      = "crossplane.io/claim-name"
	claimNamespaceLabel = "crossplane.io/claim-namespace"
)

// composed returns the desired composed resources with the metadata that Crossplane adds.
func (p *pipeline) composed() ([]*unstructured.Unstructured, error) {
	if p.desired == nil {
		return nil, nil
	}
	var out []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(p.desired.Resources)) {
		o := &unstructured.Unstructured{Object: integers(p.desired.Resources[name].Resource).(map[string]any)}
		if o.GetAPIVersion() == "" || o.GetKind() == "" {
			return nil, ErrDesiredResource.New(nil, "the desired resource %s has no apiVersion or no kind", name)
		}
		if metadata, ok := o.Object["metadata"]; ok && metadata != nil {
			if _, ok := metadata.(map[string]any); !ok {
				return nil, ErrDesiredResource.New(nil, "the metadata of the desired resource %s is not an object", name)
			}
		}
		p.keepName(o, name)
		if err := p.addMetadata(o, name); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// keepName sets the name and the namespace of an existing resource.
func (p *pipeline) keepName(o *unstructured.Unstructured, name string) {
	existing, ok := p.observed.Resources[name]
	if !ok {
		return
	}
	was := unstructured.Unstructured{Object: existing.Resource}
	o.SetNamespace(was.GetNamespace())
	o.SetName(was.GetName())
	o.SetGenerateName(was.GetGenerateName())
}

// addMetadata sets the generated name, the namespace, labels, annotation and owner of a composed resource.
func (p *pipeline) addMetadata(o *unstructured.Unstructured, name string) error {
	xr := p.input.Composite
	root := cmp.Or(xr.GetLabels()[compositeLabel], xr.GetName())
	if o.GetName() == "" && o.GetGenerateName() == "" {
		o.SetGenerateName(root + "-")
	}
	if xr.GetNamespace() != "" {
		// A namespaced composite resource composes resources of its own namespace only.
		o.SetNamespace(xr.GetNamespace())
	}
	o.SetAnnotations(with(o.GetAnnotations(), nameAnnotation, name))
	o.SetLabels(with(o.GetLabels(), compositeLabel, root))
	if claim, namespace := claimOf(xr); claim != "" && namespace != "" {
		o.SetLabels(with(with(o.GetLabels(), claimNameLabel, claim), claimNamespaceLabel, namespace))
	}
	owners := o.GetOwnerReferences()
	for _, owner := range owners {
		if owner.Controller != nil && *owner.Controller && owner.UID != xr.GetUID() {
			return ErrDesiredResource.New(
				nil, "the desired resource %s has the controller %s %s, and cannot get another one", name, owner.Kind, owner.Name,
			)
		}
	}
	owners = slices.DeleteFunc(owners, func(r metav1.OwnerReference) bool { return r.UID == xr.GetUID() })
	o.SetOwnerReferences(append(owners, *metav1.NewControllerRef(xr, xr.GroupVersionKind())))
	return nil
}

// claimOf returns the name and the namespace of the claim of a composite resource.
func claimOf(xr *unstructured.Unstructured) (name, namespace string) {
	name, namespace = xr.GetLabels()[claimNameLabel], xr.GetLabels()[claimNamespaceLabel]
	if name == "" {
		name, _, _ = unstructured.NestedString(xr.Object, "spec", "claimRef", "name")
		namespace, _, _ = unstructured.NestedString(xr.Object, "spec", "claimRef", "namespace")
	}
	return name, namespace
}

// with adds an entry to a map, which it creates if it is nil.
func with[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

// maxInteger is the largest integer up to which the protocol, whose numbers are floating point, represents every one.
const maxInteger = 1 << 53

// integers returns a copy of a value with integers in place of floating point numbers without a fraction, as in decoded
// objects of Kubernetes. It returns an empty object for a nil map.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = integers(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = integers(e)
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= maxInteger {
			return int64(v)
		}
	}
	return value
}

// unready returns the names of the desired resources that are not ready, in order.
func (p *pipeline) unready() []string {
	var out []string
	for name, r := range p.desired.Resources {
		if r.Ready != protocol.ReadyTrue {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
