package web

import (
	"cmp"
	"encoding/xml"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/untrusted"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// An atomFeed is a feed (RFC 4287). Addresses are relative to its own.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Link    []atomLink  `xml:"link"`
	Author  atomAuthor  `xml:"author"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomAuthor struct {
	Name string `xml:"name"`
}

type atomEntry struct {
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Link    atomLink `xml:"link"`
	Summary string   `xml:"summary,omitempty"`
}

// maxEntries is the maximum number of entries of a feed.
const maxEntries = 50

// feed returns the feed of the newest versions of all packages.
func (h *Handler) feed(r *request) (*response, error) {
	packages, err := r.view.Packages(r.ctx)
	if err != nil {
		return nil, err
	}
	sorted := slices.SortedStableFunc(
		slices.Values(packages), func(a, b catalog.Package) int { return b.Updated.Compare(a.Updated) },
	)
	f := atomFeed{ID: "tag:xpkg.dev,2026:" +
		h.options.Name, Title: h.options.Name, Link: []atomLink{{"self", "/feed.atom"}, {"", "/"}}}
	for _, p := range sorted[:min(len(sorted), maxEntries)] {
		if p.Latest != "" {
			f.Entries = append(f.Entries, entryOf(p, p.Latest, p.Updated, p.Summary))
		}
	}
	return feedResponse(f, h.options.Name)
}

// packageFeed returns the feed of the versions of a package.
func (h *Handler) packageFeed(r *request, at release) (*response, error) {
	published, err := r.view.Published(r.ctx, at.Repository())
	if err != nil {
		return nil, err
	}
	f := atomFeed{
		ID: "tag:xpkg.dev,2026:" + at.Repository(), Title: titleOf(at.Package),
		Link: []atomLink{{"self", feedURL(at.Repository())}, {"", packageURL(at.Repository(), "")}},
	}
	for _, row := range versionRows(at) {
		summary := at.Summary
		if row.Status != nil {
			summary = string(row.Status.State) + ": " + row.Status.Message
		}
		updated, known := published[row.Tag]
		if !known {
			updated = row.Created
		}
		entry := entryOf(at.Package, row.Tag, updated, summary)
		if row.Removed {
			entry.Link.Href = packageURL(at.Repository(), "") // A removed version has no page.
		}
		f.Entries = append(f.Entries, entry)
		if len(f.Entries) == maxEntries {
			break
		}
	}
	return feedResponse(f, cmp.Or(at.Publisher, h.options.Name))
}

func entryOf(p catalog.Package, tag string, updated time.Time, summary string) atomEntry {
	return atomEntry{
		ID: "tag:xpkg.dev,2026:" + p.Repository + ":" + tag, Title: titleOf(p) + " " + tag, Updated: atomTime(updated),
		Link: atomLink{"alternate", packageURL(p.Repository, tag)}, Summary: summary,
	}
}

// atomTime returns a time for a feed, which requires one.
func atomTime(t time.Time) string {
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	return t.UTC().Format(time.RFC3339)
}

func feedResponse(f atomFeed, author string) (*response, error) {
	f.Author.Name, f.Updated = author, atomTime(time.Time{})
	for _, e := range f.Entries {
		f.Updated = max(f.Updated, e.Updated)
	}
	text, err := xml.MarshalIndent(f, "", " ")
	if err != nil {
		return nil, err
	}
	return &response{mediaType: "application/atom+xml", body: untrusted.Visible(append([]byte(xml.Header), text...))}, nil
}
