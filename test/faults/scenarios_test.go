package faults_test

import v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"

// The initial states and the outcomes of scenarios.

func installed(r *instance) []state {
	return []state{r.stateOf("v1", revisionPart{version: "v1", number: 1, active: true})}
}

func upgraded(r *instance) []state {
	return []state{r.stateOf("v2", revisionPart{version: "v1", number: 1}, revisionPart{
		version: "v2", number: 2, active: true,
	})}
}

// collected returns the state after two upgrades: the first revision is deleted, and its objects
// stay.
func collected(r *instance) []state {
	return []state{r.stateOf("v4",
		revisionPart{version: "v1", collected: true}, revisionPart{version: "v2", number: 2},
		revisionPart{version: "v4", number: 3, active: true})}
}

// waiting returns the state of a package whose first version is not activated.
func waiting(r *instance) []state {
	return []state{r.stateOf("v1", revisionPart{version: "v1", never: true})}
}

// waitingToUpgrade returns the state of a package whose second version is not activated.
func waitingToUpgrade(r *instance) []state {
	return []state{r.stateOf("v2", revisionPart{version: "v1", number: 1, active: true}, revisionPart{
		version: "v2", never: true,
	})}
}

func deactivated(r *instance) []state {
	return []state{r.stateOf("v1", revisionPart{version: "v1", number: 1})}
}

// reactivated returns the state of a package whose first version is active again.
func reactivated(r *instance) []state {
	return []state{r.stateOf("v2", revisionPart{version: "v2", number: 2}, revisionPart{
		version: "v1", number: 3, active: true,
	})}
}

// upgradedAgain returns the state after another activation of the second version.
func upgradedAgain(r *instance) []state {
	return []state{r.stateOf("v2", revisionPart{version: "v1", number: 3}, revisionPart{
		version: "v2", number: 4, active: true,
	})}
}

const (
	unhealthy condition = "False UnhealthyPackageRevision"
	foreign   condition = "False ForeignOwner, Stalled"
)

// refused returns the state of a package whose new version contains an object of another package:
// none of its objects exist, and the old version keeps its objects.
func refused(r *instance) []state {
	s := installed(r)[0]
	s.Package.Wanted, s.Package.Current = "v3", "v3"
	s.Package.Healthy, s.Package.Ready = unhealthy, foreign
	old := s.Revisions["v1"]
	old.State, old.Healthy, old.Ready = v1.RevisionInactive, anything, anything
	s.Revisions["v1"] = old
	s.Revisions["v3"] = revisionState{
		State: v1.RevisionActive, Number: 2, Healthy: unhealthy, Ready: foreign, Owners: []string{"package*"},
	}
	return []state{s}
}

// gone returns the state of a package that was deleted with all its objects.
func gone(*instance) []state {
	return []state{{Revisions: map[string]revisionState{}, Objects: map[string]objectState{}}}
}

// overtaken returns the state of a package that was upgraded during its install. The first version
// left no revision, or one that created some or none of its objects. They stay until the package is
// deleted.
func overtaken(r *instance) []state {
	direct := r.stateOf("v2", revisionPart{version: "v2", number: 1, active: true})
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

	toInstalled   = step{install, installed}
	toWaiting     = step{install, waiting}
	toActive      = step{set("v1", v1.RevisionActive), installed}
	toUpgrade     = step{upgrade("v2"), waitingToUpgrade}
	toUpgraded    = step{upgrade("v2"), upgraded}
	toNew         = step{set("v2", v1.RevisionActive), upgraded}
	toOld         = step{set("v1", v1.RevisionActive), reactivated}
	toNewAgain    = step{set("v2", v1.RevisionActive), upgradedAgain}
	toDeactivated = step{set("v1", v1.RevisionInactive), deactivated}
)

var scenarios = []*scenario{
	{name: "install of a Provider", kind: v1.ProviderKind, versions: one, pulls: true, act: toInstalled},
	{name: "install of a Configuration", kind: v1.ConfigurationKind, versions: one, act: toInstalled},
	{name: "upgrade of a Provider", kind: v1.ProviderKind, versions: two, pulls: true, prepare: []step{
		toInstalled,
	}, act: toUpgraded},
	{name: "upgrade of a Configuration", kind: v1.ConfigurationKind, versions: two, prepare: []step{
		toInstalled,
	}, act: toUpgraded},
	{
		name: "upgrade that collects", kind: v1.ConfigurationKind, versions: []string{"v1", "v2", "v4"},
		prepare: []step{toInstalled, toUpgraded},
		act:     step{upgrade("v4"), collected}, collects: true,
	},
	{
		name: "upgrade that is refused", kind: v1.ProviderKind, versions: []string{"v1", "v3"}, prepare: []step{toInstalled},
		act: step{upgrade("v3"), refused}, never: []string{"addeds"},
	},
	{
		name: "deactivation", kind: v1.ProviderKind, manual: true, versions: one, prepare: []step{toWaiting, toActive},
		act: toDeactivated, undo: &toActive,
	},
	{
		name: "reactivation", kind: v1.ProviderKind, manual: true, versions: two,
		prepare: []step{toWaiting, toActive, toUpgrade, toNew},
		act:     toOld, undo: &toNewAgain, adds: 2, bothActive: true,
	},
	{
		name: "deletion", kind: v1.ProviderKind, versions: two, prepare: []step{toInstalled, toUpgraded},
		act: step{remove, gone}, removes: true,
	},
	{
		name: "deletion during an install", kind: v1.ProviderKind, versions: one, act: toInstalled,
		meanwhile: &step{remove, gone}, removes: true,
	},
	{
		name: "upgrade during an install", kind: v1.ProviderKind, versions: two, act: toInstalled,
		meanwhile: &step{upgrade("v2"), overtaken},
	},
}
