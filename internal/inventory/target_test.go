package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestTargetsOfAnUpdate checks the grammar of updates, with rafts and provider/canoes installed.
func TestTargetsOfAnUpdate(t *testing.T) {
	installed := func(n Name) bool { return n == "rafts" || n == "provider/canoes" }
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, test := range []struct {
		words []string
		want  []Target
	}{
		{[]string{"boats"}, []Target{{Name: "boats"}}},
		{[]string{"provider/boats"}, []Target{{Name: "provider/boats"}}},
		{[]string{"boats", "v2.0.0"}, []Target{{Name: "boats", Ref: "v2.0.0"}}},
		{[]string{"boats", "latest"}, []Target{{Name: "boats", Ref: "latest"}}},
		{[]string{"boats", digest}, []Target{{Name: "boats", Ref: digest}}},
		{[]string{"boats", "v2@" + digest}, []Target{{Name: "boats", Ref: "v2@" + digest}}},
		{[]string{"boats", "ghcr.io/acme/boats:v2"}, []Target{{Name: "boats", Ref: "ghcr.io/acme/boats:v2"}}},
		{[]string{"boats", "rafts"}, []Target{{Name: "boats"}, {Name: "rafts"}}},
		{[]string{"boats", "rafts@v2"}, []Target{{Name: "boats"}, {Name: "rafts", Ref: "v2"}}},
		{[]string{"boats", "function/any"}, []Target{{Name: "boats"}, {Name: "function/any"}}},
		{[]string{"boats@v2", "any"}, []Target{{Name: "boats", Ref: "v2"}, {Name: "any"}}},
		{[]string{"provider/boats@" + digest}, []Target{{Name: "provider/boats", Ref: digest}}},
		{[]string{"a", "b", "c"}, []Target{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
		{[]string{"ghcr.io/acme/boats:v2"}, []Target{{Ref: "ghcr.io/acme/boats:v2"}}},
		{[]string{"provider/ghcr.io/acme/boats:v2"}, []Target{{Kind: "Provider", Ref: "ghcr.io/acme/boats:v2"}}},
		{[]string{"provider/boats:v2", "sailing"}, []Target{{Name: "provider/sailing", Ref: "boats:v2"}}},
		{[]string{"ghcr.io/acme/boats:v2", "sailing"}, []Target{{Name: "sailing", Ref: "ghcr.io/acme/boats:v2"}}},
		{[]string{"ghcr.io/acme/boats:v2", "ghcr.io/acme/rafts:v2"}, []Target{{Ref: "ghcr.io/acme/boats:v2"}, {
			Ref: "ghcr.io/acme/rafts:v2",
		}}},
		{[]string{"boats@"}, nil},
		{[]string{"provider"}, nil},
		{[]string{""}, nil},
	} {
		got, err := ParseTargets(test.words, installed)
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want != nil) {
			t.Errorf("%q: %v %s", test.words, err, diff)
		}
	}
}

// TestEveryNameOfManyIsATarget proves that three or more names are as many packages, whatever is installed.
func TestEveryNameOfManyIsATarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`(function/)?x[a-z0-9-]{0,10}`), 3, 6).Draw(t, "names")
		got, err := ParseTargets(names, func(Name) bool { return rapid.Bool().Draw(t, "installed") })
		if err != nil || len(got) != len(names) {
			t.Fatalf("%q: %v %v", names, got, err)
		}
		for i, target := range got {
			if target.Name != Name(names[i]) || target.Ref != "" {
				t.Fatalf("%q: %+v", names[i], target)
			}
		}
	})
}

func FuzzParseTargets(f *testing.F) {
	f.Add("provider/boats@v2", "rafts", true)
	f.Add("provider/ghcr.io/acme/boats:v2", "boats", false)
	f.Fuzz(func(t *testing.T, first, second string, installed bool) {
		got, err := ParseTargets([]string{first, second}, func(Name) bool { return installed })
		if err == nil && (len(got) == 0 || len(got) > 2) {
			t.Errorf("%q %q: %v", first, second, got)
		}
	})
}
