package check

import (
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// schemas are the schemas of the kinds that packages contain, other than CRDs. They accept
// every object that any release of Crossplane or Kubernetes accepts, so that a package is not
// rejected because of the release in a cluster: an enumeration, for example, contains the
// words of all releases. A test compares them with the CRDs of the releases.
//
// Objects of other versions are not checked.
var schemas = map[gvk]*objectSchema{
	{Group: kinds.GroupComposition, Version: "v1", Kind: kinds.Composition}: {
		spec: compositionSpec, extra: checkPipelineMode, crossplane2: checkCompositionOf2,
	},
	{Group: kinds.GroupComposition, Version: "v1", Kind: kinds.XRD}: {
		spec: xrdSpec(anyValue), crossplane2: checkXRDOf2,
	},
	{Group: kinds.GroupComposition, Version: "v2", Kind: kinds.XRD}: {
		spec: xrdSpec(oneOf("Namespaced", "Cluster")), extra: checkLegacyFields,
	},
	{Group: kinds.GroupComposition, Version: "v1alpha1", Kind: kinds.MRD}: {
		spec: mrdSpec, extra: checkLowerNames,
	},
	{Group: kinds.GroupComposition, Version: "v1alpha1", Kind: kinds.MRAP}: {spec: mrapSpec},
	{Group: kinds.GroupOperation, Version: "v1alpha1", Kind: kinds.Operation}: {
		spec: operationSpec, extra: checkRequirements,
	},
	{Group: kinds.GroupOperation, Version: "v1alpha1", Kind: kinds.CronOperation}: {
		spec: cronOperationSpec, extra: checkTemplateRequirements,
	},
	{Group: kinds.GroupOperation, Version: "v1alpha1", Kind: kinds.WatchOperation}: {
		spec: watchOperationSpec, extra: checkTemplateRequirements,
	},
	{Group: kinds.GroupAdmission, Version: "v1", Kind: kinds.ValidatingWebhook}: {webhooks: webhookList(fields{})},
	{Group: kinds.GroupAdmission, Version: "v1", Kind: kinds.MutatingWebhook}: {webhooks: webhookList(fields{
		"reinvocationPolicy": oneOf("Never", "IfNeeded"),
	})},
}

type gvk = apischema.GroupVersionKind

// objectSchema is the schema of an object: of its spec, or of its webhooks.
type objectSchema struct {
	spec, webhooks *schema
	// extra returns the problems of a spec that a schema cannot express.
	extra func(spec map[string]any) []Problem
	// crossplane2 returns the problems of a spec for which Crossplane 2 rejects the object and Crossplane 1 does not.
	crossplane2 func(spec map[string]any) []Problem
}

// problems returns the problems of a spec that a rule finds.
func problems(rule func(map[string]any) []Problem, spec any) []Problem {
	fields, ok := spec.(map[string]any)
	if rule == nil || !ok {
		return nil
	}
	return rule(fields)
}

// Schemas of references and other parts of several kinds.
var (
	nameRef = mappingOf("name", fields{"name": aString})

	labelSelector = mappingOf("", fields{
		"matchLabels": stringMap,
		"matchExpressions": listOf(mappingOf("key operator", fields{
			"key": aString, "operator": aString, "values": listOf(aString),
		})),
	})

	names = mappingOf("kind plural", fields{
		"kind": aString, "listKind": aString, "plural": aString, "singular": aString,
		"categories": listOf(aString), "shortNames": listOf(aString),
	})

	conversion = mappingOf("strategy", fields{
		"strategy": aString,
		"webhook": mappingOf("conversionReviewVersions", fields{
			"conversionReviewVersions": listOf(aString),
			"clientConfig":             clientConfig,
		}),
	})

	clientConfig = mappingOf("", fields{
		"url": aString, "caBundle": aString,
		"service": mappingOf("name namespace", fields{
			"name": aString, "namespace": aString, "path": aString, "port": anInteger,
		}),
	})

	printerColumns = listOf(mappingOf("jsonPath name type", fields{
		"name": aString, "type": aString, "jsonPath": aString, "description": aString, "format": aString,
		"priority": anInteger,
	}))

	subresources = mappingOf("", fields{
		"scale": mappingOf("specReplicasPath statusReplicasPath", fields{
			"specReplicasPath": aString, "statusReplicasPath": aString, "labelSelectorPath": aString,
		}),
		"status": anObject,
	})

	versionSchema = mappingOf("", fields{"openAPIV3Schema": anObject})
)

// xrdSpec returns the schema of the spec of an XRD. Releases before 2.0 ignore the scope of an
// XRD of version v1.
func xrdSpec(scope *schema) *schema {
	return mappingOf("group names versions", fields{
		"group": aString, "names": names, "claimNames": names, "scope": scope, "conversion": conversion,
		"connectionSecretKeys":               listOf(aString),
		"defaultCompositeDeletePolicy":       oneOf("Background", "Foreground"),
		"defaultCompositionRef":              nameRef,
		"enforcedCompositionRef":             nameRef,
		"defaultCompositionUpdatePolicy":     oneOf("Automatic", "Manual"),
		"defaultCompositionRevisionSelector": labelSelector,
		"metadata":                           mappingOf("", fields{"labels": stringMap, "annotations": stringMap}),
		"versions": listOf(mappingOf("name referenceable served", fields{
			"name": aString, "referenceable": aBoolean, "served": aBoolean, "deprecated": aBoolean,
			"deprecationWarning": aString,
			"schema":             versionSchema, "additionalPrinterColumns": printerColumns, "subresources": subresources,
		})),
	})
}

var mrdSpec = mappingOf("group names versions", fields{
	"group": aString, "names": names, "conversion": conversion, "preserveUnknownFields": aBoolean,
	"scope": oneOf("Namespaced", "Cluster"), "state": oneOf("Active", "Inactive"),
	"connectionDetails": listOf(mappingOf("name description", fields{"name": aString, "description": aString})),
	"versions": listOf(mappingOf("name served storage", fields{
		"name": aString, "served": aBoolean, "storage": aBoolean, "deprecated": aBoolean, "deprecationWarning": aString,
		"schema": versionSchema, "additionalPrinterColumns": printerColumns, "subresources": subresources,
		"selectableFields": listOf(mappingOf("jsonPath", fields{"jsonPath": aString})),
	})),
})

var mrapSpec = mappingOf("activate", fields{"activate": listOf(aString).within(1, 1<<20)})

// pipeline is the schema of the function steps of Compositions and Operations.
var pipeline = uniqueListOf("step", mappingOf("step functionRef", fields{
	"step": aString, "functionRef": nameRef, "input": anObject,
	"credentials": uniqueListOf("name", mappingOf("name source", fields{
		"name": aString, "source": oneOf("None", "Secret"),
		"secretRef": mappingOf("name namespace", fields{"name": aString, "namespace": aString}),
	})),
	"requirements": mappingOf("", fields{
		"requiredResources": uniqueListOf("requirementName", mappingOf("requirementName apiVersion kind", fields{
			"requirementName": aString, "apiVersion": aString, "kind": aString, "name": aString, "namespace": aString,
			"matchLabels": stringMap,
		})),
		"requiredSchemas": uniqueListOf("requirementName", mappingOf("requirementName apiVersion kind", fields{
			"requirementName": aString, "apiVersion": aString, "kind": aString,
		})),
	}),
}))

var operationSpec = mappingOf("pipeline", fields{
	"mode": oneOf("Pipeline"), "pipeline": pipeline.within(1, 99), "retryLimit": anInteger,
})

var (
	operationTemplate = mappingOf("spec", fields{"metadata": anObject, "spec": operationSpec})
	concurrencyPolicy = oneOf("Allow", "Forbid", "Replace")
)

var cronOperationSpec = mappingOf("schedule operationTemplate", fields{
	"schedule": aString, "operationTemplate": operationTemplate, "concurrencyPolicy": concurrencyPolicy,
	"startingDeadlineSeconds": anInteger, "successfulHistoryLimit": anInteger, "failedHistoryLimit": anInteger,
})

var watchOperationSpec = mappingOf("watch operationTemplate", fields{
	"watch": mappingOf("apiVersion kind", fields{
		"apiVersion": aString, "kind": aString, "namespace": aString, "matchLabels": stringMap,
	}),
	"operationTemplate": operationTemplate, "concurrencyPolicy": concurrencyPolicy,
	"successfulHistoryLimit": anInteger, "failedHistoryLimit": anInteger,
})
