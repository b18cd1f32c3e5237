package fetch

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// TagList is what one place says which tags there are. Lists of several places are
// never put together: the versions of a package would be some that nobody has published.
type TagList struct {
	// Tags are in the order of their bytes, each once.
	Tags []string
	// From is the repository that has answered.
	From oci.Reference
	// Next is the origin without this place and those before it, for somebody who does
	// not find in the list what should be there. It has no places where the origin itself
	// has answered.
	Next Origin
}

// errNoTags is what is wrong with a mirror whose list is empty. Many registries list no
// tags of a repository that they do not have.
var errNoTags = errors.New("it lists no tags")

// Tags lists the tags of the repository of an origin: those of the first place that has
// any, or else of the last.
func (s *Source) Tags(ctx context.Context, o Origin) (TagList, error) {
	if len(o.Places) == 0 {
		o = Plain(o.Ref)
	}
	next := o
	return first(ctx, o, func(p Place) (TagList, error) {
		next.Places = next.Places[1:]
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return TagList{}, err
		}
		tags, err := c.remote.Tags(ctx, p.Ref)
		if err == nil && len(tags) == 0 && len(next.Places) > 0 {
			err = errNoTags
		}
		return TagList{tags, p.Ref, next}, err
	})
}
