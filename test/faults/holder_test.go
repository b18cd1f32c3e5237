package faults_test

import (
	"testing"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// installHolder installs the package that owns a CRD that other packages also contain. The package
// stays in the cluster, which the tests share: a later test moves it to its own registry.
func (s *suite) installHolder(t testing.TB) {
	t.Helper()
	ref := s.Push(t, "faults/holder", "v1.0.0", packageYAML(t, v1.ProviderKind, "holder", []object{
		definition(heldGroup, "held", "v1"),
	}))
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("holder")
	// The manager may write the package at the same time.
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		_, err := controllerutil.CreateOrUpdate(t.Context(), s.Client, p, func() error {
			p.PackageSpec().Package = ref
			return nil
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
