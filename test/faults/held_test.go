package faults_test

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// hold installs the package that holds what others want in vain.
func (s *stand) hold(t testing.TB) {
	t.Helper()
	ref := s.registry + "/faults/holder:v1.0.0"
	push(t, ref, stream(t, v1.ProviderKind, "holder", []thing{definition(heldGroup, "held", "v1")}))
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("holder")
	p.PackageSpec().Package = ref
	if err := s.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}
