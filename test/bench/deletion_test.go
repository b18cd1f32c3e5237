package bench_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// deletion measures the deletion of the CRDs of a Provider whose runtime is active: the manager deletes them
// while the runtime runs. The floor is a bare client that deletes the same CRDs.
func (s *suite) deletion(b *testing.B, definitions [][]byte) []row {
	b.Helper()
	floor := s.deletionFloor(b, s.bundle(definitions))
	bun := s.bundle(definitions)
	ref := publish.Stream(b, s.registry, bun.packageName(), "v1.0.0", bun.stream())
	i := &install{suite: s, bundle: bun, size: len(bun.files)}
	i.manager = program.Start(b, s.program, s.kubeconfig, b.TempDir(), "--package-runtime", "External")
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: bun.packageName()}}
	p.Spec.Package = ref.String()
	if err := s.direct.Create(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	s.untilReported(b, p)
	r := i.meter().measure(b, i.size, "xpkg: uninstall with an active runtime, until gone", func() {
		i.remove(b, p)
		s.bare.untilGone(b, bun)
	})
	i.manager.Stop(b)
	r.goals, r.floor = deletionGoals(r, i.size), floor.wall
	floor.floor = floor.wall
	return []row{floor, r}
}

// deletionFloor creates CRDs, and measures their deletion by the bare client.
func (s *suite) deletionFloor(b *testing.B, bun bundle) row {
	b.Helper()
	raw, kinds := bodies(b, bun.stream())
	s.bare.create(b, raw, kinds)
	names, err := s.bare.names(b.Context(), bun, "")
	if err != nil {
		b.Fatal(err)
	}
	c := newBareClient(b, s.proxy.config())
	m := meter{proxy: s.proxy, server: s.server}
	return m.measure(b, len(raw), "bare client: delete, until gone", func() {
		c.delete(b, names)
		s.bare.untilGone(b, bun)
	})
}

// untilReported reports that the runtime of a package is healthy, as the system that runs it does, until the
// package is healthy.
func (s *suite) untilReported(b *testing.B, p *v1.Provider) {
	b.Helper()
	wait.Until(b, limit, p.Name+" is healthy", func() (string, bool) {
		if err := s.direct.Get(b.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.Status.CurrentRevision == "" {
			return fmt.Sprintf("no revision, %v, conditions %v", err, p.Status.Conditions), false
		}
		rev := &v1.ProviderRevision{}
		if err := s.direct.Get(b.Context(), client.ObjectKey{Name: p.Status.CurrentRevision}, rev); err != nil {
			return err.Error(), false
		}
		if rev.GetCondition(v1.TypeRuntimeHealthy).Status != corev1.ConditionTrue || s.serverSecret != "" && rev.Status.TLSServerSecretName == nil {
			if s.serverSecret != "" {
				rev.Status.TLSServerSecretName = &s.serverSecret
			}
			rev.SetConditions(metav1.Now(), v1.RuntimeHealthy())
			if err := s.direct.Status().Update(b.Context(), rev); err != nil {
				return err.Error(), false
			}
		}
		healthy := p.GetCondition(v1.TypeHealthy)
		return healthy.Message, healthy.Status == corev1.ConditionTrue
	})
}
