package solver

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/version"
)

func TestSetsContainAcceptedVersions(t *testing.T) {
	tag := rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(0, 3)
		return fmt.Sprintf("%s%d.%d.%d%s",
			rapid.SampledFrom([]string{"", "v"}).Draw(t, "v"), n.Draw(t, "major"), n.Draw(t, "minor"), n.Draw(t, "patch"),
			rapid.SampledFrom([]string{"", "", "-rc.1", "+meta"}).Draw(t, "rest"))
	})
	constraint := rapid.Custom(func(t *rapid.T) string {
		numbers := rapid.SliceOfN(rapid.SampledFrom([]string{"0", "1", "2", "3"}), 1, 3).Draw(t, "numbers")
		return rapid.SampledFrom([]string{"", "=", "!=", ">", "<", ">=", "<=", "~", "^"}).
			Draw(t, "operator") + strings.Join(numbers, ".")
	})
	rapid.Check(t, func(rt *rapid.T) {
		l := &listing{}
		l.read(rapid.SliceOfN(tag, 0, 40).Draw(rt, "tags"))
		v := newVariable("a", l, nil, "")
		text := strings.Join(
			rapid.SliceOfN(constraint, 1, 3).Draw(rt, "parts"), rapid.SampledFrom([]string{" ", "||"}).Draw(rt, "between"),
		)
		c := version.ParseConstraint(text)
		got := v.fitting(text, &c)
		for i := 1; i < v.size; i++ {
			if want := c.AcceptsVersion(v.candidates[i].pin(), &v.candidates[i].version); got.has(i) != want {
				rt.Errorf("%s and %s: got %v, want %v", text, v.candidates[i].version.Tag, got.has(i), want)
			}
		}
	})
}

// Constraint.Accepts agrees with the solver about every solution.
func TestSolutionsAreAccepted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		source, roots := instance(rt, 6, 4)
		s, err := Solve(Problem{Roots: roots, Source: source})
		if err != nil {
			return
		}
		at := chosen(s)
		for _, pick := range s.Picks {
			for _, d := range pick.Dependencies {
				if _, there := at[d.Package]; d.Optional && !there {
					continue
				}
				if !version.ParseConstraint(d.Constraint).Accepts(at[d.Package]) {
					rt.Fatalf("%s needs %s %s and gets %s", pick.Package, d.Package, d.Constraint, at[d.Package])
				}
			}
		}
	})
}
