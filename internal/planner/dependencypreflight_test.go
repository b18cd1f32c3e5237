package planner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Tags returns the tags of a repository.
func (s *fakeContent) Tags(_ context.Context, o fetch.Origin) (fetch.TagList, error) {
	list := fetch.TagList{From: o.Ref}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref := range s.tags {
		if tag, ok := strings.CutPrefix(ref, o.Ref.Name()+":"); ok {
			list.Tags = append(list.Tags, tag)
		}
	}
	return list, nil
}

// Describe returns the metadata of a package.
func (s *fakeContent) Describe(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error) {
	var err error
	if d.IsZero() {
		if d, err = s.Resolve(ctx, o, 0); err != nil {
			return fetch.Description{}, err
		}
	}
	pkg, err := s.Read(ctx, o, d, false)
	if err != nil {
		return fetch.Description{}, err
	}
	return fetch.Description{Digest: d, Meta: pkg.Meta}, nil
}

// Prove is Describe.
func (s *fakeContent) Prove(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error) {
	return s.Describe(ctx, o, d)
}

// needing returns the stream of a provider that needs others.
func needing(name string, needs ...string) string {
	spec := "spec:\n  dependsOn:\n"
	for _, n := range needs {
		spec += fmt.Sprintf("  - {provider: %s, version: '>=v1'}\n", n)
	}
	return provider(name, spec)
}

// The objects of all packages in a dependency tree are checked before the first
// write: an object that another package holds, or that two packages contain, is a
// refusal with the names of both.
func TestPlanChecksTheObjectsOfDependencies(t *testing.T) {
	e := env.New(t)
	s := newFakeContent()
	const at = "registry.example.com/foreseen/"
	ship, sail := crd("foreseen.preview.test", "Ship", "one"), crd("foreseen.preview.test", "Sail", "one")
	for ref, stream := range map[string]string{
		"holder:v1": provider("holder", "", ship), "fleet:v1.0.0": provider("fleet", "", ship),
		"left:v1.0.0": provider("left", "", sail), "right:v1.0.0": provider("right", "", sail),
		"harbor:v1": needing("harbor", at+"fleet"), "both:v1": needing("both", at+"left", at+"right"),
		"one:v1":  needing("one", at+"left"),
		"same:v1": needing("same", at+"left") + sail,
	} {
		s.put(at+ref, stream)
	}
	stop := runManager(t, e.Config, s).Stop
	c, pl := e.Client, newPlanner(t, e.Config, s)
	pl.Registry = s
	holder := env.NewProvider("foreseen-holder", at+"holder:v1")
	e.CreateTemporary(t, holder)
	settled(t, c, holder)
	lock := untilLock(t, c, "says who holds it", holder, func(p v1beta1.LockPackage) bool { return len(p.Owns) == 1 })
	stop()

	belongs := func(kind, by, to string) string {
		return fmt.Sprintf(
			"CustomResourceDefinition %s.foreseen.preview.test, which %s%s contains, belongs to %s", kind, at, by, to,
		)
	}
	check := func(t *testing.T, of string, want ...string) {
		t.Helper()
		p := install(t, pl, env.NewProvider("foreseen-"+of, at+of+":v1"))
		var got []string
		for _, r := range p.Objects.Refusals {
			got = append(got, r.Reason)
		}
		if !slices.Equal(got, want) || len(want) > 0 && !errors.Is(p.RefusalError(), apply.ErrRefused) {
			t.Errorf("%s is refused with %q and %v, want %q", of, got, p.RefusalError(), want)
		}
	}
	check(t, "harbor", belongs("ships", "fleet", "Provider/"+holder.Name))
	check(t, "both", belongs("sails", "right", at+"left"))
	check(t, "same", belongs("sails", "left", "provider/foreseen-same"))
	check(t, "one")

	t.Run("without what the Lock says of objects", func(t *testing.T) {
		env.Update(t, e, lock, func(lock *v1beta1.Lock) {
			for i := range lock.Packages {
				lock.Packages[i].Owns = nil
			}
		})
		check(t, "harbor", belongs("ships", "fleet", "Provider/"+holder.Name))
		check(t, "one")

		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind(plan.DefinitionKind)
		definition.SetName("ships.foreseen.preview.test")
		hold := func(finalizers ...string) {
			env.Update(t, e, definition, func(o *unstructured.Unstructured) { o.SetFinalizers(finalizers) })
		}
		hold("preview.test/hold")
		if err := c.Delete(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		err := install(t, pl, env.NewProvider("foreseen-harbor", at+"harbor:v1")).RefusalError()
		if !errors.Is(err, apply.ErrDeleting) ||
			!strings.Contains(err.Error(), "CustomResourceDefinition ships.foreseen.preview.test is being deleted") {
			t.Errorf("an object in deletion: %v", err)
		}
		hold()
	})
	t.Run("without read access", func(t *testing.T) {
		pl.Source = onlyRead{s, "one"}
		p := install(t, pl, env.NewProvider("foreseen-one", at+"one:v1"))
		if !slices.ContainsFunc(
			p.Warnings, func(w string) bool { return strings.HasPrefix(w, "The objects of "+at+"left:v1.0.0 are not known: ") },
		) {
			t.Errorf("no warning: %q", p.Warnings)
		}
	})
}

// onlyRead is a source of which only one package can be read.
type onlyRead struct {
	planner.Source
	name string
}

func (o onlyRead) Read(ctx context.Context, at fetch.Origin, d oci.Digest, pull bool) (pkg *xpkg.Package, err error) {
	if !strings.HasSuffix(at.Ref.Name(), "/"+o.name) {
		return nil, fetch.ErrNotCached.New(errNoSuchTag, "%s", at.Ref)
	}
	return o.Source.Read(ctx, at, d, pull)
}
