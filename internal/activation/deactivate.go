package activation

import "github.com/xpkg-dev/xpkg/pkg/plan"

// DroppedRefs returns the references of [Selection.Dropped].
func (s *Selection) DroppedRefs() []plan.Ref {
	out := make([]plan.Ref, len(s.Dropped))
	for i, name := range s.Dropped {
		out[i] = plan.DefinitionRef(name)
	}
	return out
}

// Deactivations returns the deletions of the CRDs of kinds that are deactivated, of which live are those that exist. A
// CRD that others own too, or that is being deleted, is not among them.
func Deactivations(live map[plan.Ref]plan.Live, who plan.Requester) []plan.Change {
	var out []plan.Change
	for _, c := range plan.Uninstall(live, who).Changes {
		if c.Action == plan.Delete && !live[c.Ref].Deleting {
			out = append(out, c)
		}
	}
	return out
}
