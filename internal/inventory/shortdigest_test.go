package inventory

import (
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// References in tables keep their tags and have short digests; texts without a whole digest stay as they are.
func TestShortenDigests(t *testing.T) {
	digest := "@sha256:0123456789ab" + strings.Repeat("c", 52)
	for text, want := range map[string]string{
		"r.example/a:v1" + digest: "r.example/a:v1@sha256:0123456789ab",
		"r.example/a" + digest + " r.example/a:v2" + digest +
			" (v1 runs)": "r.example/a@sha256:0123456789ab r.example/a:v2@sha256:0123456789ab (v1 runs)",
		"r.example/a:v1":                  "r.example/a:v1",
		"r.example/a@sha256:0123456789ab": "r.example/a@sha256:0123456789ab",
	} {
		if got := ShortenDigests(text); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A name that is installed under another kind is the only suggestion.
func TestAbsentSuggestsTheSameNameOfAnotherKind(t *testing.T) {
	all := &Inventory{}
	for _, name := range []string{"acme-aws", "acme-dns"} {
		p := v1.NewPackage(v1.ProviderKind)
		p.SetName(name)
		p.PackageSpec().Package = "r.example/" + strings.ReplaceAll(name, "acme-", "acme/provider-") + ":v1.0.0"
		all.Packages = append(all.Packages, p)
	}
	for name, want := range map[string]string{
		"acme-aws": "Did you mean provider/acme-aws? ", "acme-dnz": "Did you mean provider/acme-dns? ",
		"provider-dsn": "Did you mean provider/acme-aws or provider/acme-dns? ",
	} {
		if do := errcode.From(all.Absent("configuration", name)).Do; !strings.HasPrefix(do, want) {
			t.Errorf("%s: the advice is %q, want %q", name, do, want)
		}
	}
}
