package fetch

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TagList is the list of tags at one location. Lists of several locations are never merged: the result would be a set
// of versions that no repository contains.
type TagList struct {
	// Tags are in byte order, without duplicates.
	Tags []string
	// From is the repository that listed the tags.
	From oci.Reference
	// Next is the origin without this location and the ones before it, for a caller that does not find a version in the
	// list. It has no locations if the origin itself returned the list.
	Next Origin
}

// errNoTags is the error of a mirror with an empty list. Many registries return an empty list for a missing
// repository.
var errNoTags = errors.New("it lists no tags")

// Tags returns the tags of an origin's repository: the tags at the first location that has any, otherwise at the last.
func (s *Source) Tags(ctx context.Context, o Origin) (TagList, error) {
	if len(o.Endpoints) == 0 {
		o = Plain(o.Ref)
	}
	next := o
	return first(ctx, o, func(p Endpoint) (TagList, error) {
		next.Endpoints = next.Endpoints[1:]
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return TagList{}, err
		}
		tags, err := c.remote.Tags(ctx, p.Ref)
		if err == nil && len(tags) == 0 && len(next.Endpoints) > 0 {
			err = errNoTags
		}
		return TagList{tags, p.Ref, next}, err
	})
}
