package registry_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/dockerregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// TestOneServerPublishesOutsideOfACluster starts servers in front of one registry, each outside of a cluster or in
// one of its own. The second one serves reads and publishes neither packages nor the index, until the first one has
// ended or it has the identity of the first one.
func TestOneServerPublishesOutsideOfACluster(t *testing.T) {
	for name, inside := range map[string]bool{"outside": false, "inside": true} {
		t.Run(name, func(t *testing.T) {
			address := dockerregistry.Start(t)
			var log buffer.Buffer
			front := func(dir string, in *cluster.Config) *server {
				s := start(t, func(o *registry.Options) {
					if dir != "" {
						o.Dir = dir
					}
					o.Indexer, o.Log = noIndexer{}, slog.New(slog.NewTextHandler(&log, nil))
					o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, PublishIndex: true, Cluster: in}
				})
				return s
			}
			accepts := func(what string, s *server, repository string) {
				t.Helper()
				if status, body := s.tryPush(t.Context(), repository, "v1.0.0", "content"); status != http.StatusCreated {
					t.Fatalf("%s: %d %s", what, status, body)
				}
			}
			first := front("", nil)
			accepts("the first server", first, "acme/boats")
			var in *cluster.Config
			if inside {
				in = inCluster(t)
			}
			second := front("", in)
			id, err := os.ReadFile(filepath.Join(first.dir, "publisher"))
			if err != nil {
				t.Fatal(err)
			}
			status, body := second.tryPush(t.Context(), "acme/rafts", "v1.0.0", "content")
			if status != http.StatusServiceUnavailable || !strings.Contains(body, string(id)) {
				t.Errorf("the second server: %d %s, want the name %s", status, body, id)
			}
			if got := second.do(t, http.MethodGet, "/v2/acme/boats/manifests/v1.0.0", "", nil).StatusCode; got != http.StatusOK {
				t.Errorf("a read from the second server: %d", got)
			}
			if got := second.do(t, http.MethodDelete, "/v2/acme/boats/manifests/v1.0.0", second.admin, nil).
				StatusCode; got != http.StatusServiceUnavailable {
				t.Errorf("a deletion in the second server: %d", got)
			}
			if !inside && !strings.Contains(log.String(), "must be the only server") {
				t.Errorf("the servers do not state that each must be the only one:\n%s", log.String())
			}
			first.stop()
			accepts("the second server after the end of the first one", second, "acme/rafts")
			restart := func() *server {
				s := front(first.dir, nil)
				s.admin = first.admin
				return s
			}
			again := restart()
			if status := again.pushManifest(
				t.Context(), "acme/cars", "v1.0.0", "content",
			); status != http.StatusServiceUnavailable {
				t.Errorf("the first server, started again beside the second one: %d", status)
			}
			if inside {
				return
			}
			// The second server is gone for good, and its folder, too.
			adopted, err := os.ReadFile(filepath.Join(second.dir, "publisher"))
			if err != nil {
				t.Fatal(err)
			}
			again.stop()
			if err := os.WriteFile(filepath.Join(first.dir, "publisher"), append(adopted, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
			accepts("a server with the identity of another one", restart(), "acme/cars")
		})
	}
}

// TestABackendWithoutARecordIsUsed pushes through a server to a registry that refuses the record of it.
func TestABackendWithoutARecordIsUsed(t *testing.T) {
	backend := dockerregistry.Start(t)
	var refused, denials int
	address := strings.TrimPrefix(port.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/index/") && r.Method != http.MethodGet && r.Method != http.MethodHead {
			denials++
			w.WriteHeader(http.StatusForbidden)
			return
		}
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", backend, ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		for key, values := range resp.Header {
			w.Header()[key] = values
		}
		w.WriteHeader(resp.StatusCode)
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		_, _ = w.Write(body.Bytes())
	})).URL, "http://")
	s := start(t, func(o *registry.Options) {
		o.Indexer, o.Backend = noIndexer{}, &registry.BackendOptions{Host: address, PlainHTTP: true}
	})
	for _, repository := range []string{"acme/boats", "acme/rafts"} {
		if status, body := s.tryPush(t.Context(), repository, "v1.0.0", "content"); status != http.StatusCreated {
			refused++
			t.Errorf("%s: %d %s", repository, status, body)
		}
	}
	if denials == 0 {
		t.Error("the server has not tried to write its record")
	}
}

// TestAServerWithoutPermissionsInItsClusterEnds starts a server whose ServiceAccount may not use Leases.
func TestAServerWithoutPermissionsInItsClusterEnds(t *testing.T) {
	in := inCluster(t)
	in.REST = rest.CopyConfig(in.REST)
	in.REST.Impersonate = rest.ImpersonationConfig{UserName: "without-permissions", Groups: []string{
		"system:authenticated",
	}}
	s, err := registry.New(registry.Options{
		Dir: t.TempDir(), Host: host, Indexer: noIndexer{},
		Backend: &registry.BackendOptions{Host: "registry.invalid", PlainHTTP: true, Cluster: in},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "may not use Leases") {
		t.Errorf("the server ends with %v", err)
	}
}

// TestTheRoleOfTheGuideIsEnough runs servers with the permissions of the guide: one publishes the index, and one
// completes the push of another one.
func TestTheRoleOfTheGuideIsEnough(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "run-a-registry.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("which needs this Role:\n\n```yaml\n"))
	text, _, _ = bytes.Cut(text, []byte("```"))
	role, binding, _ := bytes.Cut(text, []byte("---\n"))
	in := inCluster(t)
	var r rbacv1.Role
	var b rbacv1.RoleBinding
	if err := errors.Join(yaml.UnmarshalStrict(role, &r), yaml.UnmarshalStrict(binding, &b)); err != nil {
		t.Fatal(err)
	}
	r.Namespace, b.Namespace, b.Subjects[0].Namespace = in.Namespace, in.Namespace, in.Namespace
	rbac := clientsOf(t, in).RbacV1()
	if _, err := rbac.Roles(in.Namespace).Create(t.Context(), &r, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.RoleBindings(in.Namespace).Create(t.Context(), &b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limited := rest.CopyConfig(in.REST)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + in.Namespace + ":" +
		b.Subjects[0].Name}
	as := &cluster.Config{REST: limited, Namespace: in.Namespace}
	leases := clientsOf(t, as).CoordinationV1().Leases(in.Namespace)
	wait.Until(t, deadline, "the API server has read the Role", func() (string, bool) {
		_, err := leases.Get(t.Context(), "none", metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	address := dockerregistry.Start(t)
	var log buffer.Buffer
	front := func(life *life, indexer registry.Indexer) *server {
		life.immortal()
		return start(t, func(o *registry.Options) {
			o.Indexer, o.Log = indexer, slog.New(slog.NewTextHandler(&log, nil))
			o.Backend = &registry.BackendOptions{
				Host: address, PlainHTTP: true, PublishIndex: true, Transport: life.limited(http.DefaultTransport),
				Cluster: wrapped(as, life.limited),
			}
		})
	}
	var first, second life
	failing, other := front(&first, noIndexer{}), front(&second, nil)
	const repository = "acme/boats"
	for requests := int64(1); len(claimsIn(t, in, repository)) < 2; requests++ { // Those of the name and of the version.
		first.left.Store(requests)
		failing.pushManifest(t.Context(), repository, "v1.0.0", "content")
	}
	if status := other.pushManifest(t.Context(), repository, "v1.0.0", "other content"); status != http.StatusConflict {
		t.Errorf("the push of other content: %d", status)
	}
	if left := claimsIn(t, in, repository); len(left) > 0 {
		t.Errorf("%d claims are left", len(left))
	}
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	wait.Until(t, time.Minute, "the index is published", func() (string, bool) {
		_, err := client.Resolve(t.Context(), oci.MustParseReference(address+"/index:main"))
		return log.String(), err == nil
	})
	if strings.Contains(log.String(), "may not use Leases") {
		t.Error(log.String())
	}
}

// TestAClaimWhoseContentIsGoneIsReplaced lets a server fail after it has claimed a version. The backend removes the
// content, and another server publishes other content of the version once the claim has not changed for a minute.
func TestAClaimWhoseContentIsGoneIsReplaced(t *testing.T) {
	address, in, now := dockerregistry.Start(t), inCluster(t), newClock()
	front := func(life *life) *server {
		return start(t, func(o *registry.Options) {
			o.Indexer, o.Now = noIndexer{}, now.read
			o.Backend = &registry.BackendOptions{
				Host: address, PlainHTTP: true, Transport: life.limited(http.DefaultTransport), Cluster: wrapped(in, life.limited),
			}
		})
	}
	var lives [2]life
	for i := range lives {
		lives[i].immortal()
	}
	first, second := front(&lives[0]), front(&lives[1])
	const repository = "acme/boats"
	if status := first.pushManifest(t.Context(), repository, "v0.1.0", "another version"); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	// The server fails after it has created the claim.
	for requests := int64(1); len(claimsIn(t, in, repository)) == 0; requests++ {
		lives[0].left.Store(requests)
		if status := first.pushManifest(t.Context(), repository, "v1.0.0", "lost content"); status == http.StatusCreated {
			t.Fatal("the server has not failed between claim and tag")
		}
	}
	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	lost := oci.MustParseReference(address + "/" + repository + ":v1.0.0").
		WithDigest(oci.DigestOf(manifestOf("lost content")))
	if err := client.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	push := func() int { return second.pushManifest(t.Context(), repository, "v1.0.0", "other content") }
	for range 3 {
		if status := push(); status != http.StatusServiceUnavailable {
			t.Fatalf("while the first server can write: status %d", status)
		}
		now.add(29 * time.Second)
	}
	if status := push(); status != http.StatusCreated {
		t.Errorf("after a minute: status %d", status)
	}
	if left := claimsIn(t, in, repository); len(left) > 0 {
		t.Errorf("%d claims are left", len(left))
	}
	// The first server lives again, too late.
	lives[0].immortal()
	if status := first.pushManifest(t.Context(), repository, "v1.0.0", "lost content"); status != http.StatusConflict {
		t.Errorf("the first server publishes after all: status %d", status)
	}
}
