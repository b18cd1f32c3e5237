package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

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

const (
	tagsPerPage = "1000"
	maxTagPages = 100
)

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
	next := s.tagsURL(repository)
	seen := map[string]bool{}
	var tags []string
	for next != nil {
		if len(seen) == maxTagPages || seen[next.String()] {
			return nil, ErrTagList.New(nil, "the list of tags of %s does not end after %d pages", repository.Name(), len(seen))
		}
		seen[next.String()] = true
		page, link, err := r.readTags(ctx, s, repository, next)
		if err != nil {
			return nil, err
		}
		tags = append(tags, page...)
		if next, err = s.nextPage(next, link); err != nil {
			return nil, err
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

// tagPage returns the first page of tags.
func (r *Client) tagPage(ctx context.Context, repository oci.Reference) ([]string, error) {
	s := r.session(repository.Host())
	page, _, err := r.readTags(ctx, s, repository, s.tagsURL(repository))
	return page, err
}

func (s *session) tagsURL(repository oci.Reference) *url.URL {
	u := s.url("/v2/" + repository.RepositoryPath() + "/tags/list")
	u.RawQuery = url.Values{"n": {tagsPerPage}}.Encode()
	return u
}

func (r *Client) readTags(ctx context.Context, s *session, repository oci.Reference, page *url.URL) (tags []string, link string, err error) {
	ans, err := s.read(ctx, call{
		method: http.MethodGet, url: page, repository: repository.RepositoryPath(), actions: pullActions,
		what: "list the tags of " + repository.Name(),
	}, r.opts.Limits.Manifest)
	if ans.Response != nil && ans.StatusCode == http.StatusNotFound {
		return nil, "", ErrRepositoryNotFound.New(nil, "the repository %s does not exist", repository.Name())
	}
	if errors.Is(err, oci.ErrManifestTooLarge) {
		return nil, "", ErrTagList.New(nil, "one page of the tags of %s has more than %d bytes (--max-manifest-size)", repository.Name(), r.opts.Limits.Manifest)
	}
	if err != nil {
		return nil, "", err
	}
	var list struct {
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal(ans.body, &list); err != nil {
		return nil, "", oci.ErrUnexpectedMediaType.New(nil, "registry %s responded with %q instead of a list of tags", s.host, text.Clip(string(contentType(ans.Header))))
	}
	return slices.DeleteFunc(list.Tags, func(t string) bool { return !oci.ValidTag(t) }), ans.Header.Get("Link"), nil
}

// nextPage returns the link to the next page, or nil if there is none (OCI distribution
// specification, "Listing Tags").
func (s *session) nextPage(current *url.URL, link string) (*url.URL, error) {
	for part := range strings.SplitSeq(link, ",") {
		target, params, found := strings.Cut(part, ";")
		if !found || !strings.Contains(strings.ReplaceAll(params, `"`, ""), "rel=next") {
			continue
		}
		target = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(target), "<"), ">")
		next, err := current.Parse(target)
		if err != nil || !s.isHome(next) || next.Path != current.Path {
			return nil, ErrTagList.New(nil, "the list of tags of registry %s continues elsewhere", s.host)
		}
		return next, nil
	}
	return nil, nil
}
