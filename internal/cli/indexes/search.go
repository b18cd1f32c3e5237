package indexes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// SearchCmd implements `xpkg search`.
type SearchCmd struct {
	Words    []string `arg:"" optional:"" help:"Words to find: parts of kinds, groups and package names. The prefixes kind:, group:, provides:, field: and type: select like the flags."`
	Kind     string   `placeholder:"KIND" complete:"index-kind" help:"Find kinds with this name, plural or short name, for example Bucket or Bucket.s3.aws.upbound.io."`
	Group    string   `placeholder:"GROUP" help:"Find kinds of this API group; * stands for any text."`
	Provides string   `placeholder:"KIND" complete:"index-kind" help:"Find packages that define this kind."`
	Field    string   `placeholder:"FIELD" help:"Find kinds with a field whose name begins like this. The index must contain texts."`
	Type     string   `enum:",Provider,Configuration,Function" default:"" placeholder:"TYPE" help:"Find packages of this type: Provider, Configuration or Function."`
	Limit    int      `default:"20" placeholder:"N" help:"Maximum number of results; 0 for all. Default is 20."`
	Flags
	view.ListOutputFlag
}

// hitView is a result of a search.
type hitView struct {
	Kind       string   `json:"kind,omitempty"`
	Group      string   `json:"group,omitempty"`
	Versions   []string `json:"versions,omitempty"`
	Scope      string   `json:"scope,omitempty"`
	Role       string   `json:"role,omitempty"`
	Since      string   `json:"since,omitempty"`
	Fields     []string `json:"fields,omitempty"`
	Package    string   `json:"package"`
	Type       string   `json:"type,omitempty"`
	Latest     string   `json:"latest,omitempty"`
	Title      string   `json:"title,omitempty"`
	Summary    string   `json:"summary,omitempty"`
	Deprecated bool     `json:"deprecated,omitempty"`
	ReplacedBy string   `json:"replacedBy,omitempty"`
	Match      string   `json:"match,omitempty"`
	Score      int      `json:"score"`
}

// Run prints the kinds and packages that match.
func (c *SearchCmd) Run(env *terminal.Env) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	return c.with(env, func(_ *access, set indexer.Set) error {
		limit := 0
		if c.Limit > 0 {
			limit = c.Limit + 1 // One more shows that there are more.
		}
		hits, err := set.Search(q, limit)
		if err != nil {
			return err
		}
		if len(hits) == 0 {
			return c.nothing(set)
		}
		if limit > 0 && len(hits) == limit {
			hits = hits[:c.Limit]
			fmt.Fprintf(env.Stderr, "note: %s; --limit 0 shows all\n", cutOff(c.Limit))
		}
		return c.Print(env.Stdout, listOf(hits))
	})
}

// cutOff returns the note about results beyond a limit.
func cutOff(limit int) string {
	if limit == 1 {
		return "only the best result is shown"
	}
	return fmt.Sprintf("only the best %d results are shown", limit)
}

// query returns the query of the words and the flags.
func (c *SearchCmd) query() (catalog.Query, error) {
	text := strings.Join(c.Words, " ")
	for _, p := range []struct{ prefix, value string }{
		{"kind:", c.Kind}, {"group:", c.Group}, {"provides:", c.Provides}, {"field:", c.Field}, {"type:", c.Type},
	} {
		if p.value != "" {
			text += " " + p.prefix + p.value
		}
	}
	q, err := catalog.ParseQuery(strings.TrimSpace(text))
	if err == nil && q.Empty() {
		err = terminal.ErrUsage.New(nil, "there is nothing to search for").
			WithDo("Write a word, such as `xpkg search bucket`, or a flag, such as --kind Bucket.")
	}
	return q, err
}

// nothing returns the error of a search without results, with similar kinds.
func (c *SearchCmd) nothing(set indexer.Set) error {
	err := indexer.ErrNothingFound.New(nil, "nothing was found in %s", locations(set))
	name := c.Kind
	if name == "" {
		name = c.Provides
	}
	if name == "" {
		return err
	}
	similar, failed := set.Suggest(strings.SplitN(name, ".", 2)[0])
	if failed != nil || len(similar) == 0 {
		return err
	}
	return err.WithDo("Similar kinds: %s.", strings.Join(similar, ", "))
}

func locations(set indexer.Set) string {
	var out []string
	for _, i := range set {
		out = append(out, i.Location)
	}
	return strings.Join(out, ", ")
}

func listOf(hits []catalog.Hit) view.List {
	list := view.List{Table: view.Table{
		Header: []string{"NAME", "PACKAGE", "VERSION"}, WideHeader: []string{"SERVED", "SCOPE", "SINCE", "MATCH", "TITLE"},
	}}
	views := make([]hitView, len(hits))
	for i, h := range hits {
		v := viewOfHit(h)
		views[i] = v
		name := v.Package
		if h.Kind != nil {
			name = v.Kind + "." + v.Group
		}
		list.Names = append(list.Names, name)
		list.Table.Rows = append(list.Table.Rows, []string{
			name + mark(v), v.Package, v.Latest, strings.Join(v.Versions, ","), v.Scope, v.Since, v.Match, v.Title,
		})
	}
	list.Value = views
	return list
}

// mark returns the note after the name of a result.
func mark(v hitView) string {
	var notes []string
	if v.Deprecated {
		notes = append(notes, "deprecated")
	}
	if v.Role == string(catalog.Input) {
		notes = append(notes, "input of a Function")
	}
	if len(v.Fields) > 0 {
		notes = append(notes, strings.Join(v.Fields[:min(len(v.Fields), 3)], ", "))
	}
	if len(notes) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", strings.Join(notes, "; "))
}

func viewOfHit(h catalog.Hit) hitView {
	p := h.Package
	v := hitView{
		Package: p.Repository, Type: p.Type, Latest: p.Latest, Title: p.Title, Summary: p.Summary, Deprecated: p.Deprecated,
		ReplacedBy: p.ReplacedBy, Match: h.Why, Score: h.Score, Fields: slices.Clone(h.Fields),
	}
	if k := h.Kind; k != nil {
		v.Kind, v.Group, v.Versions, v.Scope, v.Role, v.Since = k.Kind, k.Group, k.Served, k.Scope, string(k.Role), k.Since
	}
	return v
}
