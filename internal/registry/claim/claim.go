// Package claim decides which content a version of a package gets if several servers in front of one registry receive different contents
// at the same time, and which of several similar names a new repository gets, with nothing but the tags of an OCI registry.
//
// Registries cannot write a tag on a condition. Therefore the servers first agree on the content of a version, and the tag of the version
// is only ever written with the content on which they agreed. The same holds for the first tag of a repository with a new name. Each server adds claims, which are tags of their own and are never replaced, and lists
// the claims of all servers. In each round, a server
//
//  1. proposes a content, and lists the claims;
//  2. states whether its proposal was the sole one of the round, and lists the claims again.
//
// The content is decided if all statements are that the same proposal was the sole one. Otherwise the server proposes in the next round the
// content that was stated to be the sole one, or, if there is none, the smallest of the proposals. Of two servers with different
// proposals, the one that proposed later has seen both, so at most one content is the sole one of a round; and a server that did not see a
// statement of a decided content has made its own statement before, so that the content was not decided. This is the commit-adopt
// protocol of E. Gafni ("Round-by-round fault detectors", 1998).
//
// The decision depends on no clock and no time limit, and a server that fails at any point leaves claims with which the others
// continue. The registry must show a tag in each list and read that starts after its write has ended. Claims are deleted once the version has
// its tag: a server that misses deleted claims finds the tag, because it looks for the tag after it has listed the claims.
//
// A registry that is such a server itself refuses claims with [RefusalCode]. It decides alone, so the servers in front of it need not agree: each pushes
// its own content, and the registry accepts one.
package claim

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// ErrContended is the code for a version that several servers publish at the same time, again and again.
var ErrContended = errcode.Code{
	Name: "VersionContended", Class: errcode.Unavailable,
	Cause: "Several registry servers receive different contents of one version, or new packages with similar names, and have not agreed on one of them.",
	Fix:   "Push again.",
}

// ErrReserved is the code for a claim of a client.
var ErrReserved = errcode.Code{
	Name: "ReservedTag", Class: errcode.Invalid,
	Cause: "The tag has the form of the tags with which registry servers in front of one registry agree on the content of a version.",
	Fix:   "Push under another tag.",
}

// RefusalCode is the error code in the response of a registry that refuses a claim.
const RefusalCode = "CLAIM_REFUSED"

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrContended, ErrReserved} }

// Version is a version in a repository of the registry.
type Version struct {
	Client *remote.Client
	// Ref is the repository with the tag of the version.
	Ref oci.Reference
	// Published returns the content with which the version was published under any spelling; zero if it was not.
	Published func(context.Context) (oci.Digest, error)
}

// Decide returns the content that the version has, or must get: the wanted one, or the one of another server. The content must be in the
// registry. After a decision, the content is pushed under the tag, and then Clear is called.
func (v Version) Decide(ctx context.Context, wanted oci.Digest) (oci.Digest, error) {
	return v.agreement().decide(ctx, wanted, map[string]string{tagAnnotation: v.Ref.Tag})
}

func (v Version) agreement() agreement {
	return agreement{
		client: v.Client, own: v.Ref, key: v.key(), published: v.Published,
		repositories: func(context.Context) ([]oci.Reference, error) { return []oci.Reference{v.Ref}, nil },
	}
}

// TagOf returns the tag for which a decided content was pushed.
func (v Version) TagOf(ctx context.Context, content oci.Digest) (string, error) {
	annotations, err := v.agreement().annotations(ctx, []oci.Reference{v.Ref}, content)
	if err != nil {
		return "", err
	}
	tag := annotations[tagAnnotation]
	if found := version.Parse(tag); !oci.ValidTag(tag) || versionKey(&found) != v.key() {
		return v.Ref.Tag, nil
	}
	return tag, nil
}

// Clear deletes the claims of the version, which has its tag, those of all other versions with a tag that servers have left, and those of the
// name of the repository. Registries can refuse deletions; the claims remain then.
func (v Version) Clear(ctx context.Context, nameKey string) error {
	return clearClaims(ctx, v.Client, v.Ref, func(key string, published map[string]bool) bool {
		return key == v.key() || key == nameKey || published[key]
	})
}

func (v Version) key() string {
	parsed := version.Parse(v.Ref.Tag)
	return versionKey(&parsed)
}
