// Command trim shortens generated CustomResourceDefinitions. Types that contain whole pod templates repeat Kubernetes'
// own documentation of them, which is two thirds of the bytes that every API server would keep in memory. trim keeps
// the descriptions of the fields of xpkg and drops the descriptions of Kubernetes types. It also drops the rules of
// types in lists, which exceed the budget of an API server there.
//
//	trim DEPTH FILE [FILE]...
//
// DEPTH is how many properties deep descriptions are kept: spec.template is two
// deep.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trim:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: trim DEPTH FILE [FILE]...; got too few arguments")
	}
	depth, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for _, name := range args[1:] {
		if err := file(name, depth); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func file(name string, depth int) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	// The Go type of a CRD would add an empty status.
	var crd map[string]any
	if err := yaml.Unmarshal(b, &crd); err != nil {
		return err
	}
	for _, v := range list(object(crd, "spec"), "versions") {
		trim(object(object(v, "schema"), "openAPIV3Schema"), depth)
	}
	if b, err = yaml.Marshal(crd); err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte("---\n"), b...), 0o644)
}

// trim removes the descriptions that are more than depth properties below the
// schema, and the rules that are at least as deep.
func trim(schema map[string]any, depth int) {
	if schema == nil {
		return
	}
	if depth < 0 {
		delete(schema, "description")
	}
	if depth <= 0 {
		delete(schema, "x-kubernetes-validations")
	}
	for name := range object(schema, "properties") {
		trim(object(object(schema, "properties"), name), depth-1)
	}
	// The elements of a list or map belong to the property that holds them.
	for _, name := range []string{"items", "additionalProperties"} {
		trim(object(schema, name), depth)
	}
}

// object returns the object under the key, or nil if there is none.
func object(parent any, key string) map[string]any {
	m, _ := parent.(map[string]any)
	o, _ := m[key].(map[string]any)
	return o
}

func list(parent map[string]any, key string) []any {
	l, _ := parent[key].([]any)
	return l
}
