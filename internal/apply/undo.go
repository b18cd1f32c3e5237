package apply

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xpkg-dev/xpkg/internal/pause"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// DryRun returns a cluster whose writes are dry runs.
func (c *Cluster) DryRun() *Cluster {
	d := *c
	d.dryRun = true
	return &d
}

// NoDryRun reports whether a dry run failed only because an admission webhook does not support it.
func NoDryRun(err error) bool {
	return err != nil && strings.Contains(err.Error(), "does not support dry run")
}

// undoTries is the number of attempts to delete a CRD while the API server changes its status.
const undoTries = 5

// Undo deletes the CRDs that a failed plan created, and returns the created objects that remain, in order. It keeps
// CRDs with custom resources, CRDs whose custom resources cannot be listed, CRDs that another client has changed, and
// objects of other kinds, which a composition engine may use already.
func (c *Cluster) Undo(ctx context.Context, p plan.Plan, written map[plan.Ref]plan.Written) (remaining []plan.Ref) {
	for _, ch := range p.Changes {
		w, done := written[ch.Ref]
		if !done || ch.Action != plan.Create {
			continue
		}
		if ch.Ref.Kind != plan.DefinitionKind || !c.undo(ctx, ch.Ref, w) {
			remaining = append(remaining, ch.Ref)
		}
	}
	slices.SortFunc(remaining, plan.Ref.Compare)
	return remaining
}

// undo deletes a CRD without custom resources, and reports whether it no longer exists.
func (c *Cluster) undo(ctx context.Context, ref plan.Ref, w plan.Written) bool {
	for range undoTries {
		o, exists, err := c.Object(ctx, ref)
		if err != nil || !exists {
			return err == nil
		}
		if o.UID != w.UID || o.Generation != w.Generation || !c.isUnused(ctx, o) {
			return false
		}
		if err := c.Delete(ctx, ref, o.UID, o.ResourceVersion); !apierrors.IsConflict(err) {
			return err == nil
		}
	}
	return false
}

// isUnused reports whether a CRD certainly has no custom resources. The API server accepts none until the CRD is
// established.
func (c *Cluster) isUnused(ctx context.Context, o Object) bool {
	d, err := decodeDefinition(o.Ref, o.JSON)
	if err != nil {
		return false
	}
	if !d.Established {
		return true
	}
	n, why, err := c.countOnceServed(ctx, d)
	return err == nil && why == "" && n == 0
}

const (
	// servedTries is the number of attempts to read a kind whose CRD was just written, and servedPause the pause after
	// the first of them. Each further pause is twice as long.
	servedTries = 8
	servedPause = 50 * time.Millisecond
)

// countOnceServed is like count for a CRD that was just written. It retries until the API server serves the kind.
func (c *Cluster) countOnceServed(ctx context.Context, d plan.Definition) (n int, why string, err error) {
	for try := 0; ; try++ {
		n, _, why, err = c.count(ctx, d)
		if why != kindNotServed || try == servedTries || pause.For(ctx, servedPause<<try) != nil {
			return n, why, err
		}
	}
}
