package compose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// CheckCmd implements `xpkg check`.
type CheckCmd struct {
	Folder            string        `arg:"" optional:"" name:"folder" default:"." help:"Folder of the package or of the Project. Default is this folder."`
	AllowUnknownKinds bool          `help:"Report resources of unknown kinds, and unknown functions of Compositions, as warnings."`
	NoRender          bool          `help:"Do not render the examples."`
	Strict            bool          `help:"Treat warnings as errors."`
	Timeout           time.Duration `default:"1m" placeholder:"DURATION" help:"Time in which the functions must start and answer for one example. Default is 1m."`
	author.ReportFlags
	dependencies.ContentsFlags
	location.FolderFlags
}

// packageCheck is the state of a check.
type packageCheck struct {
	*CheckCmd
	folder   *xpkg.Folder
	pkg      *xpkg.Package
	embedded []author.EmbeddedFunction
	found    []xpkg.Finding
	notes    []string
	// rendered is the number of examples that were rendered.
	rendered int
}

// Run reports every problem of a package that can be found without a cluster, and fails if there is an error.
func (c *CheckCmd) Run(env *terminal.Env) error {
	if err := c.CheckFormat(); err != nil {
		return err
	}
	k := &packageCheck{CheckCmd: c}
	task := terminal.StartTask(env.Stderr, "checking %s", c.Folder)
	failed := k.run(env)
	task.End()
	if c.Strict {
		for i := range k.found {
			k.found[i].Severity = xpkg.Error
		}
	}
	if failed != nil && len(k.found) == 0 {
		return failed
	}
	xpkg.SortFindings(k.found)
	if err := k.report(env); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if _, isError := author.CountFindings(k.found); isError {
		return terminal.ExitCode(errcode.Invalid.Exit)
	}
	return nil
}

// run collects the findings, as far as no error ends the check.
func (k *packageCheck) run(env *terminal.Env) (err error) {
	if k.folder, k.pkg, k.embedded, k.found, err = author.LintFolder(
		env.Context, k.FolderFlags, k.Folder, false, k.StreamLimits(),
	); err != nil || k.pkg == nil {
		return err
	}
	if k.pkg.Meta.Kind == "" {
		return nil // Without metadata, the dependencies are not known.
	}
	closure, err := k.Closure(env, append([]string{k.Folder}, k.Package...))
	if err != nil {
		return k.withoutDependencies(env, err)
	}
	defer terminal.Close(&err, closure)
	v, err := k.knowledge(closure)
	if err != nil {
		return err
	}
	examples, err := k.validate(env, v)
	if err != nil || k.NoRender || len(examples) == 0 {
		return err
	}
	if _, failed := author.CountFindings(k.found); failed {
		k.notes = append(k.notes, "the examples are not rendered before the errors are corrected")
		return nil
	}
	return k.render(env, v, closure, examples)
}

// withoutDependencies adds the findings that need no dependencies. Their error is a finding if it is a mistake in the
// metadata.
func (k *packageCheck) withoutDependencies(env *terminal.Env, failed error) error {
	more, err := author.CompositionFindings(env.Context, k.pkg, k.embedded, false)
	if err != nil {
		return err
	}
	k.found = append(k.found, k.Place(k.Folder, more)...)
	f := errcode.From(failed)
	if slices.ContainsFunc(k.found, func(found xpkg.Finding) bool { return found.Code.Name == f.Code.Name }) {
		return nil
	}
	if !slices.Contains([]errcode.Class{errcode.NotFound, errcode.Invalid, errcode.Conflict}, f.Code.Class) {
		return failed
	}
	at, named := "spec.dependsOn", ""
	for i, d := range k.pkg.Meta.DependsOn {
		if len(d.Package) > len(named) && strings.Contains(failed.Error(), d.Package) {
			at, named = fmt.Sprintf("spec.dependsOn[%d].package", i), d.Package
		}
	}
	raw := k.pkg.Meta.Raw
	finding := raw.Finding(f.Code, raw.FieldLine(at), failed.Error())
	finding.Kind, finding.Name, finding.Fix = string(k.pkg.Meta.Kind), k.pkg.Meta.Name, f.Do
	k.found = append(k.found, k.Place(k.Folder, []xpkg.Finding{finding})...)
	return nil
}

// knowledge returns the kinds and the functions that a cluster with the package has.
func (k *packageCheck) knowledge(closure *dependencies.Closure) (*validation.Validation, error) {
	v, err := validation.New()
	if err != nil {
		return nil, err
	}
	v.Kinds, v.AllowUnknown = validation.Open, k.AllowUnknownKinds
	v.AddPackage(k.pkg, k.Folder)
	addContents(v, closure.All())
	author.AddEmbedded(v, k.embedded)
	if k.pkg.Meta.Kind == xpkg.Function {
		v.AddFunction(validation.DefinesInputs(k.pkg), k.pkg.Meta.Name)
	}
	return v, nil
}

// validate validates the Compositions and the examples. It returns the examples.
func (k *packageCheck) validate(env *terminal.Env, v *validation.Validation) ([]validation.Resource, error) {
	return fileutil.Await(env.Context, func() ([]validation.Resource, error) {
		compositions := v.Read(validation.Compositions(k.pkg))
		for _, r := range compositions {
			v.Validate(env.Context, r)
		}
		readable := slices.DeleteFunc(slices.Clone(k.folder.ExampleDocuments), func(d xpkg.Document) bool {
			_, err := d.JSON()
			return err != nil // reported before
		})
		examples := v.Read(readable)
		for _, r := range examples {
			v.Validate(env.Context, r.Copy())
		}
		k.found = append(k.found, k.Place(k.Folder, v.Findings)...)
		v.Findings = nil
		return examples, v.Schemas.Err()
	})
}

// report prints the findings.
func (k *packageCheck) report(env *terminal.Env) error {
	if err := k.WriteReport(env.Stdout, k.found); err != nil {
		return err
	}
	text, _ := author.CountFindings(k.found)
	fmt.Fprintf(env.Stderr, "%s: %s\n", terminal.SafeLine(k.Folder), text)
	for _, n := range k.notes {
		fmt.Fprintf(env.Stderr, "note: %s\n", terminal.SafeLine(n))
	}
	return nil
}
