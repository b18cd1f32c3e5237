package revisions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// A package is a duplicate of one with another name that has the same content, or is from the same repository after
// rewriting.
func TestDuplicatesAreRecognized(t *testing.T) {
	installed := func(name, requested, resolved, digest string) v1.Package {
		p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.Package, p.Status.ResolvedPackage, p.Status.ResolvedDigest = requested, resolved, digest
		return p
	}
	p := installed("boats", "r.example/acme/boats:v1.0.0", "r.example/acme/boats:v1.0.0", "sha256:a")
	for name, tt := range map[string]struct {
		other v1.Package
		want  bool
	}{
		"itself": {p, false},
		"another version": {
			installed("other", "r.example/acme/boats:v2.0.0", "r.example/acme/boats:v2.0.0", "sha256:b"), true,
		},
		"another version, not resolved": {installed("other", "r.example/acme/boats:v2.0.0", "", ""), true},
		"another name of the repository": {
			installed("other", "alias.example/boats:v2.0.0", "r.example/acme/boats:v2.0.0", "sha256:b"), true,
		},
		"a copy in another repository": {
			installed("other", "copy.example/boats:v1.0.0", "copy.example/boats:v1.0.0", "sha256:a"), true,
		},
		"another spelling": {installed("other", "R.example./acme/boats:v2.0.0", "", ""), true},
		"another package": {
			installed("other", "r.example/acme/rafts:v1.0.0", "r.example/acme/rafts:v1.0.0", "sha256:c"), false,
		},
	} {
		if got := isDuplicate(p, tt.other); got != tt.want {
			t.Errorf("%s: duplicate %t, want %t", name, got, tt.want)
		}
	}
	want := "provider/boats and provider/other are the same package. Uninstall one of them, as with `xpkg uninstall provider/boats`. " +
		"To change the version of the other, use `xpkg update provider/other`. Nothing was written."
	if got := duplicateAdvice(p, installed("other", "", "", "")); got != want {
		t.Errorf("got %q", got)
	}
}
