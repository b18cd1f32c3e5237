package provide

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// reef is the group of the kinds that are required together.
const reef = "tides.reef.test"

// reefs returns a finder with an index for each package. Each text has the form "REPOSITORY: KIND KIND".
func reefs(t testing.TB, owner string, texts ...string) *Finder {
	t.Helper()
	f := &Finder{}
	for _, text := range texts {
		repository, kinds, _ := strings.Cut(text, ":")
		line := repository + " v1.0.0:"
		for kind := range strings.FieldsSeq(kinds) {
			line += " " + kind + "." + reef + "/v1"
		}
		index := indexOf(t, line)
		if owner != "" {
			index.Config.Owners = []catalog.GroupOwner{{Group: reef, Owner: "xpkg.test/" + owner}}
		}
		f.Sources = append(f.Sources, Catalog{Catalog: index})
	}
	return f
}

// selection returns the selected packages as "KIND=REPOSITORY …", and the errors of the other kinds.
func selection(
	t testing.TB, f *Finder, present map[string]bool, kinds ...dependency.KindRef,
) (selected, failed string) {
	t.Helper()
	all, err := f.RankTogether(t.Context(), kinds, Request{Present: present})
	if err != nil {
		t.Fatal(err)
	}
	var out, failures []string
	for _, r := range all {
		if err := f.Err(t.Context(), r); err != nil {
			failures = append(failures, r.Kind.Name+": "+errcode.Message(err))
			continue
		}
		out = append(out, r.Kind.Name+"="+strings.TrimPrefix(r.Order[0].Repository, "xpkg.test/"))
	}
	slices.Sort(out)
	slices.Sort(failures)
	return strings.Join(out, " "), strings.Join(failures, "\n")
}

func TestKindsAreSelectedFromPackagesWithoutConflicts(t *testing.T) {
	all := "*." + reef + "/v1"
	for name, c := range map[string]struct {
		owner    string
		packages []string
		kinds    string
		present  []string
		want     string
		// failed are parts of the errors.
		failed []string
	}{
		"one package instead of two that conflict": {
			owner: "acme", packages: []string{"acme/tides: Tide Wave Spring", "acme/waves: Wave"},
			want: "Spring=acme/tides Tide=acme/tides Wave=acme/tides",
		},
		"kinds that are named": {
			owner: "acme", packages: []string{"acme/tides: Tide Wave Spring", "acme/waves: Wave"}, kinds: "Wave Tide",
			want: "Tide=acme/tides Wave=acme/tides",
		},
		"one kind": {
			owner: "acme", packages: []string{"acme/tides: Tide Wave Spring", "acme/waves: Wave"}, kinds: "Wave",
			want: "Wave=acme/waves",
		},
		"without an owner": {
			packages: []string{"acme/tides: Tide Wave Spring", "acme/waves: Wave"},
			want:     "Spring=acme/tides Tide=acme/tides Wave=acme/tides",
		},
		"two packages beside each other": {
			owner: "acme", packages: []string{"acme/tides: Tide Spring", "acme/waves: Wave"},
			want: "Spring=acme/tides Tide=acme/tides Wave=acme/waves",
		},
		"the fewest kinds": {
			owner: "acme", packages: []string{"acme/all: Tide Wave Spring Other", "acme/tides: Tide", "acme/waves: Wave Spring"},
			kinds: "Tide Wave", want: "Tide=acme/tides Wave=acme/waves",
		},
		"the fewest packages": {
			owner: "acme", packages: []string{"acme/all: Tide Wave", "acme/tides: Tide", "acme/waves: Wave"},
			want: "Tide=acme/all Wave=acme/all",
		},
		"the owner's packages": {
			owner: "acme", packages: []string{"acme/all: Tide Wave Spring", "other/small: Tide Wave Spring"},
			want: "Spring=acme/all Tide=acme/all Wave=acme/all",
		},
		"several sets without an owner": {
			packages: []string{"acme/all: Tide Wave Spring", "acme/tides: Tide Spring", "acme/waves: Wave"},
			failed: []string{"Tide: AmbiguousKind: 2 packages provide Tide." + reef +
				"/v1", "`xpkg install provider xpkg.test/acme/all:v1.0.0`", "`xpkg install provider xpkg.test/acme/tides:v1.0.0`"},
		},
		"a set that the user has begun": {
			packages: []string{"acme/all: Tide Wave Spring", "acme/tides: Tide Spring", "acme/waves: Wave"},
			present:  []string{"acme/tides"},
			want:     "Spring=acme/tides Tide=acme/tides Wave=acme/waves",
		},
		"another publisher in the group": {
			packages: []string{"acme/tides: Tide Wave Spring", "evil/waves: Wave"},
			failed:   []string{"Wave: AmbiguousKind", "it is not certain that the publisher", "Tide: AmbiguousKind"},
		},
		"a package that conflicts with an installed one": {
			owner: "acme", packages: []string{"acme/tides: Tide Wave", "acme/waves: Wave"}, kinds: "Tide Wave",
			present: []string{"acme/waves"}, want: "Wave=acme/waves",
			failed: []string{"Tide: NoProvider: ", "xpkg.test/acme/tides: it also defines waves." + reef +
				", which xpkg.test/acme/waves provides"},
		},
		"all kinds without those of a package that conflicts with an installed one": {
			owner: "acme", packages: []string{"acme/tides: Tide Wave", "acme/waves: Wave"}, present: []string{"acme/waves"},
			want: "Wave=acme/waves",
		},
		"all kinds without those of a package that conflicts with the owner's": {
			owner: "acme", packages: []string{"acme/tides: Tide Wave", "evil/waves: Wave Trap"},
			want: "Tide=acme/tides Wave=acme/tides",
		},
		"the owner's kinds without those that another publisher adds": {
			owner: "acme", packages: []string{"acme/tides: Tide Wave", "evil/trap: Trap"},
			want: "Tide=acme/tides Wave=acme/tides",
		},
		"a kind that another publisher adds to a group without an owner": {
			packages: []string{"acme/tides: Tide Wave", "evil/trap: Trap"},
			failed:   []string{"Tide: AmbiguousKind", "Wave: AmbiguousKind", "Trap: AmbiguousKind"},
		},
		"more kinds of another publisher in a group without an owner": {
			packages: []string{"acme/waves: Wave", "evil/all: Wave Tide Spring Neap"},
			failed:   []string{"Wave: AmbiguousKind", "Tide: AmbiguousKind"},
		},
		"no set, and no order": {
			packages: []string{"acme/tides: Tide Wave", "acme/waves: Wave Spring"}, want: "Spring=acme/waves Tide=acme/tides",
			failed: []string{"Wave: AmbiguousKind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := []dependency.KindRef{kindRef(t, all)}
			if c.kinds != "" {
				kinds = nil
			}
			for kind := range strings.FieldsSeq(c.kinds) {
				kinds = append(kinds, kindRef(t, kind+"."+reef+"/v1"))
			}
			present := map[string]bool{}
			for _, p := range c.present {
				present["xpkg.test/"+p] = true
			}
			got, failed := selection(t, reefs(t, c.owner, c.packages...), present, kinds...)
			complete := (failed == "") == (len(c.failed) == 0)
			for _, text := range c.failed {
				complete = complete && strings.Contains(failed, text)
			}
			if want := cmp.Or(c.want, got); got != want && c.want != "" || !complete {
				t.Errorf("got %s\n%s\nwant %s\n%s", got, failed, want, strings.Join(c.failed, "\n"))
			}
		})
	}
}

// randomReef returns the texts of an index with packages of random kinds, and its owner.
func randomReef(t *rapid.T) (owner string, texts []string) {
	for _, name := range []string{"a/x", "a/y", "a/z", "b/x", "b/y"} {
		kinds := rapid.SliceOfNDistinct(
			rapid.SampledFrom([]string{"Tide", "Wave", "Spring", "Neap"}), 0, 4, rapid.ID[string],
		).Draw(t, name)
		if len(kinds) > 0 {
			texts = append(texts, name+": "+strings.Join(kinds, " "))
		}
	}
	return rapid.SampledFrom([]string{"", "a", "a/x"}).Draw(t, "owner"), texts
}

func TestNoTwoSelectedPackagesDefineTheSameCRD(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		owner, texts := randomReef(t)
		present := map[string]bool{"xpkg.test/" + rapid.SampledFrom([]string{"", "a/y", "b/x"}).Draw(t, "present"): true}
		kinds := []dependency.KindRef{kindRef(outer, "*."+reef+"/v1")}
		if rapid.Bool().Draw(t, "named") {
			kinds = []dependency.KindRef{
				kindRef(outer, "Wave."+reef+"/v1"), kindRef(outer, "tides."+reef), kindRef(outer, "Neap."+reef),
			}
		}
		selected, failed := selection(outer, reefs(outer, owner, texts...), present, kinds...)

		definers := map[string]string{}
		for pair := range strings.FieldsSeq(selected) {
			_, repository, _ := strings.Cut(pair, "=")
			for _, text := range texts {
				name, defined, _ := strings.Cut(text, ":")
				for kind := range strings.FieldsSeq(defined) {
					if name != repository {
						continue
					}
					if other := definers[kind]; failed == "" && other != "" && other != name {
						t.Fatalf("%s and %s define %s: %s of %q", other, name, kind, selected, texts)
					}
					definers[kind] = name
				}
			}
		}
		again, failedAgain := selection(
			outer, reefs(outer, owner, rapid.Permutation(texts).Draw(t, "order")...), present,
			rapid.Permutation(kinds).Draw(t, "kinds")...,
		)
		if again != selected || failedAgain != failed {
			t.Errorf("got %s\n%s\nand in another order %s\n%s", selected, failed, again, failedAgain)
		}
	})
}

// Many packages that define each other's kinds have very many sets; the search ends nevertheless.
func TestTheSearchForASetIsLimited(t *testing.T) {
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf("a/p%d: K%d K%d K%d", i, i, i+1, (i*7)%40), fmt.Sprintf("a/q%d: K%d", i, i))
	}
	selected, failed := selection(t, reefs(t, "a", texts...), nil, kindRef(t, "*."+reef+"/v1"))
	if selected == "" {
		t.Error(failed)
	}
}

func TestAResolverAsksForKindsTogether(t *testing.T) {
	f := reefs(t, "acme", "acme/tides: Tide Wave Spring", "acme/waves: Wave")
	wave, tide := kindRef(t, "Wave."+reef+"/v1"), kindRef(t, "Tide."+reef+"/v1")
	alone, err := f.Providers(t.Context(), resolver.KindQuery{Kind: wave})
	if err != nil || alone.Candidates[0].Repository != "xpkg.test/acme/waves" || len(alone.Candidates) != 2 {
		t.Errorf("%+v, %v", alone, err)
	}
	with, err := f.Providers(t.Context(), resolver.KindQuery{Kind: wave, Together: []dependency.KindRef{tide, wave}})
	if err != nil || len(with.Candidates) != 1 || with.Candidates[0].Repository != "xpkg.test/acme/tides" ||
		!slices.Equal(with.Others, []string{"xpkg.test/acme/waves"}) {
		t.Errorf("%+v, %v", with, err)
	}
	conflicting, err := f.Providers(t.Context(), resolver.KindQuery{
		Kind: tide, Together: []dependency.KindRef{tide, wave}, Present: map[string]bool{"xpkg.test/acme/waves": true},
	})
	if !errors.Is(err, ErrNoProvider) || !conflicting.Conflicting {
		t.Errorf("%+v, %v", conflicting, err)
	}
}

// A package that no source knows, and that was selected for a kind, is not joined by another one that defines the kind.
func TestAPackageForAKindDoesNotConflictWithRecordedOnes(t *testing.T) {
	f := reefs(t, "acme", "acme/tides: Tide Wave", "acme/small: Tide")
	wave, tide := kindRef(t, "Wave."+reef+"/v1"), kindRef(t, "Tide."+reef+"/v1")
	all, err := f.RankTogether(t.Context(), []dependency.KindRef{tide, wave}, Request{
		RecordedKinds: map[dependency.KindRef]string{wave: "xpkg.test/private/waves"},
	})
	if err != nil || len(all) != 2 || all[0].Order[0].Repository != "xpkg.test/acme/small" ||
		all[1].Order[0].Repository != "xpkg.test/private/waves" {
		t.Errorf("%+v, %v", all, err)
	}
	f = reefs(t, "acme", "acme/tides: Tide Wave")
	all, err = f.RankTogether(t.Context(), []dependency.KindRef{tide, wave}, Request{
		RecordedKinds: map[dependency.KindRef]string{wave: "xpkg.test/private/waves"},
	})
	if err != nil || !all[0].Conflicting {
		t.Errorf("%+v, %v", all, err)
	}
}

// All kinds of a group are those of its owner, and those for which a package of another publisher was selected before.
// A source of a lower priority cannot claim the group.
func TestAllKindsOfAGroupAreThoseOfItsOwner(t *testing.T) {
	all, trap := kindRef(t, "*."+reef+"/v1"), kindRef(t, "traps."+reef+"/v1")
	expanded := func(f *Finder, recorded map[dependency.KindRef]string) string {
		t.Helper()
		kinds, err := f.Expand(t.Context(), all, recorded)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, k := range kinds {
			out = append(out, k.Name)
		}
		return strings.Join(out, " ")
	}
	owned := func() *Finder { return reefs(t, "acme", "acme/tides: Tide Wave", "evil/trap: Trap") }
	if got := expanded(owned(), nil); got != "Tide Wave" {
		t.Errorf("of an owner: %s", got)
	}
	if got := expanded(owned(), map[dependency.KindRef]string{trap: "xpkg.test/evil/trap"}); got != "Tide Trap Wave" {
		t.Errorf("with a kind that was selected before: %s", got)
	}
	selected := owned()
	selected.Selected = map[dependency.KindRef]string{trap: "xpkg.test/evil/trap"}
	if got := expanded(selected, nil); got != "Tide Trap Wave" {
		t.Errorf("with a kind that the user selects: %s", got)
	}
	claimed := reefs(t, "", "acme/tides: Tide Wave")
	claim := reefs(t, "evil", "evil/trap: Trap").Sources[0].(Catalog)
	claim.Priority = 1
	claimed.Sources = append(claimed.Sources, claim)
	if got := expanded(claimed, nil); got != "Tide Trap Wave" {
		t.Errorf("with a claim of another source: %s", got)
	}
}
