package protocol

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/registry/storage"
)

// largestReferrers is the size of a page of referrers in bytes, as the OCI distribution specification recommends.
const largestReferrers = 4 << 20

// referrers serves the referrers of a subject, perhaps of one artifact type.
func (h *Handler) referrers(w http.ResponseWriter, r *http.Request, api Request) error {
	subject, err := storage.ParseDigest(api.Reference)
	if err != nil {
		return err
	}
	found, err := h.Store.Referrers(api.Repository, subject)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	if artifactType := query.Get("artifactType"); artifactType != "" {
		found = slices.DeleteFunc(
			slices.Clone(found), func(d storage.Descriptor) bool { return d.ArtifactType != artifactType },
		)
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	found, next := page(found, storage.Digest(query.Get("last")), largestReferrers)
	if next != "" {
		setNext(w, r, string(next))
	}
	const mediaType = "application/vnd.oci.image.index.v1+json"
	w.Header().Set("Content-Type", mediaType)
	WriteJSON(w, r, http.StatusOK, struct {
		SchemaVersion int                  `json:"schemaVersion"`
		MediaType     string               `json:"mediaType"`
		Manifests     []storage.Descriptor `json:"manifests"`
	}{2, mediaType, found})
	return nil
}

// page returns the part of a list that begins after an entry and has at most a number of bytes, but one entry, and its
// last entry if the list goes on. A list on several pages is in the order of the digests, so that its changes move no
// entry to another page.
func page(all []storage.Descriptor, last storage.Digest, most int) (part []storage.Descriptor, next storage.Digest) {
	size := 0
	sizeOf := func(d storage.Descriptor) int {
		raw, err := json.Marshal(d)
		if err != nil {
			return 0 // It was read from JSON.
		}
		return len(raw) + len(",")
	}
	for _, d := range all {
		size += sizeOf(d)
	}
	part = append([]storage.Descriptor{}, all...)
	if size <= most && last == "" {
		return part, ""
	}
	slices.SortFunc(part, func(a, b storage.Descriptor) int { return cmp.Compare(a.Digest, b.Digest) })
	part = slices.DeleteFunc(part, func(d storage.Descriptor) bool { return d.Digest <= last })
	size = 0
	for i, d := range part {
		if size += sizeOf(d); size > most && i > 0 {
			return part[:i], part[i-1].Digest
		}
	}
	return part, ""
}
