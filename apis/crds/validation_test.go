package crds

import (
	"context"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// TestValid runs the API server's own checks of a definition, the cost of its
// rules included, on all of ours.
func TestValid(t *testing.T) {
	all := ours(t, Packages)
	for name, crd := range ours(t, Composition) {
		all[name] = crd
	}
	for name, crd := range all {
		t.Run(name, func(t *testing.T) {
			in := internal(t, crd)
			// Set the defaults that the API server sets when a CRD is created.
			for _, v := range in.Spec.Versions {
				if v.Storage {
					in.Status.StoredVersions = append(in.Status.StoredVersions, v.Name)
				}
			}
			for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), in) {
				t.Error(err)
			}
		})
	}
}
