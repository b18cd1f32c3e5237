package docs

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func sample(kinds int) Pack {
	p := Pack{
		Info: Info{Type: "Provider", Name: "provider-acme", Title: "Acme"}, Readme: "# Acme\n", ReleaseNotes: "none",
		Icon: &Icon{"image/png", []byte("\x89PNG\r\n\x1a\n\n")},
	}
	for i := range kinds {
		p.Kinds = append(p.Kinds, Kind{
			Group: "acme.example.org", Kind: fmt.Sprintf("Kind%03d", i), Role: catalog.Provides,
			CRD: []byte(strings.Repeat(fmt.Sprintf(`{"kind":"CustomResourceDefinition","spec":{"n":%d}}`, i), 20)),
		})
	}
	if kinds > 0 {
		p.Kinds[0].Examples = []Example{{"bucket.yaml", "kind: Bucket\n"}}
	}
	return p
}

func TestPackRoundTrip(t *testing.T) {
	for _, kinds := range []int{0, 1, 300} {
		p := sample(kinds)
		raw, err := Write(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Write(p); err != nil || !bytes.Equal(raw, again) {
			t.Fatalf("the bytes differ between two calls (%v)", err)
		}
		r, err := Open(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		got := Pack{}
		if got.Info, err = r.Info(); err != nil {
			t.Fatal(err)
		}
		got.Readme, _ = r.Readme()
		got.ReleaseNotes, _ = r.ReleaseNotes()
		got.Icon, _ = r.Icon()
		for _, name := range r.KindNames() {
			k, err := r.Kind(name.Group, name.Kind)
			if err != nil {
				t.Fatal(err)
			}
			got.Kinds = append(got.Kinds, k)
		}
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%d kinds: the pack differs", kinds)
		}
		if _, err := r.Kind("acme.example.org", "Other"); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
}

func TestTruncatedPackIsRefused(t *testing.T) {
	raw, err := Write(sample(20))
	if err != nil {
		t.Fatal(err)
	}
	for n := range raw {
		if _, err := Open(bytes.NewReader(raw[:n]), int64(n)); !errors.Is(err, ErrDamaged) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

// readAll reads every part of a pack.
func readAll(raw []byte) error {
	r, err := Open(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return err
	}
	_, infoErr := r.Info()
	_, readmeErr := r.Readme()
	_, notesErr := r.ReleaseNotes()
	_, iconErr := r.Icon()
	err = errors.Join(infoErr, readmeErr, notesErr, iconErr)
	for _, name := range r.KindNames() {
		_, kindErr := r.Kind(name.Group, name.Kind)
		err = errors.Join(err, kindErr)
	}
	return err
}

func FuzzOpen(f *testing.F) {
	for _, kinds := range []int{0, 1, 20} {
		raw, err := Write(sample(kinds))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(magic + "\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := readAll(raw); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotFound) {
			t.Errorf("an error without a code: %v", err)
		}
	})
}

func TestPackageHasSchemasOfXRDsAndClaims(t *testing.T) {
	pkg, err := xpkg.Read([]byte(`apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: platform, annotations: {meta.crossplane.io/readme: "# Platform"}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xnetworks.acme.example.org}
spec:
  group: acme.example.org
  names: {kind: XNetwork, plural: xnetworks}
  claimNames: {kind: Network, plural: networks}
  versions: [{name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}]
`), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := FromPackage(pkg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range p.Kinds {
		got = append(got, fmt.Sprintf("%s %s %t", k.Kind, k.Role, bytes.Contains(k.CRD, []byte("openAPIV3Schema"))))
	}
	if want := []string{"Network c true", "XNetwork x true"}; !reflect.DeepEqual(got, want) || p.Readme != "# Platform" {
		t.Errorf("got %q", got)
	}
}
