// Package chart generates the Helm chart of the manager from the manifests of `xpkg
// bootstrap`, so that both are equivalent.
//
// The manifests are generated once with recognizable placeholder options, which are then
// replaced by template expressions. A placeholder that is not found is an error: a change
// of the manifests that the chart would miss fails the generation.
package chart

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
)

//go:generate go run ./generate ../../../charts/xpkg

// Folders returns the folders of the chart with generated files only.
func Folders() []string { return []string{"crds", "monitoring", "templates"} }

// Files returns the generated files of the chart by path. The CRDs are in the folder from
// which Helm installs them first and never deletes them; the manager keeps them up to
// date.
func Files() (map[string][]byte, error) {
	objects, err := bootstrap.Manifests(markers())
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, o := range objects {
		name := fileOf(o)
		if name == "" {
			continue
		}
		plain, err := bootstrap.Plain(o)
		if err != nil {
			return nil, err
		}
		raw, err := yaml.Marshal(plain)
		if err != nil {
			return nil, err
		}
		if len(out[name]) > 0 {
			out[name] = append(out[name], "---\n"...)
		}
		out[name] = append(out[name], raw...)
	}
	for name, raw := range out {
		if out[name], err = template(name, raw); err != nil {
			return nil, err
		}
	}
	extra, err := extraFiles()
	if err != nil {
		return nil, err
	}
	return out, merge(out, extra)
}

// fileOf returns the file of an object, or "" for the namespace, which Helm creates.
func fileOf(o bootstrap.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	switch {
	case kind == "Namespace":
		return ""
	case kind == "CustomResourceDefinition":
		return path.Join("crds", o.GetName()+".yaml")
	case o.GetName() == bootstrap.CustomResources:
		return "templates/custom-resources.yaml"
	case strings.Contains(kind, "Role"):
		return "templates/rbac.yaml"
	case strings.HasPrefix(kind, "ValidatingAdmissionPolicy"):
		return path.Join("templates", strings.TrimPrefix(o.GetName(), bootstrap.Name+"-")+".yaml")
	}
	return path.Join("templates", strings.ToLower(kind)+".yaml")
}

const generated = "# Generated from internal/bootstrap by `make generate`. Do not edit.\n"

// template replaces the markers.
func template(name string, raw []byte) ([]byte, error) {
	if path.Dir(name) == "crds" {
		return append([]byte(generated), raw...), nil
	}
	out := string(raw)
	for _, r := range replacements[name] {
		if n := strings.Count(out, r.marker); n != 1 {
			return nil, fmt.Errorf("%s: %q occurs %d times, want once", name, r.marker, n)
		}
		out = strings.Replace(out, r.marker, r.with, 1)
	}
	out = strings.ReplaceAll(out, namespace, "{{ .Release.Namespace }}")
	if strings.Contains(out, marker) {
		return nil, fmt.Errorf("%s: a marker was not replaced:\n%s", name, out)
	}
	var b bytes.Buffer
	b.WriteString(generated)
	if condition := conditions[name]; condition != "" {
		fmt.Fprintf(&b, "{{- if %s }}\n%s{{- end }}\n", condition, out)
		return b.Bytes(), nil
	}
	b.WriteString(out)
	return b.Bytes(), nil
}
