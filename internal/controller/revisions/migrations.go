package revisions

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// migrationReports is the shortest time between two reports of the progress of migrations.
const migrationReports = 5 * time.Second

// reportMigrations returns the cluster for a plan. While it migrates custom resources, the status tells how many of
// them are done.
func (r *Reconciler) reportMigrations(ctx context.Context, in *reconciliation, p plan.Plan) *apply.Cluster {
	total, done := 0, map[string]int{}
	for _, c := range p.Changes {
		for _, m := range c.Migrations {
			total += m.Objects
		}
	}
	if total == 0 {
		return r.API.Cluster
	}
	report := func() {
		sum := 0
		for _, n := range done {
			sum += n
		}
		r.API.Status.ReportProgress(ctx, in.Revision, fmt.Sprintf(
			"Migrating: %d of %d custom resources are stored in a version that stays.", min(sum, total), total,
		))
	}
	report()
	var mu sync.Mutex
	last := r.API.Now()
	return r.API.Cluster.Reporting(func(crd string, n int) {
		mu.Lock()
		defer mu.Unlock()
		done[crd] = n
		if now := r.API.Now(); now.Sub(last) >= migrationReports {
			last = now
			report()
		}
	})
}
