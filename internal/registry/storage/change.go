package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// PutManifest stores a manifest, on the disk, with a tag unless that is empty. A zero media type is that of the
// content. It returns the subject of the manifest, if it has one.
func (s *Store) PutManifest(
	ctx context.Context, repository, tag string, d Digest, mediaType string, content []byte,
) (subject Digest, err error) {
	if DigestOf(content, d) != d {
		return "", fmt.Errorf("%w: the content is not %s", ErrDigestInvalid, d)
	}
	m, mediaType, err := parseManifest(content, mediaType)
	if err != nil {
		return "", err
	}
	if err := s.checkParts(repository, m); err != nil { // It reads content that was not verified yet.
		return "", err
	}
	dir, unlock, err := s.lock(ctx, repository)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := s.checkParts(repository, m); err != nil { // A collection can have removed content.
		return "", err
	}
	st, err := s.create(repository, dir)
	if err != nil {
		return "", err
	}
	if err := s.write(repository, dir, d, content); err != nil {
		return "", err
	}
	entry := Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
	changed := st.list.clone()
	changed.adopt(m.Manifests)
	changed.add(entry, tag)
	if m.Subject != nil {
		subject = m.Subject.Digest
		if err := s.addReferrer(repository, dir, st, &changed, subject, m.referrer(entry)); err != nil {
			return "", err
		}
	}
	return subject, s.save(repository, dir, st, changed)
}

// checkParts fails unless a repository has the content that a manifest needs, except layers that clients get elsewhere.
func (s *Store) checkParts(repository string, m *document) error {
	for _, part := range m.parts() {
		switch exists, err := s.has(repository, part.Digest); {
		case err != nil:
			return err
		case !exists && !part.isElsewhere():
			return fmt.Errorf("%w %s", ErrContentMissing, part.Digest)
		}
	}
	return nil
}

// addReferrer adds a manifest to the index of the referrers of its subject, and makes it a part of it.
func (s *Store) addReferrer(repository, dir string, st *state, changed *list, subject Digest, m Descriptor) error {
	found, err := s.referrers(repository, st, subject)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(slices.Clone(found), func(other Descriptor) bool { return other.Digest == m.Digest })
	return s.setReferrers(repository, dir, changed, subject, append(found, m))
}

// setReferrers replaces the referrers of a subject.
func (s *Store) setReferrers(repository, dir string, changed *list, subject Digest, referrers []Descriptor) error {
	if len(referrers) == 0 {
		changed.refer(subject, nil)
		return nil
	}
	content, err := newList(referrers).encode()
	if err != nil {
		return err
	}
	d := DigestOf(content, "")
	if err := s.write(repository, dir, d, content); err != nil {
		return err
	}
	changed.refer(subject, &Descriptor{MediaType: ociIndex, Digest: d, Size: int64(len(content))})
	changed.adopt(referrers)
	return nil
}

// referrers returns the referrers of a subject. An index of them that is missing or damaged is no empty one.
func (s *Store) referrers(repository string, st *state, subject Digest) ([]Descriptor, error) {
	var found []Descriptor
	if index, ok := st.list.referrers(subject); ok {
		content, err := s.read(repository, index.Digest)
		if err != nil {
			return nil, s.unreadReferrers(repository, index.Digest, err)
		}
		l, err := parseList(content)
		if err != nil {
			return nil, s.unreadReferrers(repository, index.Digest, err)
		}
		found = l.Manifests
	}
	if st.list.Annotations[noFallbackAnnotation] == "true" {
		return found, nil
	}
	tagged, ok := st.list.tagged(subject.fallbackTag())
	if !ok || !tagged.isIndex() {
		return found, nil
	}
	for _, part := range s.partsOf(repository, st, tagged.Digest) {
		if !slices.ContainsFunc(found, func(m Descriptor) bool { return m.Digest == part.Digest }) {
			found = append(found, part)
		}
	}
	return found, nil
}

// unreadReferrers returns the error for an index of referrers that cannot be read.
func (s *Store) unreadReferrers(repository string, index Digest, err error) error {
	if !isUnknown(err) {
		return err
	}
	s.log.Error(
		"a list of signatures and statuses is missing or damaged; restore the file from a backup", "repository", repository,
		"digest", index, "error", err,
	)
	return ErrDamaged
}

// Referrers returns the referrers of a subject; none in a repository that does not exist.
func (s *Store) Referrers(repository string, subject Digest) ([]Descriptor, error) {
	st, err := s.load(repository)
	if errors.Is(err, ErrRepositoryUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.referrers(repository, st, subject)
}

// DeleteTag deletes a tag, and keeps its manifest.
func (s *Store) DeleteTag(ctx context.Context, repository, tag string) error {
	return s.change(ctx, repository, func(_ string, _ *state, changed *list) error {
		if !changed.untag(tag) {
			return ErrManifestUnknown
		}
		return nil
	})
}

// DeleteManifest deletes a manifest with all of its tags, and removes it from the referrers of its subject.
func (s *Store) DeleteManifest(ctx context.Context, repository string, d Digest) error {
	return s.change(ctx, repository, func(dir string, st *state, changed *list) error {
		_, isPart := s.part(repository, st, d)
		if !isPart && !st.list.has(d) {
			return ErrManifestUnknown
		}
		isReferrer := false
		for _, index := range st.list.Manifests {
			if index.subject() == "" {
				continue
			}
			parts := s.partsOf(repository, st, index.Digest)
			rest := slices.DeleteFunc(slices.Clone(parts), func(m Descriptor) bool { return m.Digest == d })
			if len(rest) == len(parts) {
				continue
			}
			isReferrer = true
			if err := s.setReferrers(repository, dir, changed, index.subject(), rest); err != nil {
				return err
			}
		}
		if !isReferrer && !st.list.has(d) {
			return ErrPart
		}
		changed.drop(func(m Descriptor) bool { return m.is(d) })
		return nil
	})
}

// change changes the list of a repository that exists.
func (s *Store) change(
	ctx context.Context, repository string, change func(dir string, st *state, changed *list) error,
) error {
	dir, unlock, err := s.lock(ctx, repository)
	if errors.Is(err, ErrNameInvalid) {
		return ErrRepositoryUnknown
	}
	if err != nil {
		return err
	}
	defer unlock()
	st, err := s.loadLocked(repository)
	if err != nil {
		return err
	}
	changed := st.list.clone()
	if err := change(dir, st, &changed); err != nil {
		return err
	}
	return s.save(repository, dir, st, changed)
}

// Tags returns the digests of the tags of a repository, whether their manifests are missing or damaged or not, and the
// digest of the file with them.
func (s *Store) Tags(repository string) (tags map[string]Digest, file Digest, err error) {
	st, err := s.load(repository)
	if err != nil {
		return nil, "", err
	}
	return st.list.tags(), st.digest, nil
}

// Manifest opens the manifest with a tag or a digest.
func (s *Store) Manifest(repository, reference string) (*Content, error) {
	st, err := s.load(repository)
	if err != nil {
		return nil, err
	}
	entry, err := s.entry(repository, st, reference)
	if err != nil {
		return nil, err
	}
	f, err := s.open(repository, entry.Digest)
	if errors.Is(err, ErrBlobUnknown) {
		return nil, ErrManifestUnknown
	}
	if err != nil {
		return nil, err
	}
	return &Content{f, entry.MediaType, entry.Digest}, nil
}

// entry returns the entry of a tag or a digest.
func (s *Store) entry(repository string, st *state, reference string) (Descriptor, error) {
	if IsTag(reference) {
		if found, ok := st.list.tagged(reference); ok {
			return found, nil
		}
		return Descriptor{}, ErrManifestUnknown
	}
	d, err := ParseDigest(reference)
	if err != nil {
		return Descriptor{}, err
	}
	if found, ok := st.list.find(func(m Descriptor) bool { return m.Digest == d }); ok {
		return found, nil
	}
	if found, ok := s.part(repository, st, d); ok {
		return found, nil
	}
	return Descriptor{}, ErrManifestUnknown
}
