package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/sourcetest"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// reopened returns a source over a store of an earlier one, for which every way into the
// network is an error of the test.
func reopened(t *testing.T, dir string) *fetch.Source {
	t.Helper()
	store, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: store, Remote: remote.Options{
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			t.Errorf("%s was dialed", address)
			return nil, errors.New("no network")
		},
	}})
	t.Cleanup(func() {
		source.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return source
}

// The zeros of the pull policies: content that is at hand, a digest, and Never cost
// no dial and need no secret, in this process and in the next.
//
// hardening: L9
func TestNothingIsDialed(t *testing.T) {
	home := newRegistry(t)
	ref, dir := push(t, home.address), filepath.Join(t.TempDir(), "store")
	d, err := open(t, dir).Resolve(t.Context(), fetch.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir).Read(t.Context(), fetch.Plain(ref), d, true); err != nil {
		t.Fatal(err)
	}
	source := reopened(t, dir)
	place := fetch.Endpoint{Ref: ref, Secrets: func(context.Context) (*credentials.Keychain, error) {
		t.Error("a secret was read")
		return nil, errors.New("no secret")
	}}
	o := fetch.Origin{Ref: ref, Endpoints: []fetch.Endpoint{place, place}}
	for _, pull := range []bool{true, false} {
		pkg, err := source.Read(t.Context(), o, d, pull)
		if err != nil {
			t.Fatal(err)
		}
		check(t, pkg)
	}
	if _, err := source.Read(t.Context(), o, oci.DigestOf([]byte("absent")), false); !errors.Is(err, fetch.ErrNotCached) {
		t.Errorf("got %v", err)
	}
	pinned := fetch.Origin{Ref: ref.WithDigest(d), Endpoints: []fetch.Endpoint{place}}
	if got, err := source.Resolve(t.Context(), pinned, 0); err != nil || got != d {
		t.Errorf("got %s (%v)", got, err)
	}
	if _, err := source.Named(t.Context(), "mycoolpkg"); !errors.Is(err, fetch.ErrNotCached) {
		t.Errorf("got %v", err)
	}
}

// names are the names in a package cache.
type names map[string]oci.Digest

func (n names) Named(_ context.Context, name string) (oci.Digest, error) { return n[name], nil }

// Content with nothing but a name is read like any other.
func TestNamed(t *testing.T) {
	home := newRegistry(t)
	ref := push(t, home.address)
	source := sourcetest.New(t, func(o *fetch.Options) {
		image, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(stream)})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Store.Add(t.Context(), image, oci.Limits{}); err != nil {
			t.Fatal(err)
		}
		o.Names = names{"mycoolpkg": image.Digest()}
	})
	d, err := source.Named(t.Context(), "mycoolpkg")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []fetch.Origin{{}, {Ref: oci.Reference{Repository: "mycoolpkg"}}, fetch.Plain(ref)} {
		pkg, err := source.Read(t.Context(), o, d, false)
		if err != nil {
			t.Fatal(err)
		}
		check(t, pkg)
		if file := pkg.Meta.Raw.File; !strings.HasSuffix(file, d.String()) ||
			o.Ref.Repository != "" && !strings.HasPrefix(file, o.Ref.Name()) {
			t.Errorf("the package calls itself %s", file)
		}
	}
}

// A file that was replaced differs from the installed content, and the error
// reports that.
func TestReplacedFileIsReported(t *testing.T) {
	source := sourcetest.New(t, func(o *fetch.Options) { o.Names = names{"mycoolpkg": oci.DigestOf([]byte("new"))} })
	o := fetch.Origin{Ref: oci.Reference{Repository: "mycoolpkg"}}
	_, err := fetch.Read(t.Context(), source, o, oci.DigestOf([]byte("old")), "mycoolpkg", false)
	if !errors.Is(err, fetch.ErrNotCached) || !strings.Contains(err.Error(), "mycoolpkg now refers to different content") {
		t.Error(err)
	}
}

// remove removes files of a store by a part of their path.
func remove(t *testing.T, dir string, parts ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		for _, part := range parts {
			if strings.Contains(path, part) {
				return os.Remove(path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever another process evicts is made or pulled again.
func TestEvictedContentComesBack(t *testing.T) {
	blobs, index, objects := string(filepath.Separator)+"blobs"+string(filepath.Separator), "-index-", "-objects-"
	for _, parts := range [][]string{{blobs}, {index}, {objects}, {blobs, objects}, {blobs, index}, {index, objects}, {
		blobs, index, objects,
	}} {
		t.Run(strings.Join(parts, "+"), func(t *testing.T) {
			home := newRegistry(t)
			ref, dir := push(t, home.address), filepath.Join(t.TempDir(), "store")
			source := open(t, dir)
			d, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
			if err != nil {
				t.Fatal(err)
			}
			before, err := source.Read(t.Context(), fetch.Plain(ref), d, true)
			if err != nil {
				t.Fatal(err)
			}
			remove(t, dir, parts...)
			after, err := source.Read(t.Context(), fetch.Plain(ref), d, true)
			if err != nil {
				t.Fatal(err)
			}
			check(t, after)
			check(t, before) // It reads what was made again.
		})
	}
}

// A blob that was damaged on the disk is put aside and pulled again.
//
// hardening: K2
func TestDamagedBlobComesBack(t *testing.T) {
	home := newRegistry(t)
	ref, dir := push(t, home.address), filepath.Join(t.TempDir(), "store")
	source := open(t, dir)
	d, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), fetch.Plain(ref), d, true); err != nil {
		t.Fatal(err)
	}
	remove(t, dir, "-index-", "-objects-")
	damage(t, filepath.Join(dir, "blobs"), "")
	if _, err := source.Read(t.Context(), fetch.Plain(ref), d, false); !errors.Is(err, fetch.ErrNotCached) {
		t.Errorf("without pulling: %v", err)
	}
	pkg, err := source.Read(t.Context(), fetch.Plain(ref), d, true)
	if err != nil {
		t.Fatal(err)
	}
	check(t, pkg)
}

// many returns a package with n definitions, each of about so many bytes of JSON.
func many(n, size int) string {
	meta, crd, _ := strings.Cut(stream, "---\n")
	var all strings.Builder
	all.WriteString(meta)
	for i := range n {
		one := strings.NewReplacer("thing", fmt.Sprintf("thing%d", i), "Thing", fmt.Sprintf("Thing%d", i)).Replace(crd)
		one = strings.Replace(one, "{type: object}", "{type: object, description: "+strings.Repeat("x", size)+"}", 1)
		all.WriteString("---\n" + one)
	}
	return all.String()
}

// A package in memory contains metadata about its objects, and not the objects.
func TestPackagesAreSmallInMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("parses 20 MB: skipped with -short")
	}
	home := newRegistry(t)
	const objects, size = 500, 40_000
	ref := pushStream(t, home.address, many(objects, size))
	source := sourcetest.New(t, nil)
	d, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	var kept []*xpkg.Package
	for range 3 { // The first read parses, the others do not.
		pkg, err := source.Read(t.Context(), fetch.Plain(ref), d, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(pkg.Objects) != objects {
			t.Fatalf("%d objects", len(pkg.Objects))
		}
		for _, o := range pkg.Objects {
			if raw, err := o.JSON(); err != nil || len(raw) < size {
				t.Fatalf("%d bytes (%v)", len(raw), err)
			}
		}
		kept = append(kept, pkg)
	}
	grown := int64(heap()) - int64(before)
	t.Logf("three packages of %d MiB take %d KiB", objects*size>>20, grown>>10)
	if grown > objects*size/4 {
		t.Errorf("three packages take %d bytes", grown)
	}
	runtime.KeepAlive(kept)
}

// heap returns the memory in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Packages that are parsed at the same time have to fit into the memory for that;
// one that is larger than it is parsed alone.
func TestParsingIsBounded(t *testing.T) {
	home := newRegistry(t)
	source := sourcetest.New(t, func(o *fetch.Options) { o.ParseBytes = 10_000 })
	var all sync.WaitGroup
	for i := range 8 {
		ref := pushStream(t, home.address, many(1+i%2*20, 1_000+i))
		d, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if _, err := source.Read(t.Context(), fetch.Plain(ref), d, true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Of those who want the same package at once all get it.
func TestReadAtOnce(t *testing.T) {
	home := newRegistry(t)
	ref := pushStream(t, home.address, many(50, 1_000))
	source := sourcetest.New(t, nil)
	d, err := source.Resolve(t.Context(), fetch.Plain(ref), 0)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			pkg, err := source.Read(t.Context(), fetch.Plain(ref), d, true)
			if err != nil {
				t.Error(err)
				return
			}
			if raw, err := pkg.Objects[49].JSON(); err != nil || !bytes.Contains(raw, []byte("thing49s")) {
				t.Errorf("%d bytes (%v)", len(raw), err)
			}
		})
	}
	all.Wait()
	if n := len(home.matching("/blobs/")); n > 4 {
		t.Logf("%d requests for blobs", n)
	}
}
