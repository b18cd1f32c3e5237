package packagestatus

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// mostLookups is the number of tags that are looked up at the same time.
const mostLookups = 8

// SharedBy returns the other versions of a repository with the content of a version, which has its tag and its digest.
// They have the same status, because it is that of the content. Tags that can move are no versions.
func SharedBy(ctx context.Context, client *remote.Client, content oci.Reference) ([]string, error) {
	tags, err := client.Tags(ctx, content)
	if err != nil {
		return nil, err
	}
	versions := slices.DeleteFunc(tags, func(tag string) bool { return tag == content.Tag || !IsVersion(tag) })
	digests := make([]oci.Digest, len(versions))
	lookups, ctx := errgroup.WithContext(ctx)
	lookups.SetLimit(mostLookups)
	for i, tag := range versions {
		lookups.Go(func() error {
			d, err := client.Resolve(ctx, content.WithTag(tag))
			if err != nil && !errors.Is(err, remote.ErrTagNotFound) {
				return err
			}
			digests[i] = d.Digest
			return nil
		})
	}
	if err := lookups.Wait(); err != nil {
		return nil, err
	}
	var shared []string
	for i, tag := range versions {
		if digests[i] == content.Digest {
			shared = append(shared, tag)
		}
	}
	return shared, nil
}

// IsVersion reports whether a tag is a complete semantic version, which never changes, also in a spelling with leading
// zeros, which only other clients read as a version. Tags such as "latest" and "v1" can move.
func IsVersion(tag string) bool {
	v := version.ParseLenient(tag)
	return v.Usable()
}
