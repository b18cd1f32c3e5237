package graph

import (
	"cmp"
	"encoding/json"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// OwnedObjects returns the objects that a revision controls, in the form of the Lock (packages v2 design, "PackageLock
// API"). It returns none unless the revision controls all of its objects, except for webhook configurations, which the
// manager may write after the runtime serves.
func OwnedObjects(rev v1.PackageRevision) []v1beta1.LockOwned {
	var out []v1beta1.LockOwned
	refs := slices.Clone(rev.RevisionStatus().ObjectRefs)
	slices.SortFunc(refs, func(a, b v1.TypedReference) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, o := range refs {
		switch {
		case o.UID == "" && isWebhookConfiguration(o.Kind):
			continue
		case o.UID == "":
			return nil // It is still to be written.
		}
		if n := len(out); n == 0 || out[n-1].APIVersion != o.APIVersion || out[n-1].Kind != o.Kind {
			out = append(out, v1beta1.LockOwned{APIVersion: o.APIVersion, Kind: o.Kind})
		}
		last := &out[len(out)-1]
		last.Names = append(last.Names, o.Name)
		last.Count++
	}
	return out
}

// Holders returns the packages that own objects according to Lock entries, except for the packages of some revisions.
// Packages are the packages of revisions, as "Kind/name". Known reports whether the entries are complete: entries of
// older managers contain no objects, and names are omitted if there are too many. Webhook configurations have no
// holders: no other package can use their names.
func Holders(
	lock []v1beta1.LockPackage, packages map[string]string, but map[string]bool,
) (holders plan.Holders, known bool) {
	holders, short := plan.Holders{}, false
	for _, entry := range lock {
		for _, o := range entry.Owns {
			if isWebhookConfiguration(o.Kind) {
				continue
			}
			known, short = true, short || o.Count != int64(len(o.Names))
			for _, name := range o.Names {
				if !but[entry.Name] {
					holders.Put(cmp.Or(packages[entry.Name], entry.Source), plan.Ref{
						APIVersion: o.APIVersion, Kind: o.Kind, Name: name,
					})
				}
			}
		}
	}
	return holders, known && !short
}

func isWebhookConfiguration(kind string) bool {
	return plan.IsWebhookConfiguration(plan.Ref{Kind: kind})
}

// TrimOwned reduces Lock entries until their JSON fits into a limit: it removes names of objects, from the longest
// lists first, and then all other data about objects. It keeps everything else, even if that exceeds the limit.
func TrimOwned(packages []v1beta1.LockPackage, limit int) {
	over := sizeOf(packages) - limit
	if over <= 0 {
		return
	}
	var groups []*v1beta1.LockOwned
	for _, p := range packages {
		for i := range p.Owns {
			groups = append(groups, &p.Owns[i])
		}
	}
	slices.SortStableFunc(groups, func(a, b *v1beta1.LockOwned) int { return sizeOf(b.Names) - sizeOf(a.Names) })
	for _, g := range groups {
		if over <= 0 {
			return
		}
		over -= len(`,"names":`) + sizeOf(g.Names)
		g.Names = nil
	}
	if over > 0 {
		for i := range packages {
			packages[i].Owns = nil
		}
	}
}

// sizeOf returns the size of a value as JSON, in bytes.
func sizeOf(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // Entries of the Lock always marshal.
	}
	return len(raw)
}
