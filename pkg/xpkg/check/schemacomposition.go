package check

// compositionSpec is the spec of a Composition: a pipeline of functions or, before Crossplane
// 2, resources with patches.
var compositionSpec = mappingOf("compositeTypeRef", fields{
	"compositeTypeRef": mappingOf("apiVersion kind", fields{"apiVersion": aString, "kind": aString}),
	"mode":             oneOf("Resources", "Pipeline"),
	"pipeline":         pipeline,
	"environment":      anyValue, // before Crossplane 1.18
	"patchSets": listOf(mappingOf("name patches", fields{
		"name": aString, "patches": listOf(patch),
	})),
	"writeConnectionSecretsToNamespace":          aString,
	"publishConnectionDetailsWithStoreConfigRef": mappingOf("name", fields{"name": aString}),
	"resources": listOf(mappingOf("base", fields{
		"name": aString, "base": anObject, "patches": listOf(patch),
		"connectionDetails": listOf(mappingOf("", fields{
			"name": aString, "type": oneOf("FromConnectionSecretKey", "FromFieldPath", "FromValue"),
			"fromConnectionSecretKey": aString, "fromFieldPath": aString, "value": aString,
		})),
		"readinessChecks": listOf(mappingOf("type", fields{
			"type":      oneOf("MatchString", "MatchInteger", "NonEmpty", "MatchCondition", "MatchTrue", "MatchFalse", "None"),
			"fieldPath": aString, "matchString": aString, "matchInteger": anInteger,
			"matchCondition": mappingOf("type status", fields{"type": aString, "status": aString}),
		})),
	})),
})

var patch = mappingOf("", fields{
	"type": oneOf("FromCompositeFieldPath",
		"PatchSet", "ToCompositeFieldPath", "CombineFromComposite", "CombineToComposite",
		"FromEnvironmentFieldPath", "ToEnvironmentFieldPath", "CombineFromEnvironment", "CombineToEnvironment"),
	"fromFieldPath": aString, "toFieldPath": aString, "patchSetName": aString, "transforms": listOf(transform),
	"combine": mappingOf("strategy variables", fields{
		"strategy": oneOf("string"), "string": mappingOf("fmt", fields{"fmt": aString}),
		"variables": listOf(mappingOf("fromFieldPath", fields{"fromFieldPath": aString})).within(1, 1<<20),
	}),
	"policy": mappingOf("", fields{
		"fromFieldPath": oneOf("Optional", "Required"),
		"mergeOptions":  mappingOf("", fields{"appendSlice": aBoolean, "keepMapValues": aBoolean}),
	}),
})

var transform = mappingOf("type", fields{
	"type": oneOf("map", "match", "math", "string", "convert"),
	"map":  anObject,
	"match": mappingOf("", fields{
		"fallbackTo":    oneOf("Value", "Input"),
		"fallbackValue": anyValue,
		"patterns": listOf(mappingOf("type", fields{
			"type": oneOf("literal", "regexp"), "literal": aString, "regexp": aString, "result": anyValue,
		})),
	}),
	"math": mappingOf("", fields{
		"type": oneOf("Multiply", "ClampMin", "ClampMax"), "multiply": anInteger, "clampMin": anInteger,
		"clampMax": anInteger,
	}),
	"string": mappingOf("", fields{
		"type": oneOf("Format", "Convert", "TrimPrefix", "TrimSuffix", "Regexp", "Join", "Replace"),
		"convert": oneOf(
			"ToUpper", "ToLower", "ToBase64", "FromBase64", "ToJson", "ToSha1", "ToSha256", "ToSha512", "ToAdler32",
		),
		"fmt": aString, "trim": aString,
		"join":   mappingOf("separator", fields{"separator": aString}),
		"regexp": mappingOf("match", fields{"match": aString, "group": anInteger}),
	}),
	"convert": mappingOf("toType", fields{
		"toType": oneOf("string", "int", "int64", "bool", "float64", "object", "array", "list"),
		"format": oneOf("none", "quantity", "json"),
	}),
})
