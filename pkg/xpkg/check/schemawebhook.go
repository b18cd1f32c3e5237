package check

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// webhookList returns the schema of the webhooks of a configuration of admissionregistration
// v1. The package manager sets the clientConfig, so that it is not required.
func webhookList(extra fields) *schema {
	webhook := fields{
		"name": aString, "sideEffects": oneOf("None", "NoneOnDryRun"),
		"admissionReviewVersions": listOf(aString).within(1, 1<<10),
		"failurePolicy":           oneOf("Ignore", "Fail"), "matchPolicy": oneOf("Exact", "Equivalent"),
		"timeoutSeconds":    anInteger.within(1, 30),
		"namespaceSelector": labelSelector, "objectSelector": labelSelector,
		"clientConfig": mappingOf("", fields{"url": aString, "caBundle": aString, "service": mappingOf("", fields{
			"name": aString, "namespace": aString, "path": aString, "port": anInteger.within(1, 65535),
		})}),
		"rules": listOf(mappingOf("apiGroups apiVersions operations resources", fields{
			"apiGroups": nonEmpty, "apiVersions": nonEmpty, "resources": nonEmpty,
			"operations": listOf(oneOf("CREATE", "UPDATE", "DELETE", "CONNECT", "*")).within(1, 1<<10),
			"scope":      oneOf("*", "Cluster", "Namespaced"),
		})),
		"matchConditions": uniqueListOf("name", mappingOf("name expression", fields{"name": aString, "expression": aString})).
			within(0, 64),
	}
	for name, s := range extra {
		webhook[name] = s
	}
	return uniqueListOf("name", mappingOf("name sideEffects admissionReviewVersions", webhook))
}

var nonEmpty = listOf(aString).within(1, 1<<20)

// webhookNames returns the problems of the names of webhooks, which are domain names of at
// least three labels.
func webhookNames(webhooks any) []Problem {
	var out []Problem
	all, _ := webhooks.([]any)
	for i, w := range all {
		fields, _ := w.(map[string]any)
		name, ok := fields["name"].(string)
		if ok && (len(validation.IsDNS1123Subdomain(name)) > 0 || strings.Count(name, ".") < 2) {
			out = append(out, Problem{
				Path:    fmt.Sprintf("webhooks[%d].name", i),
				Message: fmt.Sprintf("%.80q is not a domain name with at least three parts", name),
			})
		}
	}
	return out
}
