package faults_test

import v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"

// The states that scenarios lead to and start from.

func installed(r *round) []state {
	return []state{r.whole("v1", part{version: "v1", number: 1, active: true})}
}

func upgraded(r *round) []state {
	return []state{r.whole("v2", part{version: "v1", number: 1}, part{version: "v2", number: 2, active: true})}
}

// collected is one that was upgraded twice: of the first version there is only what
// it brought.
func collected(r *round) []state {
	return []state{r.whole("v4",
		part{version: "v1", collected: true}, part{version: "v2", number: 2}, part{version: "v4", number: 3, active: true})}
}

// waiting is a package whose first version nobody has activated.
func waiting(r *round) []state {
	return []state{r.whole("v1", part{version: "v1", never: true})}
}

// waitingToUpgrade is one whose second version nobody has activated.
func waitingToUpgrade(r *round) []state {
	return []state{r.whole("v2", part{version: "v1", number: 1, active: true}, part{version: "v2", never: true})}
}

func deactivated(r *round) []state {
	return []state{r.whole("v1", part{version: "v1", number: 1})}
}

// reactivated is one whose first version is active again.
func reactivated(r *round) []state {
	return []state{r.whole("v2", part{version: "v2", number: 2}, part{version: "v1", number: 3, active: true})}
}

// upgradedAgain is one that went back to the second version after that.
func upgradedAgain(r *round) []state {
	return []state{r.whole("v2", part{version: "v1", number: 3}, part{version: "v2", number: 4, active: true})}
}

const (
	unhealthy condition = "False UnhealthyPackageRevision"
	foreign   condition = "False ForeignOwner, Stalled"
)

// refused is one whose new version wants what another package holds: nothing of it
// is there, and the old version keeps all it has.
func refused(r *round) []state {
	s := installed(r)[0]
	s.Package.Wanted, s.Package.Current = "v3", "v3"
	s.Package.Healthy, s.Package.Ready = unhealthy, foreign
	old := s.Revisions["v1"]
	old.State, old.Healthy, old.Ready = v1.RevisionInactive, anything, anything
	s.Revisions["v1"] = old
	s.Revisions["v3"] = revisionState{State: v1.RevisionActive, Number: 2, Healthy: unhealthy, Ready: foreign, Owners: []string{"package*"}}
	return []state{s}
}

// gone is one that was deleted with all that it owned.
func gone(*round) []state {
	return []state{{Revisions: map[string]revisionState{}, Objects: map[string]objectState{}}}
}

// overtaken is one that was upgraded while it was being installed: of the first
// version there is nothing, or a revision that made some of its objects or none.
// They stay until the package goes.
func overtaken(r *round) []state {
	direct := r.whole("v2", part{version: "v2", number: 1, active: true})
	ends := []state{direct}
	for _, listed := range []bool{false, true} {
		for _, left := range []bool{false, true} {
			s := upgraded(r)[0]
			if old := s.Revisions["v1"]; !listed {
				old.Objects = nil
				s.Revisions["v1"] = old
			}
			if !left {
				delete(s.Objects, "droppeds")
			}
			ends = append(ends, s)
		}
	}
	return ends
}

var (
	one, two = []string{"v1"}, []string{"v1", "v2"}

	toInstalled   = stage{install, installed}
	toWaiting     = stage{install, waiting}
	toActive      = stage{set("v1", v1.RevisionActive), installed}
	toUpgrade     = stage{upgrade("v2"), waitingToUpgrade}
	toUpgraded    = stage{upgrade("v2"), upgraded}
	toNew         = stage{set("v2", v1.RevisionActive), upgraded}
	toOld         = stage{set("v1", v1.RevisionActive), reactivated}
	toNewAgain    = stage{set("v2", v1.RevisionActive), upgradedAgain}
	toDeactivated = stage{set("v1", v1.RevisionInactive), deactivated}
)

var scenarios = []*scenario{
	{name: "install of a Provider", kind: v1.ProviderKind, versions: one, pulls: true, act: toInstalled},
	{name: "install of a Configuration", kind: v1.ConfigurationKind, versions: one, act: toInstalled},
	{name: "upgrade of a Provider", kind: v1.ProviderKind, versions: two, pulls: true, prepare: []stage{toInstalled}, act: toUpgraded},
	{name: "upgrade of a Configuration", kind: v1.ConfigurationKind, versions: two, prepare: []stage{toInstalled}, act: toUpgraded},
	{
		name: "upgrade that collects", kind: v1.ConfigurationKind, versions: []string{"v1", "v2", "v4"}, prepare: []stage{toInstalled, toUpgraded},
		act: stage{upgrade("v4"), collected}, collects: true,
	},
	{
		name: "upgrade that is refused", kind: v1.ProviderKind, versions: []string{"v1", "v3"}, prepare: []stage{toInstalled},
		act: stage{upgrade("v3"), refused}, never: []string{"addeds"},
	},
	{
		name: "deactivation", kind: v1.ProviderKind, manual: true, versions: one, prepare: []stage{toWaiting, toActive},
		act: toDeactivated, undo: &toActive,
	},
	{
		name: "reactivation", kind: v1.ProviderKind, manual: true, versions: two, prepare: []stage{toWaiting, toActive, toUpgrade, toNew},
		act: toOld, undo: &toNewAgain, adds: 2, bothActive: true,
	},
	{
		name: "deletion", kind: v1.ProviderKind, versions: two, prepare: []stage{toInstalled, toUpgraded},
		act: stage{remove, gone}, removes: true,
	},
	{
		name: "deletion during an install", kind: v1.ProviderKind, versions: one, act: toInstalled,
		meanwhile: &stage{remove, gone}, removes: true,
	},
	{
		name: "upgrade during an install", kind: v1.ProviderKind, versions: two, act: toInstalled,
		meanwhile: &stage{upgrade("v2"), overtaken},
	},
}
