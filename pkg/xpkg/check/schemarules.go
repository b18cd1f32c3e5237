package check

import (
	"fmt"
	"iter"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrNotForCrossplane2 is the code of an object that Crossplane 1 accepts and Crossplane 2 does not.
var ErrNotForCrossplane2 = errcode.Code{
	Name: "NotForCrossplane2", Class: errcode.Invalid,
	Cause: "The CRDs of Crossplane 2 reject an object of the package that Crossplane 1 accepts.",
	Fix:   "Correct the named field, or limit the package to Crossplane 1 with spec.crossplane.version.",
}

// maxSteps is the maximum length of a pipeline.
const maxSteps = 99

// checkPipelineMode reports a Composition of the mode Pipeline without steps. Crossplane 1 rejects it in a webhook.
func checkPipelineMode(spec map[string]any) []Problem {
	steps, isList := spec["pipeline"].([]any)
	if spec["mode"] != "Pipeline" || spec["pipeline"] != nil && (!isList || len(steps) > 0) {
		return nil
	}
	return []Problem{{Path: "spec.pipeline", Message: "is required in the mode Pipeline, with at least one step"}}
}

// checkCompositionOf2 reports the steps of a Composition that Crossplane 2 rejects.
func checkCompositionOf2(spec map[string]any) []Problem {
	steps, isList := spec["pipeline"].([]any)
	out := checkRequirements(spec)
	switch {
	case isList && len(steps) == 0 && spec["mode"] != "Pipeline":
		out = append(out, Problem{Path: "spec.pipeline", Message: "has no steps"})
	case len(steps) > maxSteps:
		out = append(out, Problem{
			Path: "spec.pipeline", Message: fmt.Sprintf("has %d steps, more than %d", len(steps), maxSteps),
		})
	}
	for i, step := range elements(steps) {
		list, _ := step["credentials"].([]any)
		for j, c := range elements(list) {
			if c["source"] == "Secret" && c["secretRef"] == nil {
				out = append(out, Problem{
					Path:    fmt.Sprintf("spec.pipeline[%d].credentials[%d].secretRef", i, j),
					Message: "is required for the source Secret",
				})
			}
		}
	}
	return out
}

// elements iterates over the mappings in a list, with their indexes.
func elements(list []any) iter.Seq2[int, map[string]any] {
	return func(yield func(int, map[string]any) bool) {
		for i, item := range list {
			if m, ok := item.(map[string]any); ok && !yield(i, m) {
				return
			}
		}
	}
}

// checkRequirements reports required resources that a step selects both by name and by labels.
func checkRequirements(spec map[string]any) []Problem {
	var out []Problem
	steps, _ := spec["pipeline"].([]any)
	for i, step := range elements(steps) {
		requirements, _ := step["requirements"].(map[string]any)
		list, _ := requirements["requiredResources"].([]any)
		for j, r := range elements(list) {
			if r["name"] != nil && r["matchLabels"] != nil {
				out = append(out, Problem{
					Path:    fmt.Sprintf("spec.pipeline[%d].requirements.requiredResources[%d]", i, j),
					Message: "name and matchLabels exclude each other",
				})
			}
		}
	}
	return out
}

// checkTemplateRequirements is checkRequirements for the template of an Operation.
func checkTemplateRequirements(spec map[string]any) []Problem {
	template, _ := spec["operationTemplate"].(map[string]any)
	inner, _ := template["spec"].(map[string]any)
	out := checkRequirements(inner)
	for i := range out {
		out[i].Path = "spec.operationTemplate." + out[i].Path
	}
	return out
}

// checkLegacyFields reports the fields that an XRD of version v2 does not have.
func checkLegacyFields(spec map[string]any) []Problem {
	var out []Problem
	if spec["claimNames"] != nil {
		out = append(out, Problem{Path: "spec.claimNames", Message: "an XRD of apiextensions.crossplane.io/v2 has no claims"})
	}
	if spec["connectionSecretKeys"] != nil {
		out = append(out, Problem{
			Path: "spec.connectionSecretKeys", Message: "an XRD of apiextensions.crossplane.io/v2 has no connection secrets",
		})
	}
	return out
}

// checkXRDOf2 reports the fields of an XRD of version v1 that Crossplane 2 rejects. Crossplane 1 has no scopes.
func checkXRDOf2(spec map[string]any) []Problem {
	var out []Problem
	if scope := spec["scope"]; scope != nil && scope != "LegacyCluster" {
		for field, what := range map[string]string{"claimNames": "claims", "connectionSecretKeys": "connection secrets"} {
			if spec[field] != nil {
				out = append(out, Problem{
					Path: "spec." + field, Message: fmt.Sprintf("only the scope LegacyCluster has %s, not %.60v", what, scope),
				})
			}
		}
	}
	if c, ok := spec["conversion"].(map[string]any); ok && c["strategy"] != "Webhook" {
		out = append(out, Problem{
			Path: "spec.conversion.strategy", Message: "Webhook is the only strategy; remove the conversion",
		})
	}
	return out
}

// checkLowerNames reports the names of an MRD that are not in lower case.
func checkLowerNames(spec map[string]any) []Problem {
	var out []Problem
	names, _ := spec["names"].(map[string]any)
	for _, field := range []string{"plural", "singular"} {
		if name, ok := names[field].(string); ok && name != strings.ToLower(name) {
			out = append(out, Problem{Path: "spec.names." + field, Message: fmt.Sprintf("%.100q is not in lower case", name)})
		}
	}
	return out
}
