package fetch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const stream = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: content
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.content.test
spec:
  group: content.test
  scope: Cluster
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

func push(t *testing.T, registry string) oci.Reference {
	t.Helper()
	return pushStream(t, registry, stream)
}

func pushStream(t *testing.T, registry, stream string) oci.Reference {
	t.Helper()
	image, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(stream)})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := oci.ParseReference(registry+"/content/test:v1.0.0", oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remote := remote.New(remote.Options{})
	defer remote.Close()
	if _, err := remote.Push(t.Context(), ref, image); err != nil {
		t.Fatal(err)
	}
	return ref
}

func open(t *testing.T, dir string) *fetch.Source {
	t.Helper()
	store, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: store})
	t.Cleanup(func() {
		source.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return source
}

func check(t *testing.T, pkg *xpkg.Package) {
	t.Helper()
	if pkg.Meta.Name != "content" || len(pkg.Objects) != 1 || pkg.Objects[0].Name != "things.content.test" {
		t.Fatalf("read %+v", pkg.Meta)
	}
	raw, err := pkg.Objects[0].JSON()
	if err != nil || !strings.Contains(string(raw), `"group":"content.test"`) {
		t.Fatalf("read %s (%v)", raw, err)
	}
}

// readable checks that the content of an origin can be resolved and read.
func readable(t *testing.T, source *fetch.Source, o fetch.Origin) {
	t.Helper()
	d, err := source.Resolve(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := source.Read(t.Context(), o, d, true)
	if err != nil {
		t.Fatal(err)
	}
	check(t, pkg)
}

// With IfNotPresent, content that was read once is never requested again, by this
// process or the next one.
//
// hardening: G3
func TestReadAsksOnce(t *testing.T) {
	registry, dir := newRegistry(t), filepath.Join(t.TempDir(), "store")
	ref := push(t, registry.address)
	source := open(t, dir)
	d, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		pkg, err := source.Read(t.Context(), fetch.Plain(ref), d, true)
		if err != nil {
			t.Fatal(err)
		}
		check(t, pkg)
	}
	registry.reset()
	next := open(t, dir)
	for _, pull := range []bool{true, false} {
		pkg, err := next.Read(t.Context(), fetch.Plain(ref), d, pull)
		if err != nil {
			t.Fatal(err)
		}
		check(t, pkg)
	}
	if n := len(registry.matching("")); n != 0 {
		t.Errorf("%d requests for content that is in the store", n)
	}
}

// A package that an API server would refuse is refused whole, before any of it is
// written anywhere.
// Downloaded content has the references under which it was read, and content that another client stored has none.
func TestDownloadsHaveTheirOrigins(t *testing.T) {
	for name, read := range map[string]func(*fetch.Source, oci.Reference) (oci.Digest, error){
		"Read": func(s *fetch.Source, ref oci.Reference) (oci.Digest, error) {
			d, err := s.Resolve(t.Context(), fetch.Plain(ref), 0)
			if err != nil {
				return d, err
			}
			_, err = s.Read(t.Context(), fetch.Plain(ref), d, true)
			return d, err
		},
		"Describe": func(s *fetch.Source, ref oci.Reference) (oci.Digest, error) {
			d, err := s.Describe(t.Context(), fetch.Plain(ref), oci.Digest{})
			s.Close() // It waits for the background writes.
			return d.Digest, err
		},
		"Prove": func(s *fetch.Source, ref oci.Reference) (oci.Digest, error) {
			d, err := s.Resolve(t.Context(), fetch.Plain(ref), 0)
			if err != nil {
				return d, err
			}
			_, err = s.Prove(t.Context(), fetch.Plain(ref), d)
			return d, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ref := push(t, newRegistry(t).address)
			source := open(t, filepath.Join(t.TempDir(), "store"))
			d, err := read(source, ref)
			if err != nil {
				t.Fatal(err)
			}
			if got := source.Origins(t.Context(), d); len(got) != 1 || got[0] != ref {
				t.Errorf("the origins are %v, want %s", got, ref)
			}
		})
	}
}

func TestReadChecksSchemas(t *testing.T) {
	registry := newRegistry(t)
	ref := pushStream(t, registry.address, strings.Replace(stream, "type: object", "type: nonsense", 1))
	source := open(t, filepath.Join(t.TempDir(), "store"))
	d, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), fetch.Plain(ref), d, true); errcode.From(err).Code.Class != errcode.Invalid {
		t.Errorf("got %v, want a failure of the class Invalid", err)
	}
}

// A package that only the lenient policy accepts is never returned to a reader with the strict
// policy, wherever it was stored before.
func TestLenientContentIsStoredApart(t *testing.T) {
	registry := newRegistry(t)
	ref := pushStream(
		t, registry.address, strings.Replace(stream, "scope: Cluster", "scope: Namespaced\n  scope: Cluster", 1),
	)
	source := open(t, filepath.Join(t.TempDir(), "store"))
	strict, lenient := fetch.Plain(ref), fetch.Plain(ref)
	lenient.Lenient = true
	d, err := source.Resolve(t.Context(), strict, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := source.Read(t.Context(), strict, d, true); !errors.Is(err, xpkg.ErrDuplicateKey) {
			t.Errorf("strict: %v", err)
		}
		pkg, err := source.Read(t.Context(), lenient, d, true)
		if err != nil {
			t.Fatal(err)
		}
		if found := pkg.Accepted(); len(found) != 1 || found[0].Code.Name != xpkg.ErrDuplicateKey.Name ||
			found[0].Line == 0 || found[0].Name == "" {
			t.Errorf("the accepted deviations are %v", found)
		}
		for _, o := range pkg.Objects {
			if _, err := o.JSON(); err != nil {
				t.Error(err)
			}
		}
	}
}

// hardening: L9
func TestReadWithoutPullMakesNoConnection(t *testing.T) {
	registry := newRegistry(t)
	ref := push(t, registry.address)
	source := open(t, filepath.Join(t.TempDir(), "store"))
	registry.reset()
	_, err := source.Read(t.Context(), fetch.Plain(ref), oci.DigestOf([]byte("absent")), false)
	if !errors.Is(err, fetch.ErrNotCached) {
		t.Errorf("got %v, want %s", err, fetch.ErrNotCached.Name)
	}
	if n := len(registry.matching("")); n != 0 {
		t.Errorf("%d requests although nothing may be pulled", n)
	}
}

// The index beside a package is derived: damage to it costs time and has no other
// effect.
func TestDamagedIndexIsMadeAgain(t *testing.T) {
	registry, dir := newRegistry(t), filepath.Join(t.TempDir(), "store")
	ref := push(t, registry.address)
	source := open(t, dir)
	d, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), fetch.Plain(ref), d, true); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index", "objects"} {
		damage(t, dir, name)
		pkg, err := source.Read(t.Context(), fetch.Plain(ref), d, false)
		if err != nil {
			t.Fatal(err)
		}
		check(t, pkg)
	}
}

// damage flips a byte in the derived entries of a name.
func damage(t *testing.T, dir, name string) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(filepath.Base(path), name) {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) == 0 {
			return err
		}
		found++
		raw[len(raw)/2] ^= 1
		return os.WriteFile(path, raw, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatalf("nothing named %s is kept in %s", name, dir)
	}
}
