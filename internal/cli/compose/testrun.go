package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/composition/comptest"
	"github.com/xpkg-dev/xpkg/internal/function/call"
	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// testRun is a run of the tests of a package.
type testRun struct {
	*packageTests
	render    *RenderCmd
	own       []xpkg.Document
	closure   *dependencies.Closure
	functions []functionObject
	// local are the functions of the Project itself.
	local    *author.LocalFunctions
	coverage comptest.Coverage
	// kinds are the known kinds, by the definition of a test. The empty one stands for those of the packages.
	kinds map[string]*knownKinds
}

// knownKinds are the kinds that a test knows. Their use is exclusive.
type knownKinds struct {
	sync.Mutex
	*validation.Validation
}

// readyTest is a test that can run.
type readyTest struct {
	*testCase
	kinds *knownKinds
	input composition.Input
	plan  []plannedFunction
}

// run runs the tests.
func (t *packageTests) run(env *terminal.Env) (_ comptest.Report, err error) {
	cases, err := t.cases(env)
	if err != nil {
		return comptest.Report{}, err
	}
	folder, err := t.Read(env.Context, t.root, t.StreamLimits())
	if err != nil {
		return comptest.Report{}, err
	}
	r := &testRun{
		packageTests: t, own: folder.Documents, kinds: map[string]*knownKinds{},
		render: &RenderCmd{
			ContentsFlags: t.ContentsFlags, Timeout: t.Timeout, FunctionsFile: t.Functions,
			FunctionAnnotations: t.FunctionAnnotations,
		},
	}
	if r.functions, err = r.render.functionObjects(env, examplesOf(folder)...); err != nil {
		return comptest.Report{}, err
	}
	roots := append(append([]string{t.root}, t.Package...), packagesOf(r.functions)...)
	if r.closure, err = t.Closure(env, roots); err != nil {
		return comptest.Report{}, err
	}
	defer terminal.Close(&err, r.closure)
	transfer := location.TransferFlags{
		RegistryFlags: flags.RegistryFlags{TrustFlags: t.TrustFlags}, LimitFlags: t.LimitFlags,
	}
	if r.local, err = author.OpenLocalFunctions(t.TemplatingFlag, t.root, transfer); err != nil {
		return comptest.Report{}, err
	}
	defer terminal.Close(&err, r.local)
	if err := r.addOwnCompositions(); err != nil {
		return comptest.Report{}, err
	}
	return r.runAll(env, cases)
}

// examplesOf returns the Functions among the examples of a package.
func examplesOf(folder *xpkg.Folder) []functionObject {
	var out []functionObject
	for _, d := range folder.ExampleDocuments {
		var o map[string]any
		if d.Decode(&o) != nil {
			continue
		}
		if kind := validation.KindOf(o); kind.Group == v1.Group && kind.Kind == v1.FunctionKind {
			out = append(out, functionObjectOf(&unstructured.Unstructured{Object: o}))
		}
	}
	return out
}

// addOwnCompositions adds the Compositions of the package to the coverage.
func (r *testRun) addOwnCompositions() error {
	for _, doc := range r.own {
		if !validation.IsComposition(doc) {
			continue
		}
		text, err := doc.JSON()
		if err != nil {
			return err
		}
		if c, err := composition.Parse(text, doc.File); err == nil {
			r.coverage.Add(c)
		}
	}
	return nil
}

// runAll prepares the tests, starts their functions once, and runs the tests concurrently.
func (r *testRun) runAll(env *terminal.Env, cases []*testCase) (_ comptest.Report, err error) {
	ready := make([]*readyTest, len(cases))
	var plan []plannedFunction
	for i, c := range cases {
		if c.failed != nil || c.Skipped != "" {
			continue
		}
		if ready[i], c.failed = r.prepare(env, c); c.failed != nil {
			continue
		}
		for _, f := range ready[i].plan {
			if !slices.ContainsFunc(plan, func(o plannedFunction) bool { return o.name == f.name }) {
				plan = append(plan, f)
			}
		}
	}
	broken := map[string]error{}
	running, err := r.render.startEach(env, plan, r.closure, func(name string, err error) error {
		broken[name] = err
		return env.Context.Err()
	})
	if err != nil {
		return comptest.Report{}, err
	}
	defer terminal.Close(&err, running)
	out := comptest.Report{Results: make([]comptest.Result, len(cases))}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range cases {
		group.Go(func() error {
			out.Results[i] = r.one(env, c, ready[i], running, broken)
			return nil
		})
	}
	_ = group.Wait() // The functions return no error.
	out.Coverage = r.coverage.Report()
	return out, env.Context.Err()
}

// one runs a test that is ready, and returns its outcome.
func (r *testRun) one(
	env *terminal.Env, c *testCase, ready *readyTest, running composition.Functions, broken map[string]error,
) comptest.Result {
	if c.failed != nil || c.Skipped != "" {
		return c.resultOf(c.failed)
	}
	for _, f := range ready.plan {
		if err := broken[f.name]; err != nil {
			return c.resultOf(err)
		}
	}
	out, err := r.execute(env, ready, running)
	if err != nil {
		return c.resultOf(err)
	}
	return out
}

// prepare reads the input of a test, and selects its composition and its functions.
func (r *testRun) prepare(env *terminal.Env, c *testCase) (*readyTest, error) {
	out := &readyTest{testCase: c}
	cmd := *r.render
	cmd.CompositeResource, cmd.FunctionCredentials = r.path(c.XRPath), r.path(c.FunctionCredentialsPath)
	xrs := []*unstructured.Unstructured{{Object: c.XR}}
	if c.XR == nil {
		var err error
		if xrs, err = cmd.objects(env, cmd.CompositeResource); err != nil {
			return nil, err
		}
	}
	if len(xrs) != 1 {
		return nil, comptest.ErrTestInvalid.New(errNotOne, "%s contains %d objects", c.XRPath, len(xrs))
	}
	xr := xrs[0]
	if xr.GetKind() == "" || xr.GetAPIVersion() == "" || xr.GetName() == "" {
		return nil, comptest.ErrTestInvalid.New(nil, "the composite resource has no apiVersion, kind or name").
			WithDo("Set them in spec.xr, or in the file of spec.xrPath.")
	}
	secrets, err := cmd.secrets(env)
	if err != nil {
		return nil, err
	}
	selected, err := r.composition(env, &cmd, c, xr)
	if err != nil {
		return nil, err
	}
	r.coverage.Add(selected)
	if out.kinds, err = r.kindsOf(env, c); err != nil {
		return nil, err
	}
	if out.kinds.Schemas.Has(xr.GroupVersionKind()) {
		if err := out.kinds.Schemas.SetDefaults(xr.Object); err != nil {
			return nil, composition.ErrCompositionInvalid.New(err, "cannot set the defaults of the composite resource")
		}
	}
	if out.plan, err = r.plan(env, selected); err != nil {
		return nil, err
	}
	out.input = composition.Input{
		Composite: xr, Composition: selected, Observed: unstructuredOf(c.ObservedResources),
		Resources: unstructuredOf(c.ExtraResources), Context: c.Context, Secrets: secrets,
		Schemas: func(kind schema.GroupVersionKind) (map[string]any, error) {
			out.kinds.Lock()
			defer out.kinds.Unlock()
			return out.kinds.Schemas.OpenAPI(kind)
		},
		Called: func(s composition.Step, q *protocol.Request, res *protocol.Response) {
			r.coverage.Called(selected, s, q, res)
		},
	}
	return out, nil
}

// plan returns the functions of a composition. Those of the Project itself are built, unless their developer runs them.
func (r *testRun) plan(env *terminal.Env, c composition.Composition) ([]plannedFunction, error) {
	var out []plannedFunction
	for _, name := range c.Functions() {
		runs := slices.ContainsFunc(r.functions, func(f functionObject) bool { return f.development() && f.name == name })
		if !runs {
			built, err := r.local.Image(env, name)
			if err == nil && built != nil {
				err = r.closure.OpenSource(env, r.ContentsFlags)
			}
			if err != nil {
				return nil, err
			}
			if built != nil {
				out = append(out, plannedFunction{name: name, built: built})
				continue
			}
		}
		f, err := selectFunction(env, name, r.functions, r.closure)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// path returns the path of a file that a test names, or "".
func (r *testRun) path(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join(r.root, filepath.FromSlash(name))
}

func unstructuredOf(objects []map[string]any) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		out = append(out, &unstructured.Unstructured{Object: o})
	}
	return out
}

// composition returns the composition of a test: the given one, or that of the packages.
func (r *testRun) composition(
	env *terminal.Env, cmd *RenderCmd, c *testCase, xr *unstructured.Unstructured,
) (composition.Composition, error) {
	if c.Composition == nil {
		cmd.CompositionFile = r.path(c.CompositionPath)
		return cmd.selectComposition(env, xr, r.own, r.closure)
	}
	text, err := json.Marshal(c.Composition)
	if err != nil {
		return composition.Composition{}, err
	}
	parsed, err := composition.Parse(text, c.File)
	if err != nil {
		return composition.Composition{}, err
	}
	return composition.Select(xr, []composition.Composition{parsed}, composition.Definition{}, "")
}

// kindsOf returns the kinds that a test knows: those of the packages, and that of its definition.
func (r *testRun) kindsOf(env *terminal.Env, c *testCase) (*knownKinds, error) {
	docs, err := r.render.documents(env, r.path(c.XRDPath))
	if err != nil {
		return nil, err
	}
	if c.XRD != nil {
		text, err := json.Marshal(c.XRD)
		if err != nil {
			return nil, err
		}
		if docs, err = xpkg.Split(text, c.File, r.StreamLimits()); err != nil {
			return nil, err
		}
	}
	var key []byte
	for _, d := range docs {
		text, err := d.JSON()
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(r.own, func(o xpkg.Document) bool {
			have, err := o.JSON()
			return err == nil && bytes.Equal(have, text)
		}) {
			key = append(append(key, text...), '\n')
		}
	}
	if known := r.kinds[string(key)]; known != nil {
		return known, nil
	}
	v, err := validation.New()
	if err != nil {
		return nil, err
	}
	v.AllowUnknown = true
	addContents(v, r.closure.All())
	v.Read(r.own)
	if key != nil {
		v.Read(docs)
	}
	if len(v.Findings) > 0 {
		return nil, composition.ErrCompositionInvalid.New(nil, "cannot read the definitions: %s", v.Findings[0].String())
	}
	known := &knownKinds{Validation: v}
	r.kinds[string(key)] = known
	return known, nil
}

// execute renders a test and compares the result.
func (r *testRun) execute(
	env *terminal.Env, t *readyTest, running composition.Functions,
) (comptest.Result, error) {
	ctx, cancel := context.WithTimeout(env.Context, t.Timeout())
	defer cancel()
	out, err := composition.Render(ctx, running, t.input)
	if err == nil {
		t.kinds.Lock()
		err = checkScopes(t.kinds.Validation, t.input.Composite, out.Composed)
		t.kinds.Unlock()
	}
	fatal := errors.Is(err, composition.ErrFatalResult)
	switch {
	case errors.Is(err, call.ErrFunctionUnreachable) && ctx.Err() != nil:
		return comptest.Result{}, errcode.From(err).WithDo("Set spec.timeoutSeconds of the test to more than %.0f.",
			t.Timeout().Seconds())
	case err != nil && !fatal:
		return comptest.Result{}, err
	}
	result := comptest.Result{Name: t.Name, File: t.File}
	shown, asserted := renderedObjects(t, out, fatal)
	if result.Differences, err = r.compareExpected(env, t, &result, shown, fatal); err != nil {
		return comptest.Result{}, err
	}
	if !fatal || len(result.Differences) == 0 {
		result.Differences = append(t.Assert(asserted), result.Differences...)
	}
	if t.Validate && !fatal {
		more, err := r.validate(env, t, asserted)
		if err != nil {
			return comptest.Result{}, err
		}
		result.Differences = append(result.Differences, more...)
	}
	if result.Verdict = comptest.Passed; len(result.Differences) > 0 {
		result.Verdict = comptest.Failed
	}
	return result, nil
}

// renderedObjects returns what a test renders: as `xpkg render -r` shows it, and with the composite resource in full.
func renderedObjects(t *readyTest, out composition.Output, fatal bool) (shown, asserted []map[string]any) {
	if !fatal {
		shown = append(shown, out.Composite.Object)
		asserted = append(asserted, composition.Full(t.input.Composite, out.Composite).Object)
	}
	var rest []map[string]any
	for _, o := range out.Composed {
		rest = append(rest, o.Object)
	}
	rest = append(rest, (&RenderCmd{IncludeFunctionResults: true}).additions(out)...)
	return append(shown, rest...), append(asserted, rest...)
}

// compareExpected compares everything that a test renders with the expected file, or updates the file. A fatal result
// that neither the file nor an assertion contains is a difference, and updates no file.
func (r *testRun) compareExpected(
	env *terminal.Env, t *readyTest, result *comptest.Result, rendered []map[string]any, fatal bool,
) ([]comptest.Difference, error) {
	file := expectedFile(t.Case)
	var expected []map[string]any
	known := exists(file)
	if known {
		objects, err := r.render.objects(env, file)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			expected = append(expected, o.Object)
		}
	}
	if fatal && !slices.ContainsFunc(slices.Concat(expected, t.AssertResources), isFatal) {
		last := rendered[len(rendered)-1]
		message, _ := last["message"].(string)
		return []comptest.Difference{{Resource: comptest.Name(last), Message: "fatal: " + message}}, nil
	}
	asserts := len(t.AssertResources)+len(t.AbsentResources) > 0
	if !known && (asserts || !r.Update) {
		if !asserts && !t.Validate {
			result.Message = "asserts nothing"
		}
		return nil, nil
	}
	found := comptest.Diff(expected, rendered)
	if !r.Update || known && len(found) == 0 {
		return found, nil
	}
	var text bytes.Buffer
	if err := view.PrintManifests(&text, "", rendered); err != nil {
		return nil, err
	}
	if err := r.writeExpected(env, file, text.Bytes()); err != nil {
		return nil, archive.ErrCannotWrite.New(err, "cannot write %s", file)
	}
	result.Updated = true
	return nil, nil
}

// isFatal reports whether an object is a fatal result.
func isFatal(o map[string]any) bool {
	return o["kind"] == "Result" && o["severity"] == protocol.SeverityFatal.String()
}

// validate returns the errors of rendered resources.
func (r *testRun) validate(env *terminal.Env, t *readyTest, rendered []map[string]any) ([]comptest.Difference, error) {
	t.kinds.Lock()
	defer t.kinds.Unlock()
	t.kinds.Findings = nil
	resources := slices.DeleteFunc(slices.Clone(rendered), func(o map[string]any) bool { return o["kind"] == "Result" })
	if _, err := r.render.validateAll(env, t.kinds.Validation, resources); err != nil {
		return nil, err
	}
	var out []comptest.Difference
	for _, f := range t.kinds.Findings {
		if f.Severity == xpkg.Error {
			out = append(out, comptest.Difference{Resource: comptest.Name(resources[f.Document-1]), Message: f.Message})
		}
	}
	return out, t.kinds.Schemas.Err()
}
