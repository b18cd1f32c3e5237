package permission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/pause"
)

// reviewer answers reviews after ten milliseconds.
type reviewer struct {
	client.Client
	mu      sync.Mutex
	allows  bool
	reviews int
}

func (r *reviewer) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
	if !ok || review.Spec.ResourceAttributes.Group != rbacv1.GroupName {
		return errors.New("it is no review of roles")
	}
	r.mu.Lock()
	r.reviews++
	review.Status.Allowed = r.allows
	r.mu.Unlock()
	return pause.For(ctx, 10*time.Millisecond)
}

// Packages that are installed at the same time share one review of each action. One that denies it is not used later.
func TestConcurrentPackagesShareReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		h := &ManagerRules{Client: r}
		ask := func(want bool, reviews int) {
			t.Helper()
			var packages sync.WaitGroup
			for range 50 {
				packages.Go(func() {
					if got, err := h.may(t.Context(), "", "clusterroles", "bind"); err != nil || got != want {
						t.Errorf("got %v, %v, want %v", got, err, want)
					}
				})
			}
			packages.Wait()
			if r.reviews != reviews {
				t.Errorf("%d reviews, want %d", r.reviews, reviews)
			}
		}
		ask(false, 1)
		r.allows = true
		ask(true, 2)
		ask(true, 2)
		_ = pause.For(t.Context(), recentReview)
		ask(true, 3)
	})
}
