package bench_test

import (
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// The floor and the install are measured alternately until the floors differ by no more than this
// factor.
const spread = 1.15

// rounds returns the minimum and maximum number of measurements. A measurement of many CRDs takes
// longer and is less affected by other work on the machine.
func rounds(n int) (least, most int) {
	switch {
	case n <= 200:
		return 2, 4
	case n < 1000:
		return 2, 2
	}
	return 1, 1
}

// isEnough reports whether the measurements of n CRDs are sufficient.
func isEnough(n int, floors []row) bool {
	least, most := rounds(n)
	best := fastest(floors)
	return len(floors) >= most || len(floors) >= least && best.slowest.Seconds() <= spread*best.wall.Seconds()
}

// sizeRows measures all operations on a package of n CRDs. The bare client and xpkg take turns, each on a new control
// plane: an API server becomes slower with the number of CRDs that it has stored.
func sizeRows(b *testing.B, n int) []row {
	b.Helper()
	definitions := readDefinitions(b, filepath.Join(corpus.Dir(b), largest), n)
	executable := program.Build(b)
	var floors, bareEnds, reads, installs, ends, after []row
	for after == nil {
		create, remove := bareRows(b, definitions)
		floors, bareEnds = append(floors, create), append(bareEnds, remove)
		s, stop := newPlane(b)
		s.program = executable
		i := s.newInstall(b, definitions)
		reads = append(reads, i.coldRead(b))
		installs = append(installs, i.install(b))
		if isEnough(n, floors) {
			after = i.afterwards(b, installs[len(installs)-1])
		}
		ends = append(ends, i.end(b))
		stop()
	}
	floor, bareEnd, read, install, end := fastest(floors), fastest(bareEnds), fastest(reads), fastest(installs),
		fastest(ends)
	install.goals, end.goals = installGoals(install, floor, read, n), deletionGoals(end, bareEnd, n)
	rows := append([]row{floor, read, install}, after...)
	for i := range rows {
		rows[i].floor = floor.wall
	}
	bareEnd.floor, end.floor = bareEnd.wall, bareEnd.wall
	return append(rows, bareEnd, end)
}

// bareRows creates CRDs with the bare client, and deletes them.
func bareRows(b *testing.B, definitions [][]byte) (create, remove row) {
	b.Helper()
	s, stop := newPlane(b)
	defer stop()
	bun := s.bundle(definitions)
	raw, kinds := bodies(b, bun.stream())
	c := newBareClient(b, s.proxy.config())
	m := meter{proxy: s.proxy, server: s.server}
	create = m.measure(b, len(raw), "bare client: create, until Established", func() { c.create(b, raw, kinds) })
	names, err := s.bare.names(b.Context(), bun, "")
	if err != nil {
		b.Fatal(err)
	}
	remove = m.measure(b, len(raw), "bare client: delete, until gone", func() {
		c.delete(b, names)
		s.bare.untilGone(b, bun)
	})
	create.key, remove.key = "bare-install", "bare-removal"
	return create, remove
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
		if rev.GetCondition(v1.TypeRuntimeHealthy).Status != corev1.ConditionTrue ||
			s.serverSecret != "" && rev.Status.TLSServerSecretName == nil {
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
