package docs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/catalog/internal/frame"
)

const (
	magic   = "xpkg docs\n"
	version = 1
)

// Limits of a documentation pack. The size of a part is limited before it is decompressed.
const (
	maxParts      = 50_000
	maxTable      = 8 << 20
	maxDictionary = 256 << 10
	maxPart       = 16 << 20
	maxName       = 400
)

// part is a named part before its compression.
type part struct {
	name string
	data []byte
}

// Write returns the bytes of a documentation pack. Equal packs have equal bytes. It fails with ErrTooLarge if a part is
// larger than the format allows.
func Write(p Pack) ([]byte, error) {
	parts := p.parts()
	if len(parts) > maxParts {
		return nil, ErrTooLarge.New(nil, "the documentation has %d parts, at most %d are allowed", len(parts), maxParts)
	}
	dict := dictionary(p.Kinds)
	coder := frame.New(dict)
	var table, body bytes.Buffer
	for _, part := range parts {
		if len(part.data) > maxPart {
			return nil, ErrTooLarge.New(nil, "%s has %d bytes, at most %d are allowed", part.name, len(part.data), maxPart)
		}
		packed, err := coder.Encode(part.data)
		if err != nil {
			return nil, err
		}
		body.Write(packed)
		fmt.Fprintf(&table, "%s\t%d\t%d\n", part.name, len(packed), len(part.data))
	}
	return assemble(table.Bytes(), dict, body.Bytes())
}

// assemble returns the header, the table, the dictionary and the parts.
func assemble(table, dict, body []byte) ([]byte, error) {
	packedTable, err := frame.Encode(table)
	if err != nil {
		return nil, err
	}
	packedDict, err := frame.Encode(dict)
	if err != nil {
		return nil, err
	}
	out := []byte(magic)
	for _, n := range []int{version, len(packedTable), len(table), len(packedDict), len(dict)} {
		out = binary.AppendUvarint(out, uint64(n)) // no size is negative
	}
	return slices.Concat(out, packedTable, packedDict, body), nil
}

// parts returns the parts of the pack, ordered by name.
func (p *Pack) parts() []part {
	parts := []part{{"package", encodeJSON(p.Info)}}
	for _, text := range []part{{"readme", []byte(p.Readme)}, {"release-notes", []byte(p.ReleaseNotes)}} {
		if len(text.data) > 0 {
			parts = append(parts, text)
		}
	}
	if p.Icon != nil {
		parts = append(parts, part{"icon", slices.Concat([]byte(p.Icon.MediaType+"\n"), p.Icon.Data)})
	}
	for _, k := range sorted(p.Kinds) {
		name := k.Group + "/" + k.Kind
		parts = append(parts, part{"crd/" + name, slices.Concat([]byte(string(k.Role)+"\n"), k.CRD)})
		if len(k.Examples) > 0 {
			parts = append(parts, part{"examples/" + name, encodeJSON(k.Examples)})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return parts
}

func encodeJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil // The types of this package can be encoded.
	}
	return text
}

const (
	dictionarySize = 112 << 10
	// sampleSize is the number of bytes of each schema in the dictionary.
	sampleSize = 8 << 10
)

// dictionary returns text that the schemas have in common: the beginnings of schemas that are spread evenly over all. A
// pack with few kinds has no dictionary, because it would not save its own size.
func dictionary(kinds []Kind) []byte {
	const few = 8
	if len(kinds) < few {
		return nil
	}
	kinds = sorted(kinds)
	samples := min(len(kinds)/4+1, dictionarySize/sampleSize)
	var dict []byte
	for i := range samples {
		text := kinds[i*len(kinds)/samples].CRD
		dict = append(dict, text[:min(len(text), sampleSize)]...)
	}
	return dict
}
