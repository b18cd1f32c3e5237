package planner_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// limit is the time limit of a condition on a busy machine.
const limit = env.Limit

// fakeContent is an in-memory source of packages.
type fakeContent struct {
	sourcetest.NoHints
	sourcetest.NoStatuses
	sourcetest.NoSignatures
	mu       sync.Mutex
	tags     map[string]oci.Digest
	packages map[oci.Digest]string
}

func newFakeContent() *fakeContent {
	return &fakeContent{tags: map[string]oci.Digest{}, packages: map[oci.Digest]string{}}
}

func (s *fakeContent) put(ref, stream string) oci.Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := oci.DigestOf([]byte(stream))
	s.tags[ref], s.packages[d] = d, stream
	return d
}

var errNoSuchTag = errors.New("the registry has no such tag")

func (s *fakeContent) Named(_ context.Context, name string) (oci.Digest, error) {
	return oci.Digest{}, fetch.ErrNotCached.New(nil, "%s", name)
}

func (s *fakeContent) Resolve(_ context.Context, o fetch.Origin, _ time.Duration) (oci.Digest, error) {
	if !o.Ref.Digest.IsZero() {
		return o.Ref.Digest, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.tags[o.Ref.String()]
	if !ok {
		return oci.Digest{}, fetch.ErrNotCached.New(errNoSuchTag, "%s", o.Ref)
	}
	return d, nil
}

func (s *fakeContent) Read(_ context.Context, o fetch.Origin, d oci.Digest, _ bool) (*xpkg.Package, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream, ok := s.packages[d]
	if !ok {
		return nil, fetch.ErrNotCached.New(nil, "%s", o.Ref)
	}
	policy := xpkg.PolicyInstall()
	if o.Lenient {
		policy = policy.Lenient()
	}
	return xpkg.Read([]byte(stream), xpkg.ReadOptions{Policy: policy})
}

func provider(name, spec string, crds ...string) string {
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: %s\n%s", name, spec) +
		strings.Join(crds, "")
}

func crd(group, kind, description string) string {
	return publish.Definition(group, kind, description)
}

// madeWrites returns the writes of an audit, sorted.
func madeWrites(a *env.Audit) []string {
	// The manager adds its finalizer to a new package.
	out := slices.DeleteFunc(a.Writes(""), func(w string) bool {
		return strings.HasPrefix(w, "PUT providers/") || strings.HasPrefix(w, "PUT configurations/")
	})
	slices.Sort(out)
	return out
}

// newPlanner returns a planner for a cluster, whose transport fails the test at the first write.
func newPlanner(t *testing.T, cfg *rest.Config, s *fakeContent) *planner.Planner {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{t, next} })
	cluster, err := planner.NewCluster(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &planner.Planner{Reader: env.NewClient(t, cfg), Cluster: cluster, Source: s, Namespace: "crossplane-system"}
}

type readOnly struct {
	t    *testing.T
	next http.RoundTripper
}

func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		r.t.Errorf("a plan writes: %s %s", req.Method, req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// settled waits until a package matches its spec, and all its revisions are
// reconciled.
func settled(t *testing.T, c client.Client, p v1.Package) {
	t.Helper()
	wait.Until(t, limit, p.GetName()+" has settled", func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		seen := fmt.Sprintf("%+v", p.PackageStatus())
		h := p.GetCondition(v1.TypeHealthy)
		if h.Status != corev1.ConditionTrue || h.ObservedGeneration != p.GetGeneration() ||
			p.PackageStatus().CurrentIdentifier != p.PackageSpec().Package {
			return seen, false
		}
		list := p.NewRevisionList()
		if err := c.List(t.Context(), list, client.MatchingLabels{v1.LabelPackage: p.GetName()}); err != nil {
			return err.Error(), false
		}
		for _, r := range list.Revisions() {
			h := r.GetCondition(v1.TypeRevisionHealthy)
			if h.Status != corev1.ConditionTrue || h.ObservedGeneration != r.GetGeneration() || r.GetDeletionTimestamp() != nil {
				return fmt.Sprintf("%s %+v", r.GetName(), r.RevisionStatus()), false
			}
		}
		return seen, true
	})
}

// untilLock waits until the entry of a package in the Lock satisfies a condition, and
// returns the Lock.
func untilLock(
	t *testing.T, c client.Client, what string, p *v1.Provider, holds func(v1beta1.LockPackage) bool,
) *v1beta1.Lock {
	t.Helper()
	lock := &v1beta1.Lock{}
	wait.Until(t, limit, "the Lock "+what, func() (string, bool) {
		err := c.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock)
		return fmt.Sprint(err), err == nil && slices.ContainsFunc(lock.Packages, func(entry v1beta1.LockPackage) bool {
			return entry.Name == p.Status.CurrentRevision && holds(entry)
		})
	})
	return lock
}

// announceRuntimes makes the Lock announce that the next manager runs runtimes. No manager may run.
func announceRuntimes(t *testing.T, c client.Client) {
	t.Helper()
	lock := &v1beta1.Lock{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: v1beta1.LockName}, lock); err != nil {
		t.Fatal(err)
	}
	lock.Annotations[runtime.AnnotationChoice] = string(runtime.External)
	if err := c.Update(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
}

// runManager starts a manager with the content.
func runManager(t *testing.T, cfg *rest.Config, content controller.Content) *env.Manager {
	t.Helper()
	return (&env.Env{Config: cfg}).RunManager(t, controller.Options{Content: content})
}
