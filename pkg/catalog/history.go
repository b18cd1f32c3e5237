package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Find returns the version with a tag, or nil.
func (h *History) Find(tag string) *Version {
	i := slices.IndexFunc(h.Versions, func(v Version) bool { return v.Tag == tag })
	if i < 0 {
		return nil
	}
	return &h.Versions[i]
}

// positions returns the position of each tag.
func (h *History) positions() map[string]int {
	position := make(map[string]int, len(h.Versions))
	for i, v := range h.Versions {
		position[v.Tag] = i
	}
	return position
}

// indexed reports whether the kinds of a version are known. Other versions do not interrupt an interval.
func (v *Version) indexed() bool {
	return v.Error == nil && (v.Status == nil || v.Status.State != Removed)
}

// apiVersion identifies a kind in one API version.
type apiVersion struct{ group, kind, version string }

// intervals returns the histories of all kinds. The versions and the facts have the same order.
func intervals(versions []Version, all []Facts) []KindHistory {
	open := map[apiVersion]string{}
	done := map[apiVersion][]Interval{}
	for i := range versions {
		if !versions[i].indexed() {
			continue
		}
		served := map[apiVersion]bool{}
		for _, k := range all[i].Served {
			for _, v := range k.Versions {
				served[apiVersion{k.Group, k.Kind, v}] = true
			}
		}
		for key, since := range open {
			if !served[key] {
				done[key] = append(done[key], Interval{Version: key.version, Since: since, Until: versions[i].Tag})
				delete(open, key)
			}
		}
		for key := range served {
			if _, isOpen := open[key]; !isOpen {
				open[key] = versions[i].Tag
			}
		}
	}
	for key, since := range open {
		done[key] = append(done[key], Interval{Version: key.version, Since: since})
	}
	return group(done)
}

// group collects the intervals of each kind.
func group(all map[apiVersion][]Interval) []KindHistory {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b apiVersion) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.kind, b.kind), compareAPIVersions(a.version, b.version))
	})
	var out []KindHistory
	for _, key := range keys {
		if n := len(out); n == 0 || out[n-1].Group != key.group || out[n-1].Kind != key.kind {
			out = append(out, KindHistory{Group: key.group, Kind: key.kind})
		}
		last := &out[len(out)-1]
		last.Intervals = append(last.Intervals, all[key]...)
	}
	return out
}

// served returns the kinds that each version serves, in the order of the versions. It is the inverse of intervals.
func (h *History) served() ([][]ServedKind, error) {
	position := h.positions()
	out := make([][]ServedKind, len(h.Versions))
	for _, k := range h.Kinds {
		for _, in := range k.Intervals {
			since, until, err := in.bounds(position, len(h.Versions))
			if err != nil {
				return nil, err
			}
			for i := since; i < until; i++ {
				if h.Versions[i].indexed() {
					out[i] = addServed(out[i], k.Group, k.Kind, in.Version)
				}
			}
		}
	}
	return out, nil
}

// addServed adds an API version. Kinds are added in order.
func addServed(list []ServedKind, group, kind, version string) []ServedKind {
	if n := len(list); n == 0 || list[n-1].Group != group || list[n-1].Kind != kind {
		list = append(list, ServedKind{Group: group, Kind: kind})
	}
	last := &list[len(list)-1]
	last.Versions = append(last.Versions, version)
	slices.Sort(last.Versions)
	return list
}

// bounds returns the positions of the first version in the interval and of the first one after it.
func (in Interval) bounds(position map[string]int, versions int) (since, until int, err error) {
	since, known := position[in.Since]
	if !known {
		return 0, 0, ErrInvalidIndex.New(nil, "an interval begins at the unknown version %.100q", in.Since)
	}
	if in.Until == "" {
		return since, versions, nil
	}
	until, known = position[in.Until]
	if !known || until <= since {
		return 0, 0, ErrInvalidIndex.New(nil, "an interval ends at the wrong version %.100q", in.Until)
	}
	return since, until, nil
}

// since returns the first of the consecutive versions up to latest that serve the kind in any API version.
func (h *History) since(k *Kind, latest int, position map[string]int) string {
	i, found := slices.BinarySearchFunc(h.Kinds, KindHistory{Group: k.Group, Kind: k.Kind}, compareKindHistories)
	if !found {
		return h.Versions[latest].Tag
	}
	serves := make([]bool, len(h.Versions))
	for _, in := range h.Kinds[i].Intervals {
		since, until, err := in.bounds(position, len(h.Versions))
		for j := since; j < until && err == nil; j++ {
			serves[j] = true
		}
	}
	first := latest
	for j := latest; j >= 0 && serves[j]; j-- {
		if h.Versions[j].indexed() {
			first = j
		}
	}
	return h.Versions[first].Tag
}

// retract sets the status of versions that the highest version retracts. A status artifact takes precedence.
func (h *History) retract(all []Facts) error {
	for i := range h.Versions {
		if s := h.Versions[i].Status; s != nil && s.State == Retracted {
			h.Versions[i].Status = nil
		}
	}
	highest := newest(h.Versions, (*Version).indexed)
	if highest < 0 {
		return nil
	}
	if all[highest].Head == nil {
		return incomplete(h.Repository, h.Versions[highest].Tag)
	}
	for _, r := range all[highest].Head.Retracts {
		constraint := version.ParseConstraint(r.Versions)
		for i := range highest + 1 {
			if v := &h.Versions[i]; v.Status == nil && constraint.Accepts(v.Tag) {
				v.Status = &Status{
					State: Retracted, Reason: r.Reason, Message: r.Message, ReplacedBy: r.ReplacedBy,
					Since: h.Versions[highest].Created,
				}
			}
		}
	}
	return nil
}
