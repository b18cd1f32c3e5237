// Package crdvalidation runs the API server's own validation of custom resource definitions and of custom resources,
// without an API server. It is separate from package check because of its dependencies on the
// API server; check takes it as a function.
package crdvalidation

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// ValidateCRD returns the errors that an API server would return if the CRD were created. The
// CRD is JSON of apiextensions.k8s.io/v1, and gets the same defaulting, conversion and
// validation. The result is empty for a valid CRD. It is a [check.Validator].
func ValidateCRD(json []byte) (problems []check.Problem) {
	// A panic of the API server's code on a malicious schema must not end the program.
	defer func() {
		if p := recover(); p != nil {
			problems = []check.Problem{{Message: fmt.Sprintf("the validation failed: %v", p)}}
		}
	}()
	crd, err := internalCRD(json)
	if err != nil {
		return []check.Problem{{Message: err.Error()}}
	}
	for _, e := range validation.ValidateCustomResourceDefinition(context.Background(), crd) {
		problems = append(problems, check.Problem{Path: writtenPath(e.Field), Message: message(e)})
	}
	return problems
}

// internalCRD decodes a CRD and converts it to the internal version, which the API server
// validates.
func internalCRD(json []byte) (*apiextensions.CustomResourceDefinition, error) {
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, &v1); err != nil {
		return nil, err
	}
	v1.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	setConversionClient(v1.Spec.Conversion)
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&v1)
	var crd apiextensions.CustomResourceDefinition
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil)
	return &crd, err
}

// ReadCRD decodes a CRD, which is JSON of apiextensions.k8s.io/v1, with the defaults of the API server.
func ReadCRD(json []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, crd); err != nil {
		return nil, err
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	return crd, nil
}

// setConversionClient sets the address of a conversion webhook, which authors omit and the
// package manager sets at install.
func setConversionClient(c *apiextensionsv1.CustomResourceConversion) {
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil {
		return
	}
	c.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{
		Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "default"},
	}
}

// writtenPath reverts the effect of the conversion on field paths: it moves fields that are
// equal in all versions to places where the author did not write them.
func writtenPath(path string) string {
	for _, moved := range []struct{ to, from string }{
		{"spec.validation", "spec.versions[0].schema"},
		{"spec.subresources", "spec.versions[0].subresources"},
		{"spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"},
		{"spec.selectableFields", "spec.versions[0].selectableFields"},
		{"spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions"},
	} {
		if rest, ok := strings.CutPrefix(path, moved.to); ok {
			return moved.from + rest
		}
	}
	return path
}

// message returns the error without its field, and without structured values, which can be
// whole schemas.
func message(e *field.Error) string {
	switch e.BadValue.(type) {
	case string, bool, int, int32, int64, float64, nil:
		return e.ErrorBody()
	}
	return strings.ToLower(e.Type.String()) + ": " + e.Detail
}
