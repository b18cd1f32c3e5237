package deployment_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

type anyImage struct{}

func (anyImage) Exists(context.Context, fetch.Origin, oci.Digest) error { return nil }

// A runtime whose configuration uses a privilege that the manager does not allow gets no
// object, and neither does one with the ServiceAccount of another owner, such as the
// manager itself.
//
// hardening: H5
func TestPrivilegesAreRefusedBeforeTheFirstWrite(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "p", "1")
	s.Create(s, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "manager"}})
	ref, err := oci.ParseReference("registry.example.org/x"+digest, oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	program := func(who plan.Requester, config *v1beta1.DeploymentRuntimeConfig) runtime.Workload {
		return runtime.Workload{
			Owner: who, Namespace: s.name, Origin: fetch.Origin{Ref: ref}, Digest: ref.Digest, OfPackage: true, Config: config,
		}
	}
	pod := func(spec corev1.PodSpec) *v1beta1.DeploymentRuntimeConfig {
		return &v1beta1.DeploymentRuntimeConfig{
			Spec: v1beta1.DeploymentRuntimeConfigSpec{DeploymentTemplate: &v1beta1.DeploymentTemplate{
				Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
			}}}
	}
	programs := deployment.PackageRuntime{Runtime: s.runtime, Images: anyImage{}}
	for name, config := range map[string]*v1beta1.DeploymentRuntimeConfig{
		"host network":                      pod(corev1.PodSpec{HostNetwork: true}),
		"ServiceAccount of the pod":         pod(corev1.PodSpec{ServiceAccountName: "manager"}),
		"missing ServiceAccount of the pod": pod(corev1.PodSpec{ServiceAccountName: "later"}),
		"ServiceAccount of the template":    named("", "manager"),
	} {
		t.Run(name, func(t *testing.T) {
			s.takeWrites()
			p := program(who[0], config)
			if err := programs.Obtain(t.Context(), p); !errors.Is(err, manifests.ErrPrivileges) {
				t.Errorf("obtain: %v", err)
			}
			if _, err := programs.Run(t.Context(), p); !errors.Is(err, manifests.ErrPrivileges) {
				t.Errorf("run: %v", err)
			}
			if got := s.takeWrites(); len(got) > 0 {
				t.Errorf("it wrote %v", got)
			}
			s.runtime.Privileges = manifests.AllPrivileges()
			defer func() { s.runtime.Privileges = nil }()
			if err := programs.Obtain(t.Context(), p); err != nil {
				t.Errorf("allowed: %v", err)
			}
		})
	}
	// A ServiceAccount that the same configuration names for another package may be shared.
	_, other := s.pkg("Provider", "other", "1")
	s.ensure(func() manifests.Input { in := s.input(other[0]); in.Config = named("", "shared"); return in }())
	if err := programs.Obtain(t.Context(), program(who[0], named("", "shared"))); err != nil {
		t.Errorf("shared: %v", err)
	}
}
