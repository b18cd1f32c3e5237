package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// StorageMigration is what happens to the custom resources of a CRD before a write that drops versions in which they
// can be stored: the API server stores them in a version that stays, and all of them are rewritten.
type StorageMigration struct {
	CRD  string `json:"crd"`
	Kind string `json:"kind"`
	// Dropped are the versions of status.storedVersions that the write drops, and Storage the version in which the custom
	// resources are stored before it.
	Dropped []string `json:"dropped"`
	Storage string   `json:"storageVersion"`
	// Objects is the number of custom resources.
	Objects int `json:"objects"`
	// DropFields reports that a user accepts that custom resources lose fields which the storage version does not
	// describe.
	DropFields bool `json:"dropFields,omitempty"`
}

// rewritesPerSecond is the number of custom resources that are rewritten in a second on a small control plane.
const rewritesPerSecond = 250

// Estimate is the time that the migration takes on a small control plane, with the time in which all API servers learn
// the storage version.
func (m StorageMigration) Estimate() time.Duration {
	return StorageSettles + time.Duration(m.Objects)*time.Second/rewritesPerSecond
}

// StorageSettles is the time after which all API servers of a control plane store custom resources in a new storage
// version. It is the time for which an API server waits before it serves a new CRD.
const StorageSettles = 5 * time.Second

// String returns the migration as a clause.
func (m StorageMigration) String() string {
	dropped := strings.Join(m.Dropped, ", ")
	if m.Objects == 0 {
		return fmt.Sprintf("no %s are stored as %s, which is dropped", plural(m.Kind), dropped)
	}
	what := "1 " + m.Kind + " is"
	if m.Objects > 1 {
		what = fmt.Sprintf("%d %s are", m.Objects, plural(m.Kind))
	}
	return fmt.Sprintf("drops %s: %s rewritten as %s before, in about %s", dropped, what, m.Storage,
		m.Estimate().Round(time.Second))
}

// StorageBetween returns the version in which the custom resources of a CRD are stored while a new definition drops
// others, or "" if a migration cannot reach one: both have no version in common, and a webhook converts between
// their versions, or Crossplane writes the CRD and its storage version is dropped.
func StorageBetween(kind string, live, want Definition) string {
	kept := func(v string) bool { return slices.Contains(want.Versions, v) }
	if kind != DefinitionKind {
		if kept(live.Storage) {
			return live.Storage
		}
		return ""
	}
	if slices.Contains(live.Versions, want.Storage) {
		return want.Storage
	}
	if kept(live.Storage) {
		return live.Storage
	}
	if i := slices.IndexFunc(live.Versions, kept); i >= 0 {
		return live.Versions[i]
	}
	if live.Webhook || want.Webhook {
		return ""
	}
	return want.Storage
}
