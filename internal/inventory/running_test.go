package inventory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// The version that runs is named while the requested one is not healthy.
func TestRunningInstead(t *testing.T) {
	const repository, endpoint = "registry.example.com/boats", "dns:///127.0.0.1:9443"
	rev := func(kind string, number int64, state v1.RevisionState, conditions ...v1.Condition) v1.PackageRevision {
		out := v1.NewPackage(kind).NewRevision()
		version := map[int64]string{1: "v1", 2: "v2"}[number]
		out.SetName("boats-" + version)
		*out.RevisionSpec() = v1.PackageRevisionSpec{Revision: number, DesiredState: state, Image: repository + ":" +
			version, Digest: "sha256:" + version}
		if fn, ok := out.(*v1.FunctionRevision); ok {
			fn.Status.Endpoint = endpoint
		}
		out.SetConditions(metav1.Time{}, conditions...)
		return out
	}
	for name, tc := range map[string]struct {
		kind      string
		prepare   func(v1.Package)
		revisions []v1.PackageRevision
		want      string
	}{
		"healthy": {v1.ProviderKind, func(p v1.Package) {
			p.SetConditions(metav1.Time{}, v1.Healthy())
		}, []v1.PackageRevision{
			rev(v1.ProviderKind, 1, v1.RevisionInactive, v1.RevisionHealthy(), v1.RuntimeActive(), v1.RuntimeHealthy()),
			rev(v1.ProviderKind, 2, v1.RevisionActive),
		}, ""},
		"first revision": {v1.ProviderKind, func(p v1.Package) {
			p.PackageStatus().Activation = &v1.Activation{Number: 1}
		}, []v1.PackageRevision{rev(v1.ProviderKind, 2, v1.RevisionActive)}, ""},
		"not started yet": {v1.ProviderKind, nil, []v1.PackageRevision{
			rev(v1.ProviderKind, 1, v1.RevisionInactive, v1.RevisionHealthy(), v1.RuntimeActive(), v1.RuntimeHealthy()),
			rev(v1.ProviderKind, 2, v1.RevisionActive),
		}, "v1 runs"},
		"stopped": {v1.ProviderKind, nil, []v1.PackageRevision{
			rev(v1.ProviderKind, 1, v1.RevisionInactive), rev(v1.ProviderKind, 2, v1.RevisionActive),
		}, ""},
		"former does not run": {v1.ProviderKind, nil, []v1.PackageRevision{
			rev(v1.ProviderKind, 1, v1.RevisionInactive, v1.RevisionHealthy(), v1.RuntimeActive(), v1.RuntimeUnhealthy("crash")),
			rev(v1.ProviderKind, 2, v1.RevisionActive),
		}, ""},
		"function that does not serve": {v1.FunctionKind, nil, []v1.PackageRevision{
			rev(v1.FunctionKind, 1, v1.RevisionInactive, v1.RevisionHealthy()),
			rev(v1.FunctionKind, 2, v1.RevisionActive, v1.RuntimeUnhealthy("crash")),
		}, "v1 runs"},
		"function that served": {v1.FunctionKind, func(p v1.Package) {
			p.PackageStatus().Activation = &v1.Activation{Number: 2, Healthy: true}
		}, []v1.PackageRevision{
			rev(v1.FunctionKind, 1, v1.RevisionInactive, v1.RevisionHealthy()),
			rev(v1.FunctionKind, 2, v1.RevisionActive, v1.RuntimeUnhealthy("crash")),
		}, ""},
		"rolled back": {v1.ProviderKind, func(p v1.Package) {
			p.PackageStatus().Rollback = &v1.Rollback{From: "boats-v2", To: "boats-v1"}
		}, []v1.PackageRevision{
			rev(v1.ProviderKind, 1, v1.RevisionActive, v1.RevisionHealthy()), rev(v1.ProviderKind, 2, v1.RevisionInactive),
		}, "v1 runs"},
		"rolled back, and not healthy": {v1.ProviderKind, func(p v1.Package) {
			p.PackageStatus().Rollback = &v1.Rollback{From: "boats-v2", To: "boats-v1"}
		}, []v1.PackageRevision{rev(v1.ProviderKind, 1, v1.RevisionActive, v1.RevisionUnhealthy("lost"))}, "v1 is active"},
		"function that was rolled back": {v1.FunctionKind, func(p v1.Package) {
			p.PackageStatus().Rollback = &v1.Rollback{From: "boats-v2", To: "boats-v1"}
		}, []v1.PackageRevision{
			rev(v1.FunctionKind, 1, v1.RevisionActive, v1.RevisionHealthy()),
			rev(v1.FunctionKind, 2, v1.RevisionInactive, v1.RevisionHealthy()),
		}, "v1 runs"},
		"content not available, and not started yet": {v1.ProviderKind, func(p v1.Package) {
			p.PackageSpec().Package = repository + ":v3"
		}, []v1.PackageRevision{
			rev(v1.ProviderKind, 1, v1.RevisionInactive, v1.RevisionHealthy(), v1.RuntimeActive(), v1.RuntimeHealthy()),
			rev(v1.ProviderKind, 2, v1.RevisionActive, v1.RevisionUnhealthy("no image")),
		}, "v1 runs"},
		"content not available": {v1.ConfigurationKind, func(p v1.Package) {
			p.PackageStatus().CurrentIdentifier = repository + ":v1"
		}, []v1.PackageRevision{rev(v1.ConfigurationKind, 1, v1.RevisionActive, v1.RevisionHealthy())}, "v1 runs"},
		"waits to be activated": {v1.ProviderKind, func(p v1.Package) {
			p.PackageStatus().Activation = &v1.Activation{Number: 1, Healthy: true}
			p.SetConditions(metav1.Time{}, v1.Healthy(), v1.Inactive("boats-v2 waits to be activated"))
		}, []v1.PackageRevision{
			rev(v1.ProviderKind, 1, v1.RevisionActive, v1.RevisionHealthy()), rev(v1.ProviderKind, 0, v1.RevisionInactive),
		}, "v1 runs"},
		"first revision that waits to be activated": {v1.ProviderKind, func(p v1.Package) {
			p.SetConditions(metav1.Time{}, v1.Healthy(), v1.Inactive("boats-v2 waits to be activated"))
		}, []v1.PackageRevision{rev(v1.ProviderKind, 0, v1.RevisionInactive)}, ""},
		"paused, or without a manager": {v1.ConfigurationKind, func(p v1.Package) {
			p.SetConditions(metav1.Time{}, v1.Healthy())
			p.SetGeneration(2)
			p.PackageStatus().CurrentIdentifier = repository + ":v1"
		}, []v1.PackageRevision{rev(v1.ConfigurationKind, 1, v1.RevisionActive, v1.RevisionHealthy())}, "v1 runs"},
		"user may not read revisions": {v1.ProviderKind, nil, nil, ""},
	} {
		p := v1.NewPackage(tc.kind)
		p.SetName("boats")
		p.PackageSpec().Package = repository + ":v2"
		status := p.PackageStatus()
		status.CurrentRevision, status.CurrentIdentifier = "boats-v2", repository+":v2"
		status.Activation = &v1.Activation{Number: 2}
		p.SetConditions(metav1.Time{}, v1.Condition{Type: v1.TypeHealthy, Status: corev1.ConditionFalse})
		if tc.prepare != nil {
			tc.prepare(p)
		}
		got := ""
		if running := RunningInstead(p, tc.revisions); running != nil {
			got = running.String()
			if running.Revision != "boats-v1" || running.Package != repository+":v1" {
				t.Errorf("%s: got %+v", name, running)
			}
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
