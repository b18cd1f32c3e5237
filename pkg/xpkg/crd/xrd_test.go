package crd_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// TestVersionsOfAnXRDKeepTheirFields reads the warning of a deprecated version, and values that encoding/json escapes
// by default: pages and differences show them.
func TestVersionsOfAnXRDKeepTheirFields(t *testing.T) {
	converted, err := crd.FromXRD([]byte(`{"apiVersion":"apiextensions.crossplane.io/v1","spec":{"versions":[{"name":"v1","deprecated":true,"deprecationWarning":"use v2",` +
		`"schema":{"openAPIV3Schema":{"type":"string","default":"<","enum":["<",">=","a&b"]}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"deprecationWarning":"use v2"`, `"default":"<"`, `"enum":["<",">=","a&b"]`} {
		if !strings.Contains(string(converted), want) {
			t.Errorf("%s is not in %s", want, converted)
		}
	}
}
