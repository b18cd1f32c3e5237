package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// logRecorder records the log of a manager.
type logRecorder struct {
	slog.Handler
	mu     sync.Mutex
	all    []string
	errors []string
}

func (l *logRecorder) Enabled(context.Context, slog.Level) bool { return true }
func (l *logRecorder) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logRecorder) WithGroup(string) slog.Handler            { return l }

func (l *logRecorder) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	if r.Level >= slog.LevelError {
		l.errors = append(l.errors, line)
	}
	return nil
}

func (l *logRecorder) until(t *testing.T, part string) {
	t.Helper()
	wait.Until(t, limit, "the log contains "+part, func() (string, bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return fmt.Sprint(len(l.all)), slices.ContainsFunc(l.all, func(s string) bool { return strings.Contains(s, part) })
	})
}

func (w *dependencyEnv) untilGone(t *testing.T, p v1.Package) {
	t.Helper()
	eventually(t, p.GetName()+" is deleted", func() bool {
		return apierrors.IsNotFound(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	})
}

// checkInstalled checks that a package exists and is not being deleted.
func (w *dependencyEnv) checkInstalled(t *testing.T, p v1.Package) {
	t.Helper()
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.GetDeletionTimestamp() != nil {
		t.Errorf("%s is to stay: %v %v", p.GetName(), err, p.GetDeletionTimestamp())
	}
}

// deletions returns the packages that managers have deleted, in order.
func (w *dependencyEnv) deletions() []string {
	var out []string
	for _, c := range w.audit.Calls("dep-") {
		if c.Method == http.MethodDelete &&
			slices.Contains([]string{"providers", "configurations", "functions"}, c.Resource) {
			out = append(out, c.Name)
		}
	}
	return out
}

func (w *dependencyEnv) untilEvent(t *testing.T, of client.Object, reason, note string) {
	t.Helper()
	untilEvent(t, w.testEnv, of, reason, note)
}

// installControl shows that the manager has looked for orphans: it removes one.
func (w *dependencyEnv) installControl(t *testing.T, name string) {
	t.Helper()
	w.push(t, "Provider", name+"-leaf:v1.0.0")
	p := w.config(t, name, w.push(t, "Configuration", name+":v1.0.0", name+"-leaf"))
	w.WaitHealthy(t, p)
	w.remove(t, p)
	w.untilGone(t, env.NewProvider("dep-"+name+"-leaf", ""))
}

// Orphaned dependencies are removed if that is enabled, dependents first, and only
// auto-installed packages that are certainly not needed and whose custom resources
// would not be lost.
//
// hardening: F11
func TestRemovesOrphans(t *testing.T) {
	s := newEnv(t)
	log := &logRecorder{}
	s.log, s.options.ActivationDeadline = log, 3*time.Second
	w := startDependencyEnv(t, s, controller.Dependencies{Removal: graph.RemoveOrphans})
	leaf, mid, shared := env.NewProvider("dep-leaf", ""), newConfiguration("dep-mid", ""),
		env.NewProvider("dep-shared", "")
	for _, name := range []string{"leaf", "shared"} {
		w.push(t, "Provider", name+":v1.0.0")
	}
	w.push(t, "Configuration", "mid:v1.0.0", "leaf", "shared")
	rootRef := w.push(t, "Configuration", "root:v1.0.0", "configuration=mid")

	eventually(t, "the Lock contains the removal policy", func() bool {
		lock := &v1beta1.Lock{}
		return w.Client.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock) == nil &&
			lock.Annotations[graph.AnnotationRemovalPolicy] == "Orphans"
	})

	t.Run("level by level, but for what others need", func(t *testing.T) {
		other := w.config(t, "other", w.push(t, "Configuration", "other:v1.0.0", "shared"))
		root := w.config(t, "root", rootRef)
		w.WaitHealthy(t, other)
		w.WaitHealthy(t, root)
		w.remove(t, root)
		w.untilGone(t, leaf)
		w.untilGone(t, mid)
		if got := w.deletions(); !slices.Equal(got, []string{"dep-mid", "dep-leaf"}) {
			t.Errorf("removed were %v", got)
		}
		w.checkInstalled(t, shared)
		w.untilEvent(t, leaf, "Orphaned", "no package requires")
		w.remove(t, other)
		w.untilGone(t, shared)
	})
	t.Run("but not packages that a user has adopted", func(t *testing.T) {
		root := w.config(t, "root", rootRef)
		w.WaitHealthy(t, root)
		env.Update(t, w.Env, leaf, func(p *v1.Provider) { delete(p.Labels, graph.LabelAutoInstalled) })
		w.remove(t, root)
		w.untilGone(t, mid)
		w.untilGone(t, shared)
		w.checkInstalled(t, leaf)
		w.remove(t, leaf)
	})
	t.Run("but not while requirements are unknown", func(t *testing.T) {
		root := w.config(t, "root", rootRef)
		w.WaitHealthy(t, root)
		broken := env.NewProvider("dep-broken", w.repository("nowhere")+":v1.0.0")
		w.CreateTemporary(t, broken)
		w.WaitCondition(t, broken, v1.TypeHealthy, corev1.ConditionFalse, "")
		w.remove(t, root)
		log.until(t, "package=provider/dep-broken")
		w.checkInstalled(t, leaf)
		w.checkInstalled(t, mid)
		w.remove(t, broken)
		w.untilGone(t, leaf)
	})
	t.Run("not with custom resources", func(t *testing.T) {
		ref, _ := w.registry.push(t, "dep/fleet:v1.0.0", provider("fleet", crd("removal.test", "Ship", "one")))
		p := w.config(t, "harbor", w.push(t, "Configuration", "harbor:v1.0.0", "fleet"))
		w.WaitHealthy(t, p)
		fleet := env.NewProvider("dep-fleet", ref)
		ship := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "removal.test/v1", "kind": "Ship", "metadata": map[string]any{"name": "one"},
		}}
		wait.Until(t, limit, "the ship is there", func() (string, bool) {
			err := w.Client.Create(t.Context(), ship)
			return fmt.Sprint(err), err == nil
		})
		w.remove(t, p)
		w.untilEvent(t, fleet, "OrphanRetained", "there are custom resources of ships.removal.test")
		w.checkInstalled(t, fleet)
		if err := w.Client.Delete(t.Context(), ship); err != nil {
			t.Fatal(err)
		}
		env.Update(t, w.Env, fleet, func(p *v1.Provider) { p.Annotations["touched"] = "by a user" })
		w.untilGone(t, fleet)
	})
	t.Run("but not before the version without the dependency is healthy", func(t *testing.T) {
		p := w.config(t, "house", w.push(t, "Configuration", "house:v1.0.0", "leaf"))
		w.WaitHealthy(t, p)
		w.checkInstalled(t, leaf)
		uid := leaf.UID
		bad := w.push(t, "Configuration", "house:v2.0.0", "late")
		env.Update(t, w.Env, p, func(p *v1.Configuration) { p.Spec.Package = bad })
		w.WaitPackage(t, p, "is rolled back", func() bool {
			return p.Status.Rollback != nil && p.GetCondition(v1.TypeReady).Reason == v1.ReasonRolledBack
		})
		w.installControl(t, "witness")
		if w.checkInstalled(t, leaf); leaf.UID != uid {
			t.Error("it was removed, and came back")
		}
		good := w.push(t, "Configuration", "house:v3.0.0")
		env.Update(t, w.Env, p, func(p *v1.Configuration) { p.Spec.Package = good })
		w.untilGone(t, leaf)
		w.WaitHealthy(t, p)
	})
	w.assertUnchanged(t)
}

// crashAfterDelete rejects all writes after the first package was deleted, as if the manager had
// ended at that moment. While it is bound, no package may be deleted.
type crashAfterDelete struct {
	next        http.RoundTripper
	dead, bound *atomic.Bool
}

var errCrashed = errors.New("the manager is dead")

func (d crashAfterDelete) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.bound.Load() && r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/configurations/") {
		return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
	}
	if d.dead.Load() && r.Method != http.MethodGet {
		return nil, errCrashed
	}
	res, err := d.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodDelete && res.StatusCode < http.StatusBadRequest &&
		strings.Contains(r.URL.Path, "/configurations/") {
		d.dead.Store(true)
	}
	return res, err
}

// A manager without the permission to delete packages reports that. After a stop between two
// deletions, the next manager deletes the remaining orphans.
//
// hardening: J8
func TestAutoremoveContinuesAfterARestart(t *testing.T) {
	s := newEnv(t)
	dead, bound, healthy := &atomic.Bool{}, &atomic.Bool{}, s.Config
	bound.Store(true)
	s.Config = rest.CopyConfig(healthy)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return crashAfterDelete{next, dead, bound} })
	w := startDependencyEnv(t, s, controller.Dependencies{Removal: graph.RemoveOrphans})
	w.push(t, "Provider", "leaf:v1.0.0")
	w.push(t, "Configuration", "mid:v1.0.0", "leaf")
	root := w.config(t, "root", w.push(t, "Configuration", "root:v1.0.0", "configuration=mid"))
	w.WaitHealthy(t, root)
	w.remove(t, root)
	mid := newConfiguration("dep-mid", "")
	w.untilEvent(t, mid, "OrphanRetained", "has no permission to delete")
	bound.Store(false)
	env.Update(t, w.Env, mid, func(p *v1.Configuration) { p.Annotations["touched"] = "by a user" })
	eventually(t, "the deletion of the first orphan is requested", dead.Load)
	w.stop()
	leaf := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "dep-leaf"}}
	w.checkInstalled(t, leaf)
	s.Config = healthy
	s.start(t)
	w.untilGone(t, mid)
	w.untilGone(t, leaf)
	w.assertUnchanged(t)
}
