package indexes

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ExplainCmd implements `xpkg show`.
type ExplainCmd struct {
	Name      string `arg:"" complete:"index-name" help:"A kind, such as Bucket, Bucket.s3.aws.upbound.io or buckets.s3.aws.upbound.io/v1beta1; or the repository of a package or its last part, optionally with :VERSION."`
	Package   string `placeholder:"REPO" help:"Package whose schema is shown, if several provide the kind."`
	Field     string `placeholder:"PATH" help:"Show this field and those below it, for example spec.forProvider."`
	Recursive bool   `help:"Show all fields, not only those down to the third level."`
	Since     bool   `help:"Show the version of the package since which each field exists. This reads former versions of the package, about two for each version that changed the kind."`
	Flags
	view.ListOutputFlag
}

// Run prints the package or the kind.
func (c *ExplainCmd) Run(env *terminal.Env) error {
	return c.with(env, func(a *access, set indexer.Set) error {
		if named, err := namesKind(set, c.Name); err != nil {
			return err
		} else if named {
			return c.showKind(env, a, set)
		}
		name, version := splitVersion(c.Name)
		row, in, err := findPackage(set, name)
		if err != nil {
			return err
		}
		if row != nil {
			return c.showPackage(env, row, in, version)
		}
		return c.showKind(env, a, set)
	})
}

// namesKind reports whether a name with an upper-case letter, which no repository has, is that of a kind. A package can
// have the same name in lower case.
func namesKind(set indexer.Set, name string) (bool, error) {
	if name == strings.ToLower(name) {
		return false, nil
	}
	name, _, _ = strings.Cut(name, "/")
	kind, group, _ := strings.Cut(name, ".")
	found, err := set.Lookup(group, kind)
	return slices.ContainsFunc(found, func(k catalog.Kind) bool { return k.Kind == kind }), err
}

// splitVersion returns the repository, and the tag or digest, of REPO:TAG, REPO@DIGEST or REPO@VERSION. A digest takes
// precedence over a tag.
func splitVersion(name string) (repository, version string) {
	repository, version, _ = strings.Cut(name, "@")
	if at := strings.LastIndexByte(repository, ':'); at > strings.LastIndexByte(repository, '/') {
		return repository[:at], cmp.Or(version, repository[at+1:])
	}
	return repository, version
}

// findPackage returns the package with a repository, an alias or a last part of the repository, and nil if there is
// none.
func findPackage(set indexer.Set, name string) (*catalog.Package, *indexer.Indexed, error) {
	if row, in := set.Package(oci.RepositoryName(name)); row != nil {
		return row, in, nil
	}
	var found []*catalog.Package
	var index *indexer.Indexed
	for i := range set {
		packages := set[i].Packages()
		for j := range packages {
			p := &packages[j]
			switch {
			case !strings.HasSuffix(p.Repository, "/"+strings.ToLower(name)) || containsPackage(found, p.Repository):
			case len(found) > 0 && found[0].Released() != p.Released():
				// A package that is still developed does not make the name of a released one ambiguous.
				if p.Released() {
					found, index = []*catalog.Package{p}, &set[i]
				}
			case len(found) > 0:
				found = append(found, p)
			default:
				found, index = append(found, p), &set[i]
			}
		}
	}
	if len(found) > 1 {
		var names []string
		for _, p := range found {
			names = append(names, p.Repository)
		}
		return nil, nil, terminal.ErrUsage.New(
			nil, "%d packages are named %s: %s", len(found), name, strings.Join(names[:min(len(names), 5)], ", "),
		).
			WithDo("Name one of them with its whole repository.")
	}
	if len(found) == 0 {
		return nil, nil, nil
	}
	return found[0], index, nil
}

func containsPackage(all []*catalog.Package, repository string) bool {
	return slices.ContainsFunc(all, func(p *catalog.Package) bool { return p.Repository == repository })
}

// packageView is the description of a package, or of one of its versions.
type packageView struct {
	Package    string              `json:"package"`
	Index      string              `json:"index"`
	Type       string              `json:"type,omitempty"`
	Title      string              `json:"title,omitempty"`
	Summary    string              `json:"summary,omitempty"`
	Category   string              `json:"category,omitempty"`
	Keywords   []string            `json:"keywords,omitempty"`
	Publisher  string              `json:"publisher,omitempty"`
	License    string              `json:"license,omitempty"`
	Source     string              `json:"source,omitempty"`
	Website    string              `json:"website,omitempty"`
	Latest     string              `json:"latest,omitempty"`
	Dependents int                 `json:"dependents"`
	Deprecated bool                `json:"deprecated,omitempty"`
	ReplacedBy string              `json:"replacedBy,omitempty"`
	Error      *catalog.IndexError `json:"error,omitempty"`

	Version  versionView   `json:"version,omitzero"`
	Kinds    []servedView  `json:"kinds,omitempty"`
	Versions []versionView `json:"versions,omitempty"`
}

type versionView struct {
	Tag          string                  `json:"tag"`
	Digest       oci.Digest              `json:"digest,omitzero"`
	Created      time.Time               `json:"created,omitzero"`
	Crossplane   string                  `json:"crossplane,omitempty"`
	Dependencies []dependency.Dependency `json:"dependencies,omitempty"`
	Status       *catalog.Status         `json:"status,omitempty"`
	Kinds        int                     `json:"kinds,omitempty"`
	Error        *catalog.IndexError     `json:"error,omitempty"`
}

// servedView is a kind with its API versions, and the version of the package since which each is served.
type servedView struct {
	Kind  string            `json:"kind"`
	Group string            `json:"group"`
	Since map[string]string `json:"since"`
}

// showPackage prints a package, or one of its versions.
func (c *ExplainCmd) showPackage(env *terminal.Env, row *catalog.Package, in *indexer.Indexed, tag string) error {
	history, err := in.History(row.Repository)
	if err != nil {
		return err
	}
	view := viewOfPackage(row, in.Location)
	for i := len(history.Versions) - 1; i >= 0; i-- {
		view.Versions = append(view.Versions, viewOfVersion(&history.Versions[i]))
	}
	if tag == "" {
		tag = row.Latest
	}
	at := slices.IndexFunc(
		history.Versions, func(v catalog.Version) bool { return v.Tag == tag || v.Digest.String() == tag },
	)
	if at >= 0 {
		v := &history.Versions[at]
		view.Version = viewOfVersion(v)
		view.Kinds = servedAt(history, v.Tag)
	} else if tag != "" {
		return indexer.ErrNothingFound.New(nil, "%s has no version %q in the index", row.Repository, tag).
			WithDo("The newest version is %s.", row.Latest)
	}
	return c.PrintText(env.Stdout, view, []string{view.Package}, view.write)
}

func viewOfPackage(p *catalog.Package, index string) *packageView {
	return &packageView{
		Package: p.Repository, Index: index, Type: p.Type, Title: p.Title, Summary: p.Summary, Category: p.Category,
		Keywords:  p.Keywords,
		Publisher: p.Publisher, License: p.License, Source: p.SourceURL, Website: p.Website, Latest: p.Latest,
		Dependents: p.Rank,
		Deprecated: p.Deprecated, ReplacedBy: p.ReplacedBy, Error: p.Error,
	}
}

func viewOfVersion(v *catalog.Version) versionView {
	return versionView{v.Tag, v.Digest, v.Created, v.Crossplane, v.Dependencies, v.Status, v.Kinds, v.Error}
}

// servedAt returns the kinds that a version serves.
func servedAt(h *catalog.History, tag string) []servedView {
	position := slices.IndexFunc(h.Versions, func(v catalog.Version) bool { return v.Tag == tag })
	at := func(tag string) int {
		return slices.IndexFunc(h.Versions, func(v catalog.Version) bool { return v.Tag == tag })
	}
	var out []servedView
	for _, k := range h.Kinds {
		v := servedView{Kind: k.Kind, Group: k.Group, Since: map[string]string{}}
		for _, in := range k.Intervals {
			if at(in.Since) <= position && (in.Until == "" || at(in.Until) > position) {
				v.Since[in.Version] = in.Since
			}
		}
		if len(v.Since) > 0 {
			out = append(out, v)
		}
	}
	return out
}

// maxListed is the number of versions in the text.
const maxListed = 10

func (v *packageView) write(w io.Writer) {
	rows := [][]string{{"Package", v.Package}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("Type", v.Type)
	add("Title", v.Title)
	add("Summary", v.Summary)
	add("Category", v.Category)
	add("Keywords", strings.Join(v.Keywords, ", "))
	add("Publisher", v.Publisher)
	add("License", v.License)
	add("Source", v.Source)
	add("Website", v.Website)
	add("Dependents", fmt.Sprint(v.Dependents))
	if v.Deprecated {
		add("Deprecated", "yes "+replacement(v.ReplacedBy))
	}
	if v.Error != nil {
		add("Not indexed", v.Error.Code+": "+v.Error.Message)
	}
	add("Version", v.Version.Tag)
	if v.Version.Tag != v.Latest {
		add("Newest", v.Latest)
	}
	add("Digest", v.Version.Digest.String())
	add("Status", statusText(v.Version.Status))
	add("Crossplane", v.Version.Crossplane)
	for _, d := range v.Version.Dependencies {
		add("Depends on", strings.TrimSpace(d.Package+" "+d.Constraint))
	}
	view.WriteTable(w, nil, rows)
	v.writeLists(w)
}

// writeLists writes the kinds and the versions.
func (v *packageView) writeLists(w io.Writer) {
	var kinds [][]string
	for _, k := range v.Kinds {
		kinds = append(kinds, []string{k.Kind + "." + k.Group, sinceText(k.Since)})
	}
	if len(kinds) > 0 {
		fmt.Fprintln(w)
		view.WriteTable(w, []string{"KIND", "SERVED (SINCE)"}, kinds)
	}
	var versions [][]string
	for _, x := range v.Versions[:min(len(v.Versions), maxListed)] {
		versions = append(versions, []string{x.Tag, dateOf(x.Created), fmt.Sprint(x.Kinds), statusText(x.Status)})
	}
	fmt.Fprintln(w)
	view.WriteTable(w, []string{"VERSION", "CREATED", "KINDS", "STATUS"}, versions)
	if n := len(v.Versions) - maxListed; n > 0 {
		fmt.Fprintf(w, "and %d earlier versions\n", n)
	}
}

func sinceText(since map[string]string) string {
	var out []string
	for version, tag := range since {
		out = append(out, fmt.Sprintf("%s (%s)", version, tag))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func dateOf(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateOnly)
}

func statusText(s *catalog.Status) string {
	if s == nil {
		return ""
	}
	text := string(s.State)
	if s.Reason != "" {
		text += " (" + string(s.Reason) + ")"
	}
	if s.Message != "" {
		text += ": " + s.Message
	}
	return strings.TrimSpace(text + " " + replacement(s.ReplacedBy))
}

func replacement(by string) string {
	if by == "" {
		return ""
	}
	return "use " + by
}

// shortName returns the last part of a repository.
func shortName(repository string) string { return path.Base(repository) }
