package storage

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// The files and folders of an OCI image layout, and the content of the first one.
const (
	markerFile  = "oci-layout"
	marker      = `{"imageLayoutVersion":"1.0.0"}`
	listFile    = "index.json"
	blobsFolder = "blobs"
)

// The media types of manifests.
const (
	ociIndex       = "application/vnd.oci.image.index.v1+json"
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// The annotations of a list and of its entries.
const (
	// tagAnnotation has the tag of a manifest (OCI image specification).
	tagAnnotation = "org.opencontainers.image.ref.name"
	// subjectAnnotation has the subject of an index of referrers.
	subjectAnnotation = "org.olareg.referrer.subject"
	// noFallbackAnnotation states that the referrers of a subject are not also those in the tag for them (OCI distribution
	// specification, "Referrers Tag Schema").
	noFallbackAnnotation = "org.olareg.referrer.convert"
)

// Descriptor names content by digest, size and media type.
type Descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       Digest            `json:"digest"`
	Size         int64             `json:"size"`
	URLs         []string          `json:"urls,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Data         []byte            `json:"data,omitempty"`
	Platform     json.RawMessage   `json:"platform,omitempty"`
	ArtifactType string            `json:"artifactType,omitempty"`
}

func (d Descriptor) tag() string     { return d.Annotations[tagAnnotation] }
func (d Descriptor) subject() Digest { return Digest(d.Annotations[subjectAnnotation]) }
func (d Descriptor) isIndex() bool   { return d.MediaType == ociIndex || d.MediaType == dockerList }

// isTagged reports whether an entry has a tag, which is not empty.
func (d Descriptor) isTagged(tag string) bool { return tag != "" && d.tag() == tag }

// is reports whether an entry is that of a manifest, and not that of an index of referrers.
func (d Descriptor) is(digest Digest) bool { return d.Digest == digest && d.subject() == "" }

// isElsewhere reports whether content may be missing, because its media type does not allow registries to distribute
// it.
func (d Descriptor) isElsewhere() bool {
	return strings.Contains(d.MediaType, ".nondistributable.") || strings.Contains(d.MediaType, ".foreign.")
}

// isPlain reports whether an entry only states that the repository has the manifest.
func (d Descriptor) isPlain() bool { return d.tag() == "" && d.subject() == "" }

// list is the list of the manifests of a repository, and any other index.
type list struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType,omitempty"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Manifests     []Descriptor      `json:"manifests"`
	Subject       json.RawMessage   `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

func newList(manifests []Descriptor) list {
	return list{SchemaVersion: 2, MediaType: ociIndex, Manifests: manifests}
}

// parseList parses the list of the manifests of a repository strictly.
func parseList(document []byte) (list, error) {
	var l list
	if err := json.Unmarshal(document, &l); err != nil {
		return list{}, err
	}
	var fields struct {
		Manifests json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(document, &fields); err != nil {
		return list{}, err
	}
	if l.SchemaVersion != 2 || fields.Manifests == nil { // The manifests of an empty list can be null.
		return list{}, errors.New("the file is not an OCI image index")
	}
	for _, m := range l.Manifests {
		if _, err := ParseDigest(string(m.Digest)); err != nil {
			return list{}, err
		}
	}
	return l, nil
}

// encode returns the document of a list, with an end of line as in former releases.
func (l list) encode() ([]byte, error) {
	l.MediaType = ociIndex
	if l.Manifests == nil {
		l.Manifests = []Descriptor{}
	}
	document, err := json.Marshal(l)
	return append(document, '\n'), err
}

// clone returns a list that can be changed.
func (l list) clone() list {
	l.Manifests = slices.Clone(l.Manifests)
	return l
}

// tagged returns the entry with a tag.
func (l list) tagged(tag string) (Descriptor, bool) {
	return l.find(func(m Descriptor) bool { return m.isTagged(tag) })
}

// referrers returns the entry with the index of the referrers of a subject.
func (l list) referrers(subject Digest) (Descriptor, bool) {
	return l.find(func(m Descriptor) bool { return m.subject() == subject })
}

func (l list) find(matches func(Descriptor) bool) (Descriptor, bool) {
	if i := slices.IndexFunc(l.Manifests, matches); i >= 0 {
		return l.Manifests[i], true
	}
	return Descriptor{}, false
}

// has reports whether the list has a manifest, other than as an index of referrers.
func (l list) has(d Digest) bool {
	return slices.ContainsFunc(l.Manifests, func(m Descriptor) bool { return m.is(d) })
}

// tags returns the digests of the tags.
func (l list) tags() map[string]Digest {
	found := map[string]Digest{}
	for _, m := range l.Manifests {
		if tag := m.tag(); tag != "" {
			found[tag] = m.Digest
		}
	}
	return found
}

// add adds an entry for a manifest: with a tag, which no other entry keeps, or without one unless there is an entry.
func (l *list) add(m Descriptor, tag string) {
	m.Annotations = nil
	if tag == "" {
		if !l.has(m.Digest) {
			l.Manifests = append(l.Manifests, m)
		}
		return
	}
	l.untag(tag)
	l.drop(func(other Descriptor) bool { return other.Digest == m.Digest && other.isPlain() })
	m.Annotations = map[string]string{tagAnnotation: tag}
	l.Manifests = append(l.Manifests, m)
}

// untag removes a tag, and keeps its manifest. It reports whether there was one.
func (l *list) untag(tag string) bool {
	i := slices.IndexFunc(l.Manifests, func(m Descriptor) bool { return m.isTagged(tag) })
	if i < 0 {
		return false
	}
	former := l.Manifests[i]
	l.Manifests = slices.Delete(l.Manifests, i, i+1)
	former.Annotations = maps.Clone(former.Annotations)
	delete(former.Annotations, tagAnnotation)
	if former.subject() != "" || !l.has(former.Digest) {
		l.Manifests = append(l.Manifests, former)
	}
	l.untag(tag) // A list of another program can have a tag twice.
	return true
}

// adopt removes the entries of manifests that an index has, unless they have a tag.
func (l *list) adopt(parts []Descriptor) {
	isPart := make(map[Digest]bool, len(parts))
	for _, part := range parts {
		isPart[part.Digest] = true
	}
	l.drop(func(m Descriptor) bool { return isPart[m.Digest] && m.isPlain() })
}

// refer replaces the index of the referrers of a subject; nil removes it.
func (l *list) refer(subject Digest, index *Descriptor) {
	l.drop(func(m Descriptor) bool { return m.subject() == subject })
	if index != nil {
		m := *index
		m.Annotations = map[string]string{subjectAnnotation: string(subject)}
		l.Manifests = append(l.Manifests, m)
	}
}

// drop removes entries.
func (l *list) drop(isDropped func(Descriptor) bool) {
	l.Manifests = slices.DeleteFunc(l.Manifests, isDropped)
}
