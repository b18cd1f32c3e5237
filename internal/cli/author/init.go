package author

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/internal/cli/author/scaffold"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// InitCmd implements `xpkg init`.
type InitCmd struct {
	Kind       initKind `arg:"" complete:"kind" help:"Kind of the package: provider, configuration or function; or project, which is a Configuration with functions of its own."`
	Name       string   `arg:"" help:"Name of the package, such as provider-boats."`
	Directory  string   `short:"d" placeholder:"DIR" help:"Folder to create. Default is the name of the package."`
	Group      string   `placeholder:"GROUP" help:"API group of the kinds of the package. Default is derived from the name, such as boats.example.org."`
	Module     string   `placeholder:"PATH" help:"Path of the Go module of a provider or function. Default is example.org/ and the name."`
	Repository string   `placeholder:"REPOSITORY" help:"Repository of a Project. Default is example.org/my-org/ and the name."`
}

// kindProject is the word for a Project.
const kindProject = "project"

// initKind is the kind of a new package, or project.
type initKind string

// UnmarshalText parses a kind in the forms of kubectl, or project.
func (k *initKind) UnmarshalText(word []byte) error {
	if strings.EqualFold(string(word), kindProject) {
		*k = "Project"
		return nil
	}
	kind := inventory.KindNamed(string(word))
	if kind == "" {
		return fmt.Errorf("%s is not provider, configuration, function or project", word)
	}
	*k = initKind(kind)
	return nil
}

// modulePath matches the module paths that go.mod accepts without quotes.
var modulePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*$`)

// Run writes the files of the package.
func (c *InitCmd) Run(env *terminal.Env) error {
	kind := strings.ToLower(string(c.Kind))
	if err := checkInitName(kind, c.Name); err != nil {
		return err
	}
	p := scaffold.Package{
		Kind: kind, Name: c.Name,
		Group: cmp.Or(c.Group, defaultGroup(kind, c.Name)), Module: cmp.Or(c.Module, "example.org/"+c.Name),
	}
	if problems := validation.IsDNS1123Subdomain(p.Group); len(problems) > 0 || !strings.Contains(p.Group, ".") {
		return terminal.ErrUsage.New(nil, "%.80q is not an API group", p.Group).
			WithDo("Write a domain name in lower case, such as boats.example.org.")
	}
	if c.Repository != "" && kind != kindProject {
		return terminal.ErrUsage.New(nil, "--repository is for Projects").
			WithDo("Omit the flag, and name the repository when you push the package.")
	}
	p.Repository = cmp.Or(c.Repository, "example.org/my-org/"+c.Name)
	if _, err := p.RepositoryPath(); err != nil {
		return err
	}
	if !isModulePath(p.Module) {
		return terminal.ErrUsage.New(nil, "%.80q is not the path of a Go module", p.Module).
			WithDo("Write a path such as github.com/acme/%s.", c.Name)
	}
	folder := cmp.Or(c.Directory, c.Name)
	count, err := p.Write(folder)
	var known *errcode.Error
	switch {
	case err != nil && !errors.As(err, &known):
		return archive.ErrCannotWrite.New(err, "cannot write the package to %s", folder).
			WithDo("%s", cmp.Or(fileutil.DirectoryAdvice(err, folder, "--directory"), archive.ErrCannotWrite.Fix))
	case err != nil:
		return err
	}
	fmt.Fprintf(env.Stderr, "The next commands are in %s.\n", terminal.Safe(filepath.Join(folder, "README.md")))
	return env.Say("%s: %s %s with %s\n", terminal.Safe(folder), c.Kind, c.Name, wording.Count(count, "file"))
}

// checkInitName returns an error for a name with which the package cannot be installed: each revision has a label with
// the name, and a runtime has a Service with it.
func checkInitName(kind, name string) error {
	if err := selection.CheckNewName(name); err != nil {
		return err
	}
	switch {
	case len(name) > validation.DNS1123LabelMaxLength:
		return terminal.ErrUsage.New(nil, "%.80q is not a name of a package: it has %d characters", name, len(name)).
			WithDo("Use a name with at most %d characters.", validation.DNS1123LabelMaxLength)
	case strings.Contains(name, ".") && kind != "configuration":
		return terminal.ErrUsage.New(nil, "%q is not a name of a %s: its Service cannot have a name with a dot", name, kind).
			WithDo("Use a name such as %s.", strings.ReplaceAll(name, ".", "-"))
	}
	return nil
}

// isModulePath reports whether Go can build a module with a path.
func isModulePath(path string) bool {
	elements := strings.Split(path, "/")
	return modulePath.MatchString(path) && !slices.Contains([]string{"std", "cmd"}, elements[0]) &&
		!slices.ContainsFunc(
			elements, func(e string) bool { return e == "vendor" || strings.HasPrefix(e, ".") || strings.HasSuffix(e, ".") },
		)
}

// defaultGroup returns an API group for a package: boats.example.org for provider-boats. The group of a function has
// the additional label fn, because its kinds are inputs and not resources.
func defaultGroup(kind, name string) string {
	word := strings.ReplaceAll(cmp.Or(strings.TrimPrefix(name, kind+"-"), name), ".", "-")
	if kind == "function" {
		return word + ".fn.example.org"
	}
	return word + ".example.org"
}
