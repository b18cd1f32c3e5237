package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the types in this package.
const Group = "packages.crossplane.io"

// EarlierGroup is the API group that the same kinds had before: StackInstall for PackageInstall, ClusterStackInstall
// for ClusterPackageInstall, and Stack for Package.
const EarlierGroup = "stacks.crossplane.io"

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// The kinds of this version.
const (
	ClusterPackageInstallKind = "ClusterPackageInstall"
	PackageInstallKind        = "PackageInstall"
	PackageKind               = "Package"
	StackDefinitionKind       = "StackDefinition"
)

// InstallKinds returns the kinds of install objects in display order.
func InstallKinds() []string { return []string{ClusterPackageInstallKind, PackageInstallKind} }

// Kinds returns the kinds of objects with conditions in display order: those of install objects, and Package.
func Kinds() []string { return append(InstallKinds(), PackageKind) }

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ClusterPackageInstall{}, &ClusterPackageInstallList{}, &PackageInstall{}, &PackageInstallList{},
		&Package{}, &PackageList{}, &StackDefinition{}, &StackDefinitionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
