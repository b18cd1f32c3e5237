package artifact

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/history"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/packagediff"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// changesFound is the exit code if the changes reach the class of --fail-on.
const changesFound terminal.ExitCode = 2

// DiffCmd implements `xpkg diff`.
type DiffCmd struct {
	From     string `arg:"" name:"from" help:"The former version: a reference, a .xpkg file, the folder of the source of a package, oci:DIR for an OCI layout, installed:NAME for the running version of an installed package, generation:N for a generation of xpkg history, or - for standard input."`
	To       string `arg:"" name:"to" help:"The new version."`
	All      bool   `help:"List each safe change in a line of its own, and added kinds."`
	FailOn   string `enum:"never,breaking,care,any" default:"never" placeholder:"CLASS" help:"Exit with code 2 if there are changes of this class or above: breaking, care or any. Default is never."`
	Platform string `placeholder:"OS/ARCH" help:"Platform to select from an image index. Default is linux/amd64."`
	Output   string `short:"o" enum:",json,yaml,markdown" default:"" placeholder:"json|yaml|markdown" help:"Output format. Default is text."`
	location.TransferFlags
	connection.ClusterFlags
}

// Run prints the difference.
func (c *DiffCmd) Run(env *terminal.Env) error {
	if c.From == "-" && c.To == "-" {
		return terminal.ErrUsage.New(nil, "only one of the packages can be read from standard input").
			WithDo("Name a file or a reference for the other package.")
	}
	if isGeneration, err := c.generations(env); isGeneration || err != nil {
		return err
	}
	from, err := c.read(env, c.From)
	if err != nil {
		return err
	}
	to, err := c.read(env, c.To)
	if err != nil {
		return err
	}
	d, err := packagediff.Compare(from, to)
	if err != nil {
		return err
	}
	if err := c.print(env.Stdout, d); err != nil {
		return err
	}
	if c.fails(d) {
		return changesFound
	}
	return nil
}

// generations prints the differences between two generations, if the arguments name them.
func (c *DiffCmd) generations(env *terminal.Env) (bool, error) {
	from, isFrom, errFrom := history.Number(c.From)
	to, isTo, errTo := history.Number(c.To)
	switch {
	case !isFrom && !isTo:
		return false, nil
	case errFrom != nil || errTo != nil:
		return true, cmp.Or(errFrom, errTo)
	case isFrom != isTo:
		return true, terminal.ErrUsage.New(nil, "a generation can only be compared with another one").
			WithDo("Write generation:N twice, or name two packages.")
	case c.FailOn != "never" && c.FailOn != "any":
		return true, terminal.ErrUsage.New(nil, "--fail-on %s is not known for generations", c.FailOn).
			WithDo("Use --fail-on any, or compare the packages.")
	}
	cluster, err := c.Client(env.Context)
	if err != nil {
		return true, err
	}
	all, err := history.Read(env.Context, cluster)
	if err != nil {
		return true, err
	}
	differ, err := history.Differ(env.Stdout, c.Output, all, from, to)
	if err == nil && differ && c.FailOn == "any" {
		err = changesFound
	}
	return true, err
}

func (c *DiffCmd) read(env *terminal.Env, source string) (pkg *xpkg.Package, err error) {
	if name, ok := strings.CutPrefix(source, installedPrefix); ok {
		if source, err = c.installed(env.Context, inventory.Name(name)); err != nil {
			return nil, err
		}
	}
	from, err := location.Parse(source)
	if err != nil {
		return nil, err
	}
	if from.Kind == location.File && location.IsSource(from.Path) {
		folder, err := location.FolderFlags{}.Read(env.Context, from.Path, c.StreamLimits())
		if err != nil {
			return nil, err
		}
		return folder.Package(xpkg.ReadOptions{Policy: xpkg.PolicyBuild(), Limits: c.StreamLimits()})
	}
	err = c.WithPackage(env, from, c.Platform, func(_ location.Transfer, o *location.Opened, m oci.Manifest) (err error) {
		pkg, _, err = location.ReadPackage(env.Context, o, m, c.LimitFlags)
		return err
	})
	return pkg, err
}

// installedPrefix is the beginning of the location of an installed package.
const installedPrefix = "installed:"

// installed returns the reference from which the cluster pulled the running content of an installed package: that of
// the registry to which an ImageConfig rewrites it.
func (c *DiffCmd) installed(ctx context.Context, name inventory.Name) (string, error) {
	if err := name.Validate(); err != nil {
		return "", terminal.ErrUsage.New(err, "%q is not the name of a package", string(name)).
			WithDo("Write installed:NAME or installed:KIND/NAME.")
	}
	cluster, all, err := selection.Read(ctx, c.ClusterFlags, inventory.LoadPackages)
	if err != nil {
		return "", err
	}
	p, err := all.Find(name)
	if err != nil {
		return "", err
	}
	rev, current := p.NewRevision(), p.PackageStatus().CurrentRevision
	if current == "" {
		return p.PackageSpec().Package, nil // The manager has not read it yet.
	}
	if err := cluster.Get(ctx, client.ObjectKey{Name: current}, rev); err != nil {
		return "", apiserver.Classify(err, "read the revision of %s", inventory.ShortName(p))
	}
	if resolved := rev.RevisionStatus().ResolvedImage; strings.Contains(resolved, "@") {
		return resolved, nil
	}
	spec := rev.RevisionSpec()
	if spec.Digest == "" || strings.Contains(spec.Image, "@") {
		return spec.Image, nil
	}
	return spec.Image + "@" + spec.Digest, nil
}

// fails reports whether the changes reach the class of --fail-on.
func (c *DiffCmd) fails(d packagediff.Diff) bool {
	switch c.FailOn {
	case "breaking":
		return d.Class >= crddiff.Breaking
	case "care":
		return d.Class >= crddiff.Care
	case "any":
		return !d.Empty()
	default:
		return false
	}
}

func (c *DiffCmd) print(w io.Writer, d packagediff.Diff) error {
	t := diffText{all: c.All, markdown: c.Output == "markdown"}
	return view.OutputFlag{Output: view.ObjectFormat(strings.TrimPrefix(c.Output, "markdown"))}.Print(w,
		d, func(w io.Writer) {
			fmt.Fprint(w, t.write(c.From, c.To, d))
		})
}

// diffText writes a difference as plain text or Markdown.
type diffText struct {
	strings.Builder
	all, markdown bool
}

func (t *diffText) write(from, to string, d packagediff.Diff) string {
	if d.Empty() {
		return "No differences.\n"
	}
	t.heading(1, "From %s to %s: %s", terminal.Safe(from), terminal.Safe(to), d.Class)
	t.changes("Metadata", d.Metadata)
	t.kinds("CRDs", d.CRDs)
	t.kinds("XRDs", d.XRDs)
	t.changes("Objects", d.Objects)
	return t.String()
}

func (t *diffText) heading(level int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case t.markdown:
		fmt.Fprintf(t, "%s %s\n\n", strings.Repeat("#", level+1), text)
	case level == 1:
		fmt.Fprintf(t, "%s\n", text)
	default:
		fmt.Fprintf(t, "\n%s\n", text)
	}
}

// line writes a change at a level of indentation.
func (t *diffText) line(indent int, format string, args ...any) {
	text := strings.ReplaceAll(terminal.Safe(fmt.Sprintf(format, args...)), "\n", " ")
	if t.markdown {
		fmt.Fprintf(t, "%s- %s\n", strings.Repeat("  ", indent), terminal.EscapeMarkdown(text))
		return
	}
	fmt.Fprintf(t, "%s%s\n", strings.Repeat("  ", indent+1), text)
}

func (t *diffText) changes(title string, changes []packagediff.Change) {
	if len(changes) == 0 {
		return
	}
	t.heading(2, "%s", title)
	for _, c := range changes {
		t.line(0, "%s", c)
	}
	t.endList()
}

func (t *diffText) kinds(title string, d crddiff.Diff) {
	if len(d.Added)+len(d.Removed)+len(d.Changed) == 0 {
		return
	}
	t.heading(
		2, "%s: %d added, %d removed, %d changed, %d unchanged", title, len(d.Added), len(d.Removed), len(d.Changed),
		d.Unchanged,
	)
	for _, name := range d.Removed {
		t.line(0, "breaking: %s was removed", name)
	}
	if t.all {
		for _, name := range d.Added {
			t.line(0, "safe: %s was added", name)
		}
	}
	for _, crd := range d.Changed {
		t.kind(crd)
	}
	t.endList()
}

// kind writes the changes of one kind. Without --all it writes the safe changes in one line.
func (t *diffText) kind(crd crddiff.ChangedCRD) {
	class := crddiff.Max(crd.Changes)
	t.line(0, "%s: %s", class, crd.Name)
	for _, c := range crd.Changes {
		if c.Class == crddiff.Safe && !t.all {
			continue
		}
		t.line(1, "%s", c)
	}
	if safe := crddiff.SafeLine(crd.Changes); safe != "" && !t.all {
		t.line(1, "safe: %s", safe)
	}
}

func (t *diffText) endList() {
	if t.markdown {
		t.WriteString("\n")
	}
}
