package crddiff_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// upgrade is a pair of versions of a published package, with its differences as another program found them.
type upgrade struct {
	From, To       string
	Added, Removed []string
	Dropped        [][]any `json:"versions_dropped"`
	VersionsAdded  [][]any `json:"versions_added"`
	StorageMoved   [][]any `json:"storage_moved"`
	ScopeChanged   [][]any `json:"scope_changed"`
	Deprecated     [][]any `json:"newly_deprecated"`
}

func TestUpgradesOfPublishedPackagesHaveTheKnownDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("short: reads hundreds of megabytes")
	}
	dir := corpus.Dir(t)
	text, err := os.ReadFile(filepath.Join(dir, "upgrades.json"))
	if err != nil {
		t.Fatal(err)
	}
	var upgrades []upgrade
	if err := json.Unmarshal(text, &upgrades); err != nil {
		t.Fatal(err)
	}
	for _, u := range upgrades {
		t.Run(filepath.Base(u.From)+" to "+filepath.Base(u.To), func(t *testing.T) {
			d, err := crddiff.CRDs(crdsOf(t, filepath.Join(dir, u.From)), crdsOf(t, filepath.Join(dir, u.To)))
			if err != nil {
				t.Fatal(err)
			}
			check := func(difference string, want, got []string) {
				t.Helper()
				slices.Sort(want)
				if diff := cmp.Diff(slices.Compact(want), got); diff != "" && len(want)+len(got) > 0 {
					t.Errorf("%s (-want +got):\n%s", difference, diff)
				}
			}
			check("added", u.Added, d.Added)
			check("removed", u.Removed, d.Removed)
			check("versions dropped", names(u.Dropped), changed(d, crddiff.VersionRemoved, crddiff.StoredVersionRemoved))
			check("versions added", names(u.VersionsAdded), changed(d, crddiff.VersionAdded))
			check("storage moved", names(u.StorageMoved), changed(d, crddiff.StorageMoved))
			check("scope changed", names(u.ScopeChanged), changed(d, crddiff.ScopeChanged))
			check("deprecated", names(u.Deprecated), changed(d, crddiff.VersionDeprecated))
			t.Logf("%d changed, %d unchanged, %s", len(d.Changed), d.Unchanged, d.Class())
		})
	}
}

// In the largest release of the corpus the text of every CRD differs, and the specs of 316.
func TestOnlyDifferentSpecsAreChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("short: reads hundreds of megabytes")
	}
	dir := filepath.Join(corpus.Dir(t), "providers")
	d, err := crddiff.CRDs(
		crdsOf(t, filepath.Join(dir, "crossplane-contrib__provider-upjet-aws@v2.5.0")),
		crdsOf(t, filepath.Join(dir, "crossplane-contrib__provider-upjet-aws@v2.6.0")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Changed) != 316 || d.Unchanged != 2015-316 || len(d.Added) != 28 {
		t.Errorf("%d changed, %d unchanged, %d added; want 316, 1699, 28", len(d.Changed), d.Unchanged, len(d.Added))
	}
}

// names returns the first element of each entry.
func names(entries [][]any) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e[0].(string))
	}
	return out
}

// changed returns the names of CRDs with a change of one of the types, in order.
func changed(d crddiff.Diff, types ...crddiff.Type) []string {
	found := map[string]bool{}
	for _, c := range d.Changed {
		for _, change := range c.Changes {
			if slices.Contains(types, change.Type) {
				found[c.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// crdsOf returns the CRDs in the package folder of an item of the corpus, as canonical JSON of v1.
func crdsOf(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	folder, err := xpkg.ReadFolder(os.DirFS(filepath.Join(dir, "package")), xpkg.FolderOptions{Ignore: []string{
		"kustomize/*",
	}})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, d := range folder.Documents {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if name, text := asV1(t, text); name != "" {
			out[name] = text
		}
	}
	return out
}

// asV1 returns the name and the JSON of v1 of a CRD; the name is empty for any other object.
func asV1(t testing.TB, text []byte) (string, []byte) {
	t.Helper()
	var o struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	if o.Kind != "CustomResourceDefinition" {
		return "", nil
	}
	if o.APIVersion == "apiextensions.k8s.io/v1beta1" {
		var err error
		if text, err = crd.FromV1Beta1(text); err != nil {
			t.Fatal(err)
		}
	}
	return o.Metadata.Name, text
}
