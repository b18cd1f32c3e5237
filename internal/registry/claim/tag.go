package claim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// state is the kind of a claim.
type state byte

const (
	// proposed means that a server wants the value.
	proposed state = 'p'
	// sole means that a server has proposed the value and has then seen no other proposal of the round.
	sole state = 's'
	// contested means that a server has proposed the value and has then seen another proposal of the round.
	contested state = 'c'
)

// element is a claim. The tag contains all of it, so that one list of tags shows all claims.
type element struct {
	round int
	state state
	// value is the content of a version, or the hash of a name.
	value oci.Digest
}

const (
	tagSuffix = ".claim-"
	// keyBytes is the length of the hash of a version or name in a tag.
	keyBytes = 16
)

// versionKey returns the part of tags that identifies a version, which is the same for all spellings of the version.
func versionKey(v *version.Version) string { return keyOf(v.Semver().String()) }

// NameKey returns the part of tags that identifies similar names, for a form in which they are equal.
func NameKey(folded string) string { return keyOf("name:" + folded) }

func keyOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:keyBytes])
}

func (e element) tag(key string) string {
	return oci.ArtifactTag(e.value, fmt.Sprintf("%s%s.%d%c", tagSuffix, key, e.round, e.state))
}

// parseTag parses the tag of a claim.
func parseTag(tag string) (e element, key string, ok bool) {
	value, suffix, isArtifact := oci.ParseArtifactTag(tag)
	rest, isClaim := strings.CutPrefix(suffix, tagSuffix)
	key, rest, hasRound := strings.Cut(rest, ".")
	if !isArtifact || !isClaim || !hasRound || len(key) != 2*keyBytes || len(rest) < 2 {
		return element{}, "", false
	}
	e.value = value
	var err error
	if e.round, err = strconv.Atoi(rest[:len(rest)-1]); err != nil {
		return element{}, "", false
	}
	e.state = state(rest[len(rest)-1])
	return e, key, e.tag(key) == tag && (e.state == proposed || e.state == sole || e.state == contested)
}

// IsTag reports whether a tag is that of a claim. Clients do not write such tags, and mirrors do not copy them.
func IsTag(tag string) bool {
	_, _, ok := parseTag(tag)
	return ok
}
