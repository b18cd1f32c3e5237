package retention

import (
	"context"
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A Needed is the reason why a candidate is kept after all, such as "the tag main refers to it".
type Needed string

// DeletedAlready is the reason for a version that another run, or a user, has deleted.
const DeletedAlready Needed = "it was deleted already"

// Check returns the reason why the registry still needs the content of a version, and "" if nothing does: another tag,
// an image index under another tag, a referrer other than a status, or a tag that has moved since the index was
// updated. A version that [Unfinished] has returned must still have the status of the retention. A registry server of
// xpkg is asked whether one of its packages requires the version, because the index may not have all of them. If
// something that can refer to the version is not valid or exceeds a limit, the version is kept, too: one publisher must
// not be able to stop the retention of all packages.
func Check(ctx context.Context, client *remote.Client, v Candidate) (Needed, error) {
	needed, err := check(ctx, client, v)
	if errcode.IsOfContent(err) {
		return Needed("what refers to it cannot be read: " + err.Error()), nil
	}
	return needed, err
}

func check(ctx context.Context, client *remote.Client, v Candidate) (Needed, error) {
	ref, err := referenceOf(v)
	if err != nil {
		return "", err
	}
	current, err := client.Resolve(ctx, ref.WithTag(v.Tag))
	switch {
	case errors.Is(err, remote.ErrTagNotFound):
		return DeletedAlready, nil
	case err != nil:
		return "", err
	case current.Digest != v.Digest:
		return Needed("its tag refers to " + current.Digest.Short() + " now"), nil
	}
	if isRemoved(v.Version) {
		status, err := packagestatus.Read(ctx, client, ref)
		switch {
		case errors.Is(err, catalog.ErrInvalidStatus):
			return Needed(err.Error()), nil
		case err != nil:
			return "", err
		case status == nil || status.State != catalog.Removed || status.Message != removedMessage:
			return "its status has changed since the index was updated", nil
		}
	}
	required, err := client.IsRequired(ctx, ref)
	if err != nil {
		return "", err
	}
	if required {
		return "a package of the registry requires it", nil
	}
	referrers, err := client.Referrers(ctx, ref, "")
	if err != nil {
		return "", err
	}
	for _, d := range referrers {
		if d.ArtifactType != catalog.StatusArtifactType {
			return Needed("the artifact " + d.Digest.Short() + " refers to it"), nil
		}
	}
	return checkTags(ctx, client, ref, v)
}

func referenceOf(v Candidate) (oci.Reference, error) {
	ref, err := oci.ParseReference(v.Repository+":"+v.Tag, oci.ParseOptions{})
	return ref.WithDigest(v.Digest), err
}

// checkTags returns the reason why another tag of the repository needs the content of a version. The content of every
// tag counts, apart from those that xpkg writes: any name that begins with "sha256-" can be that of a version or an
// index.
func checkTags(ctx context.Context, client *remote.Client, ref oci.Reference, v Candidate) (Needed, error) {
	tags, err := client.Tags(ctx, ref)
	if err != nil {
		return "", err
	}
	for _, tag := range tags {
		if _, isStatus := catalog.ParseStatusTag(tag); tag == v.Tag || isStatus {
			continue
		}
		// The tag without a suffix lists the referrers.
		if subject, suffix, ok := oci.ParseArtifactTag(tag); ok && subject == v.Digest && suffix != "" {
			return Needed("the artifact with the tag " + tag + " refers to it"), nil
		}
		why, err := needs(ctx, client, ref.WithTag(tag), v.Digest)
		if err != nil || why != "" {
			return why, err
		}
	}
	return "", nil
}

// needs returns the reason why a tag needs a manifest: it refers to it, directly or by image indexes.
func needs(ctx context.Context, client *remote.Client, tag oci.Reference, d oci.Digest) (Needed, error) {
	refers := Needed("the tag " + tag.Tag + " refers to it")
	root, err := client.Resolve(ctx, tag)
	switch {
	case errors.Is(err, remote.ErrTagNotFound):
		return "", nil
	case err != nil:
		return "", err
	case root.Digest == d:
		return refers, nil
	case root.MediaType != oci.MediaTypeOCIIndex && root.MediaType != oci.MediaTypeDockerList:
		return "", nil
	}
	a, err := client.Artifact(ctx, tag.WithDigest(root.Digest))
	if err != nil {
		return "", err
	}
	contains, err := oci.Contains(ctx, a, d, oci.Limits{})
	switch {
	case errors.Is(err, oci.ErrIndexTooDeep):
		return Needed("the tag " + tag.Tag + " has too many image indexes to find out whether it refers to it"), nil
	case err != nil || !contains:
		return "", err
	}
	return refers, nil
}

// removedMessage is the message in the status of the versions that Delete deletes.
const removedMessage = "the retention of prereleases has deleted the version"

// Delete deletes the content of a version that [Check] has found to be unneeded, even if the tag has moved since. It
// reports whether the content existed: another run can have deleted it. The status comes first, so an interrupted
// deletion can leave a version with it, which [Unfinished] returns.
func Delete(ctx context.Context, client *remote.Client, v Candidate) (existed bool, err error) {
	ref, err := referenceOf(v)
	if err != nil {
		return false, err
	}
	status := catalog.Status{State: catalog.Removed, Reason: catalog.Other, Message: removedMessage}
	_, err = packagestatus.Delete(ctx, client, ref, status)
	if errors.Is(err, oci.ErrManifestNotFound) {
		return false, nil
	}
	return err == nil, err
}

// A Denied is a repository that the client may not read or change.
type Denied struct {
	Repository string
	Err        error
}

// Unfinished returns the versions that exist although their status states that the retention has deleted them: their
// deletion was interrupted, or they were pushed again. It takes one request for each package with such a status, and
// returns the repositories that the client may not read, too.
func Unfinished(
	ctx context.Context, client *remote.Client, c *catalog.Catalog,
) (found []Candidate, denied []Denied, err error) {
	for i := range c.Histories {
		h := &c.Histories[i]
		of, err := unfinished(ctx, client, h)
		switch {
		case errors.Is(err, remote.ErrUnauthorized):
			denied = append(denied, Denied{h.Repository, err})
		case err != nil:
			return nil, nil, err
		}
		found = append(found, of...)
	}
	return found, denied, nil
}

// unfinished returns the versions of a package whose deletion was interrupted.
func unfinished(ctx context.Context, client *remote.Client, h *catalog.History) ([]Candidate, error) {
	var out []Candidate
	for _, v := range h.Versions {
		if isRemoved(v) && v.Status.Message == removedMessage {
			out = append(out, Candidate{h.Repository, v})
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	ref, err := referenceOf(out[0])
	if err != nil {
		return nil, err
	}
	existing, err := client.ExistingTags(ctx, ref)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(v Candidate) bool { return !slices.Contains(existing, v.Tag) }), nil
}
