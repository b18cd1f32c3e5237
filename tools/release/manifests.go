package main

import (
	"bytes"
	_ "embed"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// The plug-in and the formula describe the same program.
const (
	homepage    = "https://github.com/xpkg-dev/xpkg"
	description = "Package manager for Crossplane control planes"
)

//go:embed formula.rb.tmpl
var formulaTemplate string

// manifests writes the manifest of krew and the formula of Homebrew for the archives.
func (o *options) manifests(archives map[platform]artifact) error {
	plugin, err := yaml.Marshal(o.plugin(archives))
	if err != nil {
		return err
	}
	if _, err := o.write("crossplane.krew.yaml", plugin); err != nil {
		return err
	}
	formula, err := o.formula(archives)
	if err != nil {
		return err
	}
	_, err = o.write("xpkg.rb", formula)
	return err
}

// address returns the address of a published file.
func (o *options) address(a artifact) string {
	return strings.TrimSuffix(o.url, "/") + "/" + o.version + "/" + a.name
}

// plugin returns the manifest of krew (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest).
func (o *options) plugin(archives map[platform]artifact) map[string]any {
	var platforms []any
	for _, p := range o.platforms {
		a := archives[p]
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      o.address(a), "sha256": a.sha256, "bin": p.executable("xpkg"),
			"files": []any{map[string]any{"from": p.executable("xpkg"), "to": "."}, map[string]any{
				"from": "LICENSE", "to": ".",
			}},
		})
	}
	return map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin",
		"metadata": map[string]any{"name": "crossplane"},
		"spec": map[string]any{
			"version": o.version, "homepage": homepage, "shortDescription": description, "platforms": platforms,
			"description": "Builds, publishes, resolves, plans, installs, upgrades and removes Crossplane packages.\n",
		},
	}
}

// formula returns the formula of Homebrew.
func (o *options) formula(archives map[platform]artifact) ([]byte, error) {
	type download struct{ URL, SHA256 string }
	systems := map[string]map[string]download{}
	for p, a := range archives {
		if systems[p.os] == nil {
			systems[p.os] = map[string]download{}
		}
		systems[p.os][p.arch] = download{o.address(a), a.sha256}
	}
	t, err := template.New("formula").Parse(formulaTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Description": description, "Homepage": homepage, "Version": strings.TrimPrefix(o.version, "v"),
		"Darwin": systems["darwin"], "Linux": systems["linux"],
	})
	return out.Bytes(), err
}
