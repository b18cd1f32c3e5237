package catalog

import (
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Limits of one package, so that the layers that it shares with others stay below the limits of readers.
const (
	maxVersionKinds = 1_000_000    // of all versions together; the largest provider has 2,043 in each
	maxHistory      = maxShard / 2 // bytes of its lines in a history layer
	maxTextLine     = maxText / 16 // bytes of its line in the layer of texts
)

// TooManyKinds returns the error of a package whose versions have that many kinds together, and nil if an index can
// contain them. A list of the kinds of each version takes memory for all of them.
func TooManyKinds(kinds int) error {
	if kinds <= maxVersionKinds {
		return nil
	}
	return ErrUnindexable.New(nil, "all versions of the package together define more than %d kinds", maxVersionKinds)
}

// checkNumbers fails with ErrUnindexable if there are facts about too many versions, or if these have too many kinds.
func checkNumbers(facts []Facts) error {
	if len(facts) > maxVersions {
		return ErrUnindexable.New(nil, "the package has %d versions, at most %d are allowed", len(facts), maxVersions)
	}
	kinds := 0
	for i := range facts {
		kinds += facts[i].Version.Kinds
	}
	return TooManyKinds(kinds)
}

// check fails with ErrUnindexable if readers would refuse an index with the entry.
func (e *Entry) check() error {
	content := encodeShard([]*History{&e.history})
	if n := len(content); n > maxHistory {
		return ErrUnindexable.New(
			nil, "the versions and kinds of the package have %d bytes in the index, at most %d are allowed", n, maxHistory,
		)
	}
	d := shardDecoder{shards: 1}
	err := errors.Join(e.row.check(), lines(content, maxLine, d.line))
	for i := range e.kinds {
		if _, _, lineErr := parseKindLine(kindLine(&e.kinds[i], 0)); lineErr != nil {
			err = errors.Join(err, lineErr)
			break
		}
	}
	if err != nil {
		return ErrUnindexable.New(err, "an index cannot contain the package")
	}
	return nil
}

// fits reports whether readers accept the line of the text.
func (t *Text) fits() bool { return t == nil || len(encodeJSON(textToWire(t))) <= maxTextLine }

// checkLayer fails with ErrUnindexable if readers would refuse a layer with the content.
func checkLayer(mediaType oci.MediaType, content []byte) error {
	most := map[oci.MediaType]int{
		MediaTypePackages: maxPackages, MediaTypeHistory: maxShard, MediaTypeText: maxText,
	}[mediaType]
	if len(content) > most {
		return ErrUnindexable.New(
			nil, "the layer %s of the index would have %d bytes, at most %d are allowed", mediaType, len(content), most,
		)
	}
	return nil
}
