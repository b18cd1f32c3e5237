package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// maxPages is the maximum number of pages of a list.
const maxPages = 100

// pageSizes are the requested numbers of entries of a page, in order of preference. Registries refuse more than their
// maximum, and some refuse any number; "" lets the registry choose.
var pageSizes = []string{"1000", "100", ""}

// pages calls visit with each response to a call that lists something, and with the error of one that cannot be read
// (OCI distribution specification, "Listing Tags"). It reads at most 100 pages, and ends with the error of visit.
func (s *session) pages(ctx context.Context, c call, most int64, visit func(answer, error) error) error {
	ans, page, err := s.firstPage(ctx, c, most)
	seen := map[string]bool{}
	for {
		if err = visit(ans, err); err != nil {
			return err
		}
		seen[page.String()] = true
		var next *url.URL
		if next, err = s.nextPage(page, ans.Header); err != nil || next == nil {
			return err
		}
		if seen[next.String()] || len(seen) == maxPages {
			return ErrTagList.New(nil, "cannot %s: the list does not end after %d pages", c.what, len(seen))
		}
		page, c.url = next, next
		ans, err = s.readPage(ctx, c, most)
	}
}

// firstPage returns the response to a call that lists something, and its URL, with the first page size that the
// registry does not refuse.
func (s *session) firstPage(ctx context.Context, c call, most int64) (ans answer, page *url.URL, err error) {
	s.mu.Lock()
	first := s.pageSize
	s.mu.Unlock()
	list := *c.url
	for i := first; i < len(pageSizes); i++ {
		page = &list
		if pageSizes[i] != "" {
			sized := list
			sized.RawQuery = url.Values{"n": {pageSizes[i]}}.Encode()
			page = &sized
		}
		c.url = page
		ans, err = s.readPage(ctx, c, most)
		if !refusesPageSize(ans, err) {
			s.mu.Lock()
			s.pageSize = i
			s.mu.Unlock()
			break
		}
	}
	return ans, page, err
}

// refusesPageSize reports whether the response to a list can be the refusal of the number of entries, for which
// registries use several statuses.
func refusesPageSize(ans answer, err error) bool {
	switch {
	case ans.Response == nil:
		return false
	case ResponseCode(err) == "PAGINATION_NUMBER_INVALID", ans.StatusCode == http.StatusNotImplemented:
		return true
	}
	return errors.Is(err, ErrRefused) && ans.StatusCode != http.StatusNotFound
}

func (s *session) readPage(ctx context.Context, c call, most int64) (answer, error) {
	ans, err := s.read(ctx, c, most)
	if errors.Is(err, oci.ErrManifestTooLarge) {
		err = ErrTagList.New(nil, "cannot %s: one page has more than %d bytes (--max-manifest-size)", c.what, most)
	}
	return ans, err
}

// nextPage returns the URL of the page after a response, or nil if there is none. A page that links to itself is the
// last one. It takes only the query from the link, because servers behind a proxy can name themselves with another
// scheme or a longer path, and fails if the link leads to another host or list.
func (s *session) nextPage(current *url.URL, h http.Header) (*url.URL, error) {
	target := nextLink(h)
	if target == "" {
		return nil, nil
	}
	link, err := current.Parse(target)
	if err != nil || !s.isSameHost(link) || !strings.HasSuffix(link.Path, current.Path) {
		return nil, ErrTagList.New(nil, "a list of registry %s continues elsewhere", s.host)
	}
	next := *current
	next.RawQuery = link.RawQuery
	if next.RawQuery == current.RawQuery {
		return nil, nil
	}
	return &next, nil
}

// nextLink returns the target of the link to the next page in Link headers (RFC 8288), or "" if there is none.
// Registries omit the relation, its quotes or the angle brackets.
func nextLink(h http.Header) string {
	rest := strings.TrimLeft(strings.Join(h.Values("Link"), ","), " \t,")
	for rest != "" {
		var target, relation string
		if bracketed, found := strings.CutPrefix(rest, "<"); found {
			target, rest, _ = strings.Cut(bracketed, ">")
		} else {
			target = rest[:endOf(rest, ";,")]
			rest = rest[len(target):]
		}
		relation, rest = linkRelation(rest)
		if relation == "" || slices.Contains(strings.Fields(strings.ToLower(relation)), "next") {
			return strings.TrimSpace(target)
		}
	}
	return ""
}

// linkRelation returns the relation in the parameters of a link, and the text of the next link.
func linkRelation(s string) (relation, rest string) {
	for {
		s = strings.TrimLeft(s, " \t")
		params, found := strings.CutPrefix(s, ";")
		if !found {
			_, rest, _ = strings.Cut(s, ",")
			return relation, strings.TrimLeft(rest, " \t,")
		}
		name, value, after, ok := parseParam(params, " \t,;")
		if !ok {
			s = params[endOf(params, ";,"):]
			continue
		}
		if s = after; name == "rel" {
			relation = strings.Trim(value, "'")
		}
	}
}

// endOf returns the index of the first of some characters, or the length of the text.
func endOf(s, characters string) int {
	if i := strings.IndexAny(s, characters); i >= 0 {
		return i
	}
	return len(s)
}
