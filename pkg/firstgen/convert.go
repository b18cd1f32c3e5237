package firstgen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ConversionVersion is the version of the result of [Convert]. It is incremented when the same package is converted to
// other documents, so that stored results are derived again.
const ConversionVersion = 6

// ConvertOptions configures Convert.
type ConvertOptions struct {
	// Provides returns the package that defines a CRD, and false if none is known or selected; nil means that none is
	// known.
	Provides func(CRDReference) (dependency.Dependency, bool)
	// Bake moves the literal parts of the runtime to Conversion.Process, if the runtime is in the image of the package.
	Bake bool
}

// A Conversion is a package of the first generation as a Provider of today's format.
type Conversion struct {
	// Documents are the documents of the package: the metadata, then the CRDs ordered by group and kind.
	Documents []ConvertedDocument
	// Runtime is the default configuration of the runtime, which the metadata contains as an annotation.
	Runtime runtimedefaults.Defaults
	// Templating is the templating controller, which the metadata contains as an annotation; nil if there is none.
	Templating *Templating
	// Image is the image of the controller as install.yaml names it; empty for the image of the package.
	Image string
	// Process is the program for the configuration of the image; nil unless ConvertOptions.Bake moved it there.
	Process *Process
	// Losses are the parts of the package that have no equivalent.
	Losses []Loss
}

// A ConvertedDocument is one object of a converted package.
type ConvertedDocument struct {
	// Name is crossplane for the metadata, otherwise the name of the CRD.
	Name string
	// YAML is the object, without a separator.
	YAML []byte
}

// Stream returns the package.yaml of the converted package.
func (c *Conversion) Stream() []byte {
	texts := make([][]byte, len(c.Documents))
	for i, d := range c.Documents {
		texts[i] = d.YAML
	}
	return bytes.Join(texts, []byte("---\n"))
}

// Convert returns a package as a Provider of meta.pkg.crossplane.io/v1. The result depends only on the package and on
// opts.Provides, and equal input has equal bytes.
//
// The Provider requests all verbs for the CRDs that the package depends on, and the deletion of objects of its own
// CRDs; the other permissions of the document are the ones that every Provider has. The Deployment of install.yaml
// becomes the image of the controller and the default configuration of the runtime.
func Convert(p *Package, opts ConvertOptions) (*Conversion, error) {
	c := &Conversion{}
	c.convertRuntime(p)
	if opts.Bake && c.Image == "" && !c.Runtime.None {
		c.Process = bake(&c.Runtime)
	}
	meta, err := c.metadata(p, opts)
	if err != nil {
		return nil, err
	}
	if err := c.add("crossplane", meta); err != nil {
		return nil, err
	}
	for _, r := range p.Resources {
		crd := r.CRD.DeepCopy()
		crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", crdKind
		object, err := objectOf(crd)
		if err != nil {
			return nil, err
		}
		delete(object, "status")
		if err := c.add(crd.Name, object); err != nil {
			return nil, err
		}
	}
	if p.App.Scope == ScopeNamespaced && !c.Runtime.None {
		c.lose(
			ReasonScope, appFile, "permissionScope",
			"a Provider has the permissions of its package in every namespace; a PackageInstall confines them to its own",
		)
	}
	for _, f := range p.Findings {
		c.lose(Reason(f.Code.Name), f.File, "", "%s", f.Text())
	}
	sortLosses(c.Losses)
	return c, nil
}

func (c *Conversion) lose(reason Reason, file, field, format string, args ...any) {
	c.Losses = append(c.Losses, Loss{Reason: reason, File: file, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (c *Conversion) add(name string, object map[string]any) error {
	text, err := marshal(object)
	if err != nil {
		return err
	}
	c.Documents = append(c.Documents, ConvertedDocument{name, text})
	return nil
}

// marshal returns an object as a document of a package.
func marshal(object map[string]any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return xpkg.EncodeDocument(text)
}

// objectOf returns a typed object as a map of its JSON, without creationTimestamp.
func objectOf(typed any) (map[string]any, error) {
	text, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	return object, nil
}

// metadata returns the metadata object.
func (c *Conversion) metadata(p *Package, opts ConvertOptions) (map[string]any, error) {
	annotations := c.annotations(p)
	runtime, err := c.Runtime.Encode()
	if err != nil {
		finding := xpkg.Finding{
			Code: ErrInvalidInstall, Severity: xpkg.Error, Message: err.Error(), File: installFile, Fix: ErrInvalidInstall.Fix,
		}
		return nil, ErrInvalidInstall.New(&xpkg.Refusal{Findings: []xpkg.Finding{finding}}, "cannot use %s", installFile)
	}
	annotations[runtimedefaults.Annotation] = runtime
	if c.Templating != nil {
		if annotations[xpkg.AnnotationTemplating], err = c.Templating.encode(); err != nil {
			return nil, err
		}
	}
	spec := map[string]any{}
	if c.Image != "" {
		spec["controller"] = map[string]any{"image": c.Image}
	}
	if rules := requests(p); len(rules) > 0 && !c.Runtime.None {
		spec["permissionRequests"] = rules
	}
	if deps := c.dependencies(p, opts); len(deps) > 0 {
		spec["dependsOn"] = deps
	}
	return map[string]any{
		"apiVersion": "meta.pkg.crossplane.io/v1", "kind": string(xpkg.Provider),
		"metadata": map[string]any{"name": nameOf(p), "annotations": annotations}, "spec": spec,
	}, nil
}

// nameOf returns the name of the converted package: its title, otherwise the name of its Deployment, as a DNS label.
func nameOf(p *Package) string {
	name := dnsLabel(p.App.Title)
	if name == "" && p.Install != nil {
		name = dnsLabel(p.Install.deployment.Name)
	}
	return cmp.Or(name, "package")
}

// dnsLabel returns text in lower case with every sequence of other characters replaced by a hyphen.
func dnsLabel(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == 63 {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

// requests returns the permissions for the CRDs of the package and for its dependencies, by group. A Provider has all
// other verbs for its own CRDs without a request, and the permissions of the core group.
func requests(p *Package) []map[string]any {
	var rules []map[string]any
	add := func(group string, verbs []string, resources ...string) {
		i := slices.IndexFunc(rules, func(r map[string]any) bool {
			return r["apiGroups"].([]string)[0] == group && slices.Equal(r["verbs"].([]string), verbs)
		})
		if i < 0 {
			i = len(rules)
			rules = append(rules, map[string]any{"apiGroups": []string{group}, "verbs": verbs, "resources": []string{}})
		}
		all := rules[i]["resources"].([]string)
		for _, r := range resources {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
		rules[i]["resources"] = all
	}
	for _, r := range p.Resources {
		add(r.CRD.Spec.Group, []string{"delete", "deletecollection"}, r.CRD.Spec.Names.Plural)
	}
	for _, ref := range p.App.DependsOn {
		if ref.Plural == "*" {
			add(ref.Group, []string{rbacv1.VerbAll}, rbacv1.ResourceAll)
		} else {
			add(ref.Group, []string{rbacv1.VerbAll}, ref.Plural, ref.Plural+"/status")
		}
	}
	return rules
}

// coreGroups are the API groups that Crossplane itself defined until version 0.13.
var coreGroups = []string{
	"cache.crossplane.io", "common.crossplane.io", "compute.crossplane.io", "core.crossplane.io", "database.crossplane.io",
	"kubernetes.crossplane.io", "storage.crossplane.io", "workload.crossplane.io",
}

// dependencies returns the packages that define the required CRDs, and the CRDs whose package is not known. CRDs that
// the package defines itself, or that Crossplane defined, need none.
func (c *Conversion) dependencies(p *Package, opts ConvertOptions) []map[string]any {
	var out []map[string]any
	seen := map[string]bool{}
	for _, ref := range p.App.DependsOn {
		if p.defines(ref) {
			continue
		}
		var dep dependency.Dependency
		known := false
		if opts.Provides != nil {
			dep, known = opts.Provides(ref)
		}
		switch {
		case !known && slices.Contains(coreGroups, ref.Group):
			c.lose(ReasonCoreKind, appFile, "dependsOn", "%s was part of Crossplane, and no package defines it", ref)
			continue
		case !known:
			out = append(out, map[string]any{"crd": ref.String()})
			c.lose(
				ReasonDependency, appFile, "dependsOn", "no package is selected for %s: the requirement is kept as a kind", ref,
			)
			continue
		case seen[dep.Package]:
			continue
		}
		seen[dep.Package] = true
		out = append(out, map[string]any{
			"apiVersion": cmp.Or(dep.APIVersion, "pkg.crossplane.io/v1"), "kind": cmp.Or(dep.Kind, string(xpkg.Provider)),
			"package": dep.Package, "version": dep.Constraint,
		})
	}
	return out
}

// defines reports whether the package defines a CRD that a reference names.
func (p *Package) defines(ref CRDReference) bool {
	return slices.ContainsFunc(p.Resources, func(r Resource) bool {
		var versions []string
		for _, v := range r.CRD.Spec.Versions {
			versions = append(versions, v.Name)
		}
		return ref.Matches(r.CRD.Spec.Names.Plural, r.CRD.Spec.Group, versions...)
	})
}
