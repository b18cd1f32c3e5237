package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// RenderCmd implements `xpkg render`. Its arguments and short flags are those of the Crossplane CLI.
type RenderCmd struct {
	CompositeResource string `arg:"" name:"xr" help:"File with the composite resource, or - for standard input."`
	CompositionFile   string `arg:"" optional:"" name:"composition-file" help:"File with the composition. Default is the composition for the composite resource in the packages."`
	FunctionsFile     string `arg:"" optional:"" name:"functions-file" help:"File, or folder with files, with the Functions of the composition. Default is the functions in the packages."`

	Composition string `placeholder:"NAME" help:"Composition to use, if the packages have several for the composite resource."`

	ObservedResources   string   `short:"o" placeholder:"FILE" help:"File, or folder with files, with the composed resources that exist."`
	RequiredResources   []string `short:"e" sep:"none" placeholder:"FILE" help:"File, or folder with files, with resources that functions can require. Can be repeated."`
	ExtraResources      []string `sep:"none" placeholder:"FILE" help:"Former name of --required-resources."`
	RequiredSchemas     []string `short:"s" sep:"none" placeholder:"FILE" help:"File, or folder with files, with OpenAPI documents whose schemas functions can require, as kubectl get --raw /openapi/v3/apis/apps/v1 prints them. The kinds of the packages are known without it. Can be repeated."`
	FunctionCredentials string   `placeholder:"FILE" help:"File, or folder with files, with the Secrets that functions use as credentials."`
	FunctionAnnotations []string `short:"a" sep:"none" placeholder:"KEY=VALUE" help:"Annotation that replaces the one of every Function. Can be repeated."`

	ContextFiles  map[string]string `mapsep:"none" placeholder:"KEY=FILE" help:"File with a value in JSON for the context of the first function. Can be repeated."`
	ContextValues map[string]string `mapsep:"none" placeholder:"KEY=JSON" help:"Value in JSON for the context of the first function. Takes precedence over --context-files. Can be repeated."`

	IncludeFullXR          bool `name:"include-full-xr" short:"x" help:"Print the metadata and the specification of the composite resource too."`
	IncludeFunctionResults bool `short:"r" help:"Print the results of functions as resources of kind Result."`
	IncludeContext         bool `short:"c" help:"Print the context after the last function as a resource of kind Context."`

	XRD               string            `name:"xrd" placeholder:"FILE" help:"File with the definition of the composite resource, whose defaults are set. Default is the definition in the packages."`
	Validate          bool              `help:"Check the rendered resources against the schemas of the packages, and print the composite resource in full. Problems are written to standard error."`
	AllowUnknownKinds bool              `help:"With --validate, report resources of unknown kinds as warnings."`
	Timeout           time.Duration     `default:"1m" placeholder:"DURATION" help:"Time in which the functions must start and answer. Default is 1m."`
	Output            view.ObjectFormat `placeholder:"FORMAT" complete:"object-format" help:"Print a list in JSON, or with jsonpath= and a template, in place of a stream of YAML."`
	dependencies.ContentsFlags
}

// Run renders a composite resource without a cluster, and prints the resources that Crossplane would apply.
func (c *RenderCmd) Run(env *terminal.Env) (err error) {
	in, err := c.input(env)
	if err != nil {
		return err
	}
	objects, err := c.functionObjects(env)
	if err != nil {
		return err
	}
	closure, err := c.Closure(env, append(c.roots(), packagesOf(objects)...))
	if err != nil {
		return err
	}
	defer terminal.Close(&err, closure)
	v, err := validation.New()
	if err != nil {
		return err
	}
	v.AllowUnknown = c.AllowUnknownKinds
	own, err := c.addDefinitions(env, v, closure)
	if err != nil {
		return err
	}
	if err := c.addSchemas(env, v); err != nil {
		return err
	}
	if in.Composition, err = c.selectComposition(env, in.Composite, own, closure); err != nil {
		return err
	}
	if v.Schemas.Has(in.Composite.GroupVersionKind()) {
		if err := v.Schemas.SetDefaults(in.Composite.Object); err != nil {
			return composition.ErrCompositionInvalid.New(err, "cannot set the defaults of %s", c.CompositeResource)
		}
	}
	in.Schemas = v.Schemas.OpenAPI
	plan, err := selectFunctions(env, in.Composition, objects, closure)
	if err != nil {
		return err
	}
	out, err := c.call(env, plan, closure, in)
	c.reportResults(env, out.Results)
	if err != nil {
		return err
	}
	return c.finish(env, v, in, out)
}

// roots returns the packages of the flags, or this folder if it is a package that can contain the composition.
func (c *RenderCmd) roots() []string {
	if len(c.Package) > 0 || c.CompositionFile != "" && c.FunctionsFile != "" && !c.Validate {
		return c.Package
	}
	if location.IsSource(".") {
		return []string{"."}
	}
	return nil
}

// call starts the functions, and runs the pipeline.
func (c *RenderCmd) call(
	env *terminal.Env, plan []plannedFunction, closure *dependencies.Closure, in composition.Input,
) (out composition.Output, err error) {
	running, err := c.startFunctions(env, plan, closure)
	if err != nil {
		return composition.Output{}, err
	}
	defer terminal.Close(&err, running)
	ctx, cancel := context.WithTimeout(env.Context, c.Timeout)
	defer cancel()
	return composition.Render(ctx, running, in)
}

// reportResults prints the warnings of functions. A fatal result is the error of the command.
func (c *RenderCmd) reportResults(env *terminal.Env, results []composition.Result) {
	for _, r := range results {
		if r.Severity == protocol.SeverityWarning || r.Severity == protocol.SeverityNormal && env.Verbose {
			fmt.Fprintf(
				env.Stderr, "%s: step %s: %s\n", strings.ToLower(strings.TrimPrefix(r.Severity.String(), "SEVERITY_")),
				terminal.Safe(r.Step), terminal.Safe(r.Message),
			)
		}
	}
}

// finish prints the rendered resources, and validates them.
func (c *RenderCmd) finish(
	env *terminal.Env, v *validation.Validation, in composition.Input, out composition.Output,
) error {
	if err := checkScopes(v, in.Composite, out.Composed); err != nil {
		return err
	}
	xr := out.Composite
	if c.IncludeFullXR || c.Validate {
		xr = composition.Full(in.Composite, out.Composite)
	}
	resources := []map[string]any{xr.Object}
	for _, o := range out.Composed {
		resources = append(resources, o.Object)
	}
	printed := append(resources, c.additions(out)...)
	if err := view.PrintManifests(env.Stdout, c.Output, printed); err != nil {
		return err
	}
	if !c.Validate {
		return nil
	}
	return c.validate(env, v, resources)
}

// additions returns the results and the context as resources, if they are selected.
func (c *RenderCmd) additions(out composition.Output) []map[string]any {
	const apiVersion = "render.crossplane.io/v1beta1"
	var all []map[string]any
	if c.IncludeFunctionResults {
		for _, r := range out.Results {
			all = append(all, map[string]any{
				"apiVersion": apiVersion, "kind": "Result", "step": r.Step, "severity": r.Severity.String(), "message": r.Message,
			})
		}
	}
	if c.IncludeContext && out.Context != nil {
		all = append(all, map[string]any{"apiVersion": apiVersion, "kind": "Context", "fields": out.Context})
	}
	return all
}

// checkScopes fails for a resource of a cluster that a namespaced composite resource composes, as Crossplane does.
func checkScopes(v *validation.Validation, xr *unstructured.Unstructured, composed []*unstructured.Unstructured) error {
	for _, o := range composed {
		if xr.GetNamespace() != "" && v.Schemas.ClusterScoped(o.GroupVersionKind()) {
			return composition.ErrDesiredResource.New(
				nil, "%s %s is in a namespace and cannot compose %s, which is not", xr.GetKind(), xr.GetName(), o.GetKind(),
			)
		}
	}
	return nil
}

// validate checks rendered resources against the schemas of the packages.
func (c *RenderCmd) validate(env *terminal.Env, v *validation.Validation, resources []map[string]any) error {
	count, err := c.validateAll(env, v, resources)
	if err != nil {
		return err
	}
	if err := (view.OutputFlag{}).
		Print(env.Stderr, nil, func(w io.Writer) { author.WriteFindings(w, v.Findings) }); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "%s\n", terminal.Safe(v.Summary(count)))
	if _, failed := author.CountFindings(v.Findings); failed {
		return terminal.ExitCode(errcode.Invalid.Exit)
	}
	return nil
}

// validateAll adds the findings about rendered resources, and returns the number of resources.
func (c *RenderCmd) validateAll(env *terminal.Env, v *validation.Validation, resources []map[string]any) (int, error) {
	var text strings.Builder
	if err := view.PrintManifests(&text, "", resources); err != nil {
		return 0, err
	}
	docs, err := xpkg.Split([]byte(text.String()), "output", c.StreamLimits())
	if err != nil {
		return 0, err
	}
	all := v.Read(docs)
	for _, r := range all {
		setOwnerUID(r.Object)
		v.Validate(env.Context, r)
	}
	xpkg.SortFindings(v.Findings)
	return len(all), nil
}

// setOwnerUID sets the UID of owners that have none, because they do not exist yet.
func setOwnerUID(o map[string]any) {
	u := unstructured.Unstructured{Object: o}
	owners := u.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = cmp.Or(owners[i].UID, "00000000-0000-0000-0000-000000000000")
	}
	if len(owners) > 0 {
		u.SetOwnerReferences(owners)
	}
}

// errNotOne is the reason for a file with another number of objects than one.
var errNotOne = errors.New("the file must contain exactly one object")
