package compose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/author"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/function/call"
	"github.com/xpkg-dev/xpkg/internal/function/process"
	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const (
	// runtimeAnnotation with the value Development marks a Function that its developer runs, for `xpkg render`.
	runtimeAnnotation = "render.crossplane.io/runtime"
	// targetAnnotation is the address of a Function that its developer runs, for `xpkg render`.
	targetAnnotation = "render.crossplane.io/runtime-development-target"
	// dockerAnnotations begin the annotations for the container of a Function, which `xpkg render` refuses.
	dockerAnnotations = "render.crossplane.io/runtime-docker-"

	developmentRuntime      = "Development"
	defaultRuntimeRegistry  = "docker.io"
	functionTemporaryFolder = "xpkg-render-"
)

// Codes of functions.
var (
	ErrFunctionRuntime = errcode.Code{
		Name: "FunctionRuntime", Class: errcode.Unsupported,
		Cause: "An annotation of a Function requests a runtime that xpkg does not have, such as Docker.",
		Fix:   "Remove the annotation: xpkg runs the function as a process, from the image of its package and without Docker. For a function that you run yourself, set render.crossplane.io/runtime to Development.",
	}
)

// functionObject is a Function in a file.
type functionObject struct {
	name, pkg   string
	annotations map[string]string
}

// functionObjects returns the Functions of the file, and others, with the annotations of the flags.
func (c *RenderCmd) functionObjects(env *terminal.Env, others ...functionObject) ([]functionObject, error) {
	overrides := map[string]string{}
	for _, a := range c.FunctionAnnotations {
		key, value, ok := strings.Cut(a, "=")
		if !ok || key == "" {
			return nil, terminal.ErrUsage.New(nil, "the annotation %q is not KEY=VALUE", a)
		}
		overrides[key] = value
	}
	objects, err := c.objects(env, c.FunctionsFile)
	if err != nil {
		return nil, err
	}
	var out []functionObject
	for _, o := range objects {
		if o.GetKind() != v1.FunctionKind || o.GroupVersionKind().Group != v1.Group {
			return nil, composition.ErrCompositionInvalid.New(
				nil, "%s contains %s of %s and not only Functions", c.FunctionsFile, o.GetKind(), o.GetAPIVersion(),
			)
		}
		out = append(out, functionObjectOf(o))
	}
	// The function without a name stands for those of packages.
	out = append(append(out, others...), functionObject{})
	for i := range out {
		annotations := map[string]string{}
		maps.Copy(annotations, out[i].annotations)
		maps.Copy(annotations, overrides)
		out[i].annotations = annotations
		if _, err := out[i].target(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// functionObjectOf returns the Function in an object.
func functionObjectOf(o *unstructured.Unstructured) functionObject {
	f := functionObject{name: o.GetName(), annotations: o.GetAnnotations()}
	f.pkg, _ = validation.Object(o.Object["spec"])["package"].(string)
	return f
}

// development reports whether the developer of a function runs it.
func (f functionObject) development() bool {
	return f.annotations[runtimeAnnotation] == developmentRuntime
}

// target returns the address of a function that its developer runs, or "". It fails with FunctionRuntime for another
// runtime.
func (f functionObject) target() (string, error) {
	if f.development() {
		if t := f.annotations[targetAnnotation]; t != "" {
			return t, nil
		}
		return call.DefaultTarget, nil
	}
	for _, key := range slices.Sorted(maps.Keys(f.annotations)) {
		if key == runtimeAnnotation && f.annotations[key] != "" || strings.HasPrefix(key, dockerAnnotations) {
			return "", ErrFunctionRuntime.New(
				nil, "%s has the annotation %s: %s", strings.TrimSpace("the Function "+f.name), key, f.annotations[key],
			)
		}
	}
	return "", nil
}

// packagesOf returns the packages of functions that xpkg runs.
func packagesOf(objects []functionObject) []string {
	var out []string
	for _, f := range objects {
		if f.pkg != "" && !f.development() && !slices.Contains(out, f.pkg) {
			out = append(out, f.pkg)
		}
	}
	return out
}

// plannedFunction is a function of a composition: the address of a running one, a package, or an image that was built.
type plannedFunction struct {
	name, target string
	content      dependencies.Content
	built        *image.Image
}

// selectFunctions returns the functions of a composition.
func selectFunctions(
	env *terminal.Env, c composition.Composition, objects []functionObject, closure *dependencies.Closure,
) ([]plannedFunction, error) {
	var out []plannedFunction
	for _, name := range c.Functions() {
		f, err := selectFunction(env, name, objects, closure)
		if err != nil {
			return nil, adviseEmbedded(err, name)
		}
		out = append(out, f)
	}
	return out, nil
}

func selectFunction(
	env *terminal.Env, name string, objects []functionObject, closure *dependencies.Closure,
) (plannedFunction, error) {
	i := slices.IndexFunc(objects, func(f functionObject) bool { return f.name == name })
	if i < 0 {
		i = len(objects) - 1
	}
	o := objects[i]
	o.name = name
	target, err := o.target()
	if err != nil {
		return plannedFunction{}, err
	}
	if target != "" {
		return plannedFunction{name: name, target: target}, nil
	}
	for _, p := range closure.Contents {
		if p.Meta.Kind == xpkg.Function && (o.pkg == "" && p.Name == name || o.pkg != "" && samePackage(o.pkg, p)) {
			return plannedFunction{name: name, content: p}, nil
		}
	}
	if o.pkg == "" {
		return similarFunction(env, name, closure)
	}
	return plannedFunction{},
		validation.ErrFunctionUnknown.New(nil, "the package %s of the Function %s is not among the packages", o.pkg, name).
			WithDo("Add the package to the lock file with `xpkg resolve`, or omit --lock.")
}

// samePackage reports whether a reference names the repository of a package.
func samePackage(reference string, p dependencies.Content) bool {
	ref, err := oci.ParseReference(reference, oci.ParseOptions{AllowUntagged: true})
	return err == nil && ref.Name() == p.Locked.Repository
}

// similarFunction returns the function whose package has the name that a composition uses. In a cluster, such a
// function must be installed with that name, because as a dependency it has another one.
func similarFunction(env *terminal.Env, name string, closure *dependencies.Closure) (plannedFunction, error) {
	var known []string
	var found []dependencies.Content
	for _, p := range closure.Contents {
		if p.Meta.Kind != xpkg.Function {
			continue
		}
		known = append(known, p.Name)
		if p.Name == name || slices.Contains(validation.FunctionNames(p.Meta.Name, p.Locked.Repository), name) {
			found = append(found, p)
		}
	}
	if len(found) == 1 {
		fmt.Fprintf(env.Stderr,
			"note: the function %s is taken from %s, which a cluster installs as %s if it is a dependency\n",
			terminal.Safe(name), terminal.Safe(found[0].Reference), terminal.Safe(found[0].Name))
		return plannedFunction{name: name, content: found[0]}, nil
	}
	err := validation.ErrFunctionUnknown.New(nil, "the function %s of the composition is not known", name)
	if len(known) > 0 {
		return plannedFunction{}, err.WithDo(
			"Correct functionRef.name in the composition; the packages have the functions %s.", strings.Join(known, ", "),
		)
	}
	return plannedFunction{}, err
}

// adviseEmbedded returns the error for a function that is not known. It is another one if the function belongs to the
// Project in this folder.
func adviseEmbedded(failed error, name string) error {
	functions, err := author.EmbeddedFunctions(location.FolderFlags{}, ".", xpkg.Limits{})
	if err != nil || !errors.Is(failed, validation.ErrFunctionUnknown) {
		return failed
	}
	i := slices.IndexFunc(functions, func(f author.EmbeddedFunction) bool { return slices.Contains(f.Names, name) })
	if i < 0 {
		return failed
	}
	return validation.ErrFunctionUnknown.New(nil, "the function %s belongs to the Project in this folder", name).WithDo(
		"Run its program with --insecure, and pass a file with a Function of this name and the annotation %s: %s.",
		runtimeAnnotation, developmentRuntime,
	)
}

// runningFunctions are the functions of a rendering. They must be closed.
type runningFunctions struct {
	clients map[string]*call.Client
	host    *process.Host
	dir     string
}

// Close ends the functions that the command has started.
func (r *runningFunctions) Close() error {
	for _, c := range r.clients {
		c.Close()
	}
	if r.host == nil {
		return nil
	}
	return errors.Join(r.host.Close(), os.RemoveAll(r.dir))
}

// Call implements [composition.Functions]. An error contains the end of the log of the function.
func (r *runningFunctions) Call(ctx context.Context, name string, q *protocol.Request) (*protocol.Response, error) {
	out, err := r.clients[name].Call(ctx, q)
	if err == nil || r.host == nil {
		return out, err
	}
	log := r.host.Log(name)
	f := errcode.From(err)
	if log == "" || f.Why == nil {
		return nil, err
	}
	return nil, f.Code.New(fmt.Errorf("%w\n%s", f.Why, log), "%s", f.What).WithDo("%s", f.Do)
}

// startFunctions connects to functions that run, and starts the others.
func (c *RenderCmd) startFunctions(
	env *terminal.Env, plan []plannedFunction, closure *dependencies.Closure,
) (*runningFunctions, error) {
	return c.startEach(env, plan, closure, func(_ string, err error) error { return err })
}

// startEach is like startFunctions, and calls failed for a function that does not start. It continues if failed returns
// nil.
func (c *RenderCmd) startEach(
	env *terminal.Env, plan []plannedFunction, closure *dependencies.Closure, failed func(name string, err error) error,
) (_ *runningFunctions, err error) {
	r := &runningFunctions{clients: map[string]*call.Client{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	var images *sandbox.Roots
	for _, f := range plan {
		target := f.target
		if target == "" {
			if images == nil {
				if images, err = c.images(closure); err != nil {
					return nil, err
				}
			}
			target, err = c.startFunction(env, r, f, closure, images)
		}
		var client *call.Client
		if err == nil {
			client, err = call.New(target)
		}
		if err != nil {
			if err = failed(f.name, err); err != nil {
				return nil, err
			}
			continue
		}
		r.clients[f.name] = client
	}
	if images == nil {
		return r, nil
	}
	// The images of this rendering are in use and stay.
	return r, images.Prune(nil)
}

// startFunction starts the function of a package, and returns its address.
func (c *RenderCmd) startFunction(
	env *terminal.Env, r *runningFunctions, f plannedFunction, closure *dependencies.Closure, images *sandbox.Roots,
) (_ string, err error) {
	task := terminal.StartTask(env.Stderr, "starting the function %s", f.name)
	defer task.End()
	if r.host == nil {
		if r.dir, err = os.MkdirTemp("", functionTemporaryFolder); err != nil {
			return "", process.ErrFunctionStart.New(err, "cannot create a folder for the functions")
		}
		if r.host, err = process.New(r.dir, images, slog.New(slog.DiscardHandler)); err != nil {
			return "", errors.Join(err, os.RemoveAll(r.dir))
		}
	}
	origin, digest, err := f.image(env.Context, closure)
	if err != nil {
		return "", err
	}
	// The time for fetching an image does not count.
	root, err := images.Image(env.Context, origin, digest)
	if err != nil {
		return "", err
	}
	if root.Release != nil {
		defer root.Release()
	}
	ctx, cancel := context.WithTimeout(env.Context, c.Timeout)
	defer cancel()
	return r.host.Start(ctx, f.name, origin, digest)
}

// images returns the unpacked images of functions, which are kept in the package cache.
func (c *RenderCmd) images(closure *dependencies.Closure) (*sandbox.Roots, error) {
	dir, err := c.FunctionsDir()
	if err != nil {
		return nil, err
	}
	return sandbox.NewRoots(sandbox.RootsOptions{Dir: dir, Source: closure.Source()})
}

// image returns the image of a function: the one that was built, its package, or the image in its metadata.
func (f plannedFunction) image(
	ctx context.Context, closure *dependencies.Closure,
) (fetch.Origin, oci.Digest, error) {
	p := f.content
	if f.built != nil {
		err := closure.Source().Store().Add(ctx, f.built, oci.Limits{})
		return fetch.Plain(oci.Reference{Registry: "localhost", Repository: f.name}), f.built.Root().Digest, err
	}
	if p.Meta.ControllerImage == "" {
		origin, err := closure.Locate(ctx, p.Locked.Reference())
		return origin, p.Locked.Digest, err
	}
	ref, err := oci.ParseReference(p.Meta.ControllerImage, oci.ParseOptions{DefaultRegistry: defaultRuntimeRegistry})
	if err != nil {
		return fetch.Origin{}, oci.Digest{}, err
	}
	origin, err := closure.Locate(ctx, ref)
	if err != nil {
		return fetch.Origin{}, oci.Digest{}, err
	}
	digest, err := closure.Source().Resolve(ctx, origin, 0)
	return origin, digest, err
}
