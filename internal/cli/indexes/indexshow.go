package indexes

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ShowCmd implements `xpkg index show`.
type ShowCmd struct {
	IndexRef string `arg:"" name:"index" help:"Reference of the index."`
	Forget   bool   `help:"Forget the newest state of the index that this machine has seen, and accept the state that the registry has."`
	Offline  bool   `help:"Show the state that was fetched last, without accessing a registry."`
	content.IndexKeyFlag
	content.ContentFlags
	view.OutputFlag
}

// indexView is the description of an index.
type indexView struct {
	catalog.Config
	Digest oci.Digest `json:"digest"`
	// SearchBytes is the size of the download for searching, and Bytes of the whole index.
	SearchBytes int64       `json:"searchBytes"`
	Bytes       int64       `json:"bytes"`
	Layers      int         `json:"layers"`
	Events      []eventView `json:"events,omitempty"`
}

type eventView struct {
	Type       catalog.EventType `json:"type"`
	Repository string            `json:"repository,omitempty"`
	Tag        string            `json:"tag,omitempty"`
	Digest     oci.Digest        `json:"digest,omitzero"`
	At         time.Time         `json:"at,omitzero"`
}

// Run prints the state of the index.
func (c *ShowCmd) Run(env *terminal.Env) error {
	return withIndex(env, c.IndexRef, c.ContentFlags, func(ref oci.Reference, a *access) error {
		keys, err := c.Keys(env.Context)
		if err != nil {
			return err
		}
		client := indexer.Client{Remote: a.remote, Store: a.cache.Store(), Offline: c.Offline, Keys: keys}
		if c.Forget {
			if err := client.Forget(ref); err != nil {
				return err
			}
		}
		r, err := client.Open(env.Context, ref)
		if err != nil {
			return err
		}
		view := viewOf(r)
		return c.Print(env.Stdout, view, func(w io.Writer) { view.write(w, ref) })
	})
}

func viewOf(r *catalog.Reader) indexView {
	m := r.Manifest()
	v := indexView{Config: r.Config(), Digest: m.Digest, Layers: len(m.Layers())}
	v.SearchBytes = int64(len(m.Raw)) + m.Config.Size + m.Packages.Size + m.Kinds.Size
	for _, d := range m.Journal {
		v.SearchBytes += d.Size
	}
	v.Bytes = int64(len(m.Raw)) + m.Config.Size
	for _, d := range m.Layers() {
		v.Bytes += d.Size
	}
	events := r.Events()
	for i := len(events) - 1; i >= 0 && len(v.Events) < maxPrinted; i-- {
		e := events[i]
		v.Events = append(v.Events, eventView{e.Type, e.Repository, e.Tag, e.Digest, e.At})
	}
	return v
}

func (v *indexView) write(w io.Writer, ref oci.Reference) {
	rows := [][]string{
		{"Index", ref.String()}, {"Name", v.Name}, {"Digest", v.Digest.String()}, {"Sequence", fmt.Sprint(v.Sequence)},
		{"Created", date(v.Created)}, {"Expires", date(v.Expires)},
		{"Content", fmt.Sprintf("%d packages, %d versions, %d kinds", v.Counts.Packages, v.Counts.Versions, v.Counts.Kinds)},
		{"Size", fmt.Sprintf(
			"%s to search, %s in all, %d layers", terminal.Size(v.SearchBytes), terminal.Size(v.Bytes), v.Layers,
		)},
	}
	for _, s := range v.Sources {
		text := s.Location
		if s.Kind == catalog.SourceRepositories {
			text = strings.Join(s.Repositories, ", ")
		}
		rows = append(rows, []string{"Source", string(s.Kind) + ": " + text})
	}
	for _, o := range v.Owners {
		rows = append(rows, []string{"Owner", o.Group + ": " + o.Owner})
	}
	for _, e := range v.Events {
		rows = append(rows, []string{"Event", strings.TrimSuffix(fmt.Sprintf("%s %s:%s", e.Type, e.Repository, e.Tag), ":")})
	}
	view.WriteTable(w, nil, rows)
}

func date(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}
