package resolver

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// askNext is called when there is no solution: a mirror that is behind may have hidden
// it. For each list that another place could know better, that place is asked, and its
// list is taken as it is. It reports whether any list is another one now.
func (s *source) tryNextMirrors() (news bool) {
	s.wait()
	for !news {
		asked := s.listedByMirrors()
		if len(asked) == 0 {
			return false
		}
		lists, errs := make([]fetch.TagList, len(asked)), make([]error, len(asked))
		var answers sync.WaitGroup
		for i, pkg := range asked {
			answers.Go(func() {
				lists[i], errs[i] = callAt(s, s.lists[pkg].value.Next, func(o fetch.Origin) (fetch.TagList, error) {
					return s.resolver.Registry.Tags(s.ctx, o)
				})
			})
		}
		answers.Wait()
		for i, pkg := range asked {
			news = s.replace(pkg, lists[i], errs[i]) || news
		}
	}
	// What was foreseen was foreseen with other lists.
	s.requested, s.misses = map[requirement]bool{}, map[string]int{}
	return true
}

// listedByMirrors names the packages whose tags were listed by a place behind which
// there are others.
func (s *source) listedByMirrors() []string {
	var out []string
	for _, pkg := range slices.Sorted(maps.Keys(s.lists)) {
		if t := s.lists[pkg]; t.err == nil && len(t.value.Next.Places) > 0 {
			out = append(out, pkg)
		}
	}
	return out
}

// replace takes the list of another place. One that has nothing leaves the former list
// as it is.
func (s *source) replace(pkg string, list fetch.TagList, err error) (news bool) {
	former := s.lists[pkg].value
	if err != nil {
		s.mirrorErr = err
		s.note(fmt.Sprintf("the mirror %s says which versions of %s there are, and whether there are others is not known: %v", former.From.Name(), pkg, err))
	}
	if len(list.Tags) == 0 {
		list.Tags, list.From = former.Tags, former.From
	}
	if missing := difference(list.Tags, former.Tags); len(missing) > 0 {
		s.note(fmt.Sprintf("the mirror %s is behind: %s has %s", former.From.Name(), list.From.Name(), few(missing)))
	}
	t := newTask[fetch.TagList]()
	t.complete(list, nil, nil)
	s.lists[pkg] = t
	return !slices.Equal(list.Tags, former.Tags)
}

// without are those of a list that another one does not have.
func difference(all, known []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(tag string) bool { return slices.Contains(known, tag) })
}

// few names some tags, the newest versions first.
func few(tags []string) string {
	const most = 3
	versions := version.ParseConstraint("").Filter(tags)
	named := slices.Concat(versions, difference(tags, versions))
	return wording.Few(named, most, ", ")
}

// listedBy names the places that listed tags and are not the repository itself.
func (s *source) listedBy() map[string]string {
	out := map[string]string{}
	for pkg, t := range s.lists {
		if list, err := t.wait(); err == nil && list.From.Name() != pkg {
			out[pkg] = list.From.Name()
		}
	}
	return out
}
