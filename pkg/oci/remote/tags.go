package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrRepositoryNotFound is the code for a repository that does not exist.
var ErrRepositoryNotFound = errcode.Code{
	Name: "RepositoryNotFound", Class: errcode.NotFound,
	Cause: "The repository does not exist, or requires credentials.",
	Fix:   "Check the spelling, and log in if the repository is private.",
}

// ErrTagList is the code for a list of tags that is too long or continues on another
// host.
var ErrTagList = errcode.Code{
	Name: "TagList", Class: errcode.Limit,
	Cause: "A registry's list of tags is too long, repeats itself, or continues on another host.",
	Fix:   "Request an exact version instead of a range.",
}

// ExistingTags returns the tags of a repository as Tags does, and none for a repository that does not exist.
func (r *Client) ExistingTags(ctx context.Context, repository oci.Reference) ([]string, error) {
	tags, err := r.Tags(ctx, repository)
	if errors.Is(err, ErrRepositoryNotFound) {
		return nil, nil
	}
	return tags, err
}

// Tags returns the tags of a repository in byte order, without duplicates. It omits names
// that are not valid tags. It reads at most 100 pages, from the registry's own host only.
func (r *Client) Tags(ctx context.Context, repository oci.Reference) ([]string, error) {
	s := r.session(repository.Host())
	var tags []string
	err := s.pages(ctx, s.tagsCall(repository), r.opts.Limits.Manifest, func(ans answer, err error) error {
		page, err := tagsOf(repository, ans, err)
		tags = append(tags, page...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

// tagPage returns the first page of tags.
func (r *Client) tagPage(ctx context.Context, repository oci.Reference) ([]string, error) {
	s := r.session(repository.Host())
	ans, _, err := s.firstPage(ctx, s.tagsCall(repository), r.opts.Limits.Manifest)
	return tagsOf(repository, ans, err)
}

func (s *session) tagsCall(repository oci.Reference) call {
	return call{
		method: http.MethodGet, url: s.url("/v2/" + repository.RepositoryPath() + "/tags/list"),
		repository: repository.RepositoryPath(), actions: pullActions, what: "list the tags of " + repository.Name(),
	}
}

// tagsOf returns the tags of a page.
func tagsOf(repository oci.Reference, ans answer, err error) ([]string, error) {
	if ans.Response != nil && ans.StatusCode == http.StatusNotFound {
		return nil, ErrRepositoryNotFound.New(nil, "the repository %s does not exist", repository.Name())
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal(ans.body, &list); err != nil {
		return nil, oci.ErrUnexpectedMediaType.New(nil, "registry %s responded with %q instead of a list of tags",
			repository.Host(), text.Clip(string(contentType(ans.Header))))
	}
	return slices.DeleteFunc(list.Tags, func(t string) bool { return !oci.ValidTag(t) }), nil
}
