package catalog

import (
	"cmp"
	"slices"

	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/xpkg-dev/xpkg/pkg/version"
)

func comparePackages(a, b Package) int { return cmp.Compare(a.Repository, b.Repository) }

func compareHistories(a, b History) int { return cmp.Compare(a.Repository, b.Repository) }

func compareTexts(a, b Text) int { return cmp.Compare(a.Repository, b.Repository) }

func compareKinds(a, b Kind) int { return compareKindRows(&a, &b) }

func compareKindRows(a, b *Kind) int {
	if c := compareFolded(a.Kind, b.Kind); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Repository, b.Repository),
		cmp.Compare(a.Role, b.Role),
	)
}

// compareFolded compares the names of kinds, which are ASCII, in lower case.
func compareFolded(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := toLower(a[i]), toLower(b[i]); x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

func toLower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func compareKindHistories(a, b KindHistory) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}

// compareAPIVersions orders API versions as Kubernetes does, highest first.
func compareAPIVersions(a, b string) int {
	return cmp.Or(kubeversion.CompareKubeAwareVersionStrings(b, a), cmp.Compare(a, b))
}

// compareTags orders tags by precedence, and tags of the same precedence as strings.
func compareTags(a, b string) int {
	x, y := version.Parse(a), version.Parse(b)
	return cmp.Or(x.Compare(&y), cmp.Compare(a, b))
}

// newest returns the position of the newest of the versions that keep selects: the highest release, otherwise the
// highest prerelease, otherwise the last one; -1 if there is none. The versions are sorted.
func newest(versions []Version, keep func(*Version) bool) int {
	best, bestClass := -1, 0
	for i := range versions {
		if !keep(&versions[i]) {
			continue
		}
		if class := releaseClass(versions[i].Tag); class >= bestClass {
			best, bestClass = i, class
		}
	}
	return best
}

// Released reports whether the newest version of the package is a release.
func (p *Package) Released() bool { return releaseClass(p.Latest) == 2 }

// releaseClass returns 2 for a release, 1 for a prerelease and 0 for any other tag.
func releaseClass(tag string) int {
	switch v := version.Parse(tag); {
	case !v.Usable():
		return 0
	case v.Prerelease():
		return 1
	}
	return 2
}

// search returns the position of a repository in a sorted list.
func search[T any](list []T, repository string, name func(T) string) (int, bool) {
	return slices.BinarySearchFunc(list, repository, func(t T, r string) int { return cmp.Compare(name(t), r) })
}
