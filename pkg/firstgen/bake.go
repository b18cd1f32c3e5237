package firstgen

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
)

// A Process is the program of a runtime image, in the terms of a Kubernetes container.
type Process struct {
	Command, Args []string
	// Env are literal variables, as NAME=VALUE.
	Env        []string
	WorkingDir string
}

// bake moves the literal parts of the runtime's defaults to the configuration of its image. Text that refers to a
// variable stays, because only a node expands it.
func bake(d *runtimedefaults.Defaults) *Process {
	p := &Process{WorkingDir: d.WorkingDir}
	d.WorkingDir = ""
	expands := func(s string) bool { return strings.Contains(s, "$(") }
	if !slices.ContainsFunc(slices.Concat(d.Command, d.Args), expands) {
		p.Command, p.Args = d.Command, d.Args
		d.Command, d.Args = nil, nil
	}
	d.Env = slices.DeleteFunc(slices.Clone(d.Env), func(v runtimedefaults.Variable) bool {
		if v.FieldPath != "" || expands(v.Value) {
			return false
		}
		p.Env = append(p.Env, v.Name+"="+v.Value)
		return true
	})
	if len(d.Env) == 0 {
		d.Env = nil
	}
	return p
}

// RuntimeConfig returns a DeploymentRuntimeConfig in YAML with the parts of the runtime that the package itself cannot
// contain for package managers other than xpkg, or nil if there are none.
func (c *Conversion) RuntimeConfig(name string) ([]byte, error) {
	d := c.Runtime
	if d.None {
		return nil, nil
	}
	container, err := objectOf(d.Container("package-runtime"))
	if err != nil {
		return nil, err
	}
	if c.Image != "" {
		container["image"] = c.Image
	}
	if resources, ok := container["resources"].(map[string]any); ok && len(resources) == 0 {
		delete(container, "resources")
	}
	metadata := map[string]any{}
	if len(d.Labels) > 0 {
		metadata["labels"] = d.Labels
	}
	spec := map[string]any{
		"selector": map[string]any{},
		"template": map[string]any{"metadata": metadata, "spec": map[string]any{"containers": []any{container}}},
	}
	if d.Replicas != nil && *d.Replicas != 1 {
		spec["replicas"] = *d.Replicas
	}
	if len(container) == 1 && len(metadata) == 0 && spec["replicas"] == nil {
		return nil, nil // Only the name of the container is left.
	}
	return marshal(map[string]any{
		"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"deploymentTemplate": map[string]any{"spec": spec}},
	})
}
