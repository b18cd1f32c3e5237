package storage

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is what a repository has.
type model struct {
	content
	tags map[string]string
	// own are the manifests that need no tag and no index.
	own map[string]bool
	// referrers are the manifests that refer to a subject, in the order of their pushes.
	referrers map[string][]string
	files     map[string]bool
}

// manifest returns the parts of a manifest by name: the manifests of an index, its blobs, and the subject.
func (m model) manifest(name string) (manifests, blobs []string, subject string) {
	raw, ok := m.manifests[name]
	if !ok {
		return nil, nil, ""
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		panic(err)
	}
	nameOf := func(digest Digest) string {
		for _, names := range []map[string][]byte{m.blobs, m.manifests} {
			for name := range names {
				if m.digest(name) == digest {
					return name
				}
			}
		}
		panic(digest)
	}
	for _, part := range d.Manifests {
		manifests = append(manifests, nameOf(part.Digest))
	}
	for _, part := range (&document{Config: d.Config, Layers: d.Layers}).parts() {
		blobs = append(blobs, nameOf(part.Digest))
	}
	if d.Subject != nil {
		subject = nameOf(d.Subject.Digest)
	}
	return manifests, blobs, subject
}

func (m model) isTagged(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(m.tags)), name)
}

func (m model) isReferrer(name string) bool {
	for _, names := range m.referrers {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// needed returns the content that a client can reach, and what that needs.
func (m model) needed() (manifests, files map[string]bool) {
	manifests, files = map[string]bool{}, map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if manifests[name] {
			return
		}
		manifests[name], files[name] = true, true
		parts, blobs, _ := m.manifest(name)
		for _, part := range parts {
			add(part)
		}
		for _, blob := range blobs {
			files[blob] = true
		}
	}
	for name := range m.manifests {
		if m.own[name] || m.isTagged(name) || m.isReferrer(name) {
			add(name)
		}
	}
	return manifests, files
}

// put pushes a manifest.
func (m model) put(name, tag string) error {
	parts, blobs, subject := m.manifest(name)
	for _, part := range slices.Concat(parts, blobs) {
		if !m.files[part] {
			return ErrContentMissing
		}
	}
	m.files[name] = true
	m.adopt(parts)
	if tag == "" {
		m.own[name] = true
	} else {
		_ = m.untag(tag) // It can be new.
		m.tags[tag] = name
	}
	if subject != "" {
		names := slices.DeleteFunc(m.referrers[subject], func(other string) bool { return other == name })
		m.referrers[subject] = append(names, name)
		m.adopt(m.referrers[subject])
	}
	return nil
}

// adopt makes manifests parts of an index.
func (m model) adopt(names []string) {
	for _, name := range names {
		delete(m.own, name)
	}
}

// untag removes a tag, and keeps its manifest.
func (m model) untag(tag string) error {
	former, ok := m.tags[tag]
	if !ok {
		return ErrManifestUnknown
	}
	delete(m.tags, tag)
	if !m.isTagged(former) {
		m.own[former] = true
	}
	return nil
}

func (m model) remove(name string) error {
	manifests, _ := m.needed()
	switch {
	case !manifests[name]:
		return ErrManifestUnknown
	case !m.own[name] && !m.isTagged(name) && !m.isReferrer(name):
		return ErrPart
	}
	delete(m.own, name)
	maps.DeleteFunc(m.tags, func(_, other string) bool { return other == name })
	for subject := range m.referrers {
		m.referrers[subject] = slices.DeleteFunc(m.referrers[subject], func(other string) bool { return other == name })
	}
	return nil
}

// check compares the model with a store.
func (m model) check(t *rapid.T, s *Store) {
	tags, _, err := s.Tags(testRepository)
	if err != nil && !errors.Is(err, ErrRepositoryUnknown) {
		t.Fatal(err)
	}
	want := map[string]Digest{}
	for tag, name := range m.tags {
		want[tag] = m.digest(name)
	}
	if !maps.Equal(tags, want) {
		t.Fatalf("the tags are %v, want %v", tags, m.tags)
	}
	manifests, files := m.needed()
	for name := range m.manifests {
		f, err := s.Manifest(testRepository, string(m.digest(name)))
		if err == nil {
			_ = f.Close()
		}
		if (err == nil) != manifests[name] {
			t.Fatalf("%s: %v; want it: %t", name, err, manifests[name])
		}
		referrers, err := s.Referrers(testRepository, m.digest(name))
		if err != nil {
			t.Fatal(err)
		}
		same := slices.EqualFunc(
			referrers, m.referrers[name], func(d Descriptor, name string) bool { return d.Digest == m.digest(name) },
		)
		if !same {
			t.Fatalf("the referrers of %s are %v, want %v", name, referrers, m.referrers[name])
		}
	}
	for name := range files {
		if has, err := s.has(testRepository, m.digest(name)); err != nil || !has {
			t.Fatalf("%s is needed: %t, %v", name, has, err)
		}
	}
}

// TestAStoreEqualsItsModel makes random changes and collections of garbage.
func TestAStoreEqualsItsModel(t *testing.T) {
	t.Parallel()
	c := newContent(t)
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "storage")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		s := Open(root, Options{Volatile: true})
		defer func() { _ = s.Close() }()
		m := model{c, map[string]string{}, map[string]bool{}, map[string][]string{}, map[string]bool{}}
		ctx := context.Background()
		manifest := rapid.SampledFrom(slices.Sorted(maps.Keys(c.manifests)))
		tag := rapid.SampledFrom([]string{"", "v1", "v2"})
		same := func(got, want error) {
			if want == nil && got != nil || want != nil && !errors.Is(got, want) && !errors.Is(got, ErrRepositoryUnknown) {
				t.Fatalf("the error is %v, want %v", got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { m.check(t, s) },
			"upload": func(t *rapid.T) {
				name := rapid.SampledFrom(slices.Sorted(maps.Keys(c.blobs))).Draw(t, "blob")
				same(c.upload(s, name), nil)
				m.files[name] = true
			},
			"put": func(t *rapid.T) {
				name, tag := manifest.Draw(t, "manifest"), tag.Draw(t, "tag")
				same(c.put(s, name, tag), m.put(name, tag))
			},
			"untag": func(t *rapid.T) {
				tag := tag.Draw(t, "tag")
				same(s.DeleteTag(ctx, testRepository, tag), m.untag(tag))
			},
			"delete": func(t *rapid.T) {
				name := manifest.Draw(t, "manifest")
				same(s.DeleteManifest(ctx, testRepository, c.digest(name)), m.remove(name))
			},
			"collect": func(t *rapid.T) {
				s.Collect(ctx)
				_, needed := m.needed()
				maps.DeleteFunc(m.files, func(name string, _ bool) bool { return !needed[name] })
				for _, names := range []map[string][]byte{c.blobs, c.manifests} {
					for name := range names {
						if has, err := s.has(testRepository, c.digest(name)); err != nil || has != m.files[name] {
							t.Fatalf("%s after a collection: %t, %v", name, has, err)
						}
					}
				}
			},
			"restart": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = Open(root, Options{Volatile: true})
				if manifests, _ := m.needed(); len(manifests) == 0 { // A start removes repositories without manifests.
					clear(m.files)
				}
			},
		})
	})
}
