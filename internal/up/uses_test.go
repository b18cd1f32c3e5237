package up

import (
	"os"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/up/registry"
)

func TestUsesOfPackages(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	tests := map[string]struct {
		spec, resolved string
		want           []registry.Use
	}{
		"by tag":          {"127.0.0.1:15000/a/b:v1", "", []registry.Use{{Repository: "a/b", Tag: "v1"}}},
		"by another name": {"localhost:15000/a/b:v1", "", []registry.Use{{Repository: "a/b", Tag: "v1"}}},
		"by digest": {"127.0.0.1:15000/a/b:v1@" +
			digest, "", []registry.Use{{Repository: "a/b", Tag: "v1", Digest: digest}}},
		"by an ImageConfig": {"xpkg.crossplane.io/a/b:v1", "127.0.0.1:15000/mirror/a/b:v1", []registry.Use{{
			Repository: "mirror/a/b", Tag: "v1",
		}}},
		"resolved the same": {"127.0.0.1:15000/a/b:v1", "127.0.0.1:15000/a/b:v1", []registry.Use{{
			Repository: "a/b", Tag: "v1",
		}}},
		"another port": {"127.0.0.1:15001/a/b:v1", "", nil},
		"another host": {"registry.example.com:15000/a/b:v1", "", nil},
		"no port":      {"localhost/a/b:v1", "", nil},
		"no reference": {"a-name-in-the-cache", "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &v1.Provider{}
			p.Name, p.Spec.Package, p.Status.ResolvedPackage = "hello", test.spec, test.resolved
			p.Spec.PackagePullPolicy = corev1.PullAlways
			for i := range test.want {
				test.want[i].Package, test.want[i].Follows = "provider/hello", true
			}
			if diff := cmp.Diff(test.want, usesOf(p, "127.0.0.1:15000")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Removing the file of the token rotates it at the next start.
func TestRemovedTokenIsRotated(t *testing.T) {
	d := &datadir.Dir{Path: t.TempDir()}
	first, err := ensureToken(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.File(tokenName)); err != nil {
		t.Fatal(err)
	}
	if next, err := ensureToken(d); err != nil || next == first || len(next) < leastToken {
		t.Errorf("got the token %q after %q, %v", next, first, err)
	}
}

func TestTokenThatWasCutShortIsReplaced(t *testing.T) {
	d := &datadir.Dir{Path: t.TempDir()}
	first, err := ensureToken(d)
	if err != nil || len(first) < leastToken {
		t.Fatalf("got %q, %v", first, err)
	}
	if again, err := ensureToken(d); again != first || err != nil {
		t.Errorf("the token changed: %v", err)
	}
	if err := datadir.WriteFile(d.File(tokenName), []byte(first[:3])); err != nil {
		t.Fatal(err)
	}
	if next, err := ensureToken(d); err != nil || len(next) < leastToken || next == first {
		t.Errorf("got %q, %v", next, err)
	}
}
