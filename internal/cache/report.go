package cache

import (
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// Report is what Verify and Prune found and did.
type Report struct {
	// Entries and Bytes are the number and size of the examined blobs and derived data.
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Removed are the packages that were removed, or would be.
	Removed []Entry `json:"removed,omitempty"`
	// Freed is how many bytes were removed, or would be.
	Freed int64 `json:"freed"`
	// Damaged was put aside, and is fetched or computed again when it is needed.
	Damaged []Fault `json:"damaged,omitempty"`
	// Missing lists the missing content of packages that are in use or named.
	Missing []Fault `json:"missing,omitempty"`
	// Unreadable are packages and sideloaded files that cannot be read for another reason: List
	// reports the same problems.
	Unreadable []Entry `json:"unreadable,omitempty"`
}

// Fault is something that is wrong with a package in the cache.
type Fault struct {
	// Digest is the blob; zero for a record.
	Digest oci.Digest `json:"digest,omitzero"`
	// What describes the entry.
	What string `json:"what"`
	// Names and InUse describe the packages that the entry belongs to.
	Names []string `json:"names,omitempty"`
	InUse []string `json:"inUse,omitempty"`
}

// count adds entries to the totals.
func (r *Report) count(entries []store.Entry) {
	r.Entries += len(entries)
	for _, e := range entries {
		r.Bytes += e.Size
	}
}
