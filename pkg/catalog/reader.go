package catalog

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Fetch returns the content of a part of an index. The Reader verifies it.
type Fetch func(d oci.Descriptor) ([]byte, error)

// A Reader reads an encoded index. It fetches a layer when it is needed first: the packages and the journal when the
// index is opened, the kinds for a search, and one history layer for the history of a package. It is safe for
// concurrent use.
//
// Every blob is compared with its descriptor. Errors about the content have the codes ErrTruncatedIndex, ErrMixedIndex
// and ErrInvalidIndex.
type Reader struct {
	manifest Manifest
	config   Config
	fetch    Fetch
	packages []Package
	// base are the repositories of the snapshot, to which the layer of kinds refers by position.
	base    []string
	events  []Event
	overlay overlay

	mutex     sync.Mutex
	kinds     *kindsLayer
	texts     []Text
	hasTexts  bool
	histories map[int][]History
}

// Open reads the configuration, the packages and the journal of an index.
func Open(m Manifest, fetch Fetch) (*Reader, error) {
	r := &Reader{manifest: m, fetch: fetch, histories: map[int][]History{}}
	if err := r.readConfig(); err != nil {
		return nil, err
	}
	packed, err := r.Blob(m.Packages)
	if err != nil {
		return nil, err
	}
	snapshot, err := decodePackages(packed)
	if err != nil {
		return nil, ErrInvalidIndex.New(err, "cannot read the layer of packages")
	}
	for _, p := range snapshot {
		r.base = append(r.base, p.Repository)
	}
	if err := r.readJournal(); err != nil {
		return nil, err
	}
	r.overlay, r.packages = overlayOf(r.events), applyPackages(snapshot, r.events)
	if n := r.config.Counts.Packages; n != len(r.packages) {
		return nil, ErrInvalidIndex.New(nil, "the index has %d packages, its configuration states %d", len(r.packages), n)
	}
	return r, nil
}

func (r *Reader) readConfig() error {
	if r.manifest.Config.Size > maxConfigSize {
		return ErrInvalidIndex.New(
			nil, "the configuration has %d bytes, at most %d are allowed", r.manifest.Config.Size, maxConfigSize,
		)
	}
	text, err := r.Blob(r.manifest.Config)
	if err != nil {
		return err
	}
	r.config, err = ParseConfig(text)
	if err != nil {
		return err
	}
	switch {
	case r.config.Base != r.manifest.base():
		return ErrMixedIndex.New(nil, "the configuration of index %q belongs to another snapshot", r.config.Name)
	case r.config.Shards != len(r.manifest.Shards):
		return ErrInvalidIndex.New(
			nil, "the index has %d history layers, its configuration states %d", len(r.manifest.Shards), r.config.Shards,
		)
	}
	return nil
}

// ParseConfig parses the configuration of an index. It fails with ErrUnsupportedIndex for another format.
func ParseConfig(text []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(text, &c); err != nil {
		return Config{}, ErrInvalidIndex.New(err, "cannot read the configuration of an index")
	}
	c.Created, c.Expires = c.Created.UTC(), c.Expires.UTC()
	switch {
	case c.Format != Format:
		return Config{},
			ErrUnsupportedIndex.New(nil, "the index has format %d, this version of xpkg reads format %d", c.Format, Format)
	case c.Name != clip(c.Name, maxTitle) || c.Name == "":
		return Config{}, ErrInvalidIndex.New(nil, "the name %.150q of an index is not valid", c.Name)
	case c.Sequence < 1:
		return Config{}, ErrInvalidIndex.New(nil, "index %q has the sequence %d", c.Name, c.Sequence)
	}
	if err := checkOwners(c.Owners); err != nil {
		return Config{}, ErrInvalidIndex.New(err, "the index %q has owners that are not valid", c.Name)
	}
	return c, nil
}

// Blob fetches and verifies the content of a descriptor.
func (r *Reader) Blob(d oci.Descriptor) ([]byte, error) {
	data, err := r.fetch(d)
	if err != nil {
		return nil, err
	}
	switch {
	case int64(len(data)) < d.Size:
		return nil, ErrTruncatedIndex.New(nil, "%s has %d of %d bytes", d.Digest, len(data), d.Size)
	case oci.DigestOf(data) != d.Digest:
		return nil, ErrMixedIndex.New(nil, "the content of %s has another digest", d.Digest)
	}
	return data, nil
}

func (r *Reader) readJournal() error {
	rest := maxJournal
	for _, d := range r.manifest.Journal {
		packed, err := r.Blob(d)
		if err != nil {
			return err
		}
		events, size, err := decodeEvents(packed, rest)
		if err != nil {
			return ErrInvalidIndex.New(err, "cannot read a journal layer")
		}
		rest -= size
		r.events = append(r.events, events...)
	}
	return nil
}

// Manifest returns the manifest.
func (r *Reader) Manifest() Manifest { return r.manifest }

// Config returns the configuration.
func (r *Reader) Config() Config { return r.config }

// Packages returns all packages, ordered by repository. The caller must not change them.
func (r *Reader) Packages() []Package { return r.packages }

// Events returns the events of the journal, oldest first.
func (r *Reader) Events() []Event { return r.events }

// Package returns the row of a package, or nil. The repository may be an alias.
func (r *Reader) Package(repository string) *Package {
	c := Catalog{Packages: r.packages}
	return c.Package(repository)
}

// openKinds returns the layer of kinds. The mutex is held.
func (r *Reader) openKinds() (*kindsLayer, error) {
	if r.kinds != nil {
		return r.kinds, nil
	}
	data, err := r.Blob(r.manifest.Kinds)
	if err != nil {
		return nil, err
	}
	layer, err := openKinds(data)
	if err != nil {
		return nil, ErrInvalidIndex.New(err, "cannot read the layer of kinds")
	}
	r.kinds = layer
	return layer, nil
}

// row returns the kind of a line, and nil if the journal replaces it.
func (r *Reader) row(line string) (*Kind, error) {
	k, position, err := parseKindLine(line)
	if err != nil {
		return nil, err
	}
	if position >= len(r.base) {
		return nil, errors.New("a kind belongs to an unknown package")
	}
	k.Repository = r.base[position]
	if r.overlay.replaces(&k) {
		return nil, nil
	}
	return &k, nil
}

// Lookup is like [Catalog.Lookup]. It decompresses the frames that contain the kind, and all of them only for other
// names than the kind.
func (r *Reader) Lookup(group, kind string) ([]Kind, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var out []Kind
	take := func(k *Kind) {
		if group == "" || k.Group == group {
			out = append(out, *k)
		}
	}
	err := r.each(func(l *kindsLayer, visit func(string) error) error { return l.find(kind, visit) }, func(k *Kind) {
		if strings.EqualFold(k.Kind, kind) {
			take(k)
		}
	})
	if err != nil || len(out) > 0 {
		slices.SortFunc(out, compareKinds)
		return out, err
	}
	lower := strings.ToLower(kind)
	err = r.each((*kindsLayer).scan, func(k *Kind) {
		if k.hasName(lower) {
			take(k)
		}
	})
	slices.SortFunc(out, compareKinds)
	return out, err
}

// each calls visit for the kinds that walk selects, and for those of the journal. The mutex is held.
func (r *Reader) each(walk func(*kindsLayer, func(line string) error) error, visit func(*Kind)) error {
	layer, err := r.openKinds()
	if err != nil {
		return err
	}
	err = walk(layer, func(line string) error {
		k, err := r.row(line)
		if k != nil {
			visit(k)
		}
		return err
	})
	if err != nil {
		return ErrInvalidIndex.New(err, "cannot read the layer of kinds")
	}
	r.overlay.each(visit)
	return nil
}

// Search is like [Catalog.Search]. It fetches the texts only for a query with a field, or if no name matches.
func (r *Reader) Search(q Query, limit int) ([]Hit, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return searchInSteps(q, limit, pointers(r.packages), r.readTexts, r.feed)
}

// feed passes to a searcher the kinds that can match.
func (r *Reader) feed(s *searcher) error {
	if s.name != "" {
		return r.feedNamed(s, s.name)
	}
	filter := s.filter(r.base)
	return r.each(func(l *kindsLayer, visit func(string) error) error {
		return l.scanFrames(filter.frame, func(line string) error {
			if !filter.line(line) {
				return nil
			}
			return visit(line)
		})
	}, s.kind)
}

// feedNamed passes the kinds with a name, and those with another such name only if none of the former is a hit.
func (r *Reader) feedNamed(s *searcher, name string) error {
	err := r.each(func(l *kindsLayer, visit func(string) error) error { return l.find(name, visit) }, func(k *Kind) {
		if strings.EqualFold(k.Kind, name) {
			s.kind(k)
		}
	})
	if err != nil || s.named {
		return err
	}
	return r.each((*kindsLayer).scan, func(k *Kind) {
		if k.hasName(name) {
			s.kind(k)
		}
	})
}

// readTexts reads the layer of texts, if there is one, and applies the journal. The mutex is held.
func (r *Reader) readTexts() ([]Text, error) {
	if r.hasTexts {
		return r.texts, nil
	}
	var texts []Text
	if r.manifest.Text != nil {
		packed, err := r.Blob(*r.manifest.Text)
		if err != nil {
			return nil, err
		}
		if texts, err = decodeTexts(packed); err != nil {
			return nil, ErrInvalidIndex.New(err, "cannot read the layer of texts")
		}
	}
	r.texts, r.hasTexts = applyTexts(texts, r.events), true
	return r.texts, nil
}

// History returns the history of a package, or nil if the index does not contain the package.
func (r *Reader) History(repository string) (*History, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	row := (&Catalog{Packages: r.packages}).exact(repository)
	if row == nil {
		return nil, nil
	}
	shard := shardOf(repository, len(r.manifest.Shards))
	histories, err := r.shard(shard)
	if err != nil {
		return nil, err
	}
	h := (&Catalog{Histories: histories}).History(repository)
	if h == nil {
		h = &History{Repository: repository}
	}
	h = applyHistory(*h, r.events)
	return h, row.verifyHistory(h)
}

// shard returns the histories of a layer of the snapshot, and keeps them. The mutex is held.
func (r *Reader) shard(i int) ([]History, error) {
	if h, known := r.histories[i]; known {
		return h, nil
	}
	h, err := r.readShard(i)
	if err != nil {
		return nil, err
	}
	r.histories[i] = h
	return h, nil
}

func (r *Reader) readShard(i int) ([]History, error) {
	packed, err := r.Blob(r.manifest.Shards[i])
	if err != nil {
		return nil, err
	}
	h, err := decodeShard(packed, i, len(r.manifest.Shards))
	if err != nil {
		return nil, ErrInvalidIndex.New(err, "cannot read history layer %d", i)
	}
	return h, nil
}

// Catalog reads the whole index. The reader does not keep it.
func (r *Reader) Catalog() (Catalog, error) {
	snapshot, err := r.snapshot()
	if err != nil {
		return Catalog{}, err
	}
	c, err := Fold(&snapshot, withoutSources(r.events))
	if err != nil {
		return Catalog{}, err
	}
	if c.Config.Counts != r.config.Counts {
		return Catalog{},
			ErrInvalidIndex.New(nil, "the index has %+v rows, its configuration states %+v", c.Config.Counts, r.config.Counts)
	}
	return c, c.verify()
}

// withoutSources returns the events without those whose effect is in the configuration already.
func withoutSources(events []Event) []Event {
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Type == SourceAdded })
}

// snapshot reads all layers but the journal.
func (r *Reader) snapshot() (Catalog, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	c := Catalog{Config: r.config}
	packed, err := r.Blob(r.manifest.Packages)
	if err != nil {
		return Catalog{}, err
	}
	if c.Packages, err = decodePackages(packed); err != nil {
		return Catalog{}, ErrInvalidIndex.New(err, "cannot read the layer of packages")
	}
	layer, err := r.openKinds()
	if err != nil {
		return Catalog{}, err
	}
	if c.Kinds, err = layer.all(r.base); err != nil {
		return Catalog{}, ErrInvalidIndex.New(err, "cannot read the layer of kinds")
	}
	for i := range r.manifest.Shards {
		h, err := r.readShard(i)
		if err != nil {
			return Catalog{}, err
		}
		c.Histories = append(c.Histories, h...)
	}
	if r.manifest.Text != nil {
		if packed, err = r.Blob(*r.manifest.Text); err != nil {
			return Catalog{}, err
		}
		if c.Texts, err = decodeTexts(packed); err != nil {
			return Catalog{}, ErrInvalidIndex.New(err, "cannot read the layer of texts")
		}
	}
	slices.SortFunc(c.Histories, compareHistories)
	slices.SortFunc(c.Texts, compareTexts)
	return c, nil
}

// all returns all kinds, which must be sorted.
func (l *kindsLayer) all(base []string) ([]Kind, error) {
	var out []Kind
	return out, l.scan(func(line string) error {
		k, position, err := parseKindLine(line)
		if err != nil {
			return err
		}
		if position >= len(base) {
			return errors.New("a kind belongs to an unknown package")
		}
		k.Repository = base[position]
		if n := len(out); n > 0 && compareKinds(out[n-1], k) >= 0 {
			return errors.New("the kinds are not sorted")
		}
		out = append(out, k)
		return nil
	})
}

// Prefetch fetches what a search needs, so that later searches need no registry. Texts are fetched by the first search
// for a field.
func (r *Reader) Prefetch() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, err := r.openKinds()
	return err
}

// Check reads all kinds, which otherwise happens when they are needed, and compares their number with the
// configuration.
func (r *Reader) Check() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := 0
	if err := r.each((*kindsLayer).scan, func(*Kind) { found++ }); err != nil {
		return err
	}
	if n := r.config.Counts.Kinds; n != found {
		return ErrInvalidIndex.New(nil, "the index has %d kinds, its configuration states %d", found, n)
	}
	return nil
}

// OpenJournal returns the content of the last journal layer for [Append]; nil if there is none.
func (r *Reader) OpenJournal() ([]byte, error) {
	n := len(r.manifest.Journal)
	if n == 0 {
		return nil, nil
	}
	return r.Blob(r.manifest.Journal[n-1])
}
