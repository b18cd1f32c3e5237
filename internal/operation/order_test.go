package operation

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// drawFootprint draws a version of one of a few packages, with requirements on others, and some of a few objects.
func drawFootprint(t *rapid.T, label string) *footprint {
	if !rapid.Bool().Draw(t, label+" is installed") {
		return nil
	}
	constraints := []string{"", ">=2.0.0", "<2.0.0"}
	out := &footprint{objects: map[plan.Ref]bool{}}
	out.version.Tag = rapid.SampledFrom([]string{"v1.0.0", "v2.0.0"}).Draw(t, label+" version")
	for i := range rapid.IntRange(0, 2).Draw(t, label+" requirements") {
		out.requires = append(out.requires, dependency.Dependency{
			Package:    fmt.Sprintf("r%d", rapid.IntRange(0, 5).Draw(t, fmt.Sprintf("%s requires %d", label, i))),
			Constraint: rapid.SampledFrom(constraints).Draw(t, fmt.Sprintf("%s constraint %d", label, i)),
			Optional:   rapid.Bool().Draw(t, fmt.Sprintf("%s is optional %d", label, i)),
		})
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 2, rapid.ID[string]).
		Draw(t, label+" objects") {
		out.objects[plan.Ref{Kind: "CustomResourceDefinition", Name: name}] = true
	}
	return out
}

// A step follows each step that it needs, unless that one needs it too, directly or through others; steps that do not
// need each other keep their order as far as nothing else changes it.
func TestStepsFollowThoseThatTheyNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var effects []*effect
		for i := range rapid.IntRange(0, 6).Draw(t, "steps") {
			label := fmt.Sprint(i)
			effects = append(effects, &effect{
				repository: fmt.Sprintf("r%d", i), before: drawFootprint(t, label+" before"),
				after: drawFootprint(t, label+" after"),
			})
		}
		got := sequence(effects)
		if sorted := slices.Sorted(slices.Values(got)); len(sorted) != len(effects) ||
			!slices.Equal(slices.Compact(sorted), sorted) {
			t.Fatalf("%v is not an order of %d steps", got, len(effects))
		}
		var reaches func(i, j int, seen map[int]bool) bool
		reaches = func(i, j int, seen map[int]bool) bool {
			for k := range effects {
				if k == i || seen[k] || !effects[i].needs(effects[k]) {
					continue
				}
				seen[k] = true
				if k == j || reaches(k, j, seen) {
					return true
				}
			}
			return false
		}
		isChanged := false
		for i := range effects {
			for j := range effects {
				if i == j {
					continue
				}
				isBefore := slices.Index(got, i) < slices.Index(got, j)
				if isBefore && reaches(i, j, map[int]bool{}) && !reaches(j, i, map[int]bool{}) {
					t.Fatalf("in %v, step %d is before step %d, which it needs", got, i, j)
				}
				isChanged = isChanged || i < j && (effects[i].needs(effects[j]) || effects[i].breaks(effects[j]))
			}
		}
		if !isChanged && !slices.IsSorted(got) {
			t.Fatalf("%v changes the order without a reason", got)
		}
	})
}

// The rules, one by one.
func TestEffects(t *testing.T) {
	version := func(tag, requires string, objects ...string) *footprint {
		out := &footprint{version: graph.Version{Tag: tag}, objects: map[plan.Ref]bool{}}
		if requires != "" {
			out.requires = []dependency.Dependency{{Package: "base", Constraint: requires}}
		}
		for _, name := range objects {
			out.objects[plan.Ref{Name: name}] = true
		}
		return out
	}
	optional := version("v1.0.0", ">=1.0.0")
	optional.requires[0].Optional = true
	for name, c := range map[string]struct {
		a, b          *effect
		needs, breaks bool
	}{
		"a new dependency": {
			&effect{after: version("v1.0.0", ">=1.0.0")}, &effect{repository: "base", after: version("v1.0.0", "")}, true, false,
		},
		"a new optional one": {
			&effect{after: optional}, &effect{repository: "base", after: version("v1.0.0", "")}, false, false,
		},
		"an installed version": {
			&effect{after: version("v1.0.0", ">=1.0.0")},
			&effect{repository: "base", before: version("v1.0.0", ""), after: version("v2.0.0", "")}, false, false,
		},
		"a newer version": {
			&effect{after: version("v1.0.0", ">=2.0.0")},
			&effect{repository: "base", before: version("v1.0.0", ""), after: version("v2.0.0", "")}, true, false,
		},
		"an object that moves": {
			&effect{after: version("v2.0.0", "", "x")},
			&effect{before: version("v1.0.0", "", "x"), after: version("v2.0.0", "")}, true, false,
		},
		"an object of both": {
			&effect{after: version("v2.0.0", "", "x")},
			&effect{before: version("v1.0.0", "", "x"), after: version("v2.0.0", "", "x")}, false, false,
		},
		"an object of a former": {
			&effect{after: version("v2.0.0", "", "x")}, &effect{before: version("v1.0.0", "", "x")}, true, false,
		},
		"a dependent's former version": {
			&effect{repository: "base", before: version("v1.0.0", ""), after: version("v2.0.0", "")},
			&effect{before: version("v1.0.0", "<2.0.0"), after: version("v2.0.0", "")}, false, true,
		},
		"a dependent that is removed": {
			&effect{repository: "base", before: version("v1.0.0", ""), after: version("v2.0.0", "")},
			&effect{before: version("v1.0.0", "<2.0.0")}, false, false,
		},
	} {
		if needs, breaks := c.a.needs(c.b), c.a.breaks(c.b); needs != c.needs || breaks != c.breaks {
			t.Errorf("%s: needs %v, breaks %v", name, needs, breaks)
		}
	}
}
