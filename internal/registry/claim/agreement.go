package claim

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/registry/annotated"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// mostRounds is the maximum number of rounds of one call. Two rounds decide unless servers propose at the same moments again and again.
const mostRounds = 20

// artifactType is the type of the manifest of a claim.
const artifactType = "application/vnd.xpkg.claim.v1+json"

// Annotations of a claim.
const (
	// claimAnnotation contains the tag of the claim, so that no two claims have one digest, by which they are deleted.
	claimAnnotation = "dev.xpkg.claim"
	// tagAnnotation contains the tag for which the content was pushed.
	tagAnnotation = "dev.xpkg.claim.tag"
	// repositoryAnnotation contains the repository to which the content was pushed, for a name.
	repositoryAnnotation = "dev.xpkg.claim.repository"
	// contentAnnotation contains the digest of the content that was pushed, for a name.
	contentAnnotation = "dev.xpkg.claim.content"
)

// agreement is an agreement of several servers on one value.
type agreement struct {
	client *remote.Client
	// own is the repository to which this server adds claims.
	own oci.Reference
	// repositories returns the repositories to which servers add claims.
	repositories func(context.Context) ([]oci.Reference, error)
	// key identifies the agreement.
	key string
	// published returns the value that is in effect; zero if none is.
	published func(context.Context) (oci.Digest, error)
}

// decide returns the value that is in effect, or must take effect: the wanted one, or the one of another server; the wanted one if the registry decides
// itself. The claims of the wanted value have the
// annotations, and those of another value the ones of the server that proposed it, because every server writes the same claim for it.
func (a agreement) decide(ctx context.Context, wanted oci.Digest, annotations map[string]string) (oci.Digest, error) {
	value := wanted
	first, err := a.list(ctx)
	if err != nil {
		return oci.Digest{}, err
	}
	if proposals := first.values(1, proposed); len(proposals) > 0 {
		value = proposals[0] // Another server has begun, and may have failed.
	}
	known := first
	for round := 1; round <= mostRounds; round++ {
		stated := annotations
		if value != wanted {
			if stated, err = a.annotations(ctx, known.repositories(value), value); err != nil && !isMissing(err) {
				return oci.Digest{}, err
			}
		}
		proposals, err := a.add(ctx, element{round, proposed, value}, stated)
		if remote.ResponseCode(err) == RefusalCode {
			return wanted, nil
		}
		if err != nil {
			return oci.Digest{}, err
		}
		statement := contested
		if only(proposals.values(round, proposed), value) {
			statement = sole
		}
		statements, err := a.add(ctx, element{round, statement, value}, stated)
		if err != nil {
			return oci.Digest{}, err
		}
		published, err := a.published(ctx)
		if err != nil || !published.IsZero() {
			return published, err
		}
		soles := statements.values(round, sole)
		if only(soles, value) && len(statements.values(round, contested)) == 0 {
			return value, nil
		}
		candidates := slices.Concat(soles, statements.values(round, proposed))
		if len(candidates) == 0 {
			return oci.Digest{}, remote.ErrRegistryUnavailable.New(nil, "registry %s does not list the tags that were pushed to %s", a.own.Host(), a.own.Name())
		}
		value, known = candidates[0], statements
	}
	return oci.Digest{}, ErrContended.New(nil, "other servers publish %s at the same time", a.own)
}

// only reports whether a value is the only one of a list.
func only(values []oci.Digest, value oci.Digest) bool {
	return len(values) == 1 && values[0] == value
}

// annotations returns the annotations of the claim with which a value was proposed first. It fails if the claim was deleted, because the value is in
// effect.
func (a agreement) annotations(ctx context.Context, repositories []oci.Reference, value oci.Digest) (map[string]string, error) {
	err := error(remote.ErrTagNotFound.New(nil, "no repository has a claim of %s", value.Short()))
	for _, repository := range repositories {
		var claim oci.Artifact
		if claim, err = a.client.Artifact(ctx, repository.WithTag(element{1, proposed, value}.tag(a.key))); err == nil {
			_, annotations, err := annotated.Read(ctx, claim)
			return annotations, err
		}
		if !isMissing(err) {
			return nil, err
		}
	}
	return nil, err
}

// isMissing reports whether an error means that content is not in the registry.
func isMissing(err error) bool {
	return errors.Is(err, remote.ErrTagNotFound) || errors.Is(err, oci.ErrManifestNotFound)
}

// add adds a claim with annotations, and returns all claims.
func (a agreement) add(ctx context.Context, e element, annotations map[string]string) (claims, error) {
	if err := put(ctx, a.client, a.own, e.tag(a.key), annotations); err != nil {
		return nil, err
	}
	return a.list(ctx)
}

// put writes a claim.
func put(ctx context.Context, client *remote.Client, repository oci.Reference, tag string, annotations map[string]string) error {
	all := map[string]string{}
	maps.Copy(all, annotations)
	all[claimAnnotation] = tag
	_, err := client.Push(ctx, repository.WithTag(tag), annotated.New(artifactType, all))
	return err
}

// claims are claims of one agreement with their repositories.
type claims []located

// located is a claim in a repository.
type located struct {
	element
	in oci.Reference
}

// list returns the claims of the agreement.
func (a agreement) list(ctx context.Context) (claims, error) {
	repositories, err := a.repositories(ctx)
	if err != nil {
		return nil, err
	}
	var found claims
	for _, repository := range repositories {
		tags, err := a.client.ExistingTags(ctx, repository)
		if err != nil {
			return nil, err
		}
		for _, tag := range tags {
			if e, key, ok := parseTag(tag); ok && key == a.key {
				found = append(found, located{e, repository})
			}
		}
	}
	return found, nil
}

// values returns the values of the claims of a round in a state, in ascending order.
func (all claims) values(round int, s state) []oci.Digest {
	var found []oci.Digest
	for _, c := range all {
		if c.round == round && c.state == s {
			found = append(found, c.value)
		}
	}
	slices.SortFunc(found, oci.Digest.Compare)
	return slices.Compact(found)
}

// repositories returns the repositories that have the first proposal of a value.
func (all claims) repositories(value oci.Digest) []oci.Reference {
	var found []oci.Reference
	for _, c := range all {
		if c.element == (element{1, proposed, value}) {
			found = append(found, c.in)
		}
	}
	return found
}

// clearClaims deletes the claims in a repository with the selected keys. Published has the keys of the versions that have a tag.
func clearClaims(ctx context.Context, client *remote.Client, repository oci.Reference, selects func(key string, published map[string]bool) bool) error {
	selected := func() ([]string, error) {
		tags, err := client.ExistingTags(ctx, repository)
		if err != nil {
			return nil, err
		}
		published := map[string]bool{}
		for _, tag := range tags {
			if v := version.Parse(tag); v.Usable() {
				published[versionKey(&v)] = true
			}
		}
		return slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
			_, key, ok := parseTag(tag)
			return !ok || !selects(key, published)
		}), nil
	}
	found, err := selected()
	if err != nil || len(found) == 0 {
		return err
	}
	missing := map[string]bool{}
	for _, tag := range found {
		err := remove(ctx, client, repository.WithTag(tag))
		if err != nil && !isMissing(err) {
			return err
		}
		missing[tag] = err != nil
	}
	if found, err = selected(); err != nil {
		return err
	}
	for _, tag := range found {
		if !missing[tag] {
			continue // Another server has just added it, and deletes it.
		}
		// A registry can list a tag whose manifest was deleted while it was pushed again. Only with its manifest it can be deleted.
		if err := put(ctx, client, repository, tag, nil); err != nil {
			return err
		}
		if err := remove(ctx, client, repository.WithTag(tag)); err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

// remove deletes a claim.
func remove(ctx context.Context, client *remote.Client, claim oci.Reference) error {
	found, err := client.Resolve(ctx, claim)
	if err != nil {
		return err
	}
	return client.Delete(ctx, claim.WithDigest(found.Digest))
}
