package crdvalidation

import (
	"strings"
	"testing"
)

const head = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.org"},"spec":{"group":"example.org","names":{"kind":"Thing","plural":"things"},"scope":"Cluster",`

// TestValidateCRD covers the code that this package adds to the API server's validation, which
// the tests of its callers cover.
//
// hardening: D4
func TestValidateCRD(t *testing.T) {
	for name, c := range map[string]struct{ json, path, message string }{
		"good": {head +
			`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, "", ""},
		"status is ignored": {
			head +
				`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},"status":{"storedVersions":["v0"]}}`,
			"", "",
		},
		"client of a webhook": {
			head +
				`"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"]}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
			"", "",
		},
		"path as it was written": {
			head + `"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"string"}}}]}}`,
			"spec.versions[0].schema.openAPIV3Schema.type", "must be object at the root",
		},
		"no whole structures in messages": {
			head + `"versions":[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
			"spec.versions", "invalid value: must have exactly one version marked as storage version",
		},
		"review versions": {
			head +
				`"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v0"]}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
			"spec.conversion.webhook.conversionReviewVersions", "must include at least one of",
		},
		"pattern that RE2 does not know": {
			head +
				`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"string","pattern":"(?=x)"}}}}}]}}`,
			"spec.versions[0].schema.openAPIV3Schema.properties[spec].pattern", "must be a valid regular expression",
		},
		"rule with such a pattern": {
			head +
				`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"string","maxLength":9,"x-kubernetes-validations":[{"rule":"self.matches('(?=x)')"}]}}}}}]}}`,
			"spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule",
			"invalid matches argument",
		},
		"not decodable": {`{"spec":1}`, "", "cannot unmarshal number"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := ValidateCRD([]byte(c.json))
			if c.message == "" {
				if len(problems) > 0 {
					t.Errorf("got %v", problems)
				}
				return
			}
			for _, p := range problems {
				if p.Path == c.path && strings.Contains(p.Message, c.message) {
					return
				}
			}
			t.Errorf("got %v, want %s: %s", problems, c.path, c.message)
		})
	}
}
