package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog/internal/frame"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Encode returns a catalog as a snapshot without a journal. Equal catalogs have equal images. Of the configuration,
// Encode sets Base and the number of shards, which grows while the histories do not fit. A catalog that [Catalog.Fit]
// returns can be encoded.
func Encode(c *Catalog) (Image, error) {
	config := c.Config
	if !isShardCount(config.Shards) {
		config.Shards = shardsFor(len(c.Packages))
	}
	config.Shards = shardsThatFit(c.Histories, config.Shards)
	e := encoder{}
	e.add(MediaTypePackages, encodePackages(c.Packages))
	kinds, err := encodeKinds(c, &e.coder)
	if err != nil {
		return Image{}, err
	}
	e.blobs = append(e.blobs, newBlob(MediaTypeKinds, kinds))
	for _, histories := range shardsOf(c.Histories, config.Shards) {
		e.add(MediaTypeHistory, encodeShard(histories))
	}
	if len(c.Texts) > 0 {
		e.add(MediaTypeText, encodeTexts(c.Texts))
	}
	if e.err != nil {
		return Image{}, e.err
	}
	return e.image(config)
}

// encoder collects compressed blobs, and the first error. One coder compresses all of them, because it has large
// tables.
type encoder struct {
	coder frame.Coder
	blobs []Blob
	err   error
}

func (e *encoder) add(mediaType oci.MediaType, content []byte) {
	packed, err := e.coder.Encode(content)
	e.err = cmp.Or(e.err, checkLayer(mediaType, content), err)
	e.blobs = append(e.blobs, newBlob(mediaType, packed))
}

// image returns the image of a snapshot.
func (e *encoder) image(config Config) (Image, error) {
	m := Manifest{}
	var layers []oci.Descriptor
	for _, b := range e.blobs {
		layers = append(layers, b.Descriptor)
	}
	m.Config.MediaType = MediaTypeConfig
	if err := m.readLayers(layers); err != nil {
		return Image{}, err
	}
	return seal(m, config, e.blobs), nil
}

// seal adds the configuration and encodes the manifest.
func seal(m Manifest, config Config, blobs []Blob) Image {
	config.Base = m.base()
	config.Format = Format
	if config.Sources == nil {
		config.Sources = []Source{}
	}
	encoded := newBlob(MediaTypeConfig, encodeJSON(config))
	m.Config = encoded.Descriptor
	m.encode()
	return Image{Manifest: m, Blobs: append([]Blob{encoded}, blobs...)}
}

func encodePackages(packages []Package) []byte {
	var b bytes.Buffer
	for _, p := range packages {
		b.Write(encodeJSON(p))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func decodePackages(packed []byte) ([]Package, error) {
	content, err := frame.Decode(packed, maxPackages)
	if err != nil {
		return nil, err
	}
	out := make([]Package, 0, bytes.Count(content, []byte("\n")))
	return out, lines(content, maxLine, func(line []byte) error {
		var p Package
		if err := decodeLine(line, &p); err != nil {
			return err
		}
		p.Updated = inUTC(p.Updated)
		if n := len(out); !validRepository(p.Repository) || n > 0 && out[n-1].Repository >= p.Repository {
			return fmt.Errorf("the packages are not sorted, or %.200q is not a repository", p.Repository)
		}
		out = append(out, p)
		return p.check()
	})
}

// shardOf returns the history layer of a repository: the first bits of the sha256 digest of its name.
func shardOf(repository string, shards int) int {
	hex := oci.DigestOf([]byte(repository)).Hex()
	first := 0
	for _, c := range []byte(hex[:2]) {
		digit := int(c - '0')
		if c >= 'a' {
			digit = int(c-'a') + 10
		}
		first = first<<4 | digit
	}
	return first * shards / 256
}

// shardHeader is the first line of each package in a history layer.
type shardHeader struct {
	Repository string `json:"p"`
	Versions   int    `json:"v"`
	Kinds      int    `json:"k"`
}

// shardsOf returns the histories of each layer.
func shardsOf(histories []History, shards int) [][]*History {
	out := make([][]*History, shards)
	for i := range histories {
		shard := shardOf(histories[i].Repository, shards)
		out[shard] = append(out[shard], &histories[i])
	}
	return out
}

// shardsThatFit returns the number of history layers, which is higher than the given one if a layer would be too large
// for readers.
func shardsThatFit(histories []History, shards int) int {
	isTooLarge := func(of []*History) bool {
		bound := 0
		for _, h := range of {
			bound += h.bound()
		}
		return bound > maxShard && len(encodeShard(of)) > maxShard
	}
	for shards < maxShards && slices.ContainsFunc(shardsOf(histories, shards), isTooLarge) {
		shards *= 2
	}
	return shards
}

func encodeShard(histories []*History) []byte {
	var b bytes.Buffer
	line := func(v any) {
		b.Write(encodeJSON(v))
		b.WriteByte('\n')
	}
	for _, h := range histories {
		line(shardHeader{h.Repository, len(h.Versions), len(h.Kinds)})
		for i := range h.Versions {
			line(toWire(&h.Versions[i]))
		}
		for i := range h.Kinds {
			line(historyToWire(&h.Kinds[i]))
		}
	}
	return b.Bytes()
}

// decodeShard decodes the histories of a layer with a position among the layers.
func decodeShard(packed []byte, shard, shards int) ([]History, error) {
	content, err := frame.Decode(packed, maxShard)
	if err != nil {
		return nil, err
	}
	d := shardDecoder{shard: shard, shards: shards}
	if err := lines(content, maxLine, d.line); err != nil {
		return nil, err
	}
	if d.versions+d.kinds > 0 {
		return nil, errors.New("the last history is not complete")
	}
	for i := range d.out {
		interner{}.history(&d.out[i])
	}
	return d.out, nil
}

type shardDecoder struct {
	shard, shards   int
	out             []History
	versions, kinds int // lines that are still expected
}

func (d *shardDecoder) line(line []byte) error {
	switch {
	case d.versions > 0:
		d.versions--
		return d.version(line)
	case d.kinds > 0:
		d.kinds--
		return d.kind(line)
	}
	var h shardHeader
	if err := decodeLine(line, &h); err != nil {
		return err
	}
	if n := len(d.out); !validRepository(h.Repository) || n > 0 && d.out[n-1].Repository >= h.Repository ||
		shardOf(h.Repository, d.shards) != d.shard {
		return fmt.Errorf("the histories are not sorted, or %.200q does not belong to the layer", h.Repository)
	}
	if h.Versions < 0 || h.Versions > maxVersions || h.Kinds < 0 || h.Kinds > maxHistoryKinds {
		return fmt.Errorf("the history of %s is too long", h.Repository)
	}
	d.versions, d.kinds = h.Versions, h.Kinds
	d.out = append(d.out, History{Repository: h.Repository})
	return nil
}

func (d *shardDecoder) version(line []byte) error {
	var w wireVersion
	if err := decodeLine(line, &w); err != nil {
		return err
	}
	v, err := w.version()
	if err != nil {
		return err
	}
	h := &d.out[len(d.out)-1]
	if n := len(h.Versions); n > 0 && compareTags(h.Versions[n-1].Tag, v.Tag) >= 0 {
		return fmt.Errorf("the versions of %s are not sorted", h.Repository)
	}
	h.Versions = append(h.Versions, v)
	return nil
}

func (d *shardDecoder) kind(line []byte) error {
	var w wireKindHistory
	if err := decodeLine(line, &w); err != nil {
		return err
	}
	k, err := w.history()
	if err != nil {
		return err
	}
	h := &d.out[len(d.out)-1]
	if n := len(h.Kinds); n > 0 && compareKindHistories(h.Kinds[n-1], k) >= 0 {
		return fmt.Errorf("the kinds of %s are not sorted", h.Repository)
	}
	h.Kinds = append(h.Kinds, k)
	return nil
}

// wireText is the JSON line of a Text.
type wireText struct {
	Repository string         `json:"n"`
	Readme     string         `json:"r,omitempty"`
	Kinds      []wireKindText `json:"k,omitempty"`
}

type wireKindText struct {
	Group       string   `json:"g"`
	Kind        string   `json:"k"`
	Description string   `json:"d,omitempty"`
	Fields      []string `json:"f,omitempty"`
}

func textToWire(t *Text) wireText {
	w := wireText{Repository: t.Repository, Readme: t.Readme}
	for _, k := range t.Kinds {
		w.Kinds = append(w.Kinds, wireKindText(k))
	}
	return w
}

func (w *wireText) text() Text {
	t := Text{Repository: w.Repository, Readme: w.Readme}
	for _, k := range w.Kinds {
		t.Kinds = append(t.Kinds, KindText(k))
	}
	return t
}

func encodeTexts(texts []Text) []byte {
	var b bytes.Buffer
	for i := range texts {
		b.Write(encodeJSON(textToWire(&texts[i])))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func decodeTexts(packed []byte) ([]Text, error) {
	var out []Text
	err := eachText(packed, func(t *Text) error {
		out = append(out, *t)
		return nil
	})
	return out, err
}

// eachText calls visit for each text of a layer.
func eachText(packed []byte, visit func(*Text) error) error {
	content, err := frame.Decode(packed, maxText)
	if err != nil {
		return err
	}
	last := ""
	return lines(content, maxLongLine, func(line []byte) error {
		var w wireText
		if err := decodeLine(line, &w); err != nil {
			return err
		}
		if w.Repository < last {
			return errors.New("the texts are not sorted")
		}
		last = w.Repository
		t := w.text()
		return visit(&t)
	})
}
