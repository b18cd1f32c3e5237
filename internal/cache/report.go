package cache

import (
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// Report is the result of Verify and Prune.
type Report struct {
	// Entries and Bytes are the number and size of the examined blobs and derived data.
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Removed are the packages that were removed, or would be.
	Removed []Entry `json:"removed,omitempty"`
	// Recent is the number of packages that are neither in use nor named, and that stay because of a recent use.
	Recent int `json:"recent,omitempty"`
	// Freed is the number of bytes that were removed, or would be.
	Freed int64 `json:"freed"`
	// Damaged lists the quarantined content, which is fetched or computed again on demand.
	Damaged []Fault `json:"damaged,omitempty"`
	// Missing lists the missing content of packages that are in use or named.
	Missing []Fault `json:"missing,omitempty"`
	// Unreadable are packages and sideloaded files that cannot be read for another reason: List
	// reports the same problems.
	Unreadable []Entry `json:"unreadable,omitempty"`
}

// Fault is a damaged or missing entry of the cache.
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
