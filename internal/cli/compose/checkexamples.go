package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// renderedExample is an example whose composite resource can be rendered.
type renderedExample struct {
	of    validation.Resource
	input composition.Input
}

// render renders the examples of the composite resources and claims that the package defines, and validates the
// resources that they compose.
func (k *packageCheck) render(
	env *terminal.Env, v *validation.Validation, closure *dependencies.Closure, examples []validation.Resource,
) error {
	r := &RenderCmd{ContentsFlags: k.ContentsFlags, Timeout: k.Timeout}
	composites, err := k.composites()
	if err != nil {
		return err
	}
	var others []*unstructured.Unstructured
	var objects []functionObject // Those of a file for the Crossplane CLI, which can name running functions.
	for _, e := range examples {
		if e.Kind.Group == v1.Group && e.Kind.Kind == v1.FunctionKind {
			objects = append(objects, functionObjectOf(&unstructured.Unstructured{Object: e.Object}))
		}
	}
	var ready []renderedExample
	var functions []plannedFunction
	for _, e := range examples {
		composite, ok := composites[e.Kind.GroupKind()]
		if !ok {
			others = append(others, &unstructured.Unstructured{Object: e.Object})
			continue
		}
		xr := compositeOf(e, composite)
		selected, err := r.selectComposition(env, xr, k.folder.Documents, closure)
		if err != nil {
			k.skip(e, err)
			continue
		}
		if name := k.embeddedFunction(selected); name != "" {
			k.skip(e, fmt.Errorf("the function %s belongs to the Project itself, and is not built", name))
			continue
		}
		plan, err := selectFunctions(env, selected, append(objects, functionObject{}), closure)
		if err != nil {
			k.skip(e, err)
			continue
		}
		if v.Schemas.Has(xr.GroupVersionKind()) {
			if err := v.Schemas.SetDefaults(xr.Object); err != nil {
				return err
			}
		}
		for _, f := range plan {
			if !slices.ContainsFunc(functions, func(o plannedFunction) bool { return o.name == f.name }) {
				functions = append(functions, f)
			}
		}
		ready = append(ready, renderedExample{e, composition.Input{
			Composite: xr, Composition: selected, Schemas: v.Schemas.OpenAPI,
		}})
	}
	if len(ready) == 0 {
		return nil
	}
	running, err := r.startFunctions(env, functions, closure)
	if err != nil {
		if env.Context.Err() != nil {
			return err
		}
		k.notes = append(k.notes, "the examples are not rendered: "+err.Error())
		return nil
	}
	defer terminal.Close(&err, running)
	for _, e := range ready {
		e.input.Resources = others
		if err := k.renderOne(env, v, running, e); err != nil {
			return err
		}
	}
	if k.rendered > 0 {
		k.notes = append(k.notes, wording.Count(k.rendered, "example")+" rendered")
	}
	return v.Schemas.Err()
}

// embeddedFunction returns the name of a function of a Composition that belongs to the Project, or "".
func (k *packageCheck) embeddedFunction(c composition.Composition) string {
	for _, name := range c.Functions() {
		for _, f := range k.embedded {
			if slices.Contains(f.Names, name) {
				return name
			}
		}
	}
	return ""
}

// skip notes that an example is not rendered.
func (k *packageCheck) skip(e validation.Resource, err error) {
	k.notes = append(k.notes, fmt.Sprintf("the example %s %s is not rendered: %v", e.Kind.Kind, e.Name, err))
}

// renderOne renders an example and validates what it composes.
func (k *packageCheck) renderOne(
	env *terminal.Env, v *validation.Validation, running composition.Functions, e renderedExample,
) error {
	ctx, cancel := context.WithTimeout(env.Context, k.Timeout)
	defer cancel()
	observer := &requirementObserver{Functions: running}
	out, err := composition.Render(ctx, observer, e.input)
	if err == nil {
		err = checkScopes(v, e.input.Composite, out.Composed)
	}
	if env.Context.Err() != nil {
		return env.Context.Err()
	}
	if err != nil {
		k.fail(e.of, err, observer.required)
		return nil
	}
	k.rendered++
	for _, o := range out.Composed {
		setOwnerUID(o.Object)
		v.ValidateComposed(env.Context, e.of, o.Object)
	}
	k.found = append(k.found, k.Place(k.Folder, v.Findings)...)
	v.Findings = nil
	return nil
}

// fail reports why an example cannot be rendered. It is a warning if functions require resources of a cluster, which
// the examples need not contain. An error of a function that does not run is a note.
func (k *packageCheck) fail(e validation.Resource, err error, required bool) {
	f := errcode.From(err)
	if !slices.ContainsFunc(composition.Codes(), func(c errcode.Code) bool { return c.Name == f.Code.Name }) {
		k.skip(e, err)
		return
	}
	finding := e.Finding(f.Code, err.Error())
	if finding.Fix = f.Do; required {
		finding.Severity = xpkg.Warning
	}
	k.found = append(k.found, k.Place(k.Folder, []xpkg.Finding{finding})...)
}

// requirementObserver notes whether a function requires resources.
type requirementObserver struct {
	composition.Functions
	required bool
}

// Call implements [composition.Functions].
func (o *requirementObserver) Call(
	ctx context.Context, name string, q *protocol.Request,
) (*protocol.Response, error) {
	out, err := o.Functions.Call(ctx, name, q)
	if out != nil && out.Requirements != nil {
		o.required = o.required || len(out.Requirements.Resources)+len(out.Requirements.ExtraResources) > 0
	}
	return out, err
}

// composites returns the kinds of composite resources that the package defines, by their own kinds and those of their
// claims.
func (k *packageCheck) composites() (map[schema.GroupKind]string, error) {
	out := map[schema.GroupKind]string{}
	for _, o := range k.pkg.Objects {
		if o.GVK.GroupKind() != validation.DefinitionKind {
			continue
		}
		text, err := o.JSON()
		if err != nil {
			return nil, err
		}
		var d struct {
			Spec struct {
				Group      string                `json:"group"`
				Names      struct{ Kind string } `json:"names"`
				ClaimNames struct{ Kind string } `json:"claimNames"`
			} `json:"spec"`
		}
		if json.Unmarshal(text, &d) != nil {
			continue // reported before
		}
		for _, kind := range []string{d.Spec.Names.Kind, d.Spec.ClaimNames.Kind} {
			if kind != "" {
				out[schema.GroupKind{Group: d.Spec.Group, Kind: kind}] = d.Spec.Names.Kind
			}
		}
	}
	return out, nil
}

// compositeOf returns the composite resource of an example: the example itself, or the one that Crossplane creates for
// a claim.
func compositeOf(e validation.Resource, kind string) *unstructured.Unstructured {
	xr := (&unstructured.Unstructured{Object: e.Object}).DeepCopy()
	if e.Kind.Kind == kind {
		return xr
	}
	name, namespace := xr.GetName(), xr.GetNamespace()
	if namespace == "" {
		namespace = "default"
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetAPIVersion(xr.GetAPIVersion())
	out.SetKind(kind)
	out.SetName(name + "-00000")
	labels := map[string]string{}
	maps.Copy(labels, xr.GetLabels())
	labels["crossplane.io/claim-name"], labels["crossplane.io/claim-namespace"] = name, namespace
	out.SetLabels(labels)
	out.SetAnnotations(xr.GetAnnotations())
	spec := validation.Object(xr.Object["spec"])
	if spec == nil {
		spec = map[string]any{}
	}
	spec["claimRef"] = map[string]any{
		"apiVersion": xr.GetAPIVersion(), "kind": e.Kind.Kind, "namespace": namespace, "name": name,
	}
	out.Object["spec"] = spec
	return out
}
