package resolver_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A moved tag is reported, and the locked version stays.
//
// hardening: G10
func TestMovedTag(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(t, "top v1.0.0: base v1\nbase v1.0.0")
	q := resolver.Request{Roots: []dependency.Root{r.root("top", "*")}}
	res := newResolver(t, nil)
	first, err := res.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	base, _ := first.Find(r.address + "/base")
	r.have(t, "base v1.0.0: other >=v1\nother v1.0.0")

	q.Locked = first.Packages
	again, err := res.Resolve(t.Context(), q)
	if err != nil || string(lockfile.Encode(again.File)) != string(lockfile.Encode(first.File)) {
		t.Errorf("what is kept has moved: %s, %v", r.summary(again.File), err)
	}

	// Not even where it does not go with something new.
	q.Roots = append(q.Roots, r.root("other", "v1.0.0"))
	q.Locked = []lockfile.Package{base}
	q.Locked[0].Dependencies = []dependency.Dependency{{Package: r.address + "/other", Constraint: "v9"}}
	_, err = res.Resolve(t.Context(), q)
	checkFailure(t, err, "Unsolvable", "/other v9, which does not exist")
	q.Locked = nil
	moved, err := res.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(moved.Notes) != 1 || !strings.HasSuffix(moved.Notes[0], "/base to be a Provider, but it is a Configuration") {
		t.Errorf("%q", moved.Notes)
	}

	// The root requests the digest itself.
	gone := oci.DigestOf([]byte("gone"))
	_, err = res.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("base", "v1.0.0@"+gone.String())}})
	checkFailure(t, err, "TagMoved", "base:v1.0.0 now refers to sha256:")
	_, err = res.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("base", gone.String())}})
	checkFailure(t, err, "ManifestNotFound", gone.String()+" does not exist")
	_, err = res.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("base", base.Pin())}})
	if err != nil {
		t.Errorf("the digest that is still there: %v", err)
	}
}

// A version that is not a package is set aside with a note. An unreadable version
// fails the resolution: otherwise an attacker on the network could force an old
// version.
//
// hardening: F3
func TestVersionsThatCannotBeRead(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(t, "top v1.0.0: base >=v1\nbase v1.0.0\nbase v1.1.0")
	remote := remote.New(remote.Options{})
	defer remote.Close()
	r.push(t, remote, "base", "v1.2.0", "apiVersion: meta.pkg.crossplane.io/v7\nkind: Provider\nmetadata: {name: base}\n")
	q := resolver.Request{Roots: []dependency.Root{r.root("top", "*")}}
	got, err := newResolver(t, nil).Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.summary(got.File); s != "base v1.1.0; top v1.0.0" || len(got.Notes) != 1 ||
		!strings.Contains(got.Notes[0], "/base v1.2.0 cannot be used: ") {
		t.Errorf("%s, %q", s, got.Notes)
	}
	q.Roots[0] = r.root("base", "v1.2.0@"+digestOf(t, r, "base", "v1.2.0"))
	_, err = newResolver(t, nil).Resolve(t.Context(), q)
	checkFailure(t, err, "UnsupportedMeta", "is not known")

	q.Roots[0] = r.root("top", "*")
	for code, fault := range map[string]func(http.ResponseWriter){
		"RegistryUnavailable": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"Throttled": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"Unauthorized":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
		"DigestMismatch": func(w http.ResponseWriter) { _, _ = w.Write(bytes.Repeat([]byte("x"), 1000)) },
	} {
		t.Run(code, func(t *testing.T) {
			r.does(func(w http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, "/base/blobs/") {
					return false
				}
				fault(w)
				return true
			})
			_, err := newResolver(t, nil).Resolve(t.Context(), q)
			if err == nil || !hasCode(err, code) && !(code == "DigestMismatch" && hasCode(err, "SizeMismatch")) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A problem in the configuration of a registry is not a problem of a version.
func TestRegistryConfigurationErrorIsNotAVersionError(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(t, "top v1.0.0: base >=v1\nbase v1.0.0\nbase v1.1.0")
	q := resolver.Request{Roots: []dependency.Root{r.root("top", "*")}}
	res := newResolverAt(t, nil, func(_ context.Context, ref oci.Reference) (fetch.Origin, error) {
		o := fetch.Plain(ref)
		if ref.Tag == "v1.1.0" {
			o.Endpoints[0].CABundle = "none"
		}
		return o, nil
	})
	_, err := res.Resolve(t.Context(), q)
	checkFailure(t, err, "CABundleInvalid", "contains no certificate")

	// A missing pull secret is not a missing version.
	res = newResolverAt(t, nil, func(_ context.Context, ref oci.Reference) (fetch.Origin, error) {
		o := fetch.Plain(ref)
		if ref.Tag == "v1.1.0" {
			o.Endpoints[0].Secrets = func(context.Context) (*credentials.Keychain, error) {
				return nil, credentials.ErrPullSecretNotFound.New(nil, "there is no pull secret x")
			}
		}
		return o, nil
	})
	_, err = res.Resolve(t.Context(), q)
	checkFailure(t, err, "PackageLookup", "there is no pull secret x")
}

func digestOf(t *testing.T, r *registry, name, tag string) string {
	t.Helper()
	remote := remote.New(remote.Options{})
	defer remote.Close()
	d, err := remote.Resolve(t.Context(), oci.MustParseReference(r.backend+"/"+name+":"+tag))
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest.String()
}

// A dependency without a registry is resolved with the configured default registry,
// and not otherwise.
//
// hardening: F8
func TestShortNames(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(t, "top v1.0.0: short/base v1\nshort/base v1.0.0")
	q := resolver.Request{Roots: []dependency.Root{r.root("top", "*")}}
	res := newResolver(t, nil)
	_, err := res.Resolve(t.Context(), q)
	checkFailure(t, err, "Unsolvable", "short/base")
	res.DefaultRegistry = r.address
	got, err := res.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.summary(got.File); s != "short/base v1.0.0; top v1.0.0" {
		t.Error(s)
	}
}

// Where an image is rewritten or mirrored, another registry is asked, and the package
// keeps its name.
func TestLocate(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(t, "mirrored/top v1.0.0: example.test/base v1\nmirrored/base v1.0.0")
	res := newResolverAt(t, nil, func(_ context.Context, ref oci.Reference) (fetch.Origin, error) {
		ref.Registry, ref.Repository = r.address, "mirrored/"+ref.Repository
		return fetch.Plain(ref), nil
	})
	got, err := res.Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{{
		Package: "example.test/top", Constraint: "*",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.summary(got.File); s != "example.test/base v1.0.0; example.test/top v1.0.0" {
		t.Error(s)
	}
	if asked := r.recorded(); len(asked) != 6 ||
		slices.ContainsFunc(asked, func(a string) bool { return !strings.Contains(a, "/mirrored/") }) {
		t.Errorf("%q", asked)
	}
}

// A repository and the one to which it is rewritten are one package, and get one version.
//
// hardening: F5
func TestRewrittenRepositoryIsOnePackage(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(
		t,
		"top v1.0.0: example.test/base >=v1; other v1\nother v1.0.0: mirrored/base <v1.1\nmirrored/base v1.0.0\nmirrored/base v1.2.0",
	)
	res := newResolverAt(t, nil, func(_ context.Context, ref oci.Reference) (fetch.Origin, error) {
		if ref.Registry == "example.test" {
			ref.Registry, ref.Repository = r.address, "mirrored/"+ref.Repository
		}
		return fetch.Plain(ref), nil
	})
	q := resolver.Request{Roots: []dependency.Root{r.root("top", "*")}}
	got, err := res.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := "mirrored/base v1.0.0; other v1.0.0; top v1.0.0"
	if s := r.summary(got.File); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
	if !slices.ContainsFunc(got.Notes, func(note string) bool { return strings.Contains(note, "are one package") }) {
		t.Errorf("notes %q", got.Notes)
	}

	// The locked name of the package is kept.
	locked := got.Packages
	locked[0].Repository = "example.test/base"
	for _, p := range locked {
		for i, d := range p.Dependencies {
			if strings.HasSuffix(d.Package, "/base") {
				p.Dependencies[i].Package = "example.test/base"
			}
		}
	}
	got, err = res.Resolve(t.Context(), resolver.Request{
		Roots: []dependency.Root{r.root("top", "*"), r.root("mirrored/base", "*")}, Locked: locked,
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.summary(got.File); s != "other v1.0.0; top v1.0.0; example.test/base v1.0.0" {
		t.Errorf("got %s", s)
	}
}

// A large package is read from its small index layer until it is selected; then the
// index is verified.
func TestClaims(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(t, "base v1.0.0\nbase v2.0.0")
	honest := bigStream(r.stream("big", "base v2"))
	pushWithIndex(t, r, "big", "v2.0.0", honest, honest)
	pushWithIndex(t, r, "big", "v1.0.0", bigStream(r.stream("big", "base v1")), bigStream(r.stream("big", "base v1")))
	q := resolver.Request{Roots: []dependency.Root{r.root("big", "*"), r.root("base", "v1")}}
	r.recorded()
	got, err := newResolver(t, nil).Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	// Both versions were looked at, each by its manifest and its small layer; of the
	// one that was chosen, package.yaml was read.
	if s, asked := r.summary(got.File), r.recorded(); s != "base v1.0.0; big v1.0.0" || count(asked, "/big/blobs/") != 3 {
		t.Errorf("%s, with %q", s, asked)
	}

	pushWithIndex(t, r, "liar", "v1.0.0", honest, bigStream(r.stream("big", "base v1")))
	_, err = newResolver(t, nil).Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("liar", "*")}})
	checkFailure(t, err, "IndexMismatch", "the dependencies in the index layer of")
}

// bigStream returns a package.yaml that does not get small by compression.
func bigStream(meta string) string {
	var b strings.Builder
	b.WriteString(meta)
	for i := range 8000 {
		d := oci.DigestOf(fmt.Appendf(nil, "%d", i))
		fmt.Fprintf(&b, "# %s\n", d.Hex())
	}
	return b.String()
}

func pushWithIndex(t *testing.T, r *registry, name, tag, stream, claimed string) {
	t.Helper()
	layer, err := indexlayer.Build([]byte(claimed), xpkg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	image, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(stream), Extra: []image.ExtraLayer{layer}})
	if err != nil {
		t.Fatal(err)
	}
	remote := remote.New(remote.Options{})
	defer remote.Close()
	if _, err := remote.Push(t.Context(), oci.MustParseReference(r.backend+"/"+name+":"+tag), image); err != nil {
		t.Fatal(err)
	}
}

// An unchanged fork is distinguished from an independent package.
//
// hardening: F5
func TestOnePackageUnderTwoNames(t *testing.T) {
	r := newRegistry(t, 0)
	r.have(t, "top v1.0.0: old/base v1; new/base v1\nold/base v1.0.0\nnew/base v1.0.0")
	got, err := newResolver(t, nil).Resolve(t.Context(), resolver.Request{Roots: []dependency.Root{r.root("top", "*")}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Notes) != 1 ||
		!strings.Contains(got.Notes[0], "/new/base and "+r.address+"/old/base have the same content") {
		t.Errorf("%q", got.Notes)
	}
}
