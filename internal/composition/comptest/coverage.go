package comptest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/composition"
	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/function/protocol"
)

// environmentKey is the key of the environment in the context of a pipeline.
const environmentKey = "apiextensions.crossplane.io/environment"

// Coverage finds the parts of compositions that tests exercise: the steps that are called and, in steps of
// function-patch-and-transform, the resources that are rendered and the patches whose source exists. It is safe for
// concurrent use.
type Coverage struct {
	mu    sync.Mutex
	parts []string
	known map[string]bool
	seen  map[string]bool
}

// CoverageReport is what tests exercise.
type CoverageReport struct {
	Exercised int `json:"exercised"`
	Total     int `json:"total"`
	// Missing are the parts that no test exercises, by composition and in the order of its pipeline.
	Missing []string `json:"missing"`
}

// Add adds a composition, whose name identifies it.
func (c *Coverage) Add(of composition.Composition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known, c.seen = map[string]bool{}, map[string]bool{}
	}
	for _, s := range of.Spec.Pipeline {
		at := partOf(of, s)
		c.part(at)
		for _, p := range patchedParts(s.Input) {
			c.part(at + p.name)
		}
	}
}

func (c *Coverage) part(name string) {
	if !c.known[name] {
		c.known[name] = true
		c.parts = append(c.parts, name)
	}
}

// Called counts the call of a step of a composition.
func (c *Coverage) Called(of composition.Composition, s composition.Step, q *protocol.Request, r *protocol.Response) {
	at := partOf(of, s)
	var seen []string
	for _, p := range patchedParts(s.Input) {
		if p.exercised(q, r) {
			seen = append(seen, at+p.name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[at] = true
	for _, name := range seen {
		c.seen[name] = true
	}
}

// Report returns what was exercised.
func (c *Coverage) Report() CoverageReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := CoverageReport{Total: len(c.parts), Missing: []string{}}
	for _, p := range c.parts {
		if c.seen[p] {
			out.Exercised++
			continue
		}
		// A part of a missing part says nothing new.
		if !slices.ContainsFunc(out.Missing, func(m string) bool { return strings.HasPrefix(p, m+", ") }) {
			out.Missing = append(out.Missing, p)
		}
	}
	return out
}

func partOf(of composition.Composition, s composition.Step) string {
	return of.Name + ": step " + s.Step
}

// patchedPart is a resource, or a patch, of an input of function-patch-and-transform. Sources are the paths that the
// patch reads; they are nil for a resource.
type patchedPart struct {
	name, resource, kind string
	sources              []string
}

// patchedParts returns the resources and patches of an input. A patch of a set counts for each resource that uses it.
func patchedParts(input map[string]any) []patchedPart {
	if text(input, "kind") != "Resources" || !strings.HasPrefix(text(input, "apiVersion"), "pt.fn.crossplane.io/") {
		return nil
	}
	sets := map[string][]any{}
	for _, s := range list(input["patchSets"]) {
		sets[text(object(s), "name")] = list(object(s)["patches"])
	}
	out := patchesOf(list(object(input["environment"])["patches"]), ", environment", "", nil)
	for _, r := range list(input["resources"]) {
		name := text(object(r), "name")
		at := ", resource " + name
		out = append(out, patchedPart{name: at, resource: name})
		out = append(out, patchesOf(list(object(r)["patches"]), at, name, sets)...)
	}
	return out
}

func patchesOf(patches []any, at, resource string, sets map[string][]any) []patchedPart {
	var out []patchedPart
	for i, one := range patches {
		p := object(one)
		here := fmt.Sprintf("%s, patches[%d]", at, i)
		if text(p, "type") == "PatchSet" {
			// A set contains no sets.
			out = append(out, patchesOf(sets[text(p, "patchSetName")], here+" "+text(p, "patchSetName"), resource, nil)...)
			continue
		}
		part := patchedPart{resource: resource, kind: text(p, "type"), sources: []string{}}
		if source := text(p, "fromFieldPath"); source != "" {
			part.sources = append(part.sources, source)
		}
		for _, v := range list(object(p["combine"])["variables"]) {
			part.sources = append(part.sources, text(object(v), "fromFieldPath"))
		}
		part.name = here + " from " + strings.Join(part.sources, " and ")
		out = append(out, part)
	}
	return out
}

// exercised reports whether a call renders a resource, or has the source of a patch.
func (p patchedPart) exercised(q *protocol.Request, r *protocol.Response) bool {
	if p.sources == nil {
		if r.Desired == nil {
			return false
		}
		_, ok := r.Desired.Resources[p.resource]
		return ok
	}
	var from any
	switch {
	case strings.Contains(p.kind, "FromEnvironment"):
		from = q.Context[environmentKey]
	case q.Observed == nil:
		return false
	case p.resource != "" && (strings.Contains(p.kind, "ToComposite") || strings.Contains(p.kind, "ToEnvironment")):
		from = any(q.Observed.Resources[p.resource].Resource)
	case strings.Contains(p.kind, "ToComposite"): // from the environment
		from = q.Context[environmentKey]
	case q.Observed.Composite != nil:
		from = any(q.Observed.Composite.Resource)
	}
	for _, source := range p.sources {
		path, err := crdvalidation.ParseFieldPath(source)
		if err != nil || !exists(from, path) {
			return false
		}
	}
	return true
}

// exists reports whether a value has a field at a path. An element * stands for any one.
func exists(value any, path crdvalidation.FieldPath) bool {
	if len(path) == 0 {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		if path[0] == "*" {
			for _, e := range v {
				if exists(e, path[1:]) {
					return true
				}
			}
			return false
		}
		e, ok := v[path[0]]
		return ok && exists(e, path[1:])
	case []any:
		if path[0] == "*" {
			return slices.ContainsFunc(v, func(e any) bool { return exists(e, path[1:]) })
		}
		i, err := strconv.Atoi(path[0])
		return err == nil && i >= 0 && i < len(v) && exists(v[i], path[1:])
	}
	return false
}

func list(value any) []any {
	l, _ := value.([]any)
	return l
}
