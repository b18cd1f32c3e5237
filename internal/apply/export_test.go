package apply

import (
	"context"
	"time"
)

// SettleWithin sets the time after which a control plane with one API server stores custom resources in a new storage
// version.
func SettleWithin(c *Cluster, d time.Duration) { c.settles = d }

// Migration is what a migration has done.
type Migration = migration

// MigrateStorage migrates the custom resources of a CRD to its storage version.
func (c *Cluster) MigrateStorage(ctx context.Context, crd string, dropFields bool) (Migration, error) {
	m, _, err := c.migrateStorage(ctx, crd, dropFields)
	return m, err
}
