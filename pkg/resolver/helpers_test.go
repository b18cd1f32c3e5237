package resolver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// registry is a registry with latency that records its requests.
type registry struct {
	*httptest.Server
	address, backend string
	delay            time.Duration

	mu       sync.Mutex
	fault    func(w http.ResponseWriter, r *http.Request) bool
	requests []string
	now      int // requests under way
	most     int // of them, at once
}

// newRegistry starts one whose requests take so long. What tests publish takes a way of
// its own.
func newRegistry(t testing.TB, delay time.Duration) *registry {
	t.Helper()
	content := localregistry.New(t)
	backend := httptest.NewServer(content)
	r := &registry{backend: strings.TrimPrefix(backend.URL, "http://"), delay: delay}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fault := r.begin(req)
		defer r.end()
		switch {
		case !r.pauseFor(req.Context(), r.delay), fault != nil && fault(w, req):
			return
		}
		content.ServeHTTP(w, req)
	}))
	r.address = r.Listener.Addr().String()
	t.Cleanup(func() {
		r.Close()
		backend.Close()
	})
	return r
}

// pauseFor simulates network latency. It returns false if the request is canceled.
func (r *registry) pauseFor(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (r *registry) begin(req *http.Request) func(http.ResponseWriter, *http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req.Method+" "+req.URL.Path)
	r.now++
	r.most = max(r.most, r.now)
	return r.fault
}

func (r *registry) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now--
}

// does makes the registry answer in another way, from now on.
func (r *registry) does(fault func(w http.ResponseWriter, r *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// recorded returns the requests since the last call, sorted.
func (r *registry) recorded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.requests
	r.requests = nil
	slices.Sort(out)
	return out
}

// have publishes packages: lines "name version: dependency constraint; …". Names are
// repositories of this registry. A dependency with a question mark is optional,
// and one with crd= is a kind.
func (r *registry) have(t testing.TB, text string) {
	t.Helper()
	remote := remote.New(remote.Options{})
	defer remote.Close()
	var wait sync.WaitGroup
	room := make(chan struct{}, 8)
	for line := range strings.Lines(text) {
		head, needs, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, tag, ok := strings.Cut(head, " ")
		if !ok {
			continue
		}
		stream := r.stream(name, needs)
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			r.push(t, remote, name, tag, stream)
		})
	}
	wait.Wait()
}

func (r *registry) push(t testing.TB, remote *remote.Client, name, tag, stream string) {
	image, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(stream)})
	if err == nil {
		ref := oci.MustParseReference(r.backend + "/" + name + ":" + tag)
		_, err = remote.Push(t.Context(), ref, image)
	}
	if err != nil {
		t.Error(err)
	}
}

// stream returns a package.yaml.
func (r *registry) stream(name, needs string) string {
	kind := "Provider"
	if needs != "" {
		kind = "Configuration"
	}
	var hard, optional strings.Builder
	for need := range strings.SplitSeq(needs, ";") {
		to, constraint, _ := strings.Cut(strings.TrimSpace(need), " ")
		b := &hard
		if name, ok := strings.CutPrefix(to, "?"); ok {
			b, to = &optional, name
		}
		switch {
		case to == "":
			continue
		case strings.HasPrefix(to, "crd="):
			fmt.Fprintf(b, "  - {crd: %q}\n", strings.TrimPrefix(to, "crd="))
			continue
		case !strings.Contains(to, ".") && !strings.HasPrefix(to, "short/"):
			to = r.address + "/" + to
		}
		fmt.Fprintf(b, "  - {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: %q, version: %q}\n", to, constraint)
	}
	annotations := ""
	if optional.Len() > 0 {
		annotations = fmt.Sprintf(", annotations: {%s: %q}", xpkg.AnnotationOptional, optional.String())
	}
	return fmt.Sprintf(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata: {name: %s%s}\nspec:\n  dependsOn:\n%s", kind,
		filepath.Base(name), annotations, hard.String(),
	)
}

// root asks for a package of this registry.
func (r *registry) root(name, constraint string) dependency.Root {
	return dependency.Root{Package: r.address + "/" + name, Constraint: constraint}
}

// newResolver returns a resolver with a store of its own.
func newResolver(t testing.TB, change func(*fetch.Options)) *resolver.Resolver {
	t.Helper()
	return newResolverAt(t, change, nil)
}

// newResolverAt returns a resolver that finds packages where locate reports.
func newResolverAt(
	t testing.TB, change func(*fetch.Options), locate func(context.Context, oci.Reference) (fetch.Origin, error),
) *resolver.Resolver {
	t.Helper()
	return &resolver.Resolver{Registry: fetch.NewRegistry(sourcetest.New(t, change), locate)}
}

// summary returns a closure in one line, without the address of the registry.
func (r *registry) summary(f lockfile.File) string {
	var out []string
	for _, p := range f.Packages {
		out = append(out, strings.TrimPrefix(p.Repository, r.address+"/")+" "+p.ShortVersion())
	}
	return strings.Join(out, "; ")
}

func hasCode(err error, name string) bool {
	return errcode.From(err).Code.Name == name
}
