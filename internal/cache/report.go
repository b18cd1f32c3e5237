package cache

import "github.com/xpkg-dev/xpkg/internal/oci"

// Report is what Verify and Prune found and did.
type Report struct {
	// Entries are the blobs and derived values that were looked at, and Bytes their
	// size.
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Removed are the packages that were removed, or would be.
	Removed []Entry `json:"removed,omitempty"`
	// Freed is how many bytes were removed, or would be.
	Freed int64 `json:"freed"`
	// Damaged was put aside, and is fetched or computed again when it is needed.
	Damaged []Fault `json:"damaged,omitempty"`
	// Missing is what a package lacks that a control plane uses or that has a name.
	Missing []Fault `json:"missing,omitempty"`
}

// Fault is something that is wrong with a package in the cache.
type Fault struct {
	// Digest is the blob; zero for a record.
	Digest oci.Digest `json:"digest,omitzero"`
	// What says what it is.
	What string `json:"what"`
	// Names and InUse are those of the packages that it belongs to.
	Names []string `json:"names,omitempty"`
	InUse []string `json:"inUse,omitempty"`
}

// count adds what is looked at.
func (r *Report) count(entries []oci.Entry) {
	r.Entries += len(entries)
	for _, e := range entries {
		r.Bytes += e.Size
	}
}
