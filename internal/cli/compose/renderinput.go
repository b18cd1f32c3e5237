package compose

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// input reads the files of the command, except for the composition and the functions.
func (c *RenderCmd) input(env *terminal.Env) (in composition.Input, err error) {
	xrs, err := c.objects(env, c.CompositeResource)
	if err != nil {
		return in, err
	}
	if len(xrs) != 1 {
		return in, composition.ErrCompositionInvalid.New(errNotOne, "%s contains %d objects", c.CompositeResource, len(xrs)).
			WithDo("Pass a file with the composite resource alone.")
	}
	in.Composite = xrs[0]
	if in.Composite.GetKind() == "" || in.Composite.GetAPIVersion() == "" || in.Composite.GetName() == "" {
		return in, composition.ErrCompositionInvalid.New(
			nil, "the composite resource in %s has no apiVersion, kind or name", c.CompositeResource,
		)
	}
	if in.Observed, err = c.objects(env, c.ObservedResources); err != nil {
		return in, err
	}
	for _, file := range slices.Concat(c.RequiredResources, c.ExtraResources) {
		more, err := c.objects(env, file)
		if err != nil {
			return in, err
		}
		in.Resources = append(in.Resources, more...)
	}
	if in.Secrets, err = c.secrets(env); err != nil {
		return in, err
	}
	in.Context, err = c.pipelineContext(env)
	return in, err
}

// documents reads the documents of a file, or of the files of a folder. It returns none for an empty name.
func (c *RenderCmd) documents(env *terminal.Env, name string) ([]xpkg.Document, error) {
	if name == "" {
		return nil, nil
	}
	files, err := resourceFiles(name)
	if err != nil {
		return nil, err
	}
	var out []xpkg.Document
	for _, file := range files {
		raw, err := env.ReadInput(file)
		if err != nil {
			return nil, location.ErrReadFile.New(err, "cannot read %s", file)
		}
		docs, err := xpkg.Split(raw, filepath.ToSlash(file), c.StreamLimits())
		if err != nil {
			return nil, err
		}
		out = append(out, docs...)
	}
	return out, nil
}

// objects reads the objects of a file or folder. The items of a list are objects.
func (c *RenderCmd) objects(env *terminal.Env, name string) ([]*unstructured.Unstructured, error) {
	docs, err := c.documents(env, name)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, doc := range docs {
		var o map[string]any
		if err := doc.Decode(&o); err != nil {
			return nil, composition.ErrCompositionInvalid.New(err, "cannot read the objects of %s", name)
		}
		items, isList := o["items"].([]any)
		if !isList || !strings.HasSuffix(validation.KindOf(o).Kind, "List") {
			out = append(out, &unstructured.Unstructured{Object: o})
			continue
		}
		for _, item := range items {
			out = append(out, &unstructured.Unstructured{Object: validation.Object(item)})
		}
	}
	return out, nil
}

// secrets reads the credentials of functions.
func (c *RenderCmd) secrets(env *terminal.Env) ([]composition.Secret, error) {
	docs, err := c.documents(env, c.FunctionCredentials)
	if err != nil {
		return nil, err
	}
	var out []composition.Secret
	for _, doc := range docs {
		var s corev1.Secret
		if err := doc.Decode(&s); err != nil || s.Kind != "Secret" {
			return nil,
				composition.ErrCompositionInvalid.New(err, "%s contains something else than Secrets", c.FunctionCredentials)
		}
		secret := composition.Secret{
			SecretRef: composition.SecretRef{Namespace: s.Namespace, Name: s.Name}, Data: map[string][]byte{},
		}
		maps.Copy(secret.Data, s.Data)
		for key, value := range s.StringData {
			secret.Data[key] = []byte(value)
		}
		out = append(out, secret)
	}
	return out, nil
}

// pipelineContext returns the context of the first function.
func (c *RenderCmd) pipelineContext(env *terminal.Env) (map[string]any, error) {
	out := map[string]any{}
	add := func(key string, text []byte) error {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return composition.ErrCompositionInvalid.New(err, "the value of %s in the context is not JSON", key)
		}
		out[key] = value
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(c.ContextFiles)) {
		text, err := env.ReadInput(c.ContextFiles[key])
		if err != nil {
			return nil, location.ErrReadFile.New(err, "cannot read %s", c.ContextFiles[key])
		}
		if err := add(key, text); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.ContextValues)) {
		if err := add(key, []byte(c.ContextValues[key])); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addSchemas adds the schemas of --required-schemas.
func (c *RenderCmd) addSchemas(env *terminal.Env, v *validation.Validation) error {
	for _, name := range c.RequiredSchemas {
		docs, err := c.documents(env, name)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			text, err := doc.JSON()
			if err == nil {
				err = v.Schemas.AddOpenAPI(text)
			}
			if err != nil {
				return composition.ErrCompositionInvalid.New(err, "%s has no OpenAPI document of version 3", doc.File).
					WithDo("Write the document of an API group with `kubectl get --raw /openapi/v3/apis/apps/v1 > apps.json`.")
			}
		}
	}
	return nil
}

// addDefinitions adds the schemas of the packages, of the folders and of --xrd. It returns the documents of the
// folders.
func (c *RenderCmd) addDefinitions(
	env *terminal.Env, v *validation.Validation, closure *dependencies.Closure,
) ([]xpkg.Document, error) {
	addContents(v, closure.All())
	docs, err := c.documents(env, c.XRD)
	if err != nil {
		return nil, err
	}
	var own []xpkg.Document
	for _, root := range c.roots() {
		if !location.IsPath(root) || location.IsPackageFile(root) {
			continue
		}
		folder, err := (location.FolderFlags{}).Read(env.Context, root, c.StreamLimits())
		if err != nil {
			return nil, err
		}
		own = append(own, folder.Documents...)
	}
	v.Read(slices.Concat(own, docs))
	if len(v.Findings) > 0 {
		return nil, composition.ErrCompositionInvalid.New(nil, "cannot read the definitions: %s", v.Findings[0].String())
	}
	return own, nil
}

// selectComposition returns the composition of the file, or that of the packages.
func (c *RenderCmd) selectComposition(
	env *terminal.Env, xr *unstructured.Unstructured, own []xpkg.Document, closure *dependencies.Closure,
) (composition.Composition, error) {
	if c.CompositionFile != "" {
		return c.givenComposition(env, xr)
	}
	var all []composition.Composition
	var definition composition.Definition
	add := func(kind schema.GroupVersionKind, doc xpkg.Document, source string) error {
		if kind.GroupKind() != validation.CompositionKind && kind.GroupKind() != validation.DefinitionKind {
			return nil
		}
		raw, err := doc.JSON()
		if err != nil {
			return err
		}
		if kind.GroupKind() == validation.DefinitionKind {
			definition = definition.With(raw, xr.GroupVersionKind().GroupKind())
			return nil
		}
		parsed, err := composition.Parse(raw, source)
		if err != nil && parsed.Spec.CompositeTypeRef.GroupVersionKind() == xr.GroupVersionKind() {
			return err
		}
		if err == nil {
			all = append(all, parsed)
		}
		return nil
	}
	for _, doc := range own {
		var o map[string]any
		if err := doc.Decode(&o); err != nil {
			return composition.Composition{}, err
		}
		if err := add(validation.KindOf(o), doc, doc.File); err != nil {
			return composition.Composition{}, err
		}
	}
	for _, p := range closure.All() {
		for _, o := range p.Objects {
			if err := add(o.GVK, o.Document, p.Reference); err != nil {
				return composition.Composition{}, err
			}
		}
	}
	return composition.Select(xr, all, definition, c.Composition)
}

// givenComposition returns the composition of the file, which must fit the composite resource.
func (c *RenderCmd) givenComposition(
	env *terminal.Env, xr *unstructured.Unstructured,
) (composition.Composition, error) {
	docs, err := c.documents(env, c.CompositionFile)
	if err != nil {
		return composition.Composition{}, err
	}
	if len(docs) != 1 {
		return composition.Composition{},
			composition.ErrCompositionInvalid.New(errNotOne, "%s contains %d objects", c.CompositionFile, len(docs)).
				WithDo("Pass a file with one composition.")
	}
	raw, err := docs[0].JSON()
	if err != nil {
		return composition.Composition{}, err
	}
	parsed, err := composition.Parse(raw, c.CompositionFile)
	if err != nil {
		return composition.Composition{}, err
	}
	return composition.Select(xr, []composition.Composition{parsed}, composition.Definition{}, "")
}
