package graph

import (
	"cmp"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AnnotationKindProviders on a package records the packages that were selected for the kinds that its content requires,
// as a JSON list of dependencies. The manager keeps a recorded selection, and installs its package if it is missing.
const AnnotationKindProviders = "xpkg.dev/kind-providers"

// AnnotationProvides on a package lists the kinds for which a user has installed the package, separated by commas.
const AnnotationProvides = "xpkg.dev/provides"

const (
	maxProvidersBytes = 64 << 10
	maxProviders      = 1000
)

// KindProviders returns the selections that are recorded on a package or on an install object. It ignores entries that
// are not valid.
func KindProviders(o metav1.Object) []dependency.Dependency {
	text := o.GetAnnotations()[AnnotationKindProviders]
	var list []dependency.Dependency
	if text == "" || len(text) > maxProvidersBytes || json.Unmarshal([]byte(text), &list) != nil ||
		len(list) > maxProviders {
		return nil
	}
	var out []dependency.Dependency
	for _, d := range list {
		ref, err := oci.ParseReference(d.Package, oci.ParseOptions{AllowUntagged: true})
		if err != nil || ref.Name() != d.Package || d.Optional {
			continue
		}
		if _, err := dependency.ParseKindRef(d.CRD); err == nil {
			out = append(out, dependency.Dependency{Package: d.Package, Constraint: d.Constraint, CRD: d.CRD})
		}
	}
	return sortProviders(out)
}

// SetKindProviders records selections for a package, and reports whether the record has changed.
func SetKindProviders(p v1.Package, selected []dependency.Dependency) (changed bool) {
	selected = sortProviders(slices.Clone(selected))
	if slices.Equal(selected, KindProviders(p)) {
		return false
	}
	annotations := map[string]string{}
	for k, v := range p.GetAnnotations() {
		annotations[k] = v
	}
	delete(annotations, AnnotationKindProviders)
	if len(selected) > 0 {
		text, err := json.Marshal(selected)
		if err != nil {
			return false // Dependencies are always valid JSON.
		}
		annotations[AnnotationKindProviders] = string(text)
	}
	p.SetAnnotations(annotations)
	return true
}

func sortProviders(all []dependency.Dependency) []dependency.Dependency {
	slices.SortFunc(all, func(a, b dependency.Dependency) int {
		return cmp.Or(cmp.Compare(a.CRD, b.CRD), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Constraint, b.Constraint))
	})
	return slices.Compact(all)
}
