package remote

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzParseChallenges(f *testing.F) {
	for _, s := range []string{
		`Bearer realm="https://auth.example/token",service="x",scope="a:b:c"`, `Basic realm="x"`, `Basic`,
		`Bearer realm="a\"b", Basic realm=c`, `Negotiate abc==, Bearer realm=x`, `,,,=`, `a b c`, `x="`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { parseChallenges([]string{s}) })
}

func TestParseChallenges(t *testing.T) {
	got := parseChallenges([]string{
		`Bearer realm="https://a/t",service="x y, z",scope=q`, `Basic realm="r\"s"`, `Negotiate, Digest nonce=1`,
	})
	want := []challenge{
		{"bearer", map[string]string{"realm": "https://a/t", "service": "x y, z", "scope": "q"}},
		{"basic", map[string]string{"realm": `r"s`}},
		{"negotiate", map[string]string{}},
		{"digest", map[string]string{"nonce": "1"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(challenge{})); diff != "" {
		t.Error(diff)
	}
}
