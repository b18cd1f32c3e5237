package content_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
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
	image, err := oci.BuildImage(t.Context(), oci.ImageInput{PackageYAML: []byte(stream)})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := oci.ParseReference(registry+"/content/test:v1.0.0", oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remote := oci.NewRemote(oci.RemoteOptions{})
	defer remote.Close()
	if _, err := remote.Push(t.Context(), ref, image); err != nil {
		t.Fatal(err)
	}
	return ref
}

func open(t *testing.T, dir string) *content.Source {
	t.Helper()
	store, err := oci.OpenStore(dir, oci.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	source := content.NewSource(content.Options{Store: store})
	t.Cleanup(func() {
		source.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return source
}

func check(t *testing.T, pkg *format.Package) {
	t.Helper()
	if pkg.Meta.Name != "content" || len(pkg.Objects) != 1 || pkg.Objects[0].Name != "things.content.test" {
		t.Fatalf("read %+v", pkg.Meta)
	}
	raw, err := pkg.Objects[0].JSON()
	if err != nil || !strings.Contains(string(raw), `"group":"content.test"`) {
		t.Fatalf("read %s (%v)", raw, err)
	}
}

// The promise of IfNotPresent: what was read once is never asked for again, by
// this process or by the next.
func TestReadAsksOnce(t *testing.T) {
	registry, dir := newRegistry(t), filepath.Join(t.TempDir(), "store")
	ref := push(t, registry.address)
	source := open(t, dir)
	d, err := source.Resolve(t.Context(), content.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		pkg, err := source.Read(t.Context(), content.Plain(ref), d, true)
		if err != nil {
			t.Fatal(err)
		}
		check(t, pkg)
	}
	registry.reset()
	next := open(t, dir)
	for _, pull := range []bool{true, false} {
		pkg, err := next.Read(t.Context(), content.Plain(ref), d, pull)
		if err != nil {
			t.Fatal(err)
		}
		check(t, pkg)
	}
	if n := len(registry.asked("")); n != 0 {
		t.Errorf("%d requests for content that is in the store", n)
	}
}

// A package that an API server would refuse is refused whole, before any of it is
// written anywhere.
func TestReadChecksSchemas(t *testing.T) {
	registry := newRegistry(t)
	ref := pushStream(t, registry.address, strings.Replace(stream, "type: object", "type: nonsense", 1))
	source := open(t, filepath.Join(t.TempDir(), "store"))
	d, err := source.Resolve(t.Context(), content.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), content.Plain(ref), d, true); failure.From(err).Code.Class != failure.Invalid {
		t.Errorf("got %v, want a failure of the class Invalid", err)
	}
}

func TestReadWithoutPullDialsNobody(t *testing.T) {
	registry := newRegistry(t)
	ref := push(t, registry.address)
	source := open(t, filepath.Join(t.TempDir(), "store"))
	registry.reset()
	_, err := source.Read(t.Context(), content.Plain(ref), oci.DigestOf([]byte("absent")), false)
	if !content.ErrNotCached.Is(err) {
		t.Errorf("got %v, want %s", err, content.ErrNotCached.Name)
	}
	if n := len(registry.asked("")); n != 0 {
		t.Errorf("%d requests although nothing may be pulled", n)
	}
}

// What is kept beside a package is derived: damage to it costs time and nothing
// else.
func TestDamagedIndexIsMadeAgain(t *testing.T) {
	registry, dir := newRegistry(t), filepath.Join(t.TempDir(), "store")
	ref := push(t, registry.address)
	source := open(t, dir)
	d, err := source.Resolve(t.Context(), content.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), content.Plain(ref), d, true); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index", "objects"} {
		damage(t, dir, name)
		pkg, err := source.Read(t.Context(), content.Plain(ref), d, false)
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
