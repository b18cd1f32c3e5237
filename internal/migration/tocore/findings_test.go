package tocore

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// managed is a cluster in which the manager runs beside a fenced core, with one healthy package.
func managed() (*snapshot, *v1.Provider, *v1.ProviderRevision) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats", UID: "pkg", Generation: 1}}
	p.Spec.Package = "registry.example.org/boats:v1"
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1", UID: "rev"}}
	rev.Spec.DesiredState, rev.Spec.Digest = v1.RevisionActive, digest
	rev.SetConditions(metav1.Now(), v1.Ready(corev1.ConditionTrue, v1.ReasonHealthy, ""))
	p.Status.CurrentRevision = rev.Name
	s := &snapshot{
		namespace: "crossplane-system", fenced: true, pods: 1, leads: true, lock: &v1beta1.Lock{}, version: "2.4.0",
		core:     crossplane.Core{Runs: true},
		manager:  &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}},
		families: []family{{migration.Package{Package: p, Revisions: []v1.PackageRevision{rev}}}},
	}
	return s, p, rev
}

// All reasons that prevent the migration are found at once, with a remedy each.
func TestFindings(t *testing.T) {
	stopped := func(s *snapshot) { s.manager.Spec.Replicas, s.pods, s.leads = new(int32), 0, false }
	cases := map[string]struct {
		change func(*snapshot, *v1.Provider, *v1.ProviderRevision)
		want   []string
	}{
		"Healthy": {func(*snapshot, *v1.Provider, *v1.ProviderRevision) {}, nil},
		"Local": {func(s *snapshot, p *v1.Provider, _ *v1.ProviderRevision) {
			s.local, p.DeletionTimestamp = true, new(metav1.Now())
		}, []string{"this is the control plane of `xpkg up`"}},
		"Transaction": {func(s *snapshot, _ *v1.Provider, _ *v1.ProviderRevision) {
			s.transactions = []string{"spring"}
		}, []string{"the transaction spring has not ended: wait"}},
		"Deleted": {func(_ *snapshot, p *v1.Provider, _ *v1.ProviderRevision) {
			p.DeletionTimestamp = new(metav1.Now())
		}, []string{"provider/boats is being deleted: wait"}},
		"Paused": {func(_ *snapshot, p *v1.Provider, _ *v1.ProviderRevision) {
			p.Annotations = map[string]string{v1.AnnotationPaused: "true"}
		}, []string{"provider/boats is paused: remove"}},
		"Inactive": {func(_ *snapshot, _ *v1.Provider, rev *v1.ProviderRevision) {
			rev.Spec.DesiredState = v1.RevisionInactive
		}, []string{"provider/boats has no active revision"}},
		"RolledBack": {func(_ *snapshot, p *v1.Provider, _ *v1.ProviderRevision) {
			p.Status.CurrentRevision = "boats-2"
		}, []string{"which is not of its current spec: activate boats-2"}},
		"Unhealthy": {func(_ *snapshot, _ *v1.Provider, rev *v1.ProviderRevision) {
			rev.SetConditions(metav1.Now(), v1.Ready(corev1.ConditionFalse, v1.ReasonUnhealthy, "It crashes."))
		}, []string{"provider/boats is not healthy: It crashes: see `xpkg describe provider/boats`"}},
		"BeingRenamed": {func(s *snapshot, p *v1.Provider, rev *v1.ProviderRevision) {
			p.Annotations = map[string]string{revision.AnnotationNames: revision.NamesOfCore}
			rev.Spec.DesiredState = v1.RevisionInactive
		}, nil},
		"Manual": {func(_ *snapshot, p *v1.Provider, _ *v1.ProviderRevision) {
			p.Spec.RevisionActivationPolicy = v1.ManualActivation
		}, []string{"set spec.revisionActivationPolicy to Automatic"}},
		"ManualWithTheName": {func(s *snapshot, p *v1.Provider, rev *v1.ProviderRevision) {
			p.Spec.RevisionActivationPolicy = v1.ManualActivation
			rev.Name = s.nameIn(s.families[0])
			p.Status.CurrentRevision = rev.Name
		}, nil},
		"NoRegistry": {func(_ *snapshot, p *v1.Provider, _ *v1.ProviderRevision) {
			p.Spec.PackagePullPolicy = corev1.PullNever
		}, []string{"set spec.packagePullPolicy to IfNotPresent"}},
		"Process": {func(s *snapshot, _ *v1.Provider, _ *v1.ProviderRevision) {
			s.lock.Annotations = map[string]string{runtime.AnnotationChoice: "Process"}
		}, []string{"runs as a process"}},
		"OtherNamespace": {func(s *snapshot, _ *v1.Provider, _ *v1.ProviderRevision) {
			s.lock.Annotations = map[string]string{leader.AnnotationNamespace: "elsewhere"}
		}, []string{"run the command with --namespace elsewhere"}},
		"Unfenced": {func(s *snapshot, _ *v1.Provider, _ *v1.ProviderRevision) { s.core.Writes = true }, []string{
			"core may write packages",
		}},
		"StoppedTooEarly": {func(s *snapshot, _ *v1.Provider, _ *v1.ProviderRevision) { stopped(s) }, []string{
			"kubectl scale deployment/xpkg",
		}},
		"StoppedAfterTheRename": {func(s *snapshot, p *v1.Provider, rev *v1.ProviderRevision) {
			stopped(s)
			rev.Name = s.nameIn(s.families[0])
			rev.SetConditions(metav1.Now(), v1.Ready(corev1.ConditionFalse, v1.ReasonUnhealthy, "It crashes."))
		}, nil},
		"Several": {func(s *snapshot, p *v1.Provider, _ *v1.ProviderRevision) {
			p.Spec.PackagePullPolicy = corev1.PullNever
			s.lock.Annotations = map[string]string{runtime.AnnotationChoice: "Process", leader.AnnotationNamespace: "elsewhere"}
		}, []string{"--namespace elsewhere", "IfNotPresent", "runs as a process"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, p, rev := managed()
			tc.change(s, p, rev)
			err := s.check()
			if len(tc.want) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, migration.ErrRefused) {
				t.Fatalf("got %v, want MigrationRefused", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not contain %q", err, want)
				}
			}
			if n := strings.Count(err.Error(), ";") + 1; n != len(tc.want) {
				t.Errorf("%d findings, want %d: %v", n, len(tc.want), err)
			}
		})
	}
}

// The name of a revision depends on the version of core. A core that is not installed is a new one.
func TestNamesDependOnTheVersionOfCore(t *testing.T) {
	for version, want := range map[string]string{
		"2.4.0": revision.NamesOfCore, "2.4.0-rc.1": revision.NamesOfCore, "v2.5.1": revision.NamesOfCore,
		"": revision.NamesOfCore, "latest": revision.NamesOfCore,
		"2.3.4": revision.NamesOfCoreBefore2_4, "v1.20.0": revision.NamesOfCoreBefore2_4,
	} {
		if got := (&snapshot{version: version}).names(); got != want {
			t.Errorf("%q: %s, want %s", version, got, want)
		}
	}
}

// A revision without a digest, which the CRDs of core drop, is taken for renamed.
func TestRenames(t *testing.T) {
	s, p, rev := managed()
	if got := s.renames(); len(got) != 1 || !strings.Contains(got[0], "provider/boats: boats-1 becomes boats-") {
		t.Errorf("renames %v", got)
	}
	if s.named() {
		t.Error("the step is done before the rename")
	}
	rev.Spec.DesiredState, p.Status.ResolvedDigest = v1.RevisionInactive, digest
	if got := s.renames(); len(got) != 1 {
		t.Errorf("renames while no revision is active: %v", got)
	}
	rev.Spec.DesiredState, rev.Name = v1.RevisionActive, s.nameIn(s.families[0])
	p.Status.CurrentRevision = rev.Name
	if !s.named() {
		t.Errorf("the step is not done: %s", s.unnamed())
	}
	former := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1", UID: "former"}}
	s.families[0].Revisions = append(s.families[0].Revisions, former)
	s.deployments = map[types.UID]bool{"former": true}
	if s.named() {
		t.Error("the step is done while the former runtime runs")
	}
	rev.Spec.Digest, rev.Name = "", "boats-other"
	if got := s.renames(); len(got) != 0 {
		t.Errorf("renames without a digest: %v", got)
	}
}
