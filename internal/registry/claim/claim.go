// Package claim decides which content a version of a package gets if several servers in front of one registry receive different contents
// at the same time, with nothing but the tags of an OCI registry.
//
// Registries cannot write a tag on a condition. Therefore the servers first agree on the content of a version, and the tag of the version
// is only ever written with the content on which they agreed. Each server adds claims, which are tags of their own and are never replaced, and lists
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
package claim

import (
	"context"
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/registry/annotated"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// ErrContended is the code for a version that several servers publish at the same time, again and again.
var ErrContended = errcode.Code{
	Name: "VersionContended", Class: errcode.Unavailable,
	Cause: "Several registry servers receive different contents of one version, and have not agreed on one of them.",
	Fix:   "Push again.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrContended} }

// mostRounds is the maximum number of rounds of one call. Two rounds decide unless servers propose at the same moments again and again.
const mostRounds = 20

// artifactType is the type of the manifest of a claim, and tagAnnotation contains the tag of the version.
const artifactType, tagAnnotation = "application/vnd.xpkg.claim.v1+json", "dev.xpkg.claim.tag"

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
	content := wanted
	first, err := v.list(ctx)
	if err != nil {
		return oci.Digest{}, err
	}
	if proposals := first.contents(1, proposed); len(proposals) > 0 {
		content = proposals[0] // Another server has begun, and may have failed.
	}
	for round := 1; round <= mostRounds; round++ {
		spelling, err := v.spelling(ctx, content, wanted)
		if err != nil {
			return oci.Digest{}, err
		}
		proposals, err := v.add(ctx, element{round, proposed, content}, spelling)
		if err != nil {
			return oci.Digest{}, err
		}
		statement := contested
		if only(proposals.contents(round, proposed), content) {
			statement = sole
		}
		statements, err := v.add(ctx, element{round, statement, content}, spelling)
		if err != nil {
			return oci.Digest{}, err
		}
		published, err := v.Published(ctx)
		if err != nil || !published.IsZero() {
			return published, err
		}
		soles := statements.contents(round, sole)
		if only(soles, content) && len(statements.contents(round, contested)) == 0 {
			return content, nil
		}
		content = slices.Concat(soles, statements.contents(round, proposed))[0]
	}
	return oci.Digest{}, ErrContended.New(nil, "other servers publish %s at the same time", v.Ref)
}

// spelling returns the tag that the claims of a content state: that of this server for its own content, and that of the server that proposed it for
// another one, because every server writes the same claim for it.
func (v Version) spelling(ctx context.Context, content, wanted oci.Digest) (string, error) {
	if content == wanted {
		return v.Ref.Tag, nil
	}
	tag, err := v.TagOf(ctx, content)
	if errors.Is(err, remote.ErrTagNotFound) || errors.Is(err, oci.ErrManifestNotFound) {
		return v.Ref.Tag, nil // The version has its tag, and the claim was deleted.
	}
	return tag, err
}

// only reports whether a content is the only one of a list.
func only(contents []oci.Digest, content oci.Digest) bool {
	return len(contents) == 1 && contents[0] == content
}

// TagOf returns the tag for which a decided content was pushed.
func (v Version) TagOf(ctx context.Context, content oci.Digest) (string, error) {
	a, err := v.Client.Artifact(ctx, v.Ref.WithTag(element{1, proposed, content}.tag(v.key())))
	if err != nil {
		return "", err
	}
	_, annotations, err := annotated.Read(ctx, a)
	if err != nil {
		return "", err
	}
	tag := annotations[tagAnnotation]
	if found := version.Parse(tag); !oci.ValidTag(tag) || key(&found) != v.key() {
		return v.Ref.Tag, nil
	}
	return tag, nil
}

// Clear deletes the claims of the version, which has its tag. Registries can refuse deletions; the claims remain then.
func (v Version) Clear(ctx context.Context) error {
	all, err := v.list(ctx)
	if err != nil {
		return err
	}
	for _, e := range all {
		claim, err := v.Client.Resolve(ctx, v.Ref.WithTag(e.tag(v.key())))
		if err == nil {
			err = v.Client.Delete(ctx, v.Ref.WithDigest(claim.Digest))
		}
		if err != nil && !errors.Is(err, remote.ErrTagNotFound) && !errors.Is(err, oci.ErrManifestNotFound) {
			return err
		}
	}
	return nil
}

func (v Version) key() string {
	parsed := version.Parse(v.Ref.Tag)
	return key(&parsed)
}

// add adds a claim with the tag for which the content is pushed, and returns all claims.
func (v Version) add(ctx context.Context, e element, spelling string) (elements, error) {
	tag := e.tag(v.key())
	// The name of the tag is in the content, so that no two claims have one digest, by which they are deleted.
	content := annotated.New(artifactType, map[string]string{tagAnnotation: spelling, "dev.xpkg.claim": tag})
	if _, err := v.Client.Push(ctx, v.Ref.WithTag(tag), content); err != nil {
		return nil, err
	}
	return v.list(ctx)
}

// elements are the claims of a version.
type elements []element

// list returns the claims of the version.
func (v Version) list(ctx context.Context) (elements, error) {
	tags, err := v.Client.Tags(ctx, v.Ref)
	if errors.Is(err, remote.ErrRepositoryNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found elements
	for _, tag := range tags {
		if e, k, ok := parseTag(tag); ok && k == v.key() {
			found = append(found, e)
		}
	}
	return found, nil
}

// contents returns the contents of the claims of a round in a state, in ascending order.
func (all elements) contents(round int, s state) []oci.Digest {
	var found []oci.Digest
	for _, e := range all {
		if e.round == round && e.state == s {
			found = append(found, e.content)
		}
	}
	slices.SortFunc(found, oci.Digest.Compare)
	return found
}
