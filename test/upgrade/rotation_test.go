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
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/hook"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// overlap is the time for which two CAs are trusted.
	overlap = 3 * time.Second

	// hooked is another provider, whose webhooks are called continuously. The test serves them.
	hooked, hookedGroup = "hooked", "hooked.test"
)

// rotation rotates the CA continuously, while webhooks are called.
type rotation struct {
	suite *suite

	mu        sync.Mutex
	rotations int
	calls     int
	failed    []error
}

// startRotation rotates and calls until it is stopped.
func startRotation(s *suite) (r *rotation, stop func()) {
	s.Helper()
	s.installHooked()
	r = &rotation{suite: s}
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

// installHooked installs the other provider, and waits until its webhooks are called.
func (s *suite) installHooked() {
	s.Helper()
	s.EnsureCreated(s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controller.DefaultNamespace}})
	program := hook.Start(s.T, s.Client, controller.DefaultNamespace, hooked)
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: hooked}}
	p.Spec.Package = s.Push(s, "upgrade/"+hooked, "v1", hook.Stream(hooked, hookedGroup, "v1"))
	s.Create(s, p)
	s.WaitPackage(s, p, "has a healthy runtime", func() bool {
		rev := &v1.ProviderRevision{}
		if s.Client.Get(s.Context(), client.ObjectKey{Name: p.Status.CurrentRevision}, rev) != nil {
			return false
		}
		rev.SetConditions(metav1.Now(), v1.RuntimeHealthy())
		return s.Client.Status().Update(s.Context(), rev) == nil
	})
	s.WaitReady(s, p)
	wait.Until(s, env.Limit, "the webhooks are called", func() (string, bool) {
		err := s.Client.Create(s.Context(), hook.Thing(hookedGroup, "v1", "stored"))
		if apierrors.IsAlreadyExists(err) {
			converted := hook.Thing(hookedGroup, "v2", "stored")
			err = s.Client.Get(s.Context(), client.ObjectKeyFromObject(converted), converted)
		}
		_ = s.Client.Create(s.Context(), hook.Thing(hookedGroup, "v1", "any"), client.DryRunAll)
		return fmt.Sprint(err), program.Called()
	})
}

func (r *rotation) admit(ctx context.Context) {
	r.count(ctx, r.suite.Client.Create(ctx, hook.Thing(hookedGroup, "v1", "any"), client.DryRunAll))
}

func (r *rotation) convert(ctx context.Context) {
	converted := hook.Thing(hookedGroup, "v2", "stored")
	r.count(ctx, r.suite.Client.Get(ctx, client.ObjectKeyFromObject(converted), converted))
}

func (r *rotation) count(ctx context.Context, err error) {
	r.mu.Lock()
	r.calls++
	if err != nil && ctx.Err() == nil {
		r.failed = append(r.failed, err)
	}
	r.mu.Unlock()
	pause(ctx, 10*time.Millisecond) // Leave processor time for the system under test.
}

// rotate requests a new CA, and waits until it is the only one.
func (r *rotation) rotate(ctx context.Context) {
	root := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: controller.DefaultNamespace, Name: certificates.RootSecret,
	}}
	var was string
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := r.suite.Client.Get(ctx, client.ObjectKeyFromObject(root), root); err != nil {
			return err
		}
		was = string(root.Data[certificates.KeyCertificate])
		metav1.SetMetaDataAnnotation(&root.ObjectMeta, certificates.AnnotationRotate, "now")
		return r.suite.Client.Update(ctx, root)
	})
	for err == nil && ctx.Err() == nil {
		pause(ctx, 250*time.Millisecond)
		err = r.suite.Client.Get(ctx, client.ObjectKeyFromObject(root), root)
		if err == nil && len(root.Data) == 2 && string(root.Data[certificates.KeyCertificate]) != was {
			r.mu.Lock()
			r.rotations++
			r.mu.Unlock()
			return
		}
	}
	if err != nil {
		r.count(ctx, fmt.Errorf("rotate the CA: %w", err))
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

// check fails if a call failed, or if there were too few calls for a result.
func (r *rotation) check() {
	s := r.suite
	s.Helper()
	s.Logf("the CA was rotated %d times during %d calls of webhooks", r.rotations, r.calls)
	if len(r.failed) > 0 {
		s.Errorf("%d of %d calls of webhooks failed, the first: %v", len(r.failed), r.calls, r.failed[0])
	}
	if r.rotations < 2 || r.calls < 100 {
		s.Error("too few rotations or calls for a result")
	}
}
