package dependency_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

func TestKindsAreReadInEveryForm(t *testing.T) {
	bucket := dependency.KindRef{Name: "Bucket", Group: "s3.aws.upbound.io"}
	beta := dependency.KindRef{Name: "Bucket", Group: "s3.aws.upbound.io", Version: "v1beta1"}
	for text, want := range map[string]dependency.KindRef{
		"Bucket.s3.aws.upbound.io":          bucket,
		"Bucket.s3.aws.upbound.io/v1beta1":  beta,
		"Bucket.v1beta1.s3.aws.upbound.io":  beta,
		"buckets.s3.aws.upbound.io/v1beta1": {Name: "buckets", Group: "s3.aws.upbound.io", Version: "v1beta1"},
		"*.s3.aws.upbound.io":               {Name: "*", Group: "s3.aws.upbound.io"},
		"*.s3.aws.upbound.io/v1":            {Name: "*", Group: "s3.aws.upbound.io", Version: "v1"},
		// Only a Kubernetes version in front of a domain is a version.
		"Bucket.v1.io":               {Name: "Bucket", Group: "v1.io"},
		"Bucket.v1x.example.org":     {Name: "Bucket", Group: "v1x.example.org"},
		"Bucket.v0.example.org":      {Name: "Bucket", Group: "v0.example.org"},
		"Bucket.v1.example.org/v1":   {Name: "Bucket", Group: "v1.example.org", Version: "v1"},
		"Bucket.v1.v2.example.org":   {Name: "Bucket", Group: "v2.example.org", Version: "v1"},
		"Bucket.example.org/x1":      {Name: "Bucket", Group: "example.org", Version: "x1"},
		"my-kinds.example.org/v1":    {Name: "my-kinds", Group: "example.org", Version: "v1"},
		"Bucket.v2alpha10.ex.org":    {Name: "Bucket", Group: "ex.org", Version: "v2alpha10"},
		"mytype.mygroup.example.org": {Name: "mytype", Group: "mygroup.example.org"},
	} {
		got, err := dependency.ParseKindRef(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestOtherTextsAreNotKinds(t *testing.T) {
	for _, text := range []string{
		"", ".", "/", "Bucket", "Bucket/v1", "Bucket.io", "Bucket.", ".example.org", "Bucket.example.org/",
		"Bucket.example.org/V1", "Bucket.example.org/v1/v2",
		"Bucket.Example.org", "Bucket..org", "Buc ket.example.org", "Bucket.example.org/v1 ", "-b.example.org",
		"b-.example.org", "**.example.org", "*", "*/v1",
		"1x.example.org", "Bucket.example.org\n", "Bucket.exa_mple.org", strings.Repeat("k", 64) + ".example.org",
		"Bucket." + strings.Repeat("x.", 200) + "org",
		"xpkg.upbound.io/upbound/provider-aws", "xpkg.upbound.io/upbound/provider-aws:v1", "Bücket.example.org",
	} {
		if got, err := dependency.ParseKindRef(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestAKindMatchesItsNamesOnly(t *testing.T) {
	for _, c := range []struct {
		ref  string
		want bool
	}{
		{"Bucket.s3.example.org", true}, {"bucket.s3.example.org", true}, {"buckets.s3.example.org/v1", true},
		{"*.s3.example.org", true},
		{"Bucket.example.org", false}, {"Bucke.s3.example.org", false}, {"*.example.org", false},
	} {
		k, err := dependency.ParseKindRef(c.ref)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Matches("s3.example.org", "Bucket", "buckets", ""); got != c.want {
			t.Errorf("%s matches: %v, want %v", c.ref, got, c.want)
		}
	}
}

func FuzzParseKindRef(f *testing.F) {
	for _, seed := range []string{
		"Bucket.s3.aws.upbound.io/v1beta1", "*.example.org", "Bucket.v1.example.org", "a.b", "/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := dependency.ParseKindRef(s)
		if err != nil {
			if k != (dependency.KindRef{}) {
				t.Errorf("%q: %+v with %v", s, k, err)
			}
			return
		}
		var again dependency.KindRef
		text, _ := k.MarshalText()
		if err := again.UnmarshalText(text); err != nil || again != k {
			t.Errorf("%q is read as %+v, and its form %s as %+v, %v", s, k, text, again, err)
		}
		if !k.Matches(k.Group, k.Name) {
			t.Errorf("%q does not match itself", s)
		}
	})
}
