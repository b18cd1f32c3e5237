package resolver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// withdrawals is a registry with one package and the statuses of its versions.
type withdrawals struct {
	tags     []string
	statuses map[string]catalog.Status
	retract  map[string]string // by the version that retracts
	asked    []string
}

func (w *withdrawals) Location(_ context.Context, repository oci.Reference) (string, error) {
	return repository.Name(), nil
}

func (w *withdrawals) Versions(_ context.Context, repository oci.Reference) (resolver.Versions, error) {
	return resolver.Versions{Tags: w.tags, From: repository}, nil
}

func (w *withdrawals) Metadata(_ context.Context, version oci.Reference) (resolver.Metadata, error) {
	m := resolver.Metadata{Digest: oci.DigestOf([]byte(version.Tag)), Meta: xpkg.Meta{Kind: "Provider"}}
	if text, ok := w.retract[version.Tag]; ok {
		m.Meta.Annotations = map[string]string{catalog.AnnotationRetract: text}
	}
	return m, nil
}

func (w *withdrawals) Verify(ctx context.Context, version oci.Reference, _ oci.Digest) (resolver.Metadata, error) {
	return w.Metadata(ctx, version)
}

// Status implements [resolver.Registry].
func (w *withdrawals) Status(_ context.Context, version oci.Reference, _ []string) (*catalog.Status, error) {
	if s, ok := w.statuses[version.Tag]; ok {
		w.asked = append(w.asked, version.Tag)
		return &s, nil
	}
	return nil, nil
}

const withdrawnPackage = "registry.example.org/acme/boats"

func TestWithdrawnVersionsAreNotSelected(t *testing.T) {
	broken := catalog.Status{State: catalog.Yanked, Reason: catalog.Broken, Message: "it sinks", ReplacedBy: "v1.0.0"}
	old := catalog.Status{State: catalog.Deprecated}
	for name, c := range map[string]struct {
		statuses   map[string]catalog.Status
		retract    map[string]string
		constraint string
		exact      bool
		want, note string
	}{
		"yanked":           {map[string]catalog.Status{"v1.1.0": broken}, nil, ">=1", false, "v1.0.0", ""},
		"yanked and named": {map[string]catalog.Status{"v1.1.0": broken}, nil, "v1.1.0", true, "v1.1.0", ""},
		"deprecated":       {map[string]catalog.Status{"v1.1.0": old}, nil, ">=1", false, "v1.0.0", ""},
		"deprecated without any other": {
			map[string]catalog.Status{"v1.1.0": old}, nil, ">1.0", false, "v1.1.0", "deprecated",
		},
		"every version is yanked": {
			map[string]catalog.Status{"v1.1.0": broken, "v1.0.0": broken, "v0.9.0": broken}, nil, ">=0.1", false, "",
			"(v1.1.0: it is yanked (broken): it sinks; use v1.0.0 instead)",
		},
		"the only version is yanked": {
			map[string]catalog.Status{"v1.1.0": broken}, nil, ">1.0", false, "",
			"v1.1.0 is not available (it is yanked (broken): it sinks; use v1.0.0 instead)",
		},
		"retracted by itself": {
			nil, map[string]string{"v1.1.0": `[{"versions":">=1.0.0","reason":"broken"}]`}, "*", false, "v0.9.0", "",
		},
	} {
		w := &withdrawals{tags: []string{"v0.9.0", "v1.0.0", "v1.1.0"}, statuses: c.statuses, retract: c.retract}
		got, err := (&resolver.Resolver{Registry: w}).Resolve(t.Context(), resolver.Request{
			Roots: []dependency.Root{{Package: withdrawnPackage, Constraint: c.constraint, Exact: c.exact}},
		})
		if c.want == "" {
			if !errors.Is(err, solver.ErrUnsolvable) || !strings.Contains(err.Error(), c.note) {
				t.Errorf("%s: %v, want %s", name, err, c.note)
			}
			continue
		}
		if err != nil || len(got.Packages) != 1 || got.Packages[0].Version != c.want {
			t.Errorf("%s: %+v, %v; want %s", name, got.Packages, err, c.want)
		}
		if !strings.Contains(strings.Join(got.Notes, "\n"), c.note) {
			t.Errorf("%s: notes %q, want %q", name, got.Notes, c.note)
		}
	}
}

func TestALockedVersionStaysAfterItIsYanked(t *testing.T) {
	w := &withdrawals{tags: []string{"v1.0.0", "v1.1.0"}, statuses: map[string]catalog.Status{"v1.1.0": {
		State: catalog.Yanked,
	}}}
	locked := lockfile.Package{
		Repository: withdrawnPackage, Version: "v1.1.0", Digest: oci.DigestOf([]byte("v1.1.0")), Kind: "Provider",
	}
	got, err := (&resolver.Resolver{Registry: w}).Resolve(t.Context(), resolver.Request{
		Roots: []dependency.Root{{Package: withdrawnPackage, Constraint: ">=1"}}, Locked: []lockfile.Package{locked},
	})
	if err != nil || len(got.Packages) != 1 || got.Packages[0].Version != "v1.1.0" || len(w.asked) != 0 {
		t.Errorf("got %+v, %v; asked for %q", got.Packages, err, w.asked)
	}
}

// An installed version stays a candidate after it is yanked, until there is a higher one. Another content with its tag
// is not installed.
func TestAnInstalledVersionCanBeSelectedAfterItIsYanked(t *testing.T) {
	yanked := catalog.Status{State: catalog.Yanked}
	for name, c := range map[string]struct {
		tags    []string
		content string
		want    string
	}{
		"the highest version": {[]string{"v1.0.0", "v1.1.0"}, "v1.1.0", "v1.1.0"},
		"a higher version":    {[]string{"v1.0.0", "v1.1.0", "v1.2.0"}, "v1.1.0", "v1.2.0"},
		"a tag that moved":    {[]string{"v1.0.0", "v1.1.0"}, "former", "v1.0.0"},
	} {
		w := &withdrawals{tags: c.tags, statuses: map[string]catalog.Status{"v1.1.0": yanked}}
		got, err := (&resolver.Resolver{Registry: w}).Resolve(t.Context(), resolver.Request{
			Roots: []dependency.Root{{Package: withdrawnPackage, Constraint: ">=1"}},
			Installed: []lockfile.Package{{
				Repository: withdrawnPackage, Version: "v1.1.0", Digest: oci.DigestOf([]byte(c.content)),
			}},
		})
		if err != nil || got.Packages[0].Version != c.want || len(got.Withdrawn) != 0 != (c.want == "v1.1.0") {
			t.Errorf("%s: got %+v, %q, %v", name, got.Packages, got.Withdrawn, err)
		}
	}
}

// TestOnlyCandidatesAreChecked checks that the number of requests does not depend on the number of versions.
func TestOnlyCandidatesAreChecked(t *testing.T) {
	w := &withdrawals{statuses: map[string]catalog.Status{}}
	for _, tag := range []string{"v1.0.0", "v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0"} {
		w.tags = append(w.tags, tag)
		w.statuses[tag] = catalog.Status{State: catalog.Yanked}
	}
	delete(w.statuses, "v1.3.0")
	got, err := (&resolver.Resolver{Registry: w}).Resolve(t.Context(), resolver.Request{
		Roots: []dependency.Root{{Package: withdrawnPackage, Constraint: ">=1"}},
	})
	if err != nil || got.Packages[0].Version != "v1.3.0" || strings.Join(w.asked, " ") != "v1.4.0" {
		t.Errorf("got %+v, %v; asked for %q", got.Packages, err, w.asked)
	}
	if reason := slices.Collect(got.SetAside(withdrawnPackage)); len(reason) != 1 || reason[0].Reason != "it is yanked" {
		t.Errorf("set aside: %+v", reason)
	}
}

func TestTheStatusOfAnInstalledVersionIsThatOfItsArtifactOrOfTheNewestRelease(t *testing.T) {
	yanked := catalog.Status{State: catalog.Yanked, Reason: catalog.Broken}
	retract := map[string]string{
		"v1.1.0": `[{"versions":"<=1.1.0","reason":"security","replacedBy":"v1.2.0"}]`, "v1.2.0-rc.1": `[{"versions":"*"}]`,
	}
	for name, c := range map[string]struct {
		statuses map[string]catalog.Status
		retract  map[string]string
		tag      string
		want     string
	}{
		"a status":                      {map[string]catalog.Status{"v1.0.0": yanked}, retract, "v1.0.0", "yanked (broken)"},
		"a retraction":                  {nil, retract, "v1.0.0", "retracted (security); use v1.2.0 instead"},
		"a retraction of itself":        {nil, retract, "v1.1.0", "retracted (security); use v1.2.0 instead"},
		"a prerelease retracts nothing": {nil, map[string]string{"v1.2.0-rc.1": retract["v1.2.0-rc.1"]}, "v1.0.0", ""},
		"a malformed retraction":        {nil, map[string]string{"v1.1.0": "["}, "v1.0.0", ""},
	} {
		w := &withdrawals{tags: []string{"v1.0.0", "v1.1.0", "v1.2.0-rc.1"}, statuses: c.statuses, retract: c.retract}
		of := oci.MustParseReference(withdrawnPackage + ":" + c.tag).WithDigest(oci.DigestOf([]byte(c.tag)))
		got, err := resolver.StatusOf(t.Context(), w, of, w.tags)
		text := ""
		if got != nil {
			text = resolver.Describe(*got)
		}
		if err != nil || text != c.want {
			t.Errorf("%s: %q, %v; want %q", name, text, err, c.want)
		}
	}
}
