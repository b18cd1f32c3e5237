package catalog

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestOwnersAreSortedAndInvalidOnesAreRefused(t *testing.T) {
	a, b := GroupOwner{"a.example.org", "example.org/acme"}, GroupOwner{"b.example.org", "example.org/acme/provider-boats"}
	if got, err := SortOwners([]GroupOwner{b, a, b}); err != nil || !slices.Equal(got, []GroupOwner{a, b}) {
		t.Errorf("got %v, %v", got, err)
	}
	many := make([]GroupOwner, maxOwners+1)
	for name, owners := range map[string][]GroupOwner{
		"two owners":          {a, {a.Group, b.Owner}},
		"no group":            {{"", a.Owner}},
		"a group in capitals": {{"A.example.org", a.Owner}},
		"no owner":            {{a.Group, ""}},
		"an owner with a tag": {{a.Group, "example.org/acme:v1"}},
		"a control character": {{a.Group, "example.org/ac\nme"}},
		"a long owner":        {{a.Group, "example.org/" + strings.Repeat("a", 300)}},
		"too many":            many,
	} {
		if _, err := SortOwners(owners); !errors.Is(err, ErrInvalidOwner) {
			t.Errorf("%s: %v", name, err)
		}
		text, err := json.Marshal(Config{Format: Format, Name: "test", Sequence: 1, Owners: owners})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseConfig(text); !errors.Is(err, ErrInvalidIndex) {
			t.Errorf("%s in a configuration: %v", name, err)
		}
	}
}

func TestAnOwnerCoversItsRepositoriesOnly(t *testing.T) {
	o := GroupOwner{"a.example.org", "example.org/acme"}
	for repository, want := range map[string]bool{
		"example.org/acme": true, "example.org/acme/provider-boats": true, "example.org/acmes/provider-boats": false,
		"example.org": false, "": false,
	} {
		if o.Covers(repository) != want {
			t.Errorf("%s: %v", repository, !want)
		}
	}
	c := Config{Owners: []GroupOwner{o}}
	if _, known := c.GroupOwner("b.example.org"); known {
		t.Error("another group has an owner")
	}
}

func TestAnIndexKeepsItsOwnersWhenItIncludesAnother(t *testing.T) {
	own, other := GroupOwner{"b.example.org", "example.org/acme"}, GroupOwner{"b.example.org", "example.org/evil"}
	more := GroupOwner{"a.example.org", "example.org/evil"}
	c := (&Catalog{Config: Config{Owners: []GroupOwner{own}}}).
		Include(&Catalog{Config: Config{Owners: []GroupOwner{more, other}}})
	if !slices.Equal(c.Config.Owners, []GroupOwner{more, own}) {
		t.Errorf("got %v", c.Config.Owners)
	}
	image, err := Encode(&c)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(image.Blobs[0].Data); !strings.Contains(
		text, `"owners":[{"group":"a.example.org","owner":"example.org/evil"}`,
	) {
		t.Errorf("the configuration has no owners: %s", text)
	}
}

// An index that is included does not appoint owners of the groups of the packages that the catalog has already.
func TestAnIncludedIndexOwnsOnlyGroupsWithoutOtherPackages(t *testing.T) {
	c := &Catalog{
		Packages: []Package{{Repository: "example.org/acme/boats"}},
		Kinds:    []Kind{{Kind: "Boat", Group: "boats.example.org", Repository: "example.org/acme/boats"}},
	}
	evil := GroupOwner{"boats.example.org", "example.org/evil"}
	for _, tc := range []struct {
		name  string
		owner GroupOwner
		want  bool
	}{
		{"Another", evil, false},
		{"ThePublisherOfThePackage", GroupOwner{"boats.example.org", "example.org/acme"}, true},
		{"AnotherGroup", GroupOwner{"rafts.example.org", "example.org/evil"}, true},
	} {
		out := c.Include(&Catalog{Config: Config{Owners: []GroupOwner{tc.owner}}})
		if got := slices.Contains(out.Config.Owners, tc.owner); got != tc.want {
			t.Errorf("%s: got %v", tc.name, out.Config.Owners)
		}
	}
}
