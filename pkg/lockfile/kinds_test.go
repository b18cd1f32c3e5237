package lockfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

var bucket = dependency.KindRef{Name: "Bucket", Group: "s3.example.org", Version: "v1"}

// withKind returns a file in which a user and a package require a kind, for which a package is selected.
func withKind() File {
	const storage = "xpkg.test/a/storage"
	return File{
		Roots: []dependency.Root{{Package: storage, CRD: bucket.String()}, {Package: "xpkg.test/a/app", Constraint: "v1"}},
		Packages: []Package{
			{
				Repository: "xpkg.test/a/app", Version: "v1.0.0", Digest: digest("app"), Kind: xpkg.Configuration,
				Dependencies: []dependency.Dependency{{Package: storage, Constraint: ">=v1.2.0", CRD: bucket.String()}},
			},
			{Repository: storage, Version: "v1.3.0", Digest: digest(
				"storage",
			), Kind: xpkg.Provider, Provides: []dependency.KindRef{bucket}},
		},
	}
}

func TestTheProviderOfAKindIsRecorded(t *testing.T) {
	text := string(Encode(withKind()))
	for _, want := range []string{
		"- package: xpkg.test/a/storage\n  constraint: \"\"\n  crd: Bucket.s3.example.org/v1\n",
		"  kind: Provider\n  provides:\n  - Bucket.s3.example.org/v1\n",
		"  - package: xpkg.test/a/storage\n    constraint: \">=v1.2.0\"\n    crd: Bucket.s3.example.org/v1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no\n%s in\n%s", want, text)
		}
	}
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := withKind()
	want.sort()
	if diff := cmp.Diff(want, f, cmpopts.EquateComparable(oci.Digest{})); diff != "" {
		t.Error(diff)
	}
	if p, ok := f.Provider(bucket); !ok || p.Repository != "xpkg.test/a/storage" {
		t.Errorf("the provider is %+v", p)
	}
	if _, ok := f.Provider(dependency.KindRef{Name: "Queue", Group: "sqs.example.org"}); ok {
		t.Error("an unknown kind has a provider")
	}
}

func TestARequestedKindIsUpToDateWithItsProvider(t *testing.T) {
	f := withKind()
	f.sort()
	asked := []dependency.Root{{CRD: bucket.String()}, {Package: "xpkg.test/a/app", Constraint: "v1"}}
	if got := f.Check(asked); got != nil {
		t.Errorf("%q", got)
	}
	asked[0].CRD = "Queue.sqs.example.org"
	if got := strings.Join(
		f.Check(asked), "\n",
	); !strings.Contains(got, "you request the kind Queue.sqs.example.org, which is not locked") {
		t.Error(got)
	}
}

func TestOnlyOnePackageProvidesAKind(t *testing.T) {
	f := withKind()
	f.Packages[0].Provides = []dependency.KindRef{bucket}
	if _, err := Parse(Encode(f)); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "both provide Bucket.s3.example.org/v1") {
		t.Error(err)
	}
	for _, text := range []string{"Bucket", "xpkg.test/a/storage:v1"} {
		broken := strings.ReplaceAll(string(Encode(withKind())), bucket.String(), text)
		if _, err := Parse([]byte(broken)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLockedKindsAreThoseOfThePackage(t *testing.T) {
	p := withKind().Packages[0]
	for name, c := range map[string]struct {
		kinds []dependency.KindRef
		want  string
	}{
		"as it is":        {[]dependency.KindRef{bucket}, ""},
		"in another form": {[]dependency.KindRef{{Name: "buckets", Group: bucket.Group, Version: "v1"}}, ""},
		"every kind":      {[]dependency.KindRef{{Name: "*", Group: bucket.Group, Version: "v1"}}, ""},
		"fewer":           {nil, "it does not need the kind Bucket.s3.example.org/v1"},
		"other version": {
			[]dependency.KindRef{{Name: "Bucket", Group: bucket.Group, Version: "v2"}},
			"it needs the kind Bucket.s3.example.org/v2, which is not locked",
		},
		"more": {
			[]dependency.KindRef{bucket, {Name: "Queue", Group: "sqs.example.org"}},
			"it needs the kind Queue.sqs.example.org, which is not locked",
		},
	} {
		err := p.Matches(p.Kind, nil, c.kinds)
		if c.want == "" && err != nil ||
			c.want != "" && (!errors.Is(err, ErrContradicted) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
