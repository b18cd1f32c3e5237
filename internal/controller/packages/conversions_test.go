package packages

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conversion is only turned off for a CRD that is being deleted, and whose custom resources cannot be read because
// of the webhook.
func TestConversionFailure(t *testing.T) {
	const failure = `could not list instances: conversion webhook for acme.test/v1, Kind=Boat failed: Post "https://boats.crossplane-system.svc:9443/convert": no endpoints`
	webhook := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	for name, tc := range map[string]struct {
		conversion *apiextensionsv1.CustomResourceConversion
		deleted    bool
		condition  apiextensionsv1.CustomResourceDefinitionConditionType
		message    string
		want       bool
	}{
		"failing webhook": {webhook, true, apiextensionsv1.Terminating, failure, true},
		"not deleted":     {webhook, false, apiextensionsv1.Terminating, failure, false},
		"no conversion":   {nil, true, apiextensionsv1.Terminating, failure, false},
		"turned off": {
			&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}, true,
			apiextensionsv1.Terminating, failure, false,
		},
		"in progress": {webhook, true, apiextensionsv1.Terminating, "CustomResource deletion is in progress", false},
		"finalizer": {
			webhook, true, apiextensionsv1.Terminating,
			"could not confirm zero CustomResources remaining: timed out waiting for the condition", false,
		},
		"of another condition": {webhook, true, apiextensionsv1.Established, failure, false},
	} {
		crd := apiextensionsv1.CustomResourceDefinition{}
		crd.Spec.Conversion = tc.conversion
		if tc.deleted {
			crd.DeletionTimestamp = &metav1.Time{}
		}
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{
			Type: tc.condition, Status: apiextensionsv1.ConditionTrue, Message: tc.message,
		}}
		if why, got := conversionFailure(crd); got != tc.want || got && why != failure {
			t.Errorf("%s: got %q, %t", name, why, got)
		}
	}
}
