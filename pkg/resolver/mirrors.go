package resolver

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// tryNextMirrors is called if there is no solution, because an outdated mirror may lack a
// version. It replaces each list of versions for which another location may list more,
// and reports whether any list has changed.
func (s *source) tryNextMirrors() (news bool) {
	s.wait()
	for !news {
		asked := s.listedByMirrors()
		if len(asked) == 0 {
			return false
		}
		lists, errs := make([]Versions, len(asked)), make([]error, len(asked))
		var answers sync.WaitGroup
		for i, pkg := range asked {
			answers.Go(func() {
				lists[i], errs[i] = s.lists[pkg].value.Next(s.ctx)
			})
		}
		answers.Wait()
		for i, pkg := range asked {
			news = s.replace(pkg, lists[i], errs[i]) || news
		}
	}
	// Versions were prefetched with other lists.
	s.requested, s.misses = map[requirement]bool{}, map[string]int{}
	return true
}

// listedByMirrors returns the packages whose tags another location may also list.
func (s *source) listedByMirrors() []string {
	var out []string
	for _, pkg := range slices.Sorted(maps.Keys(s.lists)) {
		if t := s.lists[pkg]; t.err == nil && t.value.Next != nil {
			out = append(out, pkg)
		}
	}
	return out
}

// replace replaces a list with the list of another location, unless that list is empty.
func (s *source) replace(pkg string, list Versions, err error) (news bool) {
	former := s.lists[pkg].value
	if err != nil {
		s.mirrorErr = err
		s.note(fmt.Sprintf(
			"the versions of %[2]s come from the mirror %[1]s, and may be incomplete: %[3]v", former.From.Name(), pkg, err,
		))
	}
	if len(list.Tags) == 0 {
		list.Tags, list.From = former.Tags, former.From
	}
	if missing := difference(list.Tags, former.Tags); len(missing) > 0 {
		s.note(fmt.Sprintf("the mirror %s is outdated: %s also has %s", former.From.Name(), list.From.Name(), few(missing)))
	}
	t := newTask[Versions]()
	t.complete(list, nil, nil)
	s.lists[pkg] = t
	return !slices.Equal(list.Tags, former.Tags)
}

// difference returns the tags of a list that another one does not have.
func difference(all, known []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(tag string) bool { return slices.Contains(known, tag) })
}

// few returns some tags for a message, newest versions first.
func few(tags []string) string {
	const most = 3
	versions := version.ParseConstraint("").Filter(tags)
	named := slices.Concat(versions, difference(tags, versions))
	return wording.Few(named, most, ", ")
}

// listedBy returns the locations that listed tags, other than the repositories
// themselves.
func (s *source) listedBy() map[string]string {
	out := map[string]string{}
	for pkg, t := range s.lists {
		if list, err := t.wait(); err == nil && list.From.Name() != pkg {
			out[pkg] = list.From.Name()
		}
	}
	return out
}
