package inventory

import (
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
)

// A CRD that the API server keeps is named with the message of its condition and its custom resources, and no command
// removes its finalizer: the custom resources would remain in the database without their CRD.
func TestDeletionDelayNamesTheConditionOfACRD(t *testing.T) {
	crd := apply.Holder{
		Resource: "customresourcedefinitions.apiextensions.k8s.io", Name: "boats.example.org",
		Finalizers: []string{"cleanup"}, Defines: "boats.example.org",
		Terminating: "could not list instances: conversion webhook failed.", Remaining: -1,
	}
	boat := apply.Holder{Resource: "boats.example.org", Namespace: "sea", Name: "titanic", Finalizers: []string{
		"example.org/hold",
	}}
	p := v1.NewPackage(v1.ProviderKind)
	reason, remedy := DeletionDelay(p, []apply.Holder{crd})
	if want := "customresourcedefinitions.apiextensions.k8s.io/boats.example.org is kept until its custom resources are deleted: could not list instances: conversion webhook failed"; reason != want {
		t.Errorf("got the reason %q, want %q", reason, want)
	}
	if !strings.Contains(remedy, "`kubectl get boats.example.org --all-namespaces`") ||
		strings.Contains(remedy, "kubectl patch") {
		t.Errorf("got the remedy %q", remedy)
	}
	crd.Remaining = 2
	reason, remedy = DeletionDelay(p, []apply.Holder{boat, crd})
	if want := "boats.example.org/titanic in sea has the finalizer example.org/hold; customresourcedefinitions.apiextensions.k8s.io/boats.example.org is kept until its 2 custom resources are deleted"; !strings.HasPrefix(
		reason, want,
	) {
		t.Errorf("got the reason %q, want %q", reason, want)
	}
	if want := "`kubectl patch boats.example.org titanic --namespace sea "; !strings.Contains(remedy, want) {
		t.Errorf("the remedy %q lacks %q", remedy, want)
	}
}

// An XRD that Crossplane core keeps is named with its composite resources and the command that deletes them: core does
// not delete those in namespaces, and without the finalizer their CRD would be deleted before them.
func TestDeletionDelayNamesTheCompositeResourcesOfAnXRD(t *testing.T) {
	xrd := apply.Holder{
		Resource: "compositeresourcedefinitions.apiextensions.crossplane.io", Name: "fleets.example.org",
		Finalizers: []string{"defined.apiextensions.crossplane.io"}, Defines: "fleets.example.org", Remaining: 1,
	}
	reason, remedy := DeletionDelay(v1.NewPackage(v1.ConfigurationKind), []apply.Holder{xrd})
	if want := "compositeresourcedefinitions.apiextensions.crossplane.io/fleets.example.org is kept until its 1 custom resource is deleted"; reason != want {
		t.Errorf("got the reason %q, want %q", reason, want)
	}
	if !strings.Contains(remedy, "`kubectl delete fleets.example.org --all --all-namespaces`") ||
		strings.Contains(remedy, "kubectl patch") {
		t.Errorf("got the remedy %q", remedy)
	}
}
