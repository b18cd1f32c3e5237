package catalog

import (
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// EventType is the type of an Event. Values are stable.
type EventType string

// Types of events.
const (
	Publish     EventType = "publish"
	Yank        EventType = "yank"
	Unyank      EventType = "unyank"
	Retract     EventType = "retract"
	Deprecate   EventType = "deprecate"
	Move        EventType = "move"
	Remove      EventType = "remove"
	SourceAdded EventType = "source-added"
	// Update is a change of a package other than of its versions, such as its rank.
	Update EventType = "update"
	// Forget removes a package that no source contains any more.
	Forget EventType = "forget"
)

// An Event is a change of a catalog. Its lists are the rows to replace; the rows that are not in an event do not
// change.
type Event struct {
	Type EventType
	// Repository is the package; empty for SourceAdded.
	Repository string
	// Tag and Digest are the version; Former is the digest before a Move.
	Tag            string
	Digest, Former oci.Digest
	// At is the time that the change states: of the image, or of the status. It is zero if there is none.
	At time.Time
	// Version is the new row of the version; nil if the version is removed without a tombstone.
	Version *Version
	// Package is the new row of the package; nil if it does not change.
	Package *Package
	// Kinds are the new and changed kinds of the newest version, and GoneKinds those that it no longer has.
	Kinds     []Kind
	GoneKinds []KindKey
	// Histories are the new and changed histories of kinds, and GoneHistories those of kinds that no version has any more.
	Histories     []KindHistory
	GoneHistories []KindKey
	// Text is the new text of the package; nil if it does not change. A Text without content removes it.
	Text *Text
	// Source is the new source of SourceAdded.
	Source *Source
}

// A KindKey identifies a kind of a package. The role is empty for a history.
type KindKey struct {
	Group, Kind string
	Role        Role
}

func (k *Kind) key() KindKey { return KindKey{k.Group, k.Kind, k.Role} }

func (k *KindHistory) key() KindKey { return KindKey{Group: k.Group, Kind: k.Kind} }
