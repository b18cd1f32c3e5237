package planner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// limit is how long a condition may take on a machine that is busy.
const limit = 45 * time.Second

// fakeContent is a place of packages for tests.
type fakeContent struct {
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
	return fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: %s\n%s", name, spec) + strings.Join(crds, "")
}

func crd(group, kind, description string) string {
	return publish.Definition(group, kind, description)
}

func newProvider(name, ref string) *v1.Provider {
	p := v1.NewPackage(v1.ProviderKind).(*v1.Provider)
	p.Name, p.Spec.Package = name, ref
	return p
}

// audit keeps every write of a manager that the API server carries out: the verb, the kind
// and the name of packages' objects and revisions.
type audit struct {
	mu     sync.Mutex
	writes []string
	next   http.RoundTripper
}

func (a *audit) RoundTrip(r *http.Request) (*http.Response, error) {
	w := write(r)
	res, err := a.next.RoundTrip(r)
	// The garbage collector also writes to objects, so that some attempts of the
	// manager come too late and are repeated.
	if w != "" && err == nil && res.StatusCode < http.StatusMultipleChoices {
		a.mu.Lock()
		a.writes = append(a.writes, w)
		a.mu.Unlock()
	}
	return res, err
}

// write returns a text for the write of a call, or "". Writes of status, events and
// the Lock are not part of a plan.
func write(r *http.Request) string {
	base := path.Base(path.Dir(r.URL.Path))
	switch {
	case r.Method == http.MethodGet, strings.HasSuffix(r.URL.Path, "/status"),
		strings.Contains(r.URL.Path, "/events"), strings.Contains(r.URL.Path, "/locks"):
		return ""
	case r.Method != http.MethodPost:
		return r.Method + " " + base + "/" + path.Base(r.URL.Path)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &o); err != nil {
		return err.Error()
	}
	return "POST " + path.Base(r.URL.Path) + "/" + o.Name
}

func (a *audit) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes = nil
}

func (a *audit) seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := append([]string{}, a.writes...)
	slices.Sort(out)
	return out
}

// audited returns a configuration whose writes are recorded.
func audited(cfg *rest.Config) (*rest.Config, *audit) {
	a := &audit{}
	out := rest.CopyConfig(cfg)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { a.next = next; return a })
	return out, a
}

// newPlanner makes a planner of a cluster, through a transport that fails the test
// at the first write.
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

func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// change changes a package, and repeats that on conflicts with other clients.
func change(t *testing.T, c client.Client, p v1.Package, how func(v1.Package)) {
	t.Helper()
	wait.Until(t, limit, "the package is changed", func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		how(p)
		err := c.Update(t.Context(), p)
		return fmt.Sprint(err), err == nil
	})
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
		if h.Status != corev1.ConditionTrue || h.ObservedGeneration != p.GetGeneration() || p.PackageStatus().CurrentIdentifier != p.PackageSpec().Package {
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

// until waits for a condition of a package.
func until(t *testing.T, c client.Client, p v1.Package, ct v1.ConditionType, status corev1.ConditionStatus, message string) {
	t.Helper()
	wait.Until(t, limit, fmt.Sprintf("%s has %s=%s %s", p.GetName(), ct, status, message), func() (string, bool) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		got := p.GetCondition(ct)
		return fmt.Sprintf("%+v", p.PackageStatus()), got.Status == status && strings.Contains(got.Message, message) && got.ObservedGeneration == p.GetGeneration()
	})
}

// untilLock waits until the entry of a package in the Lock satisfies a condition, and
// returns the Lock.
func untilLock(t *testing.T, c client.Client, what string, p *v1.Provider, holds func(v1beta1.LockPackage) bool) *v1beta1.Lock {
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

// runManager starts a manager with the content.
func runManager(t *testing.T, cfg *rest.Config, content controller.Content) *env.Manager {
	t.Helper()
	return (&env.Env{Config: cfg}).RunManager(t, controller.Options{Content: content})
}
