package upgrade_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/hook"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// overlap is how long two authorities are known at once.
	overlap = 3 * time.Second

	// hooked is another provider, whose webhooks are called all the time. The test runs
	// its program.
	hooked, hookedGroup = "hooked", "hooked.test"
)

// rotation replaces the authority of all certificates again and again, while webhooks are
// called.
type rotation struct {
	stand *stand

	mu        sync.Mutex
	rotations int
	calls     int
	failed    []error
}

// startRotation works until it is stopped.
func startRotation(s *stand) (r *rotation, stop func()) {
	s.Helper()
	s.installHooked()
	r = &rotation{stand: s}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for _, work := range []func(context.Context){r.rotate, r.admit, r.convert} {
		working.Go(func() {
			for ctx.Err() == nil {
				work(ctx)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
	})
	s.Cleanup(stop)
	return r, stop
}

// installHooked installs the other provider, and waits until its program is asked.
func (s *stand) installHooked() {
	s.Helper()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controller.DefaultNamespace}}
	if err := s.client.Create(s.Context(), home); err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	program := hook.Start(s.T, s.client, controller.DefaultNamespace, hooked)
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: hooked}}
	p.Spec.Package = publish.Stream(s, s.registry, "upgrade/"+hooked, "v1", []byte(hook.Stream(hooked, hookedGroup, "v1"))).String()
	if err := s.client.Create(s.Context(), p); err != nil {
		s.Fatal(err)
	}
	s.until(p, "is reported to run", func() bool {
		rev := &v1.ProviderRevision{}
		if s.client.Get(s.Context(), client.ObjectKey{Name: p.Status.CurrentRevision}, rev) != nil {
			return false
		}
		rev.SetConditions(metav1.Now(), v1.RuntimeHealthy())
		return s.client.Status().Update(s.Context(), rev) == nil
	})
	s.untilHealthy(p)
	wait.Until(s.T, patience, "the webhooks are called", func() (string, bool) {
		err := s.client.Create(s.Context(), hook.Thing(hookedGroup, "v1", "stored"))
		if apierrors.IsAlreadyExists(err) {
			converted := hook.Thing(hookedGroup, "v2", "stored")
			err = s.client.Get(s.Context(), client.ObjectKeyFromObject(converted), converted)
		}
		_ = s.client.Create(s.Context(), hook.Thing(hookedGroup, "v1", "any"), client.DryRunAll)
		return fmt.Sprint(err), program.Called()
	})
}

func (r *rotation) admit(ctx context.Context) {
	r.count(ctx, r.stand.client.Create(ctx, hook.Thing(hookedGroup, "v1", "any"), client.DryRunAll))
}

func (r *rotation) convert(ctx context.Context) {
	converted := hook.Thing(hookedGroup, "v2", "stored")
	r.count(ctx, r.stand.client.Get(ctx, client.ObjectKeyFromObject(converted), converted))
}

func (r *rotation) count(ctx context.Context, err error) {
	r.mu.Lock()
	r.calls++
	if err != nil && ctx.Err() == nil {
		r.failed = append(r.failed, err)
	}
	r.mu.Unlock()
	pause(ctx, 10*time.Millisecond) // Others work on this machine too.
}

// rotate asks for a new authority, and waits until it is the only one.
func (r *rotation) rotate(ctx context.Context) {
	root := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: certificates.RootSecret}}
	var was string
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := r.stand.client.Get(ctx, client.ObjectKeyFromObject(root), root); err != nil {
			return err
		}
		was = string(root.Data[certificates.KeyCertificate])
		metav1.SetMetaDataAnnotation(&root.ObjectMeta, certificates.AnnotationRotate, "now")
		return r.stand.client.Update(ctx, root)
	})
	for err == nil && ctx.Err() == nil {
		pause(ctx, 250*time.Millisecond)
		err = r.stand.client.Get(ctx, client.ObjectKeyFromObject(root), root)
		if err == nil && len(root.Data) == 2 && string(root.Data[certificates.KeyCertificate]) != was {
			r.mu.Lock()
			r.rotations++
			r.mu.Unlock()
			return
		}
	}
	if err != nil {
		r.count(ctx, fmt.Errorf("replace the authority: %w", err))
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// check fails when a call failed, or when too little happened to tell.
func (r *rotation) check() {
	s := r.stand
	s.Helper()
	s.Logf("the authority was replaced %d times during %d calls of webhooks", r.rotations, r.calls)
	if len(r.failed) > 0 {
		s.Errorf("%d of %d calls of webhooks failed, the first: %v", len(r.failed), r.calls, r.failed[0])
	}
	if r.rotations < 2 || r.calls < 100 {
		s.Error("too little happened for this to say anything")
	}
}
