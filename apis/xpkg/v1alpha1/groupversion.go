package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the types in this package.
const Group = "xpkg.dev"

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// TransactionKind is the kind of a Transaction.
const TransactionKind = "Transaction"

// ChangePolicyKind is the kind of a ChangePolicy.
const ChangePolicyKind = "ChangePolicy"

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Transaction{}, &TransactionList{}, &ChangePolicy{}, &ChangePolicyList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
