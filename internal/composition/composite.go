package composition

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
)

// transitionTime is the time of conditions in a rendering, which requires one. The real one would differ in each
// rendering.
const transitionTime = "2024-01-01T00:00:00Z"

// maxNamed is the number of resources that a condition names.
const maxNamed = 3

// composite returns the desired status of the composite resource.
func (p *pipeline) composite() *unstructured.Unstructured {
	if p.desired == nil {
		p.desired = &protocol.State{}
	}
	xr := &unstructured.Unstructured{Object: map[string]any{}}
	ready := protocol.ReadyUnspecified
	if c := p.desired.Composite; c != nil {
		xr.Object, _ = integers(c.Resource).(map[string]any)
		ready = c.Ready
	}
	of := p.input.Composite
	if _, ok := xr.Object["metadata"].(map[string]any); !ok {
		delete(xr.Object, "metadata")
	}
	xr.SetAPIVersion(of.GetAPIVersion())
	xr.SetKind(of.GetKind())
	xr.SetName(of.GetName())
	if of.GetNamespace() != "" {
		xr.SetNamespace(of.GetNamespace())
	}
	setCondition(xr, p.readiness(ready))
	for _, c := range p.conditions {
		if !isSystemCondition(c.Type) {
			setCondition(xr, condition(c.Type, c.Status.String(), c.Reason, c.Message))
		}
	}
	return xr
}

// readiness returns the condition Ready of the composite resource.
func (p *pipeline) readiness(ready protocol.Ready) map[string]any {
	unready := p.unready()
	switch {
	case ready == protocol.ReadyFalse:
		return condition("Ready", "False", "Creating", "")
	case ready == protocol.ReadyUnspecified && len(unready) > 0:
		return condition("Ready", "False", "Creating", "Unready resources: "+some(unready))
	}
	return condition("Ready", "True", "Available", "")
}

// some returns the first of several names, and the number of the others, in the words of Crossplane.
func some(names []string) string {
	switch {
	case len(names) > maxNamed:
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	case len(names) == maxNamed:
		return strings.Join(names[:maxNamed-1], ", ") + ", and " + names[maxNamed-1]
	}
	return strings.Join(names, ", ")
}

func condition(kind, status, reason, message string) map[string]any {
	c := map[string]any{"type": kind, "status": status, "reason": reason, "lastTransitionTime": transitionTime}
	if message != "" {
		c["message"] = message
	}
	return c
}

// isSystemCondition reports whether only Crossplane sets the condition.
func isSystemCondition(kind string) bool {
	return slices.Contains([]string{"Ready", "Synced", "Healthy"}, kind)
}

// setCondition sets a condition of the status, in place of the former one of the same type.
func setCondition(xr *unstructured.Unstructured, c map[string]any) {
	status, ok := xr.Object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		xr.Object["status"] = status
	}
	all, _ := status["conditions"].([]any)
	for i, have := range all {
		if h, ok := have.(map[string]any); ok && h["type"] == c["type"] {
			all[i] = c
			return
		}
	}
	status["conditions"] = append(all, c)
}

// Full returns the composite resource of an output with the metadata and the specification of the input.
func Full(in, out *unstructured.Unstructured) *unstructured.Unstructured {
	full := out.DeepCopy()
	source := in.DeepCopy()
	for _, field := range []string{"metadata", "spec"} {
		if value, ok := source.Object[field]; ok {
			full.Object[field] = value
		}
	}
	return full
}
