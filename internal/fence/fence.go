// Package fence builds ValidatingAdmissionPolicies that deny some identities the writes of some objects,
// regardless of RBAC.
//
// The package is pure. [Runtimes] is the fence of package runtimes, [Consents] the one of consents in annotations,
// [Transactions] the one of Transactions, [Approvals] the one of their approvals, and [Changes] the one of changes of
// packages; package crossplane has the one of Crossplane core.
package fence

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fence is a policy that applies to each write that its conditions and one of its rules match.
type Fence struct {
	// Name is the name of the policy and of its binding.
	Name string
	// Purpose completes "the policy that".
	Purpose string
	// Risk is the consequence of a missing policy, as a clause.
	Risk string
	// Conditions select the requests of the fenced identities. A request must satisfy all of them.
	Conditions []admissionv1.MatchCondition
	// Operations are the writes to which the policy applies. Empty means the creation, the update and the deletion of an
	// object.
	Operations []admissionv1.OperationType
	// Rules select the objects.
	Rules       []admissionv1.Rule
	Variables   []admissionv1.Variable
	Validations []admissionv1.Validation
}

// Objects returns the policy and its binding. Requests that the policy cannot evaluate are denied.
func (f Fence) Objects() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	operations := f.Operations
	if len(operations) == 0 {
		operations = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	}
	rules := make([]admissionv1.NamedRuleWithOperations, len(f.Rules))
	for i, rule := range f.Rules {
		rule.Scope = new(admissionv1.AllScopes)
		rules[i].RuleWithOperations = admissionv1.RuleWithOperations{
			Operations: slices.Clone(operations), Rule: rule,
		}
	}
	validations := make([]admissionv1.Validation, len(f.Validations))
	for i, v := range f.Validations {
		v.Reason = new(metav1.StatusReasonForbidden)
		validations[i] = v
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			// The API server adds the defaults of these fields: with them, the live policy equals this one.
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy: new(admissionv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{},
				ObjectSelector: &metav1.LabelSelector{},
				ResourceRules:  rules,
			},
			MatchConditions: f.Conditions,
			Variables:       f.Variables,
			Validations:     validations,
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding",
		},
		ObjectMeta: metav1.ObjectMeta{Name: f.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: f.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	return policy, binding
}

// IsInForce reports whether a live policy and its binding are exactly those of the fence, and not being deleted. The
// API server then evaluates every request to which the fence applies.
func (f Fence) IsInForce(
	policy *admissionv1.ValidatingAdmissionPolicy, binding *admissionv1.ValidatingAdmissionPolicyBinding,
) bool {
	p, b := f.Objects()
	return policy.DeletionTimestamp == nil && binding.DeletionTimestamp == nil &&
		equality.Semantic.DeepEqual(p.Spec, policy.Spec) && equality.Semantic.DeepEqual(b.Spec, binding.Spec)
}

// StaticSuffix ends the names of policies and bindings that an API server loads from files, so that no client can
// change them.
const StaticSuffix = ".static.k8s.io"

// Static returns the policy and the binding for an API server that loads them from files.
func (f Fence) Static() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	f.Name += StaticSuffix
	return f.Objects()
}
