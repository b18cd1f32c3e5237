package catalog

import (
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// AnnotationRetract on the metadata of a package retracts versions of the package: a JSON list of objects with the
// fields versions (a constraint), reason, message and replacedBy. The annotation of the newest version applies, so a
// newer version without it withdraws a retraction.
const AnnotationRetract = "xpkg.dev/retract"

// StatusArtifactType is the artifact type of the manifest with the status of a version. The subject of the manifest is
// the manifest of the version, and its only layer is the status in JSON; see [EncodeStatus].
const StatusArtifactType = "application/vnd.xpkg.status.v1+json"

// StatusTag returns the tag of the newest status of a version. The list of tags of a repository therefore shows which
// versions have a status.
func StatusTag(subject oci.Digest) string { return oci.ArtifactTag(subject, statusSuffix) }

// statusSuffix is the end of every StatusTag.
const statusSuffix = ".status"

// ParseStatusTag returns the digest of the version whose status has the tag, and false for any other tag.
func ParseStatusTag(tag string) (oci.Digest, bool) {
	subject, suffix, ok := oci.ParseArtifactTag(tag)
	if !ok || suffix != statusSuffix {
		return oci.Digest{}, false
	}
	return subject, true
}

// A State is a state of a version other than the usual one.
type State string

// States of versions.
const (
	// Yanked and Retracted versions are not selected by new solutions. Lock files with them keep working. A yank is stated
	// by a status artifact beside the version, a retraction by a newer version.
	Yanked    State = "yanked"
	Retracted State = "retracted"
	// Deprecated versions can be selected, and are ranked last.
	Deprecated State = "deprecated"
	// Removed versions are no longer in the registry.
	Removed State = "removed"
	// Available withdraws an earlier status. It is only in status artifacts.
	Available State = "available"
)

// A Reason is the reason of a State.
type Reason string

// Reasons.
const (
	Broken   Reason = "broken"
	Security Reason = "security"
	Licence  Reason = "licence"
	Renamed  Reason = "renamed"
	Other    Reason = "other"
)

// A Status is the state of a version, with its reason.
type Status struct {
	State   State  `json:"state"`
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// ReplacedBy is the repository or the version to use instead.
	ReplacedBy string `json:"replacedBy,omitempty"`
	// Since is the time of the status.
	Since time.Time `json:"since,omitzero"`
}

// A VersionStatus is the content of a status artifact.
type VersionStatus struct {
	Status
	// Tag is the tag of the version. With it, a version that was removed from the registry stays known.
	Tag string `json:"tag"`
	// Digest is the digest of the manifest of the version.
	Digest oci.Digest `json:"digest"`
}

// EncodeStatus returns the JSON of a status artifact.
func EncodeStatus(s VersionStatus) ([]byte, error) {
	s.Since = inUTC(s.Since).Truncate(time.Second)
	if err := s.check(); err != nil {
		return nil, err
	}
	return encodeJSON(s), nil
}

// maxStatus is the size of a status artifact in bytes.
const maxStatus = 16 << 10

// ParseStatus parses the JSON of a status artifact.
func ParseStatus(text []byte) (VersionStatus, error) {
	if len(text) > maxStatus {
		return VersionStatus{},
			ErrInvalidStatus.New(nil, "a status has %d bytes, at most %d are allowed", len(text), maxStatus)
	}
	var s VersionStatus
	if err := decodeStrict(text, &s); err != nil {
		return VersionStatus{}, ErrInvalidStatus.New(err, "cannot read a status")
	}
	s.Since = inUTC(s.Since)
	return s, s.check()
}

func (s *VersionStatus) check() error {
	switch {
	case !slices.Contains([]State{Yanked, Deprecated, Removed, Available}, s.State):
		return ErrInvalidStatus.New(nil, "unknown state %.100q", s.State)
	case s.Digest.IsZero():
		return ErrInvalidStatus.New(nil, "the status names no digest")
	case !oci.ValidTag(s.Tag):
		return ErrInvalidStatus.New(nil, "the status names the invalid tag %.200q", s.Tag)
	}
	return s.checkReason()
}

// checkReason checks the reason and the texts.
func (s *Status) checkReason() error {
	switch {
	case s.Reason != "" && !slices.Contains([]Reason{Broken, Security, Licence, Renamed, Other}, s.Reason):
		return ErrInvalidStatus.New(nil, "unknown reason %.100q", s.Reason)
	case s.Message != clip(s.Message, maxSummary):
		return ErrInvalidStatus.New(nil, "the message must be one line with at most %d bytes", maxSummary)
	case s.ReplacedBy != clip(s.ReplacedBy, maxSummary):
		return ErrInvalidStatus.New(nil, "the replacement must be one line with at most %d bytes", maxSummary)
	}
	return nil
}

// Normalize returns the status of the version for a catalog: nil for an available version.
func (s *VersionStatus) Normalize() *Status {
	if s.State == Available {
		return nil
	}
	out := s.Status
	return &out
}

// A Retraction retracts versions of a package by the annotation of a newer version.
type Retraction struct {
	// Versions is a constraint.
	Versions   string `json:"versions"`
	Reason     Reason `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
	ReplacedBy string `json:"replacedBy,omitempty"`
}

// maxRetractions is the number of retractions in one annotation.
const maxRetractions = 100

// ParseRetractions parses the value of AnnotationRetract. An empty value retracts nothing.
func ParseRetractions(text string) ([]Retraction, error) {
	if text == "" {
		return nil, nil
	}
	var out []Retraction
	if len(text) > maxStatus {
		return nil, ErrInvalidStatus.New(
			nil, "the annotation %s has %d bytes, at most %d are allowed", AnnotationRetract, len(text), maxStatus,
		)
	}
	if err := decodeStrict([]byte(text), &out); err != nil {
		return nil, ErrInvalidStatus.New(err, "cannot read the annotation %s", AnnotationRetract)
	}
	if len(out) > maxRetractions {
		return nil, ErrInvalidStatus.New(
			nil, "the annotation %s has %d entries, at most %d are allowed", AnnotationRetract, len(out), maxRetractions,
		)
	}
	for i, r := range out {
		if r.Versions == "" {
			return nil, ErrInvalidStatus.New(nil, "entry %d of the annotation %s names no versions", i+1, AnnotationRetract)
		}
		if err := version.CheckConstraint(r.Versions, false); err != nil {
			return nil, ErrInvalidStatus.New(err, "entry %d of the annotation %s", i+1, AnnotationRetract)
		}
		status := Status{Reason: r.Reason, Message: r.Message, ReplacedBy: r.ReplacedBy}
		if err := status.checkReason(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Excludes reports whether new solutions must not select a version with the status. A nil Status excludes nothing.
func (s *Status) Excludes() bool { return s != nil && s.State != Deprecated }
